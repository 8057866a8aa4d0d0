//! Warnings about the run.

use leptos::prelude::*;
use vramscope_engine::report::Severity;

use crate::i18n::{t, use_i18n};
use crate::part::part;
use crate::simulation::Simulation;
use crate::words;

/// Lists the run's warnings with their remedies.
#[component]
pub fn Warnings() -> impl IntoView {
    let i18n = use_i18n();
    let simulation = Simulation::get();
    let warnings = Memo::new(move |_| simulation.run().map(|run| run.warnings.clone()).unwrap_or_default());
    part(move || {
        let warnings = warnings.get();
        let rows = warnings.iter().map(|w| {
            let class = match w.severity {
                Severity::Note => "warning-note",
                Severity::Warning => "warning-strong",
            };
            view! {
                <li class=class data-testid="warning" data-name=w.code.to_string()>
                    {words::warning(i18n, w)}
                </li>
            }
        });
        (!warnings.is_empty()).then(|| {
            view! {
                <section class="card warnings">
                    <h2>{t!(i18n, plan.warnings)}</h2>
                    <ul>{rows.collect_view()}</ul>
                </section>
            }
            .into_any()
        })
    })
}
