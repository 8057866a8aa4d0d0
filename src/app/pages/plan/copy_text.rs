//! The answer as text, for a chat or an issue.

use leptos::prelude::*;
use vramscope_engine::format::{gib, grouped};

use super::verdict::{detail, headline};
use crate::i18n::{Words, t_string, use_i18n};
use crate::shell::{CopyButton, Store};
use crate::simulation::Simulation;
use crate::state::{command, left_out_words};
use crate::words;

/// Button that copies the verdict, the peaks, what takes the memory, the command and the link.
#[component]
pub fn CopyText() -> impl IntoView {
    let i18n = use_i18n();
    let (store, simulation) = (Store::get(), Simulation::get());
    let text = move || untrack(|| copied_text(i18n, store, simulation)).unwrap_or_default();
    view! { <CopyButton testid="copy-text" label=|i18n| t_string!(i18n, export.as_text) text /> }
}

fn copied_text(i18n: Words, store: Store, simulation: Simulation) -> Option<String> {
    let run = simulation.run()?;
    let mut lines = Vec::new();
    if let Ok(card) = &run.card {
        lines.push(format!("{}. {}", headline(i18n, card), detail(i18n, &card.fit)));
    }
    let left_out = store.reading().with(|reading| reading.good.left_out());
    for left in &left_out {
        let words = left_out_words(left);
        lines.push(format!("- {}", t_string!(i18n, not_this_run.one, what = words)));
    }
    let reserved = run.figures.peak_reserved;
    lines.push(format!(
        "{}: {} ({} B)",
        t_string!(i18n, numbers.reserved),
        gib(reserved),
        grouped(reserved.get())
    ));
    for (part, bytes) in &run.parts {
        lines.push(format!("- {}: {}", words::part(i18n, *part), gib(*bytes)));
    }
    store.write_url();
    lines.push(String::new());
    lines.push(store.reading().with(|reading| command(&reading.good)));
    lines.push(window().location().href().unwrap_or_default());
    Some(lines.join("\n"))
}
