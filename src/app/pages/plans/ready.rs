//! Prepared plans for common models and cards.

use std::sync::Arc;

use leptos::prelude::*;
use leptos::task::spawn_local;
use serde::Deserialize;
use vramscope_engine::format::gib;
use vramscope_engine::units::Bytes;
use vramscope_plan::{Choice, Nearest};

use super::entries::{planner_of, summary};
use crate::fetched::published;
use crate::i18n::{t, t_string, use_i18n};
use crate::part::part;
use crate::shell::Store;

/// A plan prepared by `cargo xtask plans`.
#[derive(Debug, Clone, Deserialize)]
struct Kept {
    model: String,
    gb: u64,
    card: String,
    planned: Bytes,
    recommended: Option<Choice>,
    nearest: Option<Nearest>,
}

/// Table of prepared plans for common models and cards: a row per memory size, a column per model.
#[component]
pub fn Ready() -> impl IntoView {
    let i18n = use_i18n();
    let store = Store::get();
    let all = RwSignal::new(Arc::<Vec<Kept>>::default());
    spawn_local(async move {
        let text = published("plans").await;
        let read = |line: &str| serde_json::from_str::<Kept>(line).ok();
        // Offline and without a cached copy there are no plans to show. `try_set`, because the page may have been left.
        all.try_set(Arc::new(text.unwrap_or_default().lines().filter_map(read).collect()));
    });
    part(move || {
        let all = all.get();
        let models = distinct(all.iter().map(|plan| plan.model.as_str()));
        let sizes = distinct(all.iter().map(|plan| (plan.gb, plan.card.as_str())));
        if models.is_empty() {
            return None;
        }
        let head: Vec<_> = models
            .iter()
            .map(|model| view! { <th scope="col">{(*model).to_owned()}</th> })
            .collect();
        let summaries: Vec<Summary> = all
            .iter()
            .map(|plan| {
                plan.recommended
                    .as_ref()
                    .map(|best| summary(i18n, best))
                    .unwrap_or_default()
            })
            .collect();
        let common = common(&summaries);
        let cell = |model: &str, card: &str| {
            let at = all.iter().position(|plan| plan.model == model && plan.card == card)?;
            Some(cell(store, &all[at], own(&summaries[at], &common)))
        };
        let rows: Vec<_> = sizes
            .iter()
            .map(|(gb, card)| {
                let cells: Vec<_> = models.iter().map(|model| cell(model, card)).collect();
                view! { <tr><th scope="row">{format!("{gb} GB")}<small class="muted">{(*card).to_owned()}</small></th>{cells}</tr> }
            })
            .collect();
        let words: Vec<&str> = common.iter().map(|(_, value)| value.as_str()).collect();
        let in_common = (!words.is_empty())
            .then(|| t_string!(i18n, recommend.ready_common, common = words.join(" · ")).to_string());
        let view = view! {
            <section class="card" data-testid="ready-plans">
                <h2>{t!(i18n, recommend.ready)}</h2>
                <p class="muted small">{t!(i18n, recommend.ready_explain)} " " {in_common}</p>
                <div class="plans-scroll" tabindex="0" role="region" aria-label=move || t_string!(i18n, recommend.ready)>
                    <table class="plans-table plans-ready">
                        <thead><tr><th scope="col">{t!(i18n, recommend.card)}</th>{head}</tr></thead>
                        <tbody>{rows}</tbody>
                    </table>
                </div>
            </section>
        };
        Some(view.into_any())
    })
}

/// Each value once, in the order in which they come first.
fn distinct<T: PartialEq>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut distinct = Vec::new();
    for value in values {
        if !distinct.contains(&value) {
            distinct.push(value);
        }
    }
    distinct
}

/// Entries and values that describe a plan.
type Summary = Vec<(String, String)>;

/// Entries that all plans share; plans for which nothing fits are ignored.
fn common(all: &[Summary]) -> Summary {
    let mut plans = all.iter().filter(|summary| !summary.is_empty());
    let mut common = plans.next().cloned().unwrap_or_default();
    for summary in plans {
        common.retain(|entry| summary.contains(entry));
    }
    common
}

/// Entries of a plan that are not shared by all.
fn own<'a>(summary: &'a Summary, common: &Summary) -> Vec<&'a (String, String)> {
    summary.iter().filter(|entry| !common.contains(entry)).collect()
}

/// Table cell of a plan: trained parts and samples first, then the other entries, then the memory used.
fn cell(store: Store, plan: &Kept, own: Vec<&(String, String)>) -> AnyView {
    let i18n = use_i18n();
    let value = plan.recommended.as_ref().and_then(|best| best.peak_reserved);
    let inner = match (&plan.recommended, own.as_slice()) {
        (Some(best), [trained, rest @ .., samples]) => {
            let details: Vec<_> = rest
                .iter()
                .map(|(entry, value)| view! { <small><span class="muted">{entry.clone()}</span> " " {value.clone()}</small> })
                .collect();
            let href = planner_of(store, best, &plan.model, &plan.card);
            let rate = best
                .samples_per_s
                .map(|rate| t_string!(i18n, recommend.rate, rate = format!("{rate:.2}")).to_string());
            view! {
                <a href=href>{format!("{} · {}", trained.1, samples.1)}</a>
                {details}
                <small class="muted">{value.map(gib)} " / " {gib(plan.planned)}</small>
                <small class="muted">{rate}</small>
            }
            .into_any()
        }
        _ => {
            let short = plan
                .nearest
                .as_ref()
                .map(|nearest| gib(nearest.short))
                .unwrap_or_default();
            view! { <span class="muted">{t_string!(i18n, recommend.ready_none, short = short).to_string()}</span> }
                .into_any()
        }
    };
    let name = format!("{} {}", plan.model, plan.card);
    let value = value.map(|bytes| bytes.get().to_string());
    view! { <td data-testid="ready-plan" data-name=name data-value=value>{inner}</td> }.into_any()
}
