//! Results of the plan page.

use leptos::html;
use leptos::prelude::*;

use super::actions::Actions;
use super::breakdown::Breakdown;
use super::copy_text::CopyText;
use super::dataset::DatasetPlace;
use super::exactness::{ExactnessBadge, ExactnessPlace, MeasuredSteps};
use super::export::ExportCard;
use super::gpus::SharedNote;
use super::in_sight::InSight;
use super::memory_bar::MemoryBar;
use super::numbers::Numbers;
use super::peak::Peak;
use super::phases::Phases;
use super::pin::Pinned;
use super::printed::PrintedSetup;
use super::sections::{Contents, Section, StickyVerdict};
use super::time::TimeCard;
use super::verdict::{GradeMark, NotCuda, NotThisRun, VerdictLine};
use super::warnings::Warnings;
use super::what_if::WhatIf;
use crate::i18n::{t, use_i18n};
use crate::lazy::{Lazy, LazyPart};
use crate::part::text;
use crate::shell::Given;
use crate::simulation::{Outcome, Simulation};

/// Shows the run of the entries, or the reason why there is none.
#[component]
pub fn Results() -> impl IntoView {
    let i18n = use_i18n();
    let Simulation { outcome, stale, .. } = Simulation::get();
    let names_model = Given::get().names_model;
    let shown = Memo::new(move |_| outcome.with(Shown::of));
    view! {
        <main
            class="results"
            id="results"
            tabindex="-1"
            aria-label=t!(i18n, plan.results)
            aria-busy=text(move || (stale.get() || names_model.get()).to_string())
        >
            {move || match shown.get() {
                Shown::Nothing => refused(),
                Shown::Pass => view! { <Ran trains=false /> }.into_any(),
                Shown::Step => view! { <Ran trains=true /> }.into_any(),
            }}
        </main>
    }
}

/// Kind of result on screen.
#[derive(Clone, Copy, PartialEq)]
enum Shown {
    /// No run.
    Nothing,
    /// Run of a model that does not train.
    Pass,
    /// Training step.
    Step,
}

impl Shown {
    fn of(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Ready(run) if run.pass.is_some() => Self::Pass,
            Outcome::Ready(_) => Self::Step,
            _ => Self::Nothing,
        }
    }
}

/// A run; the parts specific to training are shown only if the model trains.
#[component]
fn Ran(trains: bool) -> impl IntoView {
    let i18n = use_i18n();
    let headline = NodeRef::<html::Div>::new();
    MeasuredSteps::provide();
    let sections = Section::ALL
        .into_iter()
        .filter(|section| trains || !section.is_of_training());
    view! {
        <StickyVerdict of=headline />
        <section class="card headline">
            <div class="headline-row" node_ref=headline>
                <VerdictLine />
                <Peak />
            </div>
            <p class="badges">
                <GradeMark />
                <ExactnessBadge />
            </p>
            <Actions trains />
            <NotThisRun />
            <NotCuda />
            <MemoryBar />
            <SharedNote />
            <div class="headline-notes">
                <ExactnessPlace />
                <CopyText />
            </div>
        </section>
        <Contents of=sections.collect() />
        <PrintedSetup />
        <DatasetPlace />
        <Pinned />
        <Warnings />
        <div id=Section::Figures.id()>
            <Figures trains />
        </div>
        <div id=Section::Time.id()>
            <TimeCard />
        </div>
        {trains
            .then(|| {
                view! {
                    <section class="card" id=Section::WhatIf.id()>
                        <h2>{t!(i18n, what_if.title)}</h2>
                        <WhatIf />
                    </section>
                }
            })}
        {trains.then(|| view! { <InSight of=Lazy::Numbers testid="numbers-place" /> })}
        <div id=Section::Timeline.id()>
            <InSight of=Lazy::Timeline testid="timeline-place" is_printed=true />
        </div>
        <div id=Section::Breakdown.id()>
            <BreakdownCard />
        </div>
        {trains
            .then(|| {
                view! {
                    <div id=Section::Sweep.id()>
                        <InSight of=Lazy::Sweep testid="sweep-place" />
                    </div>
                    <div id=Section::Cost.id()>
                        <InSight of=Lazy::Cost testid="cost-place" />
                    </div>
                    <div id=Section::Around.id()>
                        <InSight of=Lazy::Around testid="around-place" />
                    </div>
                }
            })}
        <div id=Section::Export.id()>
            <ExportCard />
        </div>
    }
}

/// Peaks by phase, if the model trains, and the exact figures.
#[component]
pub fn Figures(trains: bool) -> impl IntoView {
    let i18n = use_i18n();
    view! {
        <div class="row phases-and-figures">
            {trains
                .then(|| {
                    view! {
                        <section class="card">
                            <h2>{t!(i18n, plan.phases)}</h2>
                            <Phases />
                        </section>
                    }
                })}
            <section class="card">
                <h2>{t!(i18n, plan.numbers)}</h2>
                <Numbers />
            </section>
        </div>
    }
}

/// Memory that is live at the peak, in a card of its own.
#[component]
pub fn BreakdownCard() -> impl IntoView {
    let i18n = use_i18n();
    view! {
        <section class="card">
            <h2>{t!(i18n, plan.breakdown)}</h2>
            <Breakdown />
        </section>
    }
}

/// The reason why there is no run, if there is none.
pub fn refused() -> AnyView {
    let outcome = Simulation::get().outcome;
    let is_refused = Memo::new(move |_| outcome.with(|outcome| matches!(outcome, Outcome::Refused(_))));
    view! {
        <Show when=move || is_refused.get()>
            <LazyPart of=Lazy::Refused />
        </Show>
    }
    .into_any()
}
