//! `/`: memory of a training step, its fit on a card, and its breakdown.

mod actions;
mod around;
mod breakdown;
mod breakdown_row;
pub mod compare;
mod controls;
mod copy_text;
mod cost;
mod dataset;
mod exactness;
mod explain;
mod export;
mod gpus;
mod in_sight;
mod instant;
mod intro;
mod largest_batch;
mod live;
mod memory_bar;
mod model_source;
mod numbers;
mod own_card;
mod peak;
mod phases;
mod pin;
mod printed;
mod refused;
mod results;
mod sections;
mod sentence;
mod settings;
mod several;
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

use crate::shell::{Given, Store};
use crate::simulation::Simulation;
pub use actions::Opened;
pub use around::AroundPanel;
pub use compare::Compare;
pub use controls::{CardChoice, Controls, Folded, FoldedName};
pub use cost::CostPanel;
pub use dataset::DatasetPanel;
pub use exactness::ExactnessPanel;
pub use explain::ExplanationPanel;
use explain::{Explanation, ExplanationPlace};
pub use export::SaveButtons;
use intro::Intro;
pub use largest_batch::LargestBatch;
pub use memory_bar::MemoryBar;
pub use model_source::{ModelSource, ModelTabs};
pub use peak::Peak;
pub use pin::pins;
pub use refused::RefusedPanel;
use results::Results;
pub use results::{BreakdownCard, Figures};
pub use sections::Section;
use sentence::Sentence;
pub use settings::SequenceLength;
pub use shown::shown;

pub use several::{NumbersPanel, OfOne, Sharing};
pub use sweep::SweepPanel;
pub use time::{TimeCard, TimePanel, time_entries};
pub use timeline::TimelinePanel;
pub use verdict::{Icon, NotCuda, NotThisRun, VerdictLine, detail, grade_words, headline};
pub use warnings::Warnings;
pub use what_if::{Changed, Group, NoEffect, Trials, listed};
pub use widget::PlanWidget;

/// Page with controls at the left and results at the right; stacked on a phone.
#[component]
pub fn PlanPage() -> impl IntoView {
    Simulation::provide(Store::get());
    Explanation::provide();
    let is_open = Given::get().all_settings;
    view! {
        <Intro />
        <Sentence />
        <div class="plan" class:plan-alone=move || !is_open.get()>
            <Controls />
            <Results />
        </div>
        <ExplanationPlace />
    }
}
