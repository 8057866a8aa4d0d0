//! `/attention`: memory and time of one attention call against sequence length, by algorithm.

mod controls;
mod curves;
mod formula;
mod legend;
mod record;
mod state;

use leptos::prelude::*;

use crate::i18n::{t_string, use_i18n};
use crate::shell::Store;
use crate::simulation::Simulation;
use controls::Controls;
use curves::{MemoryChart, TimeChart};
use formula::FormulaPanel;
use legend::Legend;
use state::Attention;

/// Page with controls at the left, curves and formulas at the right.
#[component]
pub fn AttentionPage() -> impl IntoView {
    let i18n = use_i18n();
    // Provides the error messages of model and card.
    Simulation::provide(Store::get());
    let attention = Attention::provide();
    let refusal = move || attention.refusal();
    view! {
        <div class="plan attention">
            <Controls />
            <main class="results" id="results" tabindex="-1" aria-label=move || t_string!(i18n, nav.attention)>
                <Show when=move || refusal().is_some()>
                    <section class="card refusal" role="alert" data-testid="refusal">
                        <p class="refusal-message">{refusal}</p>
                    </section>
                </Show>
                <Legend />
                <MemoryChart />
                <TimeChart />
                <FormulaPanel />
            </main>
        </div>
    }
}
