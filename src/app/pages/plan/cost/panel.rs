//! The card on costs: prices, what the whole run is, and the cards in order.

use leptos::prelude::*;
use vramscope_plan::cost::RankBy;

use super::editor::PriceEditor;
use super::follow::Following;
use super::grams::{GramsField, kept};
use super::list::PriceList;
use super::table::CostTable;
use crate::i18n::{t, t_string, use_i18n};
use crate::part::text;
use crate::state::Key;
use crate::widgets::SayNumber;

/// Shows what the run costs on each card and on several of them.
#[component]
pub fn CostPanel() -> impl IntoView {
    let i18n = use_i18n();
    let list = PriceList::begin();
    let following = Following::start(list);
    let grams = kept();
    let order = move |by: RankBy, words: fn(crate::i18n::Words) -> &'static str, testid: &'static str| {
        view! {
            <button
                type="button"
                class="segment"
                class:segment-on=move || following.by.get() == by
                data-testid=testid
                aria-pressed=text(move || (following.by.get() == by).to_string())
                on:click=move |_| following.by.set(by)
            >
                {text(move || words(i18n).to_owned())}
            </button>
        }
    };
    view! {
        <section
            class="card cost"
            data-testid="cost"
            aria-busy=text(move || following.is_waiting.get().to_string())
        >
            <h2>{t!(i18n, cost.title)}</h2>
            <p class="muted small">{t!(i18n, cost.explain)}</p>
            <div class="cost-asked">
                <label class="cost-samples">
                    <span>{t!(i18n, cost.samples)}</span>
                    <SayNumber key=Key::Samples step=10_000 placeholder=Signal::stored("100000".to_owned()) />
                </label>
                <GramsField grams />
                // Without prices time alone can order them.
                <div
                    class="segments-row"
                    class:absent=move || list.prices.with(|prices| prices.is_empty())
                    role="group"
                    aria-label=text(move || t_string!(i18n, cost.order).to_owned())
                >
                    {order(RankBy::Cost, |i18n| t_string!(i18n, cost.by_cost), "cost-by-cost")}
                    {order(RankBy::Time, |i18n| t_string!(i18n, cost.by_time), "cost-by-time")}
                </div>
            </div>
            <CostTable following list grams />
            <details class="finer" prop:open=untrack(move || list.prices.with(|prices| prices.is_empty())) data-testid="prices-entries">
                <summary>{t!(i18n, cost.prices)}</summary>
                <PriceEditor list />
            </details>
        </section>
    }
}
