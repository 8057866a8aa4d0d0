use leptos::prelude::*;

use super::curve::Curve;
use super::finding::FindingView;
use super::reader::Answer;
use crate::i18n::{t, t_string, use_i18n};

/// What was read, curves of snapshots, and every finding.
#[component]
pub fn AnswerView(answer: Answer) -> impl IntoView {
    let i18n = use_i18n();
    let read = answer.read.into_iter().map(|(file, line, kind)| {
        let place = if line == 0 { file } else { format!("{file}:{line}") };
        view! { <li>{format!("{place}: {kind}")}</li> }
    });
    let refused = answer.refused.into_iter().map(|(file, why)| {
        view! { <li class="diagnose-refused">{format!("{file}: {why}")}</li> }
    });
    let files: Vec<_> = read
        .map(IntoAny::into_any)
        .chain(refused.map(IntoAny::into_any))
        .collect();
    let is_nothing = answer.findings.is_empty();
    let count = answer.findings.len();
    let curves: Vec<_> = answer
        .recordings
        .into_iter()
        .map(|recording| view! { <Curve recording /> })
        .collect();
    let findings: Vec<_> = answer
        .findings
        .into_iter()
        .map(|finding| view! { <FindingView finding /> })
        .collect();
    view! {
        <section class="card" data-testid="diagnosis" data-value=count.to_string()>
            <h2>{t!(i18n, diagnose.understood)}</h2>
            <p class="offscreen" role="status">
                {move || t_string!(i18n, diagnose.found, count = count.to_string()).to_string()}
            </p>
            <ul class="small">{files}</ul>
            <Show when=move || is_nothing>
                <p>{t!(i18n, diagnose.nothing)}</p>
            </Show>
        </section>
        {curves}
        {findings}
    }
}
