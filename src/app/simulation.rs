//! From what was entered to what is shown: the only place where the page asks the engine.

use std::sync::Arc;

use leptos::prelude::*;
use vramscope_engine::device::Device;
use vramscope_engine::report::OutsideTerm;
use vramscope_engine::verdict::{Fit, Room};
use vramscope_engine::{Case, Model, Report, simulate_on};

use crate::shell::Store;
use crate::state::{Reading, Source};

/// A simulated run, held against a card.
#[derive(Debug)]
pub struct Run {
    /// Its peaks, breakdown and timeline.
    pub report: Report,
    /// The card; or why there is none, and then no verdict.
    pub card: Result<Card, String>,
}

impl Run {
    /// What the card holds outside PyTorch's allocator.
    pub fn outside(&self) -> &[OutsideTerm] {
        self.card.as_ref().map_or(&[], |card| &card.fit.outside)
    }
}

/// A card and how the run fits it.
#[derive(Debug)]
pub struct Card {
    /// What people call it.
    pub name: String,
    /// How the run fits.
    pub fit: Fit,
}

/// What came of the last entry.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// A run.
    Ready(Arc<Run>),
    /// The model cannot be read; the message says why.
    BadModel(String),
    /// The setup does not fit the model; the message says why.
    BadSetup(String),
}

/// Model and outcome, in step with the store.
#[derive(Debug, Clone, Copy)]
pub struct Simulation {
    /// The model, while it can be read.
    pub model: Memo<Option<Model>>,
    /// What came of the last entry.
    pub outcome: RwSignal<Outcome>,
}

impl Simulation {
    /// Simulates now, and again at the next frame after every entry.
    pub fn provide(store: Store) -> Self {
        let reading = store.reading();
        let model = Memo::new(move |_| reading.with(read_model).ok());
        let outcome = RwSignal::new(reading.with_untracked(run));
        let simulation = Self { model, outcome };
        provide_context(simulation);
        let pending = StoredValue::new(false);
        Effect::watch(
            move || reading.track(),
            move |(), _, _| {
                // Several entries between two frames are simulated once.
                if !pending.get_value() {
                    pending.set_value(true);
                    request_animation_frame(move || {
                        pending.set_value(false);
                        outcome.set(reading.with_untracked(run));
                    });
                }
            },
            false,
        );
        simulation
    }

    /// The simulation that the page provides.
    pub fn get() -> Self {
        expect_context()
    }

    /// The run, while there is one.
    pub fn run(self) -> Option<Arc<Run>> {
        match self.outcome.get() {
            Outcome::Ready(run) => Some(run),
            Outcome::BadModel(_) | Outcome::BadSetup(_) => None,
        }
    }
}

fn read_model(reading: &Reading) -> Result<Model, String> {
    let setup = reading.setup.clone();
    let model = match &reading.source {
        Source::Config(text) => Model::from_config_for(text, &setup),
        Source::Catalogue(name) => Model::from_case(&Case {
            model: name.clone(),
            shape: serde_json::Map::new(),
            setup,
        }),
    };
    model.map_err(|e| e.to_string())
}

fn run(reading: &Reading) -> Outcome {
    let model = match read_model(reading) {
        Ok(model) => model,
        Err(message) => return Outcome::BadModel(message),
    };
    // A card of which too little is known runs as the measured one does; the command line does the same.
    let device = Device::by_name(&reading.gpu).map_err(|e| e.to_string());
    let gpu = device.as_ref().ok().and_then(|d| d.gpu()).unwrap_or_default();
    match simulate_on(&model, &reading.setup, gpu) {
        Ok(report) => {
            let card = device.map(|device| hold_against(device, &report));
            Outcome::Ready(Arc::new(Run { report, card }))
        }
        Err(e) => Outcome::BadSetup(e.to_string()),
    }
}

fn hold_against(device: &'static Device, report: &Report) -> Card {
    Card {
        name: device.name.clone(),
        fit: Fit::of(report, Room::Card(device)),
    }
}
