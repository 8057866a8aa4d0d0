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

/// A horizontal bar of segments. The figures stand beside it as text, so it is hidden from readers.
#[component]
pub fn Bar(segments: Vec<Segment>) -> impl IntoView {
    view! {
        <span class="bar" aria-hidden="true">
            {segments
                .into_iter()
                .filter(|s| s.share > 0.0)
                .map(|s| {
                    view! {
                        <span
                            class=format!("bar-piece {}", s.class)
                            style:width=format!("{:.4}%", s.share * 100.0)
                            title=s.title
                        ></span>
                    }
                })
                .collect_view()}
        </span>
    }
}
