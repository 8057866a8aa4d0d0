//! Cards in order, each with what it takes; those that do not run it behind, with the reason.

use leptos::prelude::*;
use vramscope_engine::device::Device;
use vramscope_engine::format::{gib, grouped};
use vramscope_engine::setup::{Parallel, Strategy};
use vramscope_engine::units::Seconds;
use vramscope_engine::verdict::Verdict;
use vramscope_plan::cost::{CostRow, RankBy, kg_co2};

use super::follow::Following;
use super::list::PriceList;
use crate::i18n::{Words, t, t_string, use_i18n};
use crate::part::part;
use crate::shell::Store;
use crate::state::{Key, Reading, world};
use crate::words;

/// Rows that are shown before all are asked for.
const FIRST: usize = 8;

/// Table of the cards.
#[component]
pub fn CostTable(
    following: Following,
    list: PriceList,
    /// Grams of CO₂ for a kilowatt-hour, if known.
    grams: RwSignal<Option<f64>>,
) -> impl IntoView {
    let i18n = use_i18n();
    let all = RwSignal::new(false);
    let store = Store::get();
    let taken = Memo::new(move |_| store.reading().with(|reading| (card_of(reading), world(&reading.good))));
    part(move || {
        let rows = following.ranked();
        if rows.is_empty() {
            let progress = following.progress.get();
            let words = match following.is_waiting.get() {
                true => t_string!(
                    i18n,
                    sweep.computing,
                    done = grouped(progress.done.into()),
                    of = grouped(progress.of.into())
                ),
                false => t_string!(i18n, cost.nothing).to_owned(),
            };
            return Some(view! { <p class="muted" role="status">{words}</p> }.into_any());
        }
        let shown = Shown::of(i18n, &rows, list, following.by.get(), grams.get());
        let (here, others): (Vec<&CostRow>, Vec<&CostRow>) = rows.iter().partition(|row| runs(row));
        let most = if all.get() { usize::MAX } else { FIRST };
        let left = here.len().saturating_sub(most);
        let body = here
            .iter()
            .take(most)
            .map(|row| shown.row(row, &taken.get()))
            .collect_view();
        let behind = others.iter().map(|row| shown.refused(row)).collect_view();
        let hidden = others.len();
        let behind = (hidden > 0).then(|| {
            view! {
                <details class="cost-behind" data-testid="cost-behind">
                    <summary>{t_string!(i18n, cost.behind, n = grouped(hidden as u64))}</summary>
                    <ul>{behind}</ul>
                </details>
            }
        });
        let more = (left > 0).then(|| {
            view! {
                <button type="button" class="tool" data-testid="cost-all" on:click=move |_| all.set(true)>
                    {t_string!(i18n, cost.all, n = grouped(left as u64))}
                </button>
            }
        });
        let none = here.is_empty().then(|| view! { <p>{t!(i18n, cost.nowhere)}</p> });
        let table = (!here.is_empty()).then(|| {
            view! {
                <div class="plans-scroll">
                    <table class="plans-table cost-table">
                        <thead>{shown.head()}</thead>
                        <tbody>{body}</tbody>
                    </table>
                </div>
            }
        });
        Some(view! { {none} {table} {more} {behind} }.into_any())
    })
}

fn runs(row: &CostRow) -> bool {
    matches!(&row.fit, Ok(fit) if fit.verdict != Verdict::Oom)
}

fn card_of(reading: &Reading) -> Option<&'static str> {
    Device::by_name(&reading.gpu).ok().map(|card| card.name)
}

/// Columns of which something is known.
#[derive(Clone)]
struct Shown {
    i18n: Words,
    currency: String,
    has_price: bool,
    has_run: bool,
    has_tokens: bool,
    has_energy: bool,
    /// Grams of CO₂ for a kilowatt-hour, if they and the energy are known.
    grams: Option<f64>,
    /// Largest price or time of a sample, which a whole bar stands for.
    most: f64,
    by: RankBy,
}

impl Shown {
    fn of(i18n: Words, rows: &[CostRow], list: PriceList, by: RankBy, grams: Option<f64>) -> Self {
        let costs = || rows.iter().filter_map(|row| row.cost);
        let has_price = costs().any(|cost| cost.per_hour.is_some());
        let by = if has_price { by } else { RankBy::Time };
        let mut shown = Self {
            i18n,
            currency: list
                .prices
                .with(|prices| prices.currency().unwrap_or_default().to_owned()),
            has_price,
            has_run: costs().any(|cost| cost.hours.is_some()),
            has_tokens: costs().any(|cost| cost.per_million_tokens.is_some()),
            has_energy: costs().any(|cost| cost.kwh_at_most.is_some()),
            grams: grams.filter(|_| costs().any(|cost| cost.kwh_at_most.is_some())),
            most: 0.0,
            by,
        };
        shown.most = rows.iter().filter_map(|row| shown.measure(row)).fold(0.0, f64::max);
        shown
    }

    /// What the bar of a row shows: the price or the time of a thousand samples.
    fn measure(&self, row: &CostRow) -> Option<f64> {
        let cost = row.cost?;
        match self.by {
            RankBy::Cost => cost.per_thousand_samples,
            RankBy::Time => Some(1e3 / cost.samples_per_s),
        }
    }

    fn head(&self) -> AnyView {
        let i18n = self.i18n;
        let of_currency = |words: &'static str| match &*self.currency {
            "" => words.to_owned(),
            currency => format!("{words}, {currency}"),
        };
        let number = |words: String| view! { <th scope="col" class="plans-number">{words}</th> };
        let price = self
            .has_price
            .then(|| number(of_currency(t_string!(i18n, cost.per_hour))));
        let per = match self.has_tokens {
            true => t_string!(i18n, cost.per_tokens),
            false => t_string!(i18n, cost.per_samples),
        };
        let per = self.has_price.then(|| number(of_currency(per)));
        let hours = self.has_run.then(|| number(t_string!(i18n, cost.hours).to_owned()));
        let run = (self.has_run && self.has_price).then(|| number(of_currency(t_string!(i18n, cost.run))));
        let energy = self.has_energy.then(|| number(t_string!(i18n, cost.energy).to_owned()));
        let co2 = self.grams.map(|_| number(t_string!(i18n, cost.co2).to_owned()));
        view! {
            <tr>
                <th scope="col">{t_string!(i18n, cost.cards)}</th>
                <th scope="col" class="plans-number">{t_string!(i18n, cost.free)}</th>
                <th scope="col" class="plans-number">{t_string!(i18n, cost.step)}</th>
                <th scope="col" class="plans-number">{t_string!(i18n, cost.speed)}</th>
                {price}
                {hours}
                {per}
                {run}
                {energy}
                {co2}
            </tr>
        }
        .into_any()
    }

    fn row(&self, row: &CostRow, taken: &(Option<&'static str>, u64)) -> AnyView {
        let i18n = self.i18n;
        let cost = row.cost;
        let of = |value: Option<f64>, digits: usize| value.map_or_else(|| "–".to_owned(), |n| format!("{n:.digits$}"));
        let number = |value: String| view! { <td class="plans-number">{value}</td> };
        let is_taken = taken.0 == Some(&*row.card) && taken.1 == row.gpus;
        let fit = row.fit.as_ref().ok();
        let is_tight = fit.is_some_and(|fit| fit.verdict == Verdict::Tight);
        let step = cost.map_or_else(
            || t_string!(i18n, cost.untimed).to_owned(),
            |cost| Seconds::new(cost.step_ms / 1e3).to_string(),
        );
        let per = cost.and_then(|cost| match self.has_tokens {
            true => cost.per_million_tokens,
            false => cost.per_thousand_samples,
        });
        let value = cost.and_then(|cost| cost.per_thousand_samples);
        let kwh = cost.and_then(|cost| cost.kwh_at_most);
        let named = |testid: &'static str, value: Option<f64>| {
            let raw = value.map(|value| value.to_string());
            view! {
                <td class="plans-number" data-testid=testid data-value=raw>
                    {of(value, 1)}
                </td>
            }
        };
        view! {
            <tr
                class:plans-here=is_taken
                data-testid="cost-row"
                data-name=row.card.clone()
                data-gpus=row.gpus.to_string()
                data-value=value.map(|value| value.to_string())
            >
                {self.name(row, is_taken)}
                <td class="plans-number" class:cost-tight=is_tight>
                    {fit.map(|fit| gib(fit.spare()))}
                </td>
                {number(step)}
                {number(of(cost.map(|cost| cost.samples_per_s), 2))}
                {self.has_price.then(|| number(of(cost.and_then(|cost| cost.per_hour), 2)))}
                {self.has_run.then(|| number(of(cost.and_then(|cost| cost.hours), 1)))}
                {self.has_price.then(|| number(of(per, 3)))}
                {(self.has_run && self.has_price).then(|| number(of(cost.and_then(|cost| cost.run), 2)))}
                {self.has_energy.then(|| named("cost-energy", kwh))}
                {self.grams.map(|grams| named("cost-co2", kwh.map(|kwh| kg_co2(kwh, grams))))}
            </tr>
        }
        .into_any()
    }

    /// The cards of a row, as a button that takes them for the setup, and a bar of what is ordered by.
    fn name(&self, row: &CostRow, is_taken: bool) -> AnyView {
        let share = self
            .measure(row)
            .map(|value| 100.0 * value / self.most.max(f64::MIN_POSITIVE));
        let bar = share.map(|share| {
            view! {
                <span class="cost-bar" aria-hidden="true">
                    <span style:width=format!("{share:.1}%")></span>
                </span>
            }
        });
        // Both forms of DDP have one name here: what differs is who owns the gradients' bytes.
        let how = row.strategy.map(|strategy| match strategy {
            Strategy::DdpView => Strategy::Ddp,
            strategy => strategy,
        });
        let how = how.map(|strategy| words::choice(self.i18n, Key::Strategy, strategy.name()));
        let cards = format!("{} × {}", row.gpus, row.card);
        let (store, card, gpus, strategy) = (Store::get(), row.card.clone(), row.gpus, row.strategy);
        let take = move |_| {
            let said = store.reading().with_untracked(|reading| reading.parallel);
            let parallel = strategy.map(|strategy| Parallel {
                world: gpus,
                strategy,
                // Options are of one strategy.
                ..said.filter(|said| said.strategy == strategy).unwrap_or_default()
            });
            store.edit(|draft| {
                draft.set(Key::Gpu, card.clone());
                match &parallel {
                    Some(parallel) => draft.share(Some(parallel)),
                    None => draft.set(Key::World, "1"),
                }
            });
        };
        view! {
            <th scope="row">
                <button
                    type="button"
                    class="cost-take"
                    data-testid=format!("cost-take/{cards}")
                    aria-pressed=is_taken.to_string()
                    on:click=take
                >
                    {cards.clone()}
                </button>
                <small class="muted">{how}</small>
                {bar}
            </th>
        }
        .into_any()
    }

    /// A card that does not run it, and why.
    fn refused(&self, row: &CostRow) -> AnyView {
        let i18n = self.i18n;
        let why = match &row.fit {
            Ok(fit) => t_string!(i18n, cost.lacks, needed = gib(fit.needed), room = gib(fit.room)),
            Err(why) => words::setup_refusal(i18n, why),
        };
        view! {
            <li class="muted" data-testid="cost-refused" data-name=row.card.clone()>
                <strong>{format!("{} × {}", row.gpus, row.card)}</strong>
                " "
                {why}
            </li>
        }
        .into_any()
    }
}
