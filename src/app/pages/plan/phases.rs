//! Peak of each phase.

use leptos::prelude::*;
use vramscope_engine::format::gib;
use vramscope_engine::report::Phase;
use vramscope_engine::report::derivation::Quantity;

use super::explain::Explained;
use crate::charts::{Bar, Segment};
use crate::i18n::{t_string, use_i18n};
use crate::part::{text, truth};
use crate::simulation::Simulation;
use crate::words;
use crate::worker::view::RunView;

/// Shows the peak of each phase, and which phase holds the overall peak.
#[component]
pub fn Phases() -> impl IntoView {
    let i18n = use_i18n();
    let simulation = Simulation::get();
    let explain = simulation.text(move |run| {
        let holder = words::phase(i18n, run.figures.peak_phase);
        t_string!(i18n, phase.explain, phase = holder)
    });
    let rows = [Phase::Forward, Phase::Backward, Phase::Optimizer].map(|phase| view! { <Row phase /> });
    view! {
        <table class="phases">
            <colgroup>
                <col class="col-phase" />
                <col />
                <col class="col-bytes" />
                <col class="col-mark" />
            </colgroup>
            <tbody>{rows}</tbody>
        </table>
        <p class="muted small">{text(move || explain.get())}</p>
    }
}

#[component]
fn Row(phase: Phase) -> impl IntoView {
    let i18n = use_i18n();
    let simulation = Simulation::get();
    let bytes = move |run: &RunView| run.figures.steady.peak_of(phase);
    let holds = Memo::new(move |_| simulation.run().is_some_and(|run| run.figures.peak_phase == phase));
    let segments = Signal::derive(move || {
        let run = simulation.run();
        let segment = run.map(|run| Segment {
            class: if holds.get() { "phase-holder" } else { "phase-other" },
            share: bytes(&run).get() as f64 / run.figures.steady.peak().get().max(1) as f64,
            title: gib(bytes(&run)),
        });
        segment.into_iter().collect()
    });
    let value = simulation.text(move |run| bytes(run).get().to_string());
    view! {
        <tr class:phase-holds=truth(move || holds.get()) data-testid="phase-row" data-value=text(move || value.get())>
            <th scope="row">{text(move || words::phase(i18n, phase))}</th>
            <td class="phase-bar">
                <Bar segments />
            </td>
            <td class="phase-value">
                <Explained quantity=Quantity::PhasePeak(phase) text=simulation.text(move |run| gib(bytes(run))) />
            </td>
            <td class="phase-mark">{move || holds.get().then(|| t_string!(i18n, phase.holds))}</td>
        </tr>
    }
}
