use leptos::prelude::*;

use super::reader::{Finding, Gap, Said};
use crate::i18n::{Place, Words, phrases, t, t_string, use_i18n};

/// A phrase of a finding, followed as the language changes.
pub fn say(words: Words, said: &Said) -> String {
    let values = said.gaps.iter().map(|gap| match gap {
        Gap::Text(text) => text.clone(),
        Gap::Phrase(key) => place(key).map_or_else(|| key.clone(), |place| words.phrase(place).to_owned()),
    });
    match place(&said.key) {
        Some(place) => words.with(place, &values.collect::<Vec<_>>()),
        None => said.key.clone(),
    }
}

/// Where a phrase of this key stands.
pub fn place(key: &str) -> Option<Place> {
    let all = phrases::finding::PLACES;
    all.iter().find(|(known, _)| *known == key).map(|&(_, place)| place)
}

/// One conclusion: how sure, in a sentence, its numbers, what to do, and where the course explains it.
#[component]
pub fn FindingView(finding: Finding) -> impl IntoView {
    let i18n = use_i18n();
    let Finding {
        code,
        standing,
        row,
        title,
        numbers,
        next,
        gauge,
    } = finding;
    let list = move |all: Vec<Said>| -> Vec<_> {
        all.into_iter()
            .map(|said| view! { <li>{crate::part::text(move || say(i18n, &said))}</li> })
            .collect()
    };
    let label = {
        let standing = standing.clone();
        move || {
            match standing.as_str() {
                "cause" => t_string!(i18n, diagnose.cause),
                "likely" => t_string!(i18n, diagnose.likely),
                "possible" => t_string!(i18n, diagnose.possible),
                "note" => t_string!(i18n, diagnose.note),
                _ => t_string!(i18n, diagnose.ruled_out),
            }
            .to_string()
        }
    };
    let bar = gauge.filter(|(_, whole)| *whole > 0.0).map(|(part, whole)| {
        let share = (part / whole).clamp(0.0, 1.0);
        view! { <meter class="diagnose-gauge" aria-hidden="true" min="0" max="1" value=share.to_string()></meter> }
    });
    view! {
        <section class="card diagnose-finding" data-testid="finding" data-name=code data-value=standing>
            <h2>
                <span class="diagnose-standing">{label}</span>
                " "
                {crate::part::text(move || say(i18n, &title))}
            </h2>
            {bar}
            <ul class="diagnose-numbers">{list(numbers)}</ul>
            <ul class="diagnose-next">{list(next)}</ul>
            <p class="muted small">{t!(i18n, diagnose.row)} " " {row}</p>
        </section>
    }
}
