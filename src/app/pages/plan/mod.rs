//! `/`: memory of a training step, its fit on a card, and its breakdown.

mod breakdown;
mod breakdown_row;
mod compare;
mod controls;
mod explain;
mod export;
mod in_sight;
mod instant;
mod largest_batch;
mod live;
mod memory_bar;
mod model_source;
mod numbers;
mod peak;
mod phases;
mod pin;
mod results;
mod shown;
mod sweep;
mod sweep_cards;
mod sweep_chart;
mod time;
mod timeline;
mod verdict;
mod warnings;
mod what_if;
mod widget;

use leptos::prelude::*;

use crate::shell::Store;
use crate::simulation::Simulation;
pub use compare::Compare;
pub use controls::{CardChoice, Controls};
pub use explain::ExplanationPanel;
use explain::{Explanation, ExplanationPlace};
pub use model_source::ModelSource;
use results::Results;

pub use sweep::SweepPanel;
pub use time::TimePanel;
pub use widget::PlanWidget;

/// Page with controls at the left and results at the right; stacked on a phone.
#[component]
pub fn PlanPage() -> impl IntoView {
    Simulation::provide(Store::get());
    Explanation::provide();
    view! {
        <div class="plan">
            <Controls />
            <Results />
        </div>
        <ExplanationPlace />
    }
}
