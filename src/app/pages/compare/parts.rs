//! Table of the parts of what both need, whose differences add up to the whole.

use leptos::prelude::*;
use vramscope_engine::format::{gib, grouped};
use vramscope_engine::report::difference::more;
use vramscope_engine::report::{Difference, Part};
use vramscope_engine::tape::Kind;
use vramscope_engine::units::Bytes;

use super::row::{Amounts, Opens};
use super::tensors::Tensors;
use crate::charts::part_class;
use crate::i18n::use_i18n;
use crate::launch_words::LaunchWords;
use crate::pages::launch::Phrases;
use crate::part::{part, text};
use crate::words;

/// Difference by part, and by tensor within the parts that consist of tensors.
#[component]
pub fn PartsTable(difference: Difference) -> impl IntoView {
    let i18n = use_i18n();
    let phrases = Phrases::of(i18n);
    let largest = difference
        .parts
        .iter()
        .map(|(_, bytes)| more(*bytes).unsigned_abs())
        .max();
    let scale = largest.unwrap_or(0).max(1) as f64;
    let first = difference.tensors.first().map(|tensor| tensor.kind);
    let open = RwSignal::new(Vec::from_iter(first));
    let (sentence, exact) = sentence(phrases.now(), &difference);
    let phases = difference.phases.map(|phase| words::phase(i18n, phase));
    let rows: Vec<_> = difference
        .parts
        .iter()
        .map(|(part, bytes)| {
            let tensors: Vec<_> = match part {
                Part::Live(kind) => difference.of_kind(*kind).cloned().collect(),
                _ => Vec::new(),
            };
            view! { <PartRow part=*part bytes=*bytes scale open has_tensors=!tensors.is_empty() /> <PartTensors part=*part tensors open /> }
                .into_any()
        })
        .collect();
    view! {
        <section class="card" data-testid="difference" data-value=difference.more().to_string()>
            <h2>{phrases.live("c_where")}</h2>
            <p class="compared-sentence" title=exact>{sentence}</p>
            <p class="muted small">
                {text(move || phrases.now().say("c_phases", &[("a", &phases[0]), ("b", &phases[1])]))}
            </p>
            <table class="difference">
                <colgroup>
                    <col />
                    <col class="col-bytes" />
                    <col class="col-bytes" />
                    <col class="col-bytes" />
                    <col class="col-bar" />
                </colgroup>
                <thead>
                    <tr>
                        <th scope="col">{phrases.live("c_part")}</th>
                        <th scope="col">"A"</th>
                        <th scope="col">"B"</th>
                        <th scope="col">{phrases.live("c_difference")}</th>
                        <td></td>
                    </tr>
                </thead>
                <tbody>{rows}</tbody>
                <tfoot>
                    <tr data-testid="difference-total" data-value=difference.more().to_string()>
                        <th scope="row">{phrases.live("c_needed")}</th>
                        <Amounts bytes=difference.needed scale=0.0 />
                    </tr>
                </tfoot>
            </table>
        </section>
    }
}

/// Sentence on the bytes that B needs more or less than A, and the exact difference.
fn sentence(words: &LaunchWords, difference: &Difference) -> (String, String) {
    let [a, b] = difference.needed.map(gib);
    let more = difference.more();
    let bytes = gib(Bytes::new(more.unsigned_abs()));
    let key = match more {
        0 => "c_same",
        1.. => "c_more",
        _ => "c_less",
    };
    let sign = if more < 0 { "−" } else { "+" };
    let exact = format!("{sign}{}", grouped(more.unsigned_abs()));
    (
        words.say(key, &[("a", &a), ("b", &b), ("bytes", &bytes)]),
        words.say("c_exact", &[("bytes", &exact)]),
    )
}

/// Kind of a part that holds tensors.
const fn kind_of(part: Part) -> Option<Kind> {
    match part {
        Part::Live(kind) => Some(kind),
        _ => None,
    }
}

#[component]
fn PartRow(part: Part, bytes: [Bytes; 2], scale: f64, open: Opens, has_tensors: bool) -> impl IntoView {
    let i18n = use_i18n();
    let name = text(move || words::part(i18n, part));
    let swatch = view! { <span class=format!("swatch {}", part_class(part))></span> };
    let kind = kind_of(part).filter(|_| has_tensors);
    let name = match kind {
        None => view! { <span class="leaf">{swatch} " " {name}</span> }.into_any(),
        Some(kind) => {
            let is_open = move || open.with(|open| open.contains(&kind));
            let toggle = move |_| {
                open.update(|open| match open.iter().position(|known| *known == kind) {
                    Some(at) => drop(open.remove(at)),
                    None => open.push(kind),
                });
            };
            view! {
                <button
                    type="button"
                    class="twist"
                    aria-expanded=text(move || is_open().to_string())
                    data-testid="difference-open"
                    on:click=toggle
                >
                    <svg class="arrow" viewBox="0 0 10 10" aria-hidden="true">
                        <path d="M3 1.5l4 3.5-4 3.5" />
                    </svg>
                    {swatch}
                    " "
                    {name}
                </button>
            }
            .into_any()
        }
    };
    let kind = kind_of(part).map_or("", Kind::label);
    view! {
        <tr class="difference-part" data-testid="difference-part" data-name=kind data-value=more(bytes).to_string()>
            <th scope="row">{name}</th>
            <Amounts bytes scale />
        </tr>
    }
}

/// Tensors of a part, while it is open.
#[component]
fn PartTensors(
    part: Part,
    tensors: Vec<vramscope_engine::report::difference::TensorDifference>,
    open: Opens,
) -> impl IntoView {
    let kind = kind_of(part).filter(|_| !tensors.is_empty());
    self::part(move || {
        let kind = kind?;
        let tensors = tensors.clone();
        let is_open = open.with(|open| open.contains(&kind));
        is_open.then(|| view! { <Tensors tensors /> }.into_any())
    })
}
