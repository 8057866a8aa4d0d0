//! A finding of the diagnosis.

use leptos::prelude::*;
use vramscope_diagnose::words::Sentence;
use vramscope_engine::format::difference;

use super::answer_data::{Finding, Fix, Quote};
use super::reader::Reader;
use super::setup::planner;
use crate::i18n::{Words, phrases, t, t_string, use_i18n};
use crate::part::{part, text};
use crate::shell::Store;
use crate::state::Key;
use crate::words;

/// A finding: certainty, conclusion, numbers, next steps, and a link into the course.
#[component]
pub fn FindingView(finding: Finding) -> impl IntoView {
    let i18n = use_i18n();
    let reader = Reader::get();
    let Finding {
        code,
        confidence,
        row,
        title,
        numbers,
        next,
        quotes,
        gauge,
    } = finding;
    let say = move |said: Sentence| text(move || reader.phrases.with(|phrases| phrases.text_of(&said)));
    let numbers: Vec<_> = numbers.into_iter().map(|said| view! { <li>{say(said)}</li> }).collect();
    let next: Vec<_> = next
        .into_iter()
        .map(|(step, said)| {
            let saving = step.map(|step| view! { <Saving step /> });
            view! { <li>{say(said)} {saving}</li> }
        })
        .collect();
    let label = {
        let confidence = confidence.clone();
        move || standing(i18n, &confidence)
    };
    let bar = gauge.filter(|(_, whole)| *whole > 0.0).map(|(part, whole)| {
        let share = (part / whole).clamp(0.0, 1.0);
        view! { <meter class="diagnose-gauge" aria-hidden="true" min="0" max="1" value=share.to_string()></meter> }
    });
    view! {
        <section class="card diagnose-finding" data-testid="finding" data-name=code data-value=confidence>
            <h2>
                <span class="diagnose-standing">{label}</span>
                " "
                {say(title)}
            </h2>
            {bar}
            <ul class="diagnose-numbers">{numbers}</ul>
            {quoted(quotes)}
            <ul class="diagnose-next">{next}</ul>
            <p class="muted small">
                <a class="diagnose-row" data-testid="finding-row" href=format!("#/course?row={row}")>
                    {t!(i18n, diagnose.row)}
                    ": "
                    {
                        let row = row.clone();
                        move || lesson(i18n, &row)
                    }
                </a>
            </p>
        </section>
    }
}

/// Title of a page of the course.
fn lesson(i18n: Words, row: &str) -> String {
    let place = phrases::lesson::named(&format!("row_{}", row.replace('.', "_")));
    place.map_or_else(|| row.to_owned(), |place| i18n.phrase(place).to_owned())
}

/// A finding's certainty in words.
fn standing(i18n: Words, confidence: &str) -> &'static str {
    match confidence {
        "cause" => t_string!(i18n, diagnose.cause),
        "likely" => t_string!(i18n, diagnose.likely),
        "possible" => t_string!(i18n, diagnose.possible),
        "note" => t_string!(i18n, diagnose.note),
        _ => t_string!(i18n, diagnose.ruled_out),
    }
}

impl Finding {
    /// The finding as a text to share: certainty, conclusion and next steps. Numbers stay out with the quotes: those of
    /// logs name files and lines of code.
    pub fn shared(&self, i18n: Words, say: &dyn Fn(&Sentence) -> String) -> String {
        let title = format!("{}: {}", standing(i18n, &self.confidence), say(&self.title));
        let next = self.next.iter().map(|(_, said)| format!("- {}", say(said)));
        std::iter::once(title).chain(next).collect::<Vec<_>>().join("\n")
    }
}

/// The lines of the text that show a finding.
fn quoted(quotes: Vec<Quote>) -> impl IntoView {
    let lines: Vec<_> = quotes
        .into_iter()
        .map(|quote| view! { <li><code>{format!("{}: {}", quote.line, quote.text)}</code></li> })
        .collect();
    (!lines.is_empty()).then(|| view! { <ul class="diagnose-quotes small muted" data-testid="quotes">{lines}</ul> })
}

/// Saving of a step in the named run: the best among the changes that carry it out.
#[component]
fn Saving(step: String) -> impl IntoView {
    let i18n = use_i18n();
    let (reader, store) = (Reader::get(), Store::get());
    let best = Memo::new(move |_| {
        reader.fixes.with(|(fixes, _)| {
            let own = fixes.iter().filter(|fix| fix.step.as_ref() == Some(&step));
            own.min_by_key(|fix| fix.difference).cloned()
        })
    });
    part(move || {
        let fix = best.get()?;
        if fix.difference >= 0 {
            return Some(
                view! { <span class="diagnose-saves muted">{t_string!(i18n, diagnose.saves_nothing)}</span> }
                    .into_any(),
            );
        }
        let Fix { key, value, .. } = &fix;
        let (entry, now, then) = entry(i18n, store, key, value);
        let said = t_string!(
            i18n,
            diagnose.saves,
            bytes = difference(fix.difference),
            entry = format!("{entry} {now}"),
            value = then
        );
        let href = planner(store, &[(key.clone(), value.clone())]);
        let saving = view! {
            <span class="diagnose-saves" data-testid="saving" data-name=key.clone() data-value=fix.difference.to_string()>
                {said} ". " {verdict(i18n, &fix)} " " <a href=href>{t_string!(i18n, recommend.open_planner)}</a>
            </span>
        };
        Some(saving.into_any())
    })
}

/// Returns an entry's label, current value and new value, worded as in the planner's controls.
pub fn entry(i18n: Words, store: Store, key: &str, value: &str) -> (String, String, String) {
    let Some(named) = Key::named(key) else {
        return (key.to_owned(), String::new(), value.to_owned());
    };
    let now = store.reading().with(|reading| reading.good.get(named).to_owned());
    let shown = |value: &str| words::choice(i18n, named, value);
    (words::label(i18n, named), shown(&now), shown(value))
}

/// Verdict on a changed run.
pub fn verdict(i18n: Words, fix: &Fix) -> &'static str {
    match fix.verdict.as_deref() {
        Some("fits") => t_string!(i18n, what_if.fits),
        Some("tight") => t_string!(i18n, what_if.tight),
        Some("oom") => t_string!(i18n, diagnose.still_oom),
        _ => "",
    }
}
