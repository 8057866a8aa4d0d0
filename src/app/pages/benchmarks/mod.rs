//! `/benchmarks`: compares measured cards and records, and selects the user's own card.

mod cards;
mod changes;
mod curves;
mod disk;
mod list;
mod mine;
mod page;
mod roofline;
mod states;

use leptos::prelude::*;

use crate::i18n::{t_string, use_i18n};
use crate::part::part;
use cards::Cards;
use changes::Changes;
use curves::FamilyChart;
use list::Records;
use mine::Mine;
use page::BenchmarksState;
use roofline::Roofline;
use vramscope_benchmark::Topic;

/// Page with the list of records at the top and the selected ones below.
#[component]
pub fn BenchmarksPage() -> impl IntoView {
    let i18n = use_i18n();
    let page = BenchmarksState::provide();
    let has_records = Memo::new(move |_| !page.shown.get().is_empty());
    let figures = move || {
        has_records.get().then(|| {
            view! {
                <Cards />
                <Changes />
                <div class="bench-charts">
                    <Roofline />
                    <FamilyChart id="products" topics=&[Topic::Products] />
                    <FamilyChart id="attention" topics=&[Topic::Attention] />
                    <FamilyChart id="bandwidth" topics=&[Topic::Copies, Topic::Passes, Topic::Collectives] />
                </div>
            }
            .into_any()
        })
    };
    view! {
        <main
            class="results benchmarks"
            id="results"
            tabindex="-1"
            aria-label=move || t_string!(i18n, nav.benchmarks)
        >
            <Records />
            <Mine />
            {part(figures)}
        </main>
    }
}
