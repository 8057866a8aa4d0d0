//! Rows of the tensors that differ within a part.

use leptos::prelude::*;
use vramscope_engine::format::{exact, gib, grouped, rounds_to_nothing};
use vramscope_engine::report::difference::{Alike, TensorDifference};

use super::row::More;
use crate::i18n::{Words, use_i18n};
use crate::pages::launch::Phrases;
use crate::part::part;
use crate::words;

/// Rows that are shown before the person asks for all.
const SHOWN: usize = 8;

/// The tensors with the largest differences, and the sum of the others.
#[component]
pub fn Tensors(tensors: Vec<TensorDifference>) -> impl IntoView {
    let phrases = Phrases::of(use_i18n());
    let all = RwSignal::new(false);
    part(move || {
        let words = phrases.now();
        let seen = tensors
            .iter()
            .take_while(|tensor| !rounds_to_nothing(tensor.more()))
            .count();
        let shown = if all.get() {
            tensors.len()
        } else {
            seen.clamp(1, SHOWN).min(tensors.len())
        };
        let (first, others) = tensors.split_at(shown);
        let rows: Vec<_> = first
            .iter()
            .map(|tensor| view! { <Row tensor=tensor.clone() /> }.into_any())
            .collect();
        let rest = (!others.is_empty()).then(|| {
            let more: i64 = others.iter().map(TensorDifference::more).sum();
            let count = grouped(others.len() as u64);
            let total = grouped(tensors.len() as u64);
            view! {
                <tr class="difference-tensor" data-testid="difference-rest" data-value=more.to_string()>
                    <th scope="row">
                        {words.say("c_smaller", &[("count", &count)])}
                        " "
                        <button type="button" class="tool" data-testid="difference-all" on:click=move |_| all.set(true)>
                            {words.say("c_show_all", &[("count", &total)])}
                        </button>
                    </th>
                    <td></td>
                    <td></td>
                    <More more />
                    <td></td>
                </tr>
            }
        });
        Some(view! { {rows} {rest} }.into_any())
    })
}

#[component]
fn Row(tensor: TensorDifference) -> impl IntoView {
    let i18n = use_i18n();
    let phrases = Phrases::of(i18n);
    let more = tensor.more();
    let place = place(i18n, &tensor);
    let cells = tensor.held.map(|held| match held {
        None => view! { <td class="difference-bytes muted">{phrases.now().word("c_nothing")}</td> }.into_any(),
        Some(alike) => view! {
            <td class="difference-bytes" title=exact(alike.bytes)>
                {gib(alike.bytes)}
                <span class="difference-form">{form(phrases, alike)}</span>
            </td>
        }
        .into_any(),
    });
    view! {
        <tr class="difference-tensor" data-testid="difference-tensor" data-value=more.to_string()>
            <th scope="row">
                <span class="difference-name">{tensor.name.into_owned()}</span>
                <span class="difference-place">{place}</span>
            </th>
            {cells}
            <More more />
            <td></td>
        </tr>
    }
}

/// Module, component, and why the tensors are live in the run that holds more of them.
fn place(i18n: Words, tensor: &TensorDifference) -> String {
    let [a, b] = tensor.held;
    let most = if tensor.more() > 0 { b.or(a) } else { a.or(b) };
    let why = most.map(|alike| words::why(i18n, alike.why));
    let component = words::component(i18n, tensor.component);
    let layer = Some(tensor.layer.clone()).filter(|layer| !layer.is_empty());
    let all: Vec<String> = layer.into_iter().chain([component]).chain(why).collect();
    all.join(" · ")
}

/// Number of storages, with their shape and type if all are alike.
fn form(phrases: Phrases, alike: Alike) -> String {
    let count = grouped(alike.count);
    match alike.form {
        Some((shape, dtype)) => {
            let sides: Vec<String> = shape.iter().map(u64::to_string).collect();
            let form = format!("[{}] {}", sides.join(", "), dtype.name());
            phrases.now().say("c_times", &[("count", &count), ("form", &form)])
        }
        None => phrases.now().say("c_several", &[("count", &count)]),
    }
}
