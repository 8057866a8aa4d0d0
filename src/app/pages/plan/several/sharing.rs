//! Controls for how several GPUs share a training step.

use leptos::prelude::*;
use vramscope_engine::setup::{Offload, Strategy};

use super::options::{Options, has_buckets, offloads};
use crate::i18n::{Words, t_string, use_i18n};
use crate::part::{part, text};
use crate::shell::Store;
use crate::state::{Key, Reading};
use crate::widgets::{Field, control_id, described_by};
use crate::words;
use crate::worker::several::Offered;
use crate::worker::{Answer, Ask, Engine, Slot};

/// Strategy and its options.
#[component]
pub fn Sharing() -> impl IntoView {
    let offered = follow();
    view! {
        <StrategyMenu offered />
        <NotOffered offered />
        <Options />
    }
}

/// Strategies that the current entries can take, and why not the others.
fn follow() -> RwSignal<Vec<Offered>> {
    let (engine, reading) = (Engine::get(), Store::get().reading());
    let offered = RwSignal::new(Vec::new());
    let entries = Memo::new(move |_| reading.with(Reading::entries));
    Effect::new(move || {
        engine.ask(Slot::Strategies, Ask::Strategies(entries.get()), move |answer, _| {
            if let Some(Answer::Strategies(all)) = answer
                && let Some(all) = all.open()
            {
                offered.try_set(all);
            }
        });
    });
    on_cleanup(move || engine.cancel(Slot::Strategies));
    offered
}

/// Menu of the strategies; those that the setup cannot take are there but cannot be chosen.
#[component]
fn StrategyMenu(offered: RwSignal<Vec<Offered>>) -> impl IntoView {
    let i18n = use_i18n();
    let store = Store::get();
    let used = Memo::new(move |_| store.reading().with(|r| r.good.get(Key::Strategy).to_owned()));
    let option = move |strategy: &'static Strategy| {
        let name = strategy.name();
        let is_refused = Memo::new(move |_| {
            offered.with(|all| all.iter().any(|one| one.strategy == *strategy && one.refusal.is_some()))
        });
        view! {
            <option
                value=name
                selected=move || used.with(|used| used == name)
                disabled=move || is_refused.get() && used.with(|used| used != name)
            >
                {text(move || words::choice(i18n, Key::Strategy, name))}
            </option>
        }
    };
    view! {
        <Field key=Key::Strategy>
            <select
                id=control_id(Key::Strategy)
                data-testid=Key::Strategy.name()
                aria-describedby=described_by(Key::Strategy)
                on:change:target=move |ev| choose(store, &ev.target().value())
            >
                {Strategy::ALL.iter().map(option).collect_view()}
            </select>
        </Field>
    }
}

/// Chooses a strategy; options that it does not have are dropped.
fn choose(store: Store, name: &str) {
    let strategy = Strategy::named(name).unwrap_or(Strategy::Fsdp);
    store.edit(|draft| {
        draft.set(Key::Strategy, name);
        if !strategy.shards_parameters() {
            draft.set(Key::Mp, "false");
        }
        if !strategy.is_deepspeeds() {
            draft.set(Key::Zero, "");
        }
        if !has_buckets(strategy) {
            draft.set(Key::Bucket, Key::Bucket.default_text());
        }
        let kept = Offload::named(draft.get(Key::Offload)).unwrap_or_default();
        if !offloads(strategy).contains(&kept.word()) {
            draft.set(Key::Offload, Offload::None.word());
        }
    });
}

/// Lists the strategies that the setup cannot take, with the reasons.
#[component]
fn NotOffered(offered: RwSignal<Vec<Offered>>) -> impl IntoView {
    let i18n = use_i18n();
    part(move || {
        let reasons = offered.with(|all| reasons(i18n, all));
        let n: usize = reasons.iter().map(|(names, _)| names.len()).sum();
        let rows = reasons.into_iter().map(|(names, why)| {
            view! {
                <dt>{names.join(", ")}</dt>
                <dd>{why}</dd>
            }
        });
        (n > 0).then(|| {
            view! {
                <details class="finer not-offered" data-testid="not-offered">
                    <summary>{t_string!(i18n, several.not_offered, n = n.to_string())}</summary>
                    <dl class="small">{rows.collect_view()}</dl>
                </details>
            }
            .into_any()
        })
    })
}

/// Reasons, each with the names of the strategies that it refuses.
fn reasons(i18n: Words, offered: &[Offered]) -> Vec<(Vec<String>, String)> {
    let mut all: Vec<(Vec<String>, String)> = Vec::new();
    for one in offered {
        let Some(refusal) = &one.refusal else { continue };
        let name = words::choice(i18n, Key::Strategy, one.strategy.name());
        let why = words::setup_refusal(i18n, refusal);
        match all.iter_mut().find(|(_, known)| *known == why) {
            Some((names, _)) => names.push(name),
            None => all.push((vec![name], why)),
        }
    }
    all
}
