//! Grid lines of the diagnosis's curves.

use leptos::prelude::*;
use vramscope_engine::units::Bytes;

use crate::charts::{tick_label, ticks};
use crate::part::part;

/// Approximate number of lines.
const LINES: u64 = 5;

/// Grid lines at round amounts over a curve whose upper edge is `top` bytes.
#[component]
pub fn Levels(top: Memo<f64>) -> impl IntoView {
    part(move || {
        let top = top.get();
        // The lower edge needs no line.
        let amounts = ticks(Bytes::new(top as u64), LINES).into_iter().skip(1);
        let line = |bytes: Bytes| {
            let height = format!("{:.3}%", 100.0 * bytes.get() as f64 / top);
            view! {
                <span class="diagnose-level" style:bottom=height>
                    <span class="small muted">{tick_label(bytes)}</span>
                </span>
            }
        };
        let lines: Vec<_> = amounts.map(line).collect();
        Some(view! { <div class="diagnose-levels" aria-hidden="true" data-testid="levels">{lines}</div> }.into_any())
    })
}
