//! Gallery of recordings: how to make one, and a searchable list.

use leptos::prelude::*;
use vramscope_engine::format::{gib, grouped};
use vramscope_engine::units::Bytes;

use super::gallery_file::Entry;
use super::page::RecordedState;
use crate::i18n::{Words, t, t_string, use_i18n};
use crate::part::{part, text};
use crate::shell::{CommandLine, Store};
use crate::state::{Key, Route};
use crate::words::count;

/// Command that records any model of transformers.
const COMMAND: &str = "python -m vramscope.record --model config.json --batch 1 --seq 2048 --images 1";
/// Command that records a training script.
const SCRIPT: &str = "python -m vramscope.record train.py --its --own args";

/// Introduction to recordings, the commands that make them, and a searchable list of the published ones.
#[component]
pub fn Gallery() -> impl IntoView {
    let i18n = use_i18n();
    view! {
        <section class="card" data-testid="recorded-intro">
            <h2>{t!(i18n, recorded.title)}</h2>
            <p class="muted">{t!(i18n, recorded.explain)}</p>
            <CommandLine text=SCRIPT testid="copy-record-script" />
            <CommandLine text=COMMAND testid="copy-record-model" />
        </section>
        <List />
    }
}

/// Lists entries under the names of their groups.
fn grouped_rows(i18n: Words, entries: Vec<Entry>) -> AnyView {
    let mut groups: Vec<(String, Vec<Entry>)> = Vec::new();
    for item in entries {
        match groups.iter_mut().find(|(name, _)| *name == item.group) {
            Some((_, entries)) => entries.push(item),
            None => groups.push((item.group.clone(), vec![item])),
        }
    }
    let groups: Vec<_> = groups
        .into_iter()
        .map(|(name, entries)| {
            let rows: Vec<_> = entries.into_iter().map(|item| row(i18n, item)).collect();
            view! {
                <h3>{text(move || group(i18n, &name))}</h3>
                <ul class="gallery">{rows}</ul>
            }
        })
        .collect();
    groups.into_any()
}

#[component]
fn List() -> impl IntoView {
    let i18n = use_i18n();
    let page = RecordedState::get();
    let wanted = RwSignal::new(String::new());
    let found = Memo::new(move |_| {
        let gallery = page.gallery.get();
        let all = gallery.iter().flat_map(|gallery| &gallery.models);
        wanted.with(|wanted| all.filter(|item| item.matches(wanted)).cloned().collect::<Vec<_>>())
    });
    let number = Memo::new(move |_| found.with(Vec::len));
    let is_there = Memo::new(move |_| {
        page.gallery
            .with(|gallery| gallery.as_ref().map(|g| !g.models.is_empty()))
    });
    let list = part(move || Some(grouped_rows(i18n, found.get())));
    view! {
        <section class="card" data-testid="gallery" data-value=text(move || number.get().to_string())>
            <div class="gallery-head">
                <h2>{t!(i18n, recorded.gallery)}</h2>
                <div class="field gallery-search">
                <input
                    type="text"
                    role="searchbox"
                    data-testid="gallery-search"
                    autocomplete="off"
                    spellcheck="false"
                    placeholder=move || t_string!(i18n, recorded.search)
                    aria-label=move || t_string!(i18n, recorded.search)
                    prop:value=text(move || wanted.get())
                    on:input:target=move |ev| wanted.set(ev.target().value())
                />
                </div>
            </div>
            <p class="muted small">{t!(i18n, recorded.gallery_explain)}</p>
            {list}
            <p class="offscreen" role="status">
                {text(move || t_string!(i18n, recorded.found, count = number.get().to_string()))}
            </p>
            <Show when=move || number.get() == 0 && is_there.get().is_some()>
                <p data-testid="gallery-none">
                    {text(move || {
                        match is_there.get() {
                            Some(false) => t_string!(i18n, recorded.no_gallery),
                            _ => t_string!(i18n, recorded.none),
                        }
                        .to_string()
                    })}
                </p>
            </Show>
        </section>
    }
}

/// Samples of a step, and how large each is.
pub fn sizes(i18n: Words, item: &Entry) -> String {
    let batch = item.batch.to_string();
    let sample = match (item.seq, &item.sample) {
        (Some(seq), _) => t_string!(i18n, recorded.tokens, count = grouped(seq)),
        (None, Some(sample)) => sample.clone(),
        (None, None) => return t_string!(i18n, recorded.batch, batch = batch),
    };
    t_string!(i18n, recorded.sizes, batch = batch, sample = sample)
}

/// A link to a recording: the model, how large it is, what its step takes.
fn row(i18n: Words, item: Entry) -> AnyView {
    let store = Store::get();
    let id = item.id.clone();
    let address = move || {
        let mut draft = store.address().draft;
        draft.set(Key::Recording, id.clone());
        draft.set(Key::Sizes, "");
        Route::Recorded.fragment(&draft.to_query())
    };
    let told = item.clone();
    let sizes = text(move || format!("{} · {}", count(i18n, told.params), sizes(i18n, &told)));
    let is_default = item.source.is_none();
    view! {
        <li>
            <a href=address data-testid="gallery-item" data-name=item.id.clone()>
                <strong>{item.title}</strong>
                <span class="gallery-need">{gib(Bytes::new(item.reserved))}</span>
                <span class="muted small">{sizes}</span>
                {is_default.then(|| view! { <span class="muted small">{t!(i18n, recorded.class_default)}</span> })}
            </a>
        </li>
    }
    .into_any()
}

fn group(i18n: Words, name: &str) -> String {
    match name {
        "image-text" => t_string!(i18n, recorded.image_text).to_string(),
        "video" => t_string!(i18n, recorded.video).to_string(),
        "detection" => t_string!(i18n, recorded.detection).to_string(),
        "video diffusion" => t_string!(i18n, recorded.diffusion).to_string(),
        "image" => t_string!(i18n, recorded.image).to_string(),
        other => other.to_owned(),
    }
}
