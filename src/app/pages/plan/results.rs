use leptos::prelude::*;

use super::breakdown::Breakdown;

use super::export::ExportCard;
use super::in_sight::InSight;
use super::inference::InferenceNumbers;
use super::memory_bar::MemoryBar;
use super::numbers::Numbers;
use super::peak::Peak;
use super::phases::Phases;
use super::pin::{PinButton, Pinned};
use super::time::TimeCard;
use super::timeline::TimelinePanel;
use super::verdict::VerdictLine;
use super::warnings::Warnings;
use super::what_if::WhatIf;
use crate::chunk::Later;
use crate::i18n::{t, t_string, use_i18n};
use crate::part::part;
use crate::simulation::{Outcome, Simulation};

/// What came of the entries: a run, or why there is none.
#[component]
pub fn Results() -> impl IntoView {
    let i18n = use_i18n();
    let Simulation { outcome, stale, .. } = Simulation::get();
    let shown = Memo::new(move |_| outcome.with(Shown::of));
    view! {
        <main
            class="results"
            id="results"
            tabindex="-1"
            aria-label=move || t_string!(i18n, plan.results)
            aria-busy=move || stale.get().to_string()
        >
            {move || match shown.get() {
                Shown::Nothing => view! { <Refusal /> }.into_any(),
                Shown::Inference => view! { <Pass /> }.into_any(),
                Shown::Run => view! { <Training /> }.into_any(),
            }}
        </main>
    }
}

/// Which of the results there are.
#[derive(Clone, Copy, PartialEq)]
enum Shown {
    Nothing,
    Inference,
    Run,
}

impl Shown {
    fn of(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Ready(_) => Self::Run,
            Outcome::Inference(_) => Self::Inference,
            _ => Self::Nothing,
        }
    }
}

/// A training step.
#[component]
fn Training() -> impl IntoView {
    let i18n = use_i18n();
    view! {
        <section class="card headline">
            <div class="headline-row">
                <VerdictLine />
                <Peak />
                <PinButton />
            </div>
            <MemoryBar />
        </section>
        <Pinned />
        <div class="row phases-and-figures">
            <section class="card">
                <h2>{t!(i18n, plan.phases)}</h2>
                <Phases />
            </section>
            <section class="card">
                <h2>{t!(i18n, plan.numbers)}</h2>
                <Numbers />
            </section>
        </div>
        <TimeCard />
        <Warnings />
        <section class="card">
            <h2>{t!(i18n, what_if.title)}</h2>
            <WhatIf />
        </section>
        <TimelinePanel />
        <section class="card">
            <h2>{t!(i18n, plan.breakdown)}</h2>
            <Breakdown />
        </section>
        <InSight of=Later::Sweep testid="sweep-place" />
        <ExportCard />
    }
}

/// A model that does not train.
#[component]
fn Pass() -> impl IntoView {
    let i18n = use_i18n();
    view! {
        <section class="card headline">
            <VerdictLine />
        </section>
        <section class="card">
            <h2>{t!(i18n, plan.numbers)}</h2>
            <InferenceNumbers />
        </section>
        <ExportCard />
    }
}

/// The engine's message, and that nothing entered is lost.
#[component]
pub fn Refusal() -> impl IntoView {
    let i18n = use_i18n();
    let outcome = Simulation::get().outcome;
    let words = move || match outcome.get() {
        Outcome::BadModel(message) => Some((t_string!(i18n, refusal.model).to_string(), message)),
        Outcome::BadSetup(message) => Some((t_string!(i18n, refusal.setup).to_string(), message)),
        _ => None,
    };
    part(move || {
        words().map(|(title, message)| {
            view! {
                <section class="card refusal" role="alert" data-testid="refusal">
                    <h2>{title}</h2>
                    <p class="refusal-message">{message}</p>
                    <p class="muted">{t!(i18n, refusal.kept)}</p>
                </section>
            }
            .into_any()
        })
    })
}
