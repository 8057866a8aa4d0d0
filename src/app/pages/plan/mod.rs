//! `/`: memory of a training step, its fit on a card, and its breakdown.

mod around;
mod breakdown;
mod breakdown_row;
pub mod compare;
mod controls;
mod copy_text;
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
mod make_fit;
mod memory_bar;
mod model_source;
mod numbers;
mod own_card;
mod peak;
mod phases;
mod pin;
mod refused;
mod results;
mod sections;
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

use gloo_file::File;
use leptos::prelude::*;

use crate::dataset::is_dataset;
use crate::shell::{Given, LaunchUse, Store};
use crate::simulation::Simulation;
use crate::state::{Key, Route, is_crash};
use crate::widgets::{diagnose, dropped, follow_launches, is_for_diagnosis, take_launches};
pub use around::AroundPanel;
pub use compare::Compare;
pub use controls::{CardChoice, Controls, Folded, FoldedName};
pub use dataset::DatasetPanel;
pub use exactness::ExactnessPanel;
pub use explain::ExplanationPanel;
use explain::{Explanation, ExplanationPlace};
pub use export::SaveButtons;
use intro::Intro;
pub use largest_batch::LargestBatch;
pub use make_fit::MakeFitOpen;
pub use memory_bar::MemoryBar;
pub use model_source::{ModelSource, ModelTabs};
pub use peak::Peak;
pub use pin::pins;
pub use refused::RefusedPanel;
use results::Results;
pub use results::{BreakdownCard, Figures};
pub use settings::SequenceLength;
pub use shown::shown;

pub use several::{NumbersPanel, OfOne, Sharing};
pub use sweep::SweepPanel;
pub use time::{TimeCard, TimePanel, time_entries};
pub use timeline::TimelinePanel;
pub use verdict::{NotCuda, NotThisRun, VerdictLine};
pub use warnings::Warnings;
pub use what_if::{Changed, Group, NoEffect, Trials, listed};
pub use widget::PlanWidget;

/// Takes files that are dropped anywhere: those that start a run, a dataset, a log, a `config.json`, or else a recording.
pub fn taken() -> Callback<Vec<File>> {
    let (store, given) = (Store::get(), Given::get());
    Callback::new(move |files: Vec<File>| {
        let dataset = files.iter().find(|file| is_dataset(&file.name(), file.size())).cloned();
        if dataset.is_some() {
            given.dataset.set(dataset);
            return store.route().set(Route::Plan);
        }
        if files.iter().any(|file| is_for_diagnosis(&file.name())) {
            return diagnose(store, given, files, String::new());
        }
        take_launches(given, files, LaunchUse::Plan, move |files, text| {
            if is_crash(&text) {
                return diagnose(store, given, files, String::new());
            }
            let Some(file) = files.into_iter().next() else { return };
            if file.name().ends_with(".json") {
                store.edit(|draft| draft.set_config(text));
                return store.route().set(Route::Plan);
            }
            given.file.set(Some(file));
            store.edit(|draft| {
                draft.set(Key::Recording, "");
                draft.set(Key::Sizes, "");
            });
            store.route().set(Route::Recorded);
        });
    })
}

/// Page with controls at the left and results at the right; stacked on a phone.
#[component]
pub fn PlanPage() -> impl IntoView {
    Simulation::provide(Store::get());
    Explanation::provide();
    follow_launches(|| LaunchUse::Plan, taken());
    view! {
        <Intro />
        <div class="plan" {..dropped(taken())}>
            <Controls />
            <Results />
        </div>
        <ExplanationPlace />
    }
}
