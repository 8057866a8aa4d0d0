//! Loads measured points for the attention charts.

use gloo_file::File;
use leptos::prelude::*;
use vramscope_benchmark::MeasuredPoint;

use super::state::Attention;
use crate::i18n::{t, t_string, use_i18n};
use crate::widgets::{OpenFiles, dropped, read_text};

/// Button and drop area for a benchmark record with measured points; the file stays on this page.
#[component]
pub fn RecordEntry() -> impl IntoView {
    let i18n = use_i18n();
    let attention = Attention::get();
    let error = RwSignal::new(None::<String>);
    let show = move |name: String, text: &str| match MeasuredPoint::read(text) {
        Ok(points) => {
            error.set(None);
            attention.record.set(Some((name, points)));
        }
        Err(e) => error.set(Some(e.to_string())),
    };
    let take = Callback::new(move |files: Vec<File>| {
        if let Some(file) = files.first() {
            let name = file.name();
            read_text(file, move |text| show(name, &text));
        }
    });
    let state = move || match attention.record.get() {
        None => t_string!(i18n, attention.record_hint).to_string(),
        Some((name, points)) => {
            let shown = attention.shown.get().into_iter().map(|a| attention.measured(a).len());
            let shown = shown.sum::<usize>().to_string();
            let all = points.len().to_string();
            t_string!(i18n, attention.record_loaded, name = name, shown = shown, all = all).to_string()
        }
    };
    view! {
        <section class="group record" {..dropped(take)}>
            <h2>{t!(i18n, attention.record)}</h2>
            <p class="muted small" role="status" data-testid="record-state">
                {state}
            </p>
            <div class="record-tools">
                <OpenFiles
                    label=t!(i18n, attention.record_open).into_any()
                    testid="record-file"
                    accept=".json,.jsonl,application/json"
                    take
                />
                <Show when=move || attention.record.with(Option::is_some)>
                    <button type="button" class="tool" on:click=move |_| attention.record.set(None)>
                        {t!(i18n, attention.record_clear)}
                    </button>
                </Show>
            </div>
            <p class="field-error" role="alert" data-testid="record-error">
                {move || error.get()}
            </p>
        </section>
    }
}
