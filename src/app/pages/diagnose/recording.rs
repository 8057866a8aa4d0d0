//! A recording: zoomable curve, live allocations at an instant, segments, and allocations never freed.

use leptos::ev::{KeyboardEvent, PointerEvent, WheelEvent};
use leptos::html;
use leptos::prelude::*;
use vramscope_engine::format::gib;
use vramscope_engine::units::Bytes;

use super::answer_data::{Recording, Simulated};
use super::instants::{InstantList, groups};
use super::levels::Levels;
use super::reader::Reader;
use super::segments::Segments;
use super::stack::{SIDES, paths};
use crate::i18n::phrases::diagnose;
use crate::i18n::{PhraseIndex, t_string, use_i18n};
use crate::part::part;

/// Number of columns of the curve; more would not be visible on any screen.
const COLUMNS: u32 = 800;
/// Closest zoom, in events.
const CLOSEST: u32 = 32;

/// View of a recording: zoom, stacking and selected instant.
#[derive(Debug, Clone, Copy)]
pub struct View {
    events: u32,
    peak_event: u32,
    by_frame: RwSignal<bool>,
    span: RwSignal<(u32, u32)>,
    pointed: RwSignal<Option<u32>>,
}

impl View {
    fn of(recording: &Recording) -> Self {
        Self {
            events: recording.events.max(1),
            peak_event: recording.peak_event,
            by_frame: RwSignal::new(false),
            span: RwSignal::new((0, recording.events.max(1))),
            pointed: RwSignal::new(None),
        }
    }

    /// Selected instant; the peak by default.
    pub fn instant(self) -> u32 {
        self.pointed.get().unwrap_or(self.peak_event)
    }

    /// Scales the visible width by `share`, centred on the selected instant.
    fn zoom(self, share: f64) {
        let (from, to) = self.span.get_untracked();
        let width = (f64::from(to - from) * share).round();
        let width = (width as u32).clamp(CLOSEST.min(self.events), self.events);
        let centre = self.pointed.get_untracked().unwrap_or(self.peak_event);
        let centre = if (from..to).contains(&centre) {
            centre
        } else {
            from + (to - from) / 2
        };
        let place = f64::from(centre - from) / f64::from((to - from).max(1));
        self.show(i64::from(centre) - (f64::from(width) * place).round() as i64, width);
    }

    /// Moves the visible range by a share of its width.
    fn pan(self, share: f64) {
        let (from, to) = self.span.get_untracked();
        self.show(i64::from(from) + (f64::from(to - from) * share) as i64, to - from);
    }

    fn show(self, from: i64, width: u32) {
        let from = from.clamp(0, i64::from(self.events - width)) as u32;
        self.span.set((from, from + width));
    }

    fn point(self, event: u32) {
        let event = event.min(self.events - 1);
        let (from, to) = self.span.get_untracked();
        // The keyboard may move the instant out of the visible range.
        if event < from {
            self.show(i64::from(event), to - from);
        } else if event >= to {
            self.show(i64::from(event) + 1 - i64::from(to - from), to - from);
        }
        self.pointed.set(Some(event));
    }

    /// Selects the instant under a horizontal position of the window, within the curve's bounds.
    fn point_at(self, x: i32, bounds: &web_sys::DomRect) {
        let share = (f64::from(x) - bounds.left()) / bounds.width().max(1.0);
        let (from, to) = self.span.get_untracked();
        let event = from + (share.clamp(0.0, 1.0) * f64::from(to - from - 1)).round() as u32;
        self.pointed.set(Some(event.min(self.events - 1)));
    }

    /// Zooms by the wheel with a modifier key; without one it scrolls the page as usual.
    fn on_wheel(self, event: &WheelEvent) {
        if event.ctrl_key() || event.shift_key() {
            event.prevent_default();
            let is_up = event.delta_y() + event.delta_x() < 0.0;
            self.zoom(if is_up { 0.7 } else { 1.0 / 0.7 });
        }
    }

    /// Moves the instant or the visible range by the keyboard.
    fn on_key(self, event: &KeyboardEvent) {
        let now = untrack(|| self.instant());
        let (from, to) = self.span.get_untracked();
        let step = ((to - from) / 100).max(1);
        match event.key().as_str() {
            "ArrowRight" => self.point(now.saturating_add(step)),
            "ArrowLeft" => self.point(now.saturating_sub(step)),
            "Home" => self.point(from),
            "End" => self.point(to - 1),
            "PageUp" => self.pan(-0.5),
            "PageDown" => self.pan(0.5),
            "+" | "=" => self.zoom(0.5),
            "-" => self.zoom(2.0),
            "Escape" => self.pointed.set(None),
            _ => return,
        }
        event.prevent_default();
    }

    /// Place of the instant within the visible range, as CSS.
    fn place(self) -> String {
        let (from, to) = self.span.get();
        let share = (f64::from(self.instant()) - f64::from(from)) / f64::from((to - from).max(1));
        format!("{:.4}%", 100.0 * share)
    }

    /// Returns true if the instant is in the visible range.
    fn is_seen(self) -> bool {
        let (from, to) = self.span.get();
        (from..to).contains(&self.instant())
    }
}

/// Shows one device's recording.
#[component]
pub fn RecordingView(index: u32, recording: Recording) -> impl IntoView {
    let i18n = use_i18n();
    let reader = Reader::get();
    let look = View::of(&recording);
    let title = {
        let (device, events) = (recording.device.to_string(), recording.events.to_string());
        let peak = bytes(recording.peak);
        move || {
            let (device, events, peak) = (device.clone(), events.clone(), peak.clone());
            t_string!(i18n, diagnose.recording, device = device, events = events, peak = peak).to_string()
        }
    };
    let simulated = Memo::new(move |_| {
        reader
            .answer
            .with(|answer| answer.as_ref()?.simulated.as_ref().map(|simulated| simulated.peak))
    });
    let peak = recording.peak;
    let top = Memo::new(move |_| peak.max(simulated.get().unwrap_or(0.0)) * 1.02);
    let (categories, frames) = (recording.categories.clone(), recording.frames.clone());
    view! {
        <section class="card" data-testid="recording" data-value=recording.events.to_string()>
            <h2>{title}</h2>
            <Tools look />
            <Curve index look top categories=categories.clone() frame_count=frames.len() />
            <Legend look categories frames />
            <SimulatedCurve top />
            <InstantList index look />
        </section>
        <Segments recording=recording.clone() />
        <section class="card" data-testid="never-freed">
            <h2>{move || t_string!(i18n, diagnose.never_freed)}</h2>
            {groups(i18n, reader, recording.never_freed)}
        </section>
    }
}

/// Formats bytes in GiB with two decimals.
pub fn bytes(bytes: f64) -> String {
    gib(Bytes::new(bytes as u64))
}

#[component]
fn Tools(look: View) -> impl IntoView {
    let i18n = use_i18n();
    let tool = move |testid: &'static str, name: PhraseIndex, sign: &'static str, act: Callback<()>| {
        view! {
            <button
                type="button"
                class="tool"
                data-testid=testid
                aria-label=move || i18n.phrase(name)
                title=move || i18n.phrase(name)
                on:click=move |_| act.run(())
            >
                {sign}
            </button>
        }
    };
    let by = move |testid: &'static str, name: PhraseIndex, by_frame: bool| {
        view! {
            <button
                type="button"
                class="tool"
                data-testid=testid
                aria-pressed=move || (look.by_frame.get() == by_frame).to_string()
                on:click=move |_| look.by_frame.set(by_frame)
            >
                {move || i18n.phrase(name)}
            </button>
        }
    };
    let span = move || {
        let (from, to) = look.span.get();
        let last = to.saturating_sub(1).to_string();
        t_string!(i18n, diagnose.span, from = from.to_string(), to = last)
    };
    view! {
        <div class="record-tools diagnose-tools">
            {by("v_by_category", diagnose::by_category, false)}
            {by("v_by_frame", diagnose::by_frame, true)}
            {tool("v_zoom_in", diagnose::zoom_in, "+", Callback::new(move |()| look.zoom(0.5)))}
            {tool("v_zoom_out", diagnose::zoom_out, "−", Callback::new(move |()| look.zoom(2.0)))}
            {tool("v_earlier", diagnose::earlier, "◀", Callback::new(move |()| look.pan(-0.5)))}
            {tool("v_later", diagnose::later, "▶", Callback::new(move |()| look.pan(0.5)))}
            {tool("v_whole", diagnose::whole, "↔", Callback::new(move |()| look.span.set((0, look.events))))}
            <span class="muted small" data-testid="span">{span}</span>
        </div>
    }
}

/// CSS class of a layer.
fn class(by_frame: bool, layer: usize, categories: &[String], frames: usize) -> String {
    match by_frame {
        false => format!("diagnose-{}", categories.get(layer).map_or("other", String::as_str)),
        true if layer + 1 == frames => "diagnose-before".into(),
        true => format!("diagnose-frame-{layer}"),
    }
}

/// Draws the columns of an answer; empty before there is one.
fn drawing(answer: Option<&str>, look: View, top: f64, (categories, frames): (&[String], usize)) -> String {
    let columns: Vec<Vec<f64>> = answer
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default();
    // An answer for the other stacking may still arrive.
    let layers = columns.first().map_or(0, Vec::len);
    let by_frame = layers == frames && (look.by_frame.get_untracked() || layers != categories.len());
    paths(&columns, top, |layer| class(by_frame, layer, categories, frames))
}

/// Curve with the instant selected by pointer or keyboard.
#[component]
fn Curve(index: u32, look: View, top: Memo<f64>, categories: Vec<String>, frame_count: usize) -> impl IntoView {
    let i18n = use_i18n();
    let reader = Reader::get();
    let question = reader.question();
    Effect::new(move || {
        let (from, to) = look.span.get();
        question.ask("columns", &[index, u32::from(look.by_frame.get()), from, to, COLUMNS]);
    });
    let drawn = Memo::new(move |_| {
        let answer = question.answer.get();
        drawing(answer.as_deref(), look, top.get(), (&categories, frame_count))
    });
    let frame = NodeRef::<html::Div>::new();
    let on_pointer = move |event: PointerEvent| {
        if let Some(frame) = frame.get_untracked() {
            look.point_at(event.client_x(), &frame.get_bounding_client_rect());
        }
    };
    view! {
        <div
            class="cursor diagnose-cursor"
            node_ref=frame
            tabindex="0"
            role="slider"
            data-testid="instant-slider"
            aria-label=move || t_string!(i18n, diagnose.slider)
            aria-valuemin="0"
            aria-valuemax=(look.events - 1).to_string()
            aria-valuenow=move || look.instant().to_string()
            on:pointermove=on_pointer
            on:pointerdown=on_pointer
            on:keydown=move |event| look.on_key(&event)
            on:wheel=move |event| look.on_wheel(&event)
        >
            <svg
                class="diagnose-curve"
                viewBox=format!("0 0 {} {}", SIDES.0, SIDES.1)
                preserveAspectRatio="none"
                aria-hidden="true"
                data-testid="curve"
                inner_html=move || drawn.get()
            ></svg>
            <span class="cursor-line cursor-on" class:offscreen=move || !look.is_seen() style:left=move || look.place()></span>
            <Levels top />
        </div>
    }
}

#[component]
fn Legend(look: View, categories: Vec<String>, frames: Vec<String>) -> impl IntoView {
    let i18n = use_i18n();
    let reader = Reader::get();
    part(move || {
        let by_frame = look.by_frame.get();
        let names = if by_frame { &frames } else { &categories };
        let items = names.iter().enumerate().map(|(layer, name)| {
            let words = match (by_frame, name.as_str()) {
                (true, "") => t_string!(i18n, diagnose.other_frames).to_owned(),
                (true, place) => place.to_owned(),
                (false, name) => reader.phrase(&format!("c_{}", name.replace('-', "_"))),
            };
            let look = class(by_frame, layer, &categories, frames.len());
            view! {
                <li>
                    <span class=format!("diagnose-key {look}") aria-hidden="true"></span>
                    {words}
                </li>
            }
        });
        let items: Vec<_> = items.collect();
        Some(view! { <ul class="diagnose-legend small" data-testid="legend">{items}</ul> }.into_any())
    })
}

/// Simulated step of the named run, drawn on the scale of the recording.
#[component]
fn SimulatedCurve(top: Memo<f64>) -> impl IntoView {
    let i18n = use_i18n();
    let reader = Reader::get();
    part(move || {
        let answer = reader.answer.get()?;
        let Simulated { peak, kinds, columns } = answer.simulated.as_ref()?;
        let class = |layer: usize| {
            let kind = kinds.get(layer).map_or("other", String::as_str).replace('_', "-");
            // Recordings do not distinguish these from other allocations.
            let kind = if matches!(kind.as_str(), "workspace" | "input") {
                "other".into()
            } else {
                kind
            };
            format!("diagnose-{kind}")
        };
        let drawn = paths(columns, top.get(), class);
        let title = t_string!(i18n, diagnose.simulated, peak = bytes(*peak));
        let view = view! {
            <h3>{title}</h3>
            <svg
                class="diagnose-curve"
                viewBox=format!("0 0 {} {}", SIDES.0, SIDES.1)
                preserveAspectRatio="none"
                aria-hidden="true"
                data-testid="simulated"
                inner_html=drawn
            ></svg>
        };
        Some(view.into_any())
    })
}
