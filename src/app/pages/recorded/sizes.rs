//! Sizes of a recording that covers several: controls, and the largest batch.

use std::sync::Arc;

use leptos::ev::KeyboardEvent;
use leptos::prelude::*;
use vramscope_engine::format::grouped;
use vramscope_engine::setup::{Prefix, read_count};

use super::page::RecordedState;
use super::words;
use crate::i18n::{t, t_string, use_i18n};
use crate::pages::plan::LargestBatch;
use crate::part::{part, text};
use crate::shell::Store;
use crate::state::{Key, Reading, named_counts, named_texts};
use crate::widgets::{ErrorText, error_of, stepped};
use crate::worker::Ask;
use crate::worker::recorded::{Facts, Size, set_size};

/// Name of the size that `max-batch` looks for.
const BATCH: &str = "batch";

/// Control of each size of the recording; nothing for a recording of one size.
#[component]
pub fn Sizes() -> impl IntoView {
    let i18n = use_i18n();
    let page = RecordedState::get();
    // The facts come anew with every answer, mostly with the same sizes: without the memo, each answer would build the
    // fields anew, and one that a person types into would lose the focus.
    let sizes = Memo::new(move |_| {
        let facts = page.facts.get();
        facts.map(|facts| facts.sizes.clone()).unwrap_or_default()
    });
    part(move || {
        let sizes = sizes.get();
        let controls = sizes.iter().cloned().map(|size| match size.between {
            true => view! { <Number size /> }.into_any(),
            false => view! { <Choice size /> }.into_any(),
        });
        (!sizes.is_empty()).then(|| {
            view! {
                <section class="group" data-testid="recorded-sizes">
                    <h2>{t!(i18n, recorded.sizes_title)}</h2>
                    <div class="pair">{controls.collect_view()}</div>
                    <ErrorText key=Key::Sizes error=error_of(Key::Sizes) />
                </section>
            }
            .into_any()
        })
    })
}

/// Text of a size: the one entered, or else that of the first recording.
fn entered(store: Store, size: &Size) -> String {
    let texts = named_texts(&store.text(Key::Sizes));
    let found = texts.into_iter().find(|(name, _)| *name == size.name);
    found.map_or_else(|| size.first.to_string(), |(_, text)| text)
}

/// Enters the text of a size.
fn enter(store: Store, size: &Size, text: &str) {
    // Left out, since they separate sizes in the address: one inside a text would begin another size.
    let text: String = text.chars().filter(|c| !",，、= ".contains(*c)).collect();
    store.edit(|draft| set_size(draft, &size.name, &text));
}

fn id(size: &Size) -> String {
    format!("size-{}", size.name)
}

/// A size that takes any number of a range: a text field with steps.
#[component]
fn Number(size: Size) -> impl IntoView {
    let i18n = use_i18n();
    let store = Store::get();
    let (name, id, step) = (size.name.clone(), id(&size), step(&size.recorded));
    let least = size.recorded.first().copied().unwrap_or(1);
    let most = size.recorded.last().copied().unwrap_or(least);
    let size = StoredValue::new(size);
    let now = Memo::new(move |_| size.with_value(|size| entered(store, size)));
    let go = move |up: bool| {
        let next = stepped(read_count(&now.get_untracked(), Prefix::Binary).ok(), step, least, up);
        let next = next.map(|next| next.parse().map_or(next, |n: u64| n.min(most).to_string()));
        next.into_iter()
            .for_each(|next| size.with_value(|size| enter(store, size, &next)));
    };
    let label = move || size.with_value(|size| words::size(i18n, &size.name));
    let less = move || t_string!(i18n, widget.less, what = label());
    let more = move || t_string!(i18n, widget.more, what = label());
    let range = move || t_string!(i18n, recorded.range, least = grouped(least), most = grouped(most));
    let on_key = move |event: KeyboardEvent| {
        let up = match event.key().as_str() {
            "ArrowUp" => true,
            "ArrowDown" => false,
            _ => return,
        };
        event.prevent_default();
        go(up);
    };
    view! {
        <div class="field">
            <div class="field-head">
                <label class="field-label" for=id.clone()>
                    {text(label)}
                </label>
            </div>
            <div class="field-control">
                <div class="number">
                    <button type="button" tabindex="-1" aria-label=less on:click=move |_| go(false)>
                        "−"
                    </button>
                    <input
                        id=id.clone()
                        type="text"
                        inputmode="decimal"
                        autocomplete="off"
                        data-testid=id.clone()
                        data-name=name
                        aria-describedby=format!("{id}-range")
                        prop:value=text(move || now.get())
                        on:input:target=move |ev| {
                            store.continue_typing(Key::Sizes);
                            size.with_value(|size| enter(store, size, &ev.target().value()));
                        }
                        on:focus=move |_| store.end_typing()
                        on:keydown=on_key
                    />
                    <button type="button" tabindex="-1" aria-label=more on:click=move |_| go(true)>
                        "+"
                    </button>
                </div>
                <p class="muted small size-range" id=format!("{id}-range")>
                    {text(range)}
                </p>
            </div>
        </div>
    }
}

/// A size that takes recorded values alone: a menu.
#[component]
fn Choice(size: Size) -> impl IntoView {
    let i18n = use_i18n();
    let store = Store::get();
    let (id, values) = (id(&size), size.recorded.clone());
    let size = StoredValue::new(size);
    let now = Memo::new(move |_| size.with_value(|size| entered(store, size)));
    let options = values.into_iter().map(|value| {
        let value_text = value.to_string();
        let is_chosen = {
            let value_text = value_text.clone();
            move || now.get() == value_text
        };
        view! {
            <option value=value_text selected=is_chosen>
                {grouped(value)}
            </option>
        }
    });
    view! {
        <div class="field">
            <div class="field-head">
                <label class="field-label" for=id.clone()>
                    {text(move || size.with_value(|size| words::size(i18n, &size.name)))}
                </label>
            </div>
            <div class="field-control">
                <select
                    id=id.clone()
                    data-testid=id.clone()
                    on:change:target=move |ev| size.with_value(|size| enter(store, size, &ev.target().value()))
                >
                    {options.collect_view()}
                </select>
            </div>
        </div>
    }
}

/// Step between values: the greatest common divisor of the distances between recorded ones, so that steps from the first
/// one reach them all.
fn step(recorded: &[u64]) -> u64 {
    let distances = recorded.windows(2).map(|pair| pair[1] - pair[0]);
    distances.reduce(gcd).unwrap_or(1).max(1)
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Largest batch that trains, for a recording of several batches.
#[component]
pub fn LargestBatchCard() -> impl IntoView {
    let page = RecordedState::get();
    let has_batch = Memo::new(move |_| {
        page.facts
            .with(|facts| facts.as_ref().is_some_and(|facts| batch(facts).is_some()))
    });
    part(move || has_batch.get().then(|| view! { <Batch /> }.into_any()))
}

fn batch(facts: &Arc<Facts>) -> Option<&Size> {
    facts.sizes.iter().find(|size| size.name == BATCH)
}

#[component]
fn Batch() -> impl IntoView {
    let page = RecordedState::get();
    let store = Store::get();
    let reading = store.reading();
    // The chosen batch does not matter: it is what the search varies.
    let ask = Memo::new(move |_| {
        let mut entries = reading.with(Reading::of_recorded);
        let others = named_texts(entries.get(Key::Sizes));
        entries.set(Key::Sizes, "");
        for (name, text) in others.iter().filter(|(name, _)| name != BATCH) {
            set_size(&mut entries, name, text);
        }
        let number = page.number.get()?;
        Some(Ask::RecordedBatches { number, entries })
    });
    let chosen = Memo::new(move |_| {
        let sizes = reading.with(|reading| named_counts(reading.good.get(Key::Sizes)).unwrap_or_default());
        let entered = sizes
            .into_iter()
            .find(|(name, _)| name == BATCH)
            .map(|(_, value)| value);
        let first = page
            .facts
            .with(|facts| facts.as_ref().and_then(batch).map(|size| size.first));
        entered.or(first).unwrap_or_default()
    });
    let pick = Callback::new(move |batch: u64| {
        store.edit(|draft| set_size(draft, BATCH, &batch.to_string()));
    });
    view! { <LargestBatch ask chosen pick /> }
}
