//! Numbers of a formula.

use leptos::prelude::*;
use vramscope_engine::format::{exact, grouped};
use vramscope_engine::report::derivation::{Formula, Term, Unit};
use vramscope_engine::units::Bytes;

use super::Explanation;
use crate::i18n::{Words, t_string, use_i18n};
use crate::words;

/// Maximum number of lines; the rest is added up in one more.
const LINES: usize = 24;

/// Numbers of a formula: a sum, difference or maximum line by line, anything else on one line.
#[component]
pub fn Parts(formula: Formula, unit: Unit) -> impl IntoView {
    let i18n = use_i18n();
    match formula {
        Formula::Sum(parts) | Formula::Highest(parts) => view! { <Lines parts unit /> }.into_any(),
        Formula::Difference(of) => view! { <Lines parts=of.to_vec() unit /> }.into_any(),
        formula => words::numbers(i18n, &formula).into_any(),
    }
}

#[component]
fn Lines(parts: Vec<Formula>, unit: Unit) -> impl IntoView {
    let i18n = use_i18n();
    let (shown, rest) = parts.split_at(parts.len().min(LINES));
    let rest = (!rest.is_empty()).then(|| {
        let name = t_string!(i18n, derivation.more, n = rest.len().to_string()).to_string();
        let value = rest.iter().map(Formula::value).sum();
        view! {
            <tr>
                <th scope="row">{name}</th>
                <td></td>
                <td>{amount(value, unit)}</td>
            </tr>
        }
    });
    let lines = shown.iter().map(|part| view! { <Line part=part.clone() unit /> });
    view! {
        <table class="parts">
            <tbody>{lines.collect_view()} {rest}</tbody>
        </table>
    }
}

#[component]
fn Line(part: Formula, unit: Unit) -> impl IntoView {
    let i18n = use_i18n();
    let explanation = Explanation::get();
    let value = amount(part.value(), unit);
    let name = match &part {
        Formula::Number(Term::Of(quantity), _) => {
            let (name, quantity) = (words::quantity(i18n, quantity), quantity.clone());
            view! {
                <button type="button" class="explained" on:click=move |_| explanation.enter(quantity.clone())>
                    {name}
                </button>
            }
            .into_any()
        }
        part => label(i18n, part).into_any(),
    };
    let numbers = (!matches!(part, Formula::Number(..))).then(|| words::numbers(i18n, &part));
    view! {
        <tr>
            <th scope="row">{name}</th>
            <td>{numbers}</td>
            <td>{value}</td>
        </tr>
    }
}

/// Label of a part: the name of the weights, or the size of the segments.
fn label(i18n: Words, part: &Formula) -> String {
    match part {
        Formula::Product(factors) => match factors.first() {
            Some(Formula::Number(Term::Weights(name), _)) => name.clone(),
            Some(Formula::Number(Term::Segments, _)) => {
                let size = factors.get(1).map_or(0, Formula::value);
                t_string!(i18n, derivation.segments_of, size = Bytes::new(size).to_string()).to_string()
            }
            _ => words::symbols(i18n, part),
        },
        part => words::symbols(i18n, part),
    }
}

fn amount(value: u64, unit: Unit) -> String {
    match unit {
        Unit::Bytes => exact(Bytes::new(value)),
        Unit::Count => grouped(value),
    }
}
