//! Interactive line chart and legend swatches.

use leptos::ev::{KeyboardEvent, PointerEvent};
use leptos::html;
use leptos::prelude::*;

use super::canvas::Canvas;
use super::line_chart::LineChart;
use super::palette::Palette;
use crate::part::text;

/// A line chart that follows the pointer and the arrow keys.
#[component]
pub fn Lines(
    /// Chart without the pointer position.
    #[prop(into)]
    chart: Signal<LineChart>,
    /// Value under the pointer; `None` if the pointer is elsewhere.
    pointed: RwSignal<Option<f64>>,
    /// Value shown while the pointer is elsewhere.
    #[prop(into)]
    resting: Signal<Option<f64>>,
    /// Called when a value is clicked or reached by keyboard.
    on_pick: Callback<f64>,
    /// Accessible name of the slider.
    #[prop(into)]
    label: Signal<String>,
    /// Accessible text of the current value.
    #[prop(into)]
    spoken: Signal<String>,
    /// Id by which tests and scripts find it.
    testid: &'static str,
) -> impl IntoView {
    let frame = NodeRef::<html::Div>::new();
    let here = Memo::new(move |_| pointed.get().or(resting.get()));
    let under = move |event: &PointerEvent| {
        let bounds = frame.get()?.get_bounding_client_rect();
        let at = f64::from(event.client_x()) - bounds.left();
        chart.with_untracked(|c| c.nearest(at, bounds.width()))
    };
    let on_key = move |event: KeyboardEvent| {
        let values = chart.with_untracked(LineChart::values);
        let Some(last) = values.len().checked_sub(1) else {
            return;
        };
        let now = here.get_untracked().unwrap_or(values[0]);
        let place = values.iter().position(|v| *v >= now).unwrap_or(last);
        let next = match event.key().as_str() {
            "ArrowRight" => (place + 1).min(last),
            "ArrowLeft" => place.saturating_sub(1),
            "Home" => 0,
            "End" => last,
            _ => return,
        };
        event.prevent_default();
        pointed.set(None);
        on_pick.run(values[next]);
    };
    let draw = move |surface| {
        let mut chart = chart.get();
        chart.pointed = here.get();
        chart.draw(surface, &Palette::read())
    };
    let end = move |first: bool| {
        let values = chart.with(LineChart::values);
        let value = if first { values.first() } else { values.last() };
        value.copied().unwrap_or(0.0).to_string()
    };
    view! {
        <div
            class="cursor lines"
            node_ref=frame
            tabindex="0"
            role="slider"
            data-testid=testid
            aria-label=text(move || label.get())
            aria-valuemin=text(move || end(true))
            aria-valuemax=text(move || end(false))
            aria-valuenow=text(move || here.get().unwrap_or(0.0).to_string())
            aria-valuetext=text(move || spoken.get())
            on:pointermove=move |event| pointed.set(under(&event))
            on:pointerdown=move |event| {
                if let Some(value) = under(&event) {
                    on_pick.run(value);
                }
            }
            on:pointerleave=move |_| pointed.set(None)
            on:keydown=on_key
        >
            <Canvas draw />
        </div>
    }
}

/// A sample of a curve's line for legends.
#[component]
pub fn LineSwatch(
    /// Index of its colour and dash pattern.
    style: usize,
) -> impl IntoView {
    let dash: Vec<String> = LineChart::dash(style).iter().map(f64::to_string).collect();
    view! {
        <svg class=format!("line-swatch series-{}", style + 1) viewBox="0 0 26 8" aria-hidden="true">
            <path d="M0 4H26" stroke-dasharray=dash.join(" ") />
        </svg>
    }
}
