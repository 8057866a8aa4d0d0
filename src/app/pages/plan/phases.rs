use leptos::prelude::*;
use vramscope_engine::format::gib;
use vramscope_engine::report::Phase;
use vramscope_engine::report::derivation::Quantity;

use super::explain::Explained;
use crate::charts::{Bar, Segment};
use crate::i18n::{t_string, use_i18n};
use crate::part::part;
use crate::simulation::Simulation;
use crate::words;

/// The highest instant of each phase, and which phase decides.
#[component]
pub fn Phases() -> impl IntoView {
    let i18n = use_i18n();
    let simulation = Simulation::get();
    part(move || {
        let run = simulation.run()?;
        let steady = run.figures.steady;
        let holder = run.figures.peak_phase;
        let peaks = [
            (Phase::Forward, steady.peak_forward),
            (Phase::Backward, steady.peak_backward),
            (Phase::Optimizer, steady.peak_optimizer),
        ];
        let highest = steady.peak().get().max(1) as f64;
        let rows = peaks.map(|(phase, bytes)| {
            let holds = phase == holder;
            let segment = Segment {
                class: if holds { "phase-holder" } else { "phase-other" },
                share: bytes.get() as f64 / highest,
                title: gib(bytes),
            };
            view! {
                <tr class:phase-holds=holds data-testid="phase-row" data-value=bytes.get().to_string()>
                    <th scope="row">{words::phase(i18n, phase)}</th>
                    <td class="phase-bar">
                        <Bar segments=vec![segment] />
                    </td>
                    <td class="phase-value">
                        <Explained quantity=Quantity::PhasePeak(phase) text=gib(bytes) />
                    </td>
                    <td class="phase-mark">{holds.then(|| t_string!(i18n, phase.holds).to_string())}</td>
                </tr>
            }
        });
        let table = view! {
            <table class="phases">
                <colgroup>
                    <col class="col-phase" />
                    <col />
                    <col class="col-bytes" />
                    <col class="col-mark" />
                </colgroup>
                <tbody>{rows.collect_view()}</tbody>
            </table>
            <p class="muted small">{t_string!(i18n, phase.explain, phase = words::phase(i18n, holder))}</p>
        };
        Some(table.into_any())
    })
}
