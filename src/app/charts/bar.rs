//! Horizontal bar of coloured segments.

use leptos::prelude::*;

/// A segment of a bar.
#[derive(Debug, Clone, PartialEq)]
pub struct Segment {
    /// CSS class that sets its colour.
    pub class: &'static str,
    /// Share of the whole bar, from 0 to 1.
    pub share: f64,
    /// Tooltip.
    pub title: String,
}

/// A horizontal bar of segments. Hidden from screen readers because the same figures are shown as text beside it. A
/// segment keeps its element while its share changes.
#[component]
pub fn Bar(
    /// Segments, from left to right.
    #[prop(into)]
    segments: Signal<Vec<Segment>>,
) -> impl IntoView {
    let pieces = Memo::new(move |_| segments.with(|all| all.iter().map(|s| s.class).collect::<Vec<_>>()));
    let piece = move |(place, class): (usize, &'static str)| {
        let width = move || segments.with(|all| format!("{:.4}%", all.get(place).map_or(0.0, |s| s.share) * 100.0));
        let title = move || segments.with(|all| all.get(place).map(|s| s.title.clone()));
        view! { <span class=format!("bar-piece {class}") style:width=width title=title></span> }
    };
    view! {
        <span class="bar" aria-hidden="true">
            {move || pieces.get().into_iter().enumerate().map(piece).collect_view()}
        </span>
    }
}
