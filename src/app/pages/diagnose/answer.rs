//! Answer of the diagnosis.

use leptos::prelude::*;

use super::finding::FindingView;
use super::fixes::FixesView;
use super::reader::Reader;
use super::recording::RecordingView;
use crate::i18n::{t, t_string, use_i18n};
use crate::part::part;
use crate::shell::CopyButton;

/// Shows the understood input, the recordings, all findings, and possible fixes.
#[component]
pub fn AnswerView() -> impl IntoView {
    let reader = Reader::get();
    let has_words = Memo::new(move |_| reader.phrases.with(|phrases| !phrases.is_empty()));
    part(move || {
        has_words.get().then(|| {
            view! {
                <Understood />
                <Findings />
                <Share />
                <FixesView />
                <Recordings />
            }
            .into_any()
        })
    })
}

#[component]
fn Understood() -> impl IntoView {
    let i18n = use_i18n();
    let reader = Reader::get();
    part(move || {
        let answer = reader.answer.get()?;
        let read = answer.read.iter().map(|(file, line, kind)| {
            let place = if *line == 0 {
                file.clone()
            } else {
                format!("{file}:{line}")
            };
            view! { <li>{format!("{place}: {kind}")}</li> }.into_any()
        });
        let refused = answer
            .refused
            .iter()
            .map(|(file, why)| view! { <li class="diagnose-refused">{format!("{file}: {why}")}</li> }.into_any());
        let files: Vec<_> = read.chain(refused).collect();
        let count = answer.findings.len().to_string();
        let found = count.clone();
        let nothing = answer
            .findings
            .is_empty()
            .then(|| view! { <p>{t!(i18n, diagnose.nothing)}</p> });
        let view = view! {
            <section class="card" data-testid="diagnosis" data-value=count>
                <h2>{t!(i18n, diagnose.understood)}</h2>
                <p class="offscreen" role="status">
                    {move || t_string!(i18n, diagnose.found, count = found.clone()).to_string()}
                </p>
                <ul class="small">{files}</ul>
                {nothing}
            </section>
        };
        Some(view.into_any())
    })
}

/// Button that copies the findings without a line of the input: what was read may be a company's log.
#[component]
fn Share() -> impl IntoView {
    let i18n = use_i18n();
    let reader = Reader::get();
    let shared = move || {
        let findings = reader
            .answer
            .with_untracked(|answer| answer.as_ref().map(|answer| answer.findings.clone()));
        let say = |said: &_| reader.phrases.with_untracked(|phrases| phrases.text_of(said));
        let each = findings.into_iter().flatten().map(|finding| finding.shared(i18n, &say));
        each.collect::<Vec<_>>().join("\n\n")
    };
    let has_findings = move || {
        reader
            .answer
            .with(|answer| answer.as_ref().is_some_and(|a| !a.findings.is_empty()))
    };
    part(move || {
        has_findings().then(|| {
            view! {
                <p class="record-tools">
                    <CopyButton text=shared label=|i18n| t_string!(i18n, diagnose.share) testid="diagnose-share" />
                    <span class="muted small">{t!(i18n, diagnose.share_explain)}</span>
                </p>
            }
            .into_any()
        })
    })
}

#[component]
fn Findings() -> impl IntoView {
    let reader = Reader::get();
    part(move || {
        let answer = reader.answer.get()?;
        let findings: Vec<_> = answer
            .findings
            .iter()
            .map(|finding| view! { <FindingView finding=finding.clone() /> })
            .collect();
        Some(findings.into_any())
    })
}

/// Recordings of snapshots. Kept apart from the answer, so that a change of the setup does not reset the selected
/// instant.
#[component]
fn Recordings() -> impl IntoView {
    let reader = Reader::get();
    part(move || {
        let all = reader.recordings.get();
        let views: Vec<_> = (0..)
            .zip(all.iter())
            .map(|(index, recording)| view! { <RecordingView index recording=recording.clone() /> })
            .collect();
        Some(views.into_any())
    })
}
