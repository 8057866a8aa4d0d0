//! Formulas of one attention algorithm with numbers filled in.

use leptos::prelude::*;
use vramscope_engine::attention::{Algorithm, Bound, KernelTime, Memory, Product, Refused, Term, Time, memory, time};
use vramscope_engine::format::grouped;
use vramscope_engine::units::Bytes;

use super::state::Attention;
use crate::i18n::{Words, t, t_string, use_i18n};
use crate::part::part;
use crate::words;

/// Formulas, numbers and results of one algorithm at the current length: the tensors live at the peak, and the time of
/// each kernel.
#[component]
pub fn FormulaPanel() -> impl IntoView {
    let i18n = use_i18n();
    let attention = Attention::get();
    let title = move || {
        let name = words::algorithm(i18n, attention.chosen.get());
        let length = grouped(attention.shown_length());
        t_string!(i18n, attention.formula_at, name = name, length = length).to_string()
    };
    view! {
        <section class="card formula" data-testid="formula">
            <h2>{title}</h2>
            <Choice />
            <p class="muted small">{t!(i18n, attention.legend)}</p>
            <h3>{t!(i18n, attention.memory_sum)} " · " {t!(i18n, attention.simulated)}</h3>
            <MemoryFormula />
            <h3>{t!(i18n, attention.kernels)} " · " {t!(i18n, attention.estimated)}</h3>
            <TimeFormula />
        </section>
    }
}

#[component]
fn Choice() -> impl IntoView {
    let i18n = use_i18n();
    let attention = Attention::get();
    let one = move |algorithm: Algorithm| {
        let on = move || attention.chosen.get() == algorithm;
        view! {
            <label class="segment" class:segment-on=on>
                <input
                    type="radio"
                    name="formula"
                    value=algorithm.name()
                    data-testid=format!("formula-{}", algorithm.name())
                    prop:checked=on
                    on:change=move |_| attention.chosen.set(algorithm)
                />
                <span>{move || words::algorithm(i18n, algorithm)}</span>
            </label>
        }
    };
    view! {
        <fieldset class="segments formula-choice">
            <legend class="offscreen">{t!(i18n, attention.choose)}</legend>
            <div class="segments-row">
                {move || attention.shown.get().into_iter().map(one).collect::<Vec<_>>()}
            </div>
        </fieldset>
    }
}

fn refused(i18n: Words, why: &Refused) -> AnyView {
    let words = t_string!(i18n, attention.not_there, why = why.to_string()).to_string();
    view! { <p class="muted small">{words}</p> }.into_any()
}

#[component]
fn MemoryFormula() -> impl IntoView {
    let i18n = use_i18n();
    let attention = Attention::get();
    part(move || {
        let call = attention.call.get().ok()?;
        let found = memory(&call, attention.chosen.get(), attention.shown_length(), attention.gpu());
        Some(match found {
            Ok(memory) => memory_table(i18n, memory),
            Err(why) => refused(i18n, &why),
        })
    })
}

fn memory_table(i18n: Words, memory: Memory) -> AnyView {
    let rows: Vec<_> = memory.terms.into_iter().map(|term| term_row(i18n, term)).collect();
    let rounding = (memory.rounding > Bytes::ZERO).then(|| {
        view! {
            <tr data-testid="formula-term" data-value=memory.rounding.get().to_string()>
                <th scope="row" colspan="3">
                    {t_string!(i18n, attention.rounding)}
                </th>
                <td>{grouped(memory.rounding.get())}</td>
            </tr>
        }
    });
    view! {
        <div class="chart-rows" tabindex="0">
            <table class="formula-table stacks">
                <thead>
                    <tr>
                        <th scope="col">{t_string!(i18n, attention.what)}</th>
                        <th scope="col">{t_string!(i18n, attention.letters)}</th>
                        <th scope="col">{t_string!(i18n, attention.numbers)}</th>
                        <th scope="col">{t_string!(i18n, attention.bytes)}</th>
                    </tr>
                </thead>
                <tbody>{rows} {rounding}</tbody>
                <tfoot>
                    <tr>
                        <th scope="row" colspan="3">
                            {t_string!(i18n, attention.sum)}
                        </th>
                        <td data-testid="formula-memory" data-value=memory.peak.get().to_string()>
                            {grouped(memory.peak.get())}
                        </td>
                    </tr>
                </tfoot>
            </table>
        </div>
    }
    .into_any()
}

/// Row of the memory formula; on a phone each cell gets a line of its own, labelled with its column.
fn term_row(i18n: Words, term: Term) -> impl IntoView {
    let times = |product: &str| match term.count {
        1 => format!("{product} · {} B", term.width),
        n => format!("{n} · {product} · {} B", term.width),
    };
    let (letters, numbers) = (times(&term.elements.letters()), times(&term.elements.numbers()));
    view! {
        <tr data-testid="formula-term" data-value=term.bytes.get().to_string()>
            <th scope="row">{term.names.join("; ")}</th>
            <td class="math" data-label=t_string!(i18n, attention.letters)>{letters}</td>
            <td class="math" data-label=t_string!(i18n, attention.numbers)>{numbers}</td>
            <td data-label=t_string!(i18n, attention.bytes)>{grouped(term.bytes.get())}</td>
        </tr>
    }
}

#[component]
fn TimeFormula() -> impl IntoView {
    let i18n = use_i18n();
    let attention = Attention::get();
    part(move || {
        let call = attention.call.get().ok()?;
        let card = attention.card.get()?;
        Some(
            match time(&call, attention.chosen.get(), attention.shown_length(), card) {
                Ok(time) => time_table(i18n, time),
                Err(why) => refused(i18n, &why),
            },
        )
    })
}

fn time_table(i18n: Words, time: Time) -> AnyView {
    let rows: Vec<_> = time
        .kernels
        .into_iter()
        .map(|kernel| kernel_row(i18n, kernel))
        .collect();
    view! {
        <div class="chart-rows" tabindex="0">
            <table class="formula-table stacks">
                <thead>
                    <tr>
                        <th scope="col">{t_string!(i18n, attention.kernel)}</th>
                        <th scope="col">{t_string!(i18n, attention.flops)}</th>
                        <th scope="col">{t_string!(i18n, attention.traffic)}</th>
                        <th scope="col">{t_string!(i18n, attention.bound)}</th>
                        <th scope="col">{t_string!(i18n, attention.estimate)}</th>
                    </tr>
                </thead>
                <tbody>{rows}</tbody>
                <tfoot>
                    <tr>
                        <th scope="row" colspan="4">
                            {t_string!(i18n, attention.sum)}
                        </th>
                        <td data-testid="formula-time" data-value=time.total.as_millis().to_string()>
                            {time.total.to_string()}
                        </td>
                    </tr>
                </tfoot>
            </table>
        </div>
    }
    .into_any()
}

fn kernel_row(i18n: Words, timed: KernelTime) -> impl IntoView {
    let kernel = timed.kernel;
    let name = match kernel.launches {
        1 => kernel.name.to_owned(),
        n => format!("{} × {}", kernel.name, grouped(n)),
    };
    let sum = |of: fn(&Product) -> String| kernel.bytes.iter().map(of).collect::<Vec<_>>().join(" + ");
    let (letters, numbers) = (sum(Product::letters), sum(Product::numbers));
    let (flops, in_numbers) = match kernel.flops.value() {
        0.0 => (String::new(), String::new()),
        _ => (kernel.flops.letters(), kernel.flops.numbers()),
    };
    let bound = match timed.bound {
        Bound::Compute => t_string!(i18n, attention.bound_compute).to_string(),
        Bound::Memory => t_string!(i18n, attention.bound_memory).to_string(),
        Bound::Launch => t_string!(i18n, attention.bound_launch).to_string(),
    };
    view! {
        <tr>
            <th scope="row">{name}</th>
            <td class="math" data-label=t_string!(i18n, attention.flops)>
                <span>{flops} <span class="in-numbers">{in_numbers}</span></span>
            </td>
            <td class="math" data-label=t_string!(i18n, attention.traffic)>
                <span>{letters} <span class="in-numbers">{numbers}</span></span>
            </td>
            <td data-label=t_string!(i18n, attention.bound)>{bound}</td>
            <td data-label=t_string!(i18n, attention.estimate)>{timed.time.to_string()}</td>
        </tr>
    }
}
