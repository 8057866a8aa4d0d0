use leptos::prelude::*;

/// One piece of a bar.
#[derive(Debug, Clone, PartialEq)]
pub struct Segment {
    /// The class that colours it.
    pub class: &'static str,
    /// Its share of the bar's whole length, from 0 to 1.
    pub share: f64,
    /// What it is, shown by the pointer.
    pub title: String,
}

/// A horizontal bar of segments. The figures stand beside it as text, so it is hidden from readers. A piece stays
/// the same element while its share changes.
#[component]
pub fn Bar(
    /// The pieces, from the start of the line.
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
