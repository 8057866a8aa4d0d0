//! Results of a recorded run.

use leptos::prelude::*;

use super::changes::Changes;
use super::export::ExportCard;
use super::gallery::Gallery;
use super::page::{RecordedState, State};
use super::sizes::LargestBatchCard;
use super::words;
use crate::i18n::{t, t_string, use_i18n};
use crate::pages::plan::{
    BreakdownCard, Figures, MemoryBar, NotCuda, Peak, TimeCard, TimelinePanel, VerdictLine, Warnings,
};
use crate::part::{part, text};
use crate::shell::CommandLine;
use crate::simulation::Simulation;
use crate::worker::recorded::Fault;

/// The gallery; or what the chosen recording takes, or why it cannot be shown.
#[component]
pub fn Results() -> impl IntoView {
    let i18n = use_i18n();
    let page = RecordedState::get();
    let simulation = Simulation::get();
    let has_run = Memo::new(move |_| simulation.id().is_some());
    let shown = part(move || {
        let state = page.state.get();
        Some(match (state, has_run.get()) {
            (State::Nothing, _) => view! { <Gallery /> }.into_any(),
            (State::Fault(fault), _) => view! { <Refused fault /> }.into_any(),
            (State::Ready, true) => view! { <Ran /> }.into_any(),
            _ => view! { <p class="muted" role="status">{t!(i18n, page.loading)}</p> }.into_any(),
        })
    });
    view! {
        <main
            class="results"
            id="results"
            tabindex="-1"
            aria-label=move || t_string!(i18n, plan.results)
            aria-busy=text(move || {
                let is_coming = page.state.with(|state| *state == State::Coming);
                (is_coming || simulation.stale.get()).to_string()
            })
        >
            {shown}
        </main>
    }
}

/// Explains why there is no run; at sizes that were not recorded, shows the command that records them.
#[component]
fn Refused(fault: Fault) -> impl IntoView {
    let i18n = use_i18n();
    let command = match &fault {
        Fault::OutOfRange { command, .. } => Some(command.clone()),
        _ => None,
    };
    let kind = command.is_some().then_some("out-of-range");
    view! {
        <section class="card refusal" role="alert" data-testid="refusal" data-value=kind>
            <h2>
                {match kind {
                    Some(_) => t_string!(i18n, recorded.not_recorded),
                    None => t_string!(i18n, recorded.refused),
                }}
            </h2>
            <p class="refusal-message">{text(move || words::fault(i18n, &fault))}</p>
            {command.map(|command| view! { <CommandLine text=command testid="copy-sizes-command" /> })}
        </section>
    }
}

/// Figures of a recorded step, drawn as those of a simulated one.
#[component]
fn Ran() -> impl IntoView {
    let name = RecordedState::get().name;
    view! {
        <section class="card headline">
            <div class="headline-row">
                <VerdictLine what=name />
                <Peak />
            </div>
            <NotCuda />
            <MemoryBar />
        </section>
        <Figures trains=true />
        <TimeCard />
        <Warnings />
        <Changes />
        <TimelinePanel />
        <BreakdownCard />
        <LargestBatchCard />
        <ExportCard />
    }
}
