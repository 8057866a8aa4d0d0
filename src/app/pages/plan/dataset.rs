//! Lengths and image sizes of a dataset on the plan page: the button that opens a file, and the place of what it tells.

mod panel;
mod reading;
mod shares;
mod table;

use gloo_file::File;
use leptos::prelude::*;

use crate::i18n::{t, use_i18n};
use crate::lazy::{Lazy, LazyPart};
use crate::shell::Given;
use crate::widgets::OpenFiles;
pub use panel::DatasetPanel;

/// Opens a dataset beside the entries that it fills.
#[component]
pub fn OpenDataset() -> impl IntoView {
    let i18n = use_i18n();
    let dataset = Given::get().dataset;
    let take = Callback::new(move |files: Vec<File>| dataset.set(files.into_iter().next()));
    view! {
        <OpenFiles
            label=t!(i18n, dataset.open).into_any()
            testid="dataset-file"
            accept=".jsonl,.ndjson,.json,.csv,.tsv"
            take
        />
    }
}

/// What the opened dataset tells; nothing before.
#[component]
pub fn DatasetPlace() -> impl IntoView {
    let dataset = Given::get().dataset;
    // Without the file itself: another file is read in the same panel.
    let is_any = Memo::new(move |_| dataset.with(Option::is_some));
    view! {
        <Show when=move || is_any.get()>
            <LazyPart of=Lazy::Dataset />
        </Show>
    }
}
