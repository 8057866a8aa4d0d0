//! Cards of the sweep.

use leptos::prelude::*;
use vramscope_engine::device::Device;
use vramscope_engine::format::{gib, grouped};
use vramscope_engine::report::derivation::Quantity;
use vramscope_engine::units::Bytes;
use vramscope_plan::{Limit, Refusal};

use super::explain::Explained;
use super::sweep::Swept;
use crate::i18n::{Words, t, t_string, use_i18n};
use crate::part::part;
use crate::shell::Store;
use crate::simulation::Simulation;
use crate::state::{Draft, Key};
use crate::words;
use crate::worker::protocol::Largest;
use crate::worker::sweep::cards;

/// Cards of the sweep; all but the selected one can be removed, and others added.
#[component]
pub fn CardChips() -> impl IntoView {
    let i18n = use_i18n();
    let store = Store::get();
    let reading = store.reading();
    let names = Memo::new(move |_| reading.with(|r| cards(r).into_iter().map(|c| c.name).collect::<Vec<_>>()));
    let own = Memo::new(move |_| reading.with(|r| Device::by_name(&r.gpu).ok().map(|d| d.name)));
    let keep = move |names: Vec<&str>| store.set(Key::Cards, names.join(","));
    let chip = move |name: &'static str| {
        let removable = own.get() != Some(name);
        let label = t_string!(i18n, sweep.remove, card = name).to_string();
        let remove = move |_| keep(names.get_untracked().into_iter().filter(|n| *n != name).collect());
        view! {
            <li class="chip">
                <span>{name}</span>
                {removable
                    .then(|| {
                        view! {
                            <button type="button" aria-label=label on:click=remove>
                                "×"
                            </button>
                        }
                    })}
            </li>
        }
    };
    let add = move |name: String| {
        if !name.is_empty() {
            keep(names.get_untracked().into_iter().chain([&*name]).collect());
        }
    };
    let others = move || {
        let known = Device::all().iter().map(|d| d.name);
        known
            .filter(|name| names.with(|names| !names.contains(name)))
            .map(|name| view! { <option value=name>{name}</option> })
            .collect::<Vec<_>>()
    };
    view! {
        <div class="field cards-field">
            <span class="field-label">{t!(i18n, sweep.cards)}</span>
            <ul class="chips">
                {move || names.get().into_iter().map(chip).collect::<Vec<_>>()}
                <li>
                    <select
                        class="chip-add"
                        data-testid="add-card"
                        aria-label=move || t_string!(i18n, sweep.add).to_string()
                        prop:value=""
                        on:change:target=move |ev| {
                            add(ev.target().value());
                            ev.target().set_value("");
                        }
                    >
                        <option value="">{move || format!("+ {}", t_string!(i18n, sweep.add))}</option>
                        {others}
                    </select>
                </li>
            </ul>
        </div>
    }
}

/// Table of the largest value that fits each card.
#[component]
pub fn LargestTable(shown: RwSignal<Swept>) -> impl IntoView {
    let i18n = use_i18n();
    let simulation = Simulation::get();
    part(move || {
        let swept = shown.get();
        (!swept.largest.is_empty()).then(|| {
            let entries = simulation.entries.get_value();
            let rows = swept.largest.iter().map(|largest| row(i18n, largest, &swept, &entries));
            let rows: Vec<_> = rows.collect();
            view! {
                <table class="readout largest">
                    <thead>
                        <tr>
                            <th scope="col">{t_string!(i18n, sweep.card)}</th>
                            <th scope="col">{t_string!(i18n, sweep.memory)}</th>
                            <th scope="col">{t_string!(i18n, sweep.fits)}</th>
                            <th scope="col">{t_string!(i18n, sweep.takes)}</th>
                            <th scope="col">{t_string!(i18n, sweep.limited_by)}</th>
                        </tr>
                    </thead>
                    <tbody>{rows}</tbody>
                </table>
            }
            .into_any()
        })
    })
}

fn row(i18n: Words, largest: &Largest, swept: &Swept, entries: &Draft) -> impl IntoView + use<> {
    let number = |of: Quantity, value: u64, bytes: Bytes| {
        let changed = swept.entries_at(entries, value, Some(&largest.card));
        let quantity = Quantity::Changed(Box::new(of));
        view! { <Explained quantity changed text=gib(bytes) /> }.into_any()
    };
    let value = largest.found.as_ref().map_or(0, |(value, _)| *value);
    let shown = match (&largest.found, largest.open) {
        (None, _) => t_string!(i18n, sweep.none).to_string(),
        (Some((value, _)), true) => t_string!(i18n, sweep.at_least, value = grouped(*value)).to_string(),
        (Some((value, _)), false) => grouped(*value),
    };
    let takes = largest
        .found
        .as_ref()
        .map(|(value, needed)| number(Quantity::Needed, *value, needed.needed));
    let any = largest.found.as_ref().map(|(value, _)| *value);
    let any = any.or(swept.points.first().map(|point| point.value)).unwrap_or(1);
    let room = number(Quantity::Room, any, Bytes::new(largest.room));
    let (limit, why) = match &largest.limit {
        Limit::Memory => ("memory", t_string!(i18n, sweep.by_memory).to_owned()),
        Limit::Refused(Refusal::Setup(why)) => ("setup", words::setup_refusal(i18n, why)),
        Limit::Refused(Refusal::Model(why)) => ("model", why.clone()),
        Limit::Untried => ("untried", t_string!(i18n, sweep.by_nothing).to_owned()),
    };
    // Taken as the setup's own, for the card that is chosen.
    let use_it = (value > 0 && largest.card == entries.get(Key::Gpu)).then(|| {
        let (axis, store) = (swept.axis, Store::get());
        let take = move |_| {
            axis.into_iter()
                .for_each(|axis| store.set(axis.setting(), value.to_string()))
        };
        view! {
            " "
            <button type="button" class="tool" data-testid="largest-use" on:click=take>
                {t_string!(i18n, sweep.batch_use, batch = grouped(value))}
            </button>
        }
    });
    view! {
        <tr data-testid="largest-row" data-name=largest.card.clone() data-value=value.to_string() data-limit=limit>
            <th scope="row">{largest.card.clone()}</th>
            <td>{room}</td>
            <td>{shown}{use_it}</td>
            <td>{takes}</td>
            <td class="largest-limit">{why}</td>
        </tr>
    }
}
