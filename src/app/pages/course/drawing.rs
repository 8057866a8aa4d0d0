//! Draws curves, bars and squares as SVG.

use leptos::prelude::*;

use crate::course::{Drawing, Shape, WIDTH};

/// Draws a drawing with its caption.
pub fn drawn(drawing: Drawing) -> AnyView {
    let Drawing {
        height,
        label,
        has_caption,
        shapes,
    } = drawing;
    let caption = has_caption.then(|| view! { <p class="muted small">{label.clone()}</p> });
    let svg = (!shapes.is_empty()).then(|| {
        view! {
            <svg class="course-drawing" viewBox=format!("0 0 {WIDTH} {height:.0}") role="img" aria-label=label>
                {shapes.into_iter().map(shape).collect_view()}
            </svg>
        }
    });
    view! {
        {svg}
        {caption}
    }
    .into_any()
}

fn shape(shape: Shape) -> AnyView {
    let tenths = |v: f64| format!("{v:.1}");
    match shape {
        Shape::Path { class, commands } => view! { <path class=class d=commands></path> }.into_any(),
        Shape::Curve(points) => {
            let points: Vec<_> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
            view! { <polyline class="curve" points=points.join(" ")></polyline> }.into_any()
        }
        Shape::Dot(x, y) => view! { <circle class="dot" cx=tenths(x) cy=tenths(y) r="5"></circle> }.into_any(),
        Shape::Rect { class, from, size } => view! {
            <rect class=class x=tenths(from.0) y=tenths(from.1) width=tenths(size.0) height=tenths(size.1)></rect>
        }
        .into_any(),
        Shape::Text { at, anchor, words } => view! {
            <text x=tenths(at.0) y=tenths(at.1) text-anchor=anchor>
                {words}
            </text>
        }
        .into_any(),
    }
}
