//! Selection of the user's own card.

use leptos::prelude::*;
use serde::Deserialize;
use vramscope_benchmark::{Class, Record};
use vramscope_engine::device::Device;
use vramscope_time::CardKernels;

use super::list::day;
use super::page::{BenchmarksState, Held};
use crate::i18n::{t, t_string, use_i18n};
use crate::part::part;
use crate::shell::{MyCard, Store};
use crate::state::{Key, Route};

/// Identity of the stored card.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct About {
    id: String,
    device: String,
    date: Option<String>,
}

/// Shows the user's own card and the effects of selecting it.
#[component]
pub fn Mine() -> impl IntoView {
    let i18n = use_i18n();
    let about = Memo::new(move |_| about());
    let is_kept = RwSignal::new(true);
    provide_context(Kept(is_kept));
    part(move || {
        let About { id, device, date } = about.get()?;
        let known = Device::by_name(&device).ok();
        let named = device.clone();
        let words = move || {
            let date = date.as_deref().map_or_else(String::new, day);
            let (device, date) = (named.clone(), date);
            match known {
                Some(_) => t_string!(i18n, benchmarks.mine_is, device = device, date = date).to_string(),
                None => t_string!(i18n, benchmarks.mine_unknown, device = device, date = date).to_string(),
            }
        };
        let plan = known.map(|card| {
            view! {
                <button
                    type="button"
                    class="tool"
                    data-testid="plan-on-mine"
                    on:click=move |_| {
                        let store = Store::get();
                        store.set(Key::Gpu, card.name);
                        store.route().set(Route::Plan);
                    }
                >
                    {t!(i18n, benchmarks.plan_on)}
                </button>
            }
        });
        let mine = view! {
            <section class="card bench-mine" data-testid="my-card" data-name=id data-value=device>
                <p role="status">{crate::part::text(words)}</p>
                <Show when=move || !is_kept.get()>
                    <p class="field-error" role="alert">{t!(i18n, benchmarks.not_kept)}</p>
                </Show>
                <div class="record-tools">
                    {plan}
                    <button type="button" class="tool" data-testid="forget-mine" on:click=move |_| MyCard::get().forget()>
                        {t!(i18n, benchmarks.forget)}
                    </button>
                </div>
            </section>
        };
        Some(mine.into_any())
    })
}

/// True if this machine stores the selection.
#[derive(Clone, Copy)]
struct Kept(RwSignal<bool>);

fn about() -> Option<About> {
    serde_json::from_str(&MyCard::get().kernels()?).ok()
}

/// Button that makes a record the user's own card.
#[component]
pub fn Choose(held: Held) -> impl IntoView {
    let i18n = use_i18n();
    let id = held.id.clone();
    let is_mine = Memo::new(move |_| about().is_some_and(|about| about.id == id));
    let can = held.record.results.iter().any(|result| result.time().is_some());
    let choose = move |_| {
        let Some(kernels) = CardKernels::text(&held.id, &held.record) else {
            BenchmarksState::get()
                .failed
                .update(|all| all.push((held.id.clone(), t_string!(i18n, benchmarks.no_kernels).into())));
            return;
        };
        let is_kept = MyCard::get().choose(kernels, &attention_of(&held.record));
        if let Some(Kept(kept)) = use_context() {
            kept.set(is_kept);
        }
    };
    let words = move || match is_mine.get() {
        true => t_string!(i18n, benchmarks.is_mine).to_string(),
        false => t_string!(i18n, benchmarks.make_mine).to_string(),
    };
    view! {
        <button
            type="button"
            class="tool"
            data-testid="make-mine"
            aria-pressed=move || is_mine.get().to_string()
            disabled=!can
            on:click=choose
        >
            {words}
        </button>
    }
}

/// The record reduced to its attention kernels without samples, which is all the attention page draws.
fn attention_of(record: &Record) -> String {
    let mut record = record.clone().without_samples();
    record.results.retain(|result| result.kernel.class == Class::Attention);
    // A record always serializes to JSON.
    serde_json::to_string(&record).unwrap_or_default()
}
