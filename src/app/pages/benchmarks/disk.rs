//! Card of the page that accepts record files.

use gloo_file::File;
use leptos::prelude::*;

use super::page::BenchmarksState;
use crate::i18n::{t, use_i18n};
use crate::widgets::{OpenFiles, dropped, read_text};

/// A card of the page that accepts files by drag and drop or through a button.
#[component]
pub fn Disk(children: Children) -> impl IntoView {
    let i18n = use_i18n();
    let page = BenchmarksState::get();
    let take = Callback::new(move |files: Vec<File>| {
        page.failed.set(Vec::new());
        for file in files {
            read_text(&file, {
                let name = file.name();
                move |text| page.take(name, &text)
            });
        }
    });
    view! {
        <section class="card bench-records" {..dropped(take)}>
            {children()}
            <div class="record-tools">
                <OpenFiles
                    label=t!(i18n, benchmarks.open).into_any()
                    testid="bench-files"
                    accept=".json,application/json"
                    multiple=true
                    take
                />
                <span class="muted small">{t!(i18n, benchmarks.drop)}</span>
            </div>
            <Failed />
        </section>
    }
}

/// Lists the files and records that could not be read or fetched, with the reason.
#[component]
fn Failed() -> impl IntoView {
    let page = BenchmarksState::get();
    let lines = crate::part::part(move || {
        let all = page.failed.get();
        let lines: Vec<_> = all
            .into_iter()
            .map(|(name, why)| view! { <p class="field-error">{format!("{name}: {why}")}</p> })
            .collect();
        (!lines.is_empty()).then(|| lines.into_any())
    });
    view! {
        <div role="alert" data-testid="bench-failed">
            {lines}
        </div>
    }
}
