//! Prices of cards, typed, opened from a file or saved to one.

use leptos::prelude::*;
use vramscope_engine::device::Device;
use vramscope_plan::cost::{Price, Prices};

use super::list::{PriceList, Whose};
use crate::charts::save_text;
use crate::i18n::{t, t_string, use_i18n};
use crate::part::{part, text};
use crate::simulation::Simulation;
use crate::widgets::{OpenFiles, dropped, read_text};

/// Shows the prices: a row for each card, one to add another, and files.
#[component]
pub fn PriceEditor(list: PriceList) -> impl IntoView {
    let i18n = use_i18n();
    let is_empty = Memo::new(move |_| list.prices.with(|prices| prices.is_empty()));
    let names = Memo::new(move |_| {
        list.prices
            .with(|prices| prices.cards().map(|card| card.name).collect::<Vec<_>>())
    });
    let take = Callback::new(move |files: Vec<gloo_file::File>| {
        if let Some(file) = files.first() {
            read_text(file, move |text| list.take(&text));
        }
    });
    let note = part(move || {
        let words = list.prices.with(|prices| of_when(prices));
        let words = match (is_empty.get(), list.whose.get(), words) {
            (true, ..) => t_string!(i18n, cost.no_prices).to_owned(),
            (_, Whose::Team, Some(when)) => t_string!(i18n, cost.of_team, when = when),
            (_, Whose::Team, None) => t_string!(i18n, cost.of_team_undated).to_owned(),
            (_, Whose::Own, Some(when)) => t_string!(i18n, cost.own, when = when),
            (_, Whose::Own, None) => t_string!(i18n, cost.own_undated).to_owned(),
        };
        Some(view! { <p class="muted small" data-testid="prices-note">{words}</p> }.into_any())
    });
    let fault = part(move || {
        let why = list.fault.get()?;
        Some(view! { <p class="field-error" role="alert" data-testid="prices-fault">{why}</p> }.into_any())
    });
    let save = move |_| {
        let text = list.prices.with_untracked(|prices| prices.to_csv());
        save_text(&text, "text/csv", "prices.csv");
    };
    view! {
        <div class="prices" data-testid="prices" {..dropped(take)}>
            {note}
            <ul class="price-rows">
                <For each=move || names.get() key=|name| *name let:name>
                    <PriceRow list name />
                </For>
            </ul>
            <AddCard list />
            <div class="plans-tools">
                <OpenFiles
                    label=t!(i18n, cost.open).into_any()
                    testid="prices-open"
                    accept=".csv,.json,text/csv,application/json"
                    take
                />
                <Show when=move || !is_empty.get()>
                    <button type="button" class="tool" data-testid="prices-save" on:click=save>
                        {t!(i18n, cost.save)}
                    </button>
                    <button type="button" class="tool" data-testid="prices-clear" on:click=move |_| list.clear()>
                        {t!(i18n, cost.clear)}
                    </button>
                </Show>
            </div>
            {fault}
        </div>
    }
}

/// The days of the prices, in words; `None` if no row has one.
fn of_when(prices: &Prices) -> Option<String> {
    let [first, last] = prices.days()?;
    Some(if first == last {
        first.to_owned()
    } else {
        format!("{first} – {last}")
    })
}

/// The price of one card, which can be changed and removed.
#[component]
fn PriceRow(list: PriceList, name: &'static str) -> impl IntoView {
    let i18n = use_i18n();
    let row = Memo::new(move |_| {
        let card = Device::by_name(name).ok()?;
        list.prices.with(|prices| prices.row(card).cloned())
    });
    let price = move || row.with(|row| row.as_ref().map_or_else(String::new, |row| row.per_hour.to_string()));
    let currency = move || row.with(|row| row.as_ref().and_then(|row| row.currency.clone()).unwrap_or_default());
    let about = move || row.with(|row| row.as_ref().map(about).unwrap_or_default());
    let change = move |typed: String| {
        // What is no price leaves the one before, which the field shows again.
        if let (Ok(card), Some(per_hour)) = (Device::by_name(name), amount(&typed)) {
            list.set(card, Some(per_hour));
        }
    };
    let remove = move |_| {
        if let Ok(card) = Device::by_name(name) {
            list.set(card, None);
        }
    };
    let label = move || t_string!(i18n, cost.price_of, card = name);
    view! {
        <li class="price-row" data-testid="price-row" data-name=name title=about>
            <span class="price-card">{name}</span>
            <input
                class="price-field"
                type="text"
                inputmode="decimal"
                autocomplete="off"
                aria-label=text(label)
                data-testid="price"
                prop:value=text(price)
                on:click:target=move |ev| ev.target().select()
                on:change:target=move |ev| {
                    change(ev.target().value());
                    ev.target().set_value(&untrack(price));
                }
            />
            <span class="muted small">{currency}" / h"</span>
            <button
                type="button"
                class="price-remove"
                aria-label=text(move || t_string!(i18n, sweep.remove, card = name))
                on:click=remove
            >
                "×"
            </button>
        </li>
    }
}

/// Day and source of a price.
fn about(price: &Price) -> String {
    [&price.date, &price.source]
        .into_iter()
        .flatten()
        .cloned()
        .collect::<Vec<_>>()
        .join(" · ")
}

/// A price as people write it, with a point or a comma.
pub fn amount(typed: &str) -> Option<f64> {
    let typed = typed.trim().trim_start_matches(['$', '€', '£', '¥']).trim();
    let value: f64 = typed.replace(',', ".").parse().ok()?;
    (value >= 0.0 && value.is_finite()).then_some(value)
}

/// A card and its price, for the list. It proposes the card that is planned for.
#[component]
fn AddCard(list: PriceList) -> impl IntoView {
    let i18n = use_i18n();
    let meant = Memo::new(move |_| {
        Simulation::get()
            .card()
            .and_then(Result::ok)
            .map(|card| card.name.clone())
    });
    let chosen = RwSignal::new(None::<String>);
    let typed = RwSignal::new(String::new());
    let is_open = move |name: &str| list.prices.with(|prices| prices.cards().all(|card| card.name != name));
    let now = Memo::new(move |_| {
        let wanted = chosen.get().or_else(|| meant.get()).filter(|name| is_open(name));
        wanted.or_else(|| {
            Device::all()
                .iter()
                .map(|card| card.name)
                .find(|name| is_open(name))
                .map(str::to_owned)
        })
    });
    let options = move || {
        let open = Device::all().iter().map(|card| card.name).filter(|name| is_open(name));
        open.map(|name| {
            view! {
                <option value=name selected=move || now.with(|now| now.as_deref() == Some(name))>
                    {name}
                </option>
            }
        })
        .collect_view()
    };
    let add = move |event: leptos::ev::SubmitEvent| {
        event.prevent_default();
        let card = now.get_untracked().and_then(|name| Device::by_name(&name).ok());
        match (card, typed.with_untracked(|typed| amount(typed))) {
            (Some(card), Some(per_hour)) => {
                list.set(card, Some(per_hour));
                typed.set(String::new());
                chosen.set(None);
            }
            _ => list
                .fault
                .set(Some(t_string!(i18n, cost.no_amount, text = typed.get_untracked()))),
        }
    };
    view! {
        <form class="price-row price-add" on:submit=add>
            <select
                aria-label=text(move || t_string!(i18n, sweep.card).to_owned())
                data-testid="price-card"
                on:change:target=move |ev| chosen.set(Some(ev.target().value()))
            >
                {options}
            </select>
            <input
                class="price-field"
                type="text"
                inputmode="decimal"
                autocomplete="off"
                placeholder="2.50"
                aria-label=text(move || t_string!(i18n, cost.price_each).to_owned())
                data-testid="price-new"
                prop:value=typed
                on:click:target=move |ev| ev.target().select()
                on:input:target=move |ev| typed.set(ev.target().value())
            />
            <span class="muted small">"/ h"</span>
            <button type="submit" class="tool" data-testid="price-add">
                {t!(i18n, cost.add)}
            </button>
        </form>
    }
}
