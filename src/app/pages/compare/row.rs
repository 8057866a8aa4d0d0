//! Cells of a row: what A holds, what B holds, and the difference as number and bar.

use leptos::prelude::*;
use vramscope_engine::format::{difference, exact, gib, rounds_to_nothing};
use vramscope_engine::report::difference::more;
use vramscope_engine::tape::Kind;
use vramscope_engine::units::Bytes;

/// Kinds whose tensors are shown.
pub type Opens = RwSignal<Vec<Kind>>;

/// Amounts of both, and their difference. `scale` is the difference that fills half the bar; 0 for no bar.
#[component]
pub fn Amounts(bytes: [Bytes; 2], scale: f64) -> impl IntoView {
    let more = more(bytes);
    let cells = bytes.map(|bytes| {
        view! { <td class="difference-bytes" title=exact(bytes)>{gib(bytes)}</td> }
    });
    view! {
        {cells}
        <More more />
        <td class="difference-bar" aria-hidden="true">{(scale > 0.0).then(|| bar(more, scale))}</td>
    }
}

/// Cell of a difference.
#[component]
pub fn More(more: i64) -> impl IntoView {
    let class = match more {
        more if rounds_to_nothing(more) => "difference-none",
        ..0 => "difference-less",
        _ => "difference-more",
    };
    let sign = if more < 0 { "−" } else { "+" };
    let title = format!("{sign}{}", exact(Bytes::new(more.unsigned_abs())));
    view! { <td class=format!("difference-bytes {class}") title=title>{difference(more)}</td> }
}

fn bar(more: i64, scale: f64) -> AnyView {
    let half = 50.0 * more.unsigned_abs() as f64 / scale;
    let left = if more < 0 { 50.0 - half } else { 50.0 };
    let class = if more < 0 {
        "difference-piece piece-less"
    } else {
        "difference-piece piece-more"
    };
    view! {
        <span class="difference-track">
            <span class=class style:left=format!("{left:.3}%") style:width=format!("{half:.3}%")></span>
        </span>
    }
    .into_any()
}
