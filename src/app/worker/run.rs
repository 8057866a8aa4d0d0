//! Turns entries into a run: the only place where the page simulates one.

use vramscope_engine::device::{Device, REFERENCE};
use vramscope_engine::report::derivation::{self, Derivation};
use vramscope_engine::report::outside;
use vramscope_engine::setup::Setting;
use vramscope_engine::simulate::{Inference, Passed, evaluate, generate};
use vramscope_engine::tape::Gpu;
use vramscope_engine::units::Bytes;
use vramscope_engine::verdict::Room;
use vramscope_engine::{Case, Model, Report, simulate_on};

use super::protocol::Refusal;
use super::shared_step;
use super::view::{Card, Inputs, RunView};
use crate::state::{Draft, Reading, Source, Task};

/// Result of a simulation.
pub struct Ran {
    /// Report of a training step, or of one pass of a model that does not train.
    pub report: Report,
    /// Memory of a model that does not train; `None` for training.
    pub pass: Option<Inference>,
}

/// Entries translated into the engine's types.
pub struct Subject {
    /// The model.
    pub model: Model,
    /// Card and setup as read.
    pub reading: Reading,
    /// The card, or the reason why there is none.
    pub device: Result<&'static Device, String>,
}

impl Subject {
    /// Reads entries; invalid ones count as not entered.
    ///
    /// # Errors
    /// Fails if the model cannot be read.
    pub fn read(draft: &Draft) -> Result<Self, Refusal> {
        Self::of(Reading::of(draft, &Draft::default()))
    }

    /// Reads the model of entries.
    ///
    /// # Errors
    /// Fails if the model cannot be read.
    pub fn of(mut reading: Reading) -> Result<Self, Refusal> {
        let model = model(&reading).map_err(Refusal::Model)?;
        settle_length(&mut reading, &model);
        let device = Device::by_name(&reading.gpu).map_err(|e| e.to_string());
        Ok(Self { model, reading, device })
    }

    /// GPU to simulate. A card that too little is known about runs like the measured one, as in the command line.
    pub fn gpu(&self) -> Gpu {
        self.device.as_ref().ok().and_then(|d| d.gpu()).unwrap_or_default()
    }

    /// Simulates the entries.
    ///
    /// # Errors
    /// Fails if the setup does not fit the model, or if the model family cannot generate.
    pub fn run(&self) -> Result<Ran, Refusal> {
        let (model, setup) = (&self.model, &self.reading.setup);
        let passed = match self.reading.task {
            Task::Train => {
                let report = match &self.reading.parallel {
                    None => simulate_on(model, setup, self.gpu())?,
                    Some(parallel) => shared_step::simulate(model, setup, parallel, self.gpu())?,
                };
                return Ok(Ran { report, pass: None });
            }
            Task::Generate { new_tokens } => generate(model, setup, new_tokens, self.gpu()),
            Task::Evaluate => evaluate(model, setup, self.gpu()),
        };
        let Passed { figures, report } = passed?;
        let pass = Some(figures);
        Ok(Ran { report, pass })
    }

    /// Prepares a run, compared with the card, for the page.
    pub fn run_view(&self, id: u32, ran: &Ran) -> RunView {
        RunView::of(id, ran, self.inputs(&ran.report), self.card(&ran.report))
    }

    /// Memory available to the run.
    pub fn room(&self) -> Option<Room<'static>> {
        let device = self.device.as_ref().ok()?;
        Some(self.reading.room(device))
    }

    /// Compares a report with the card.
    pub fn card(&self, report: &Report) -> Result<Card, String> {
        let device = self.device.clone();
        device.map(|device| {
            let card = Card::of((device, self.reading.room(device)), report, self.gpus());
            card.leaving_out(&self.reading.good)
        })
    }

    /// Returns true if each of several GPUs holds shards of the parameters that it runs.
    pub fn holds_shards(&self) -> bool {
        self.reading
            .parallel
            .is_some_and(|parallel| parallel.strategy.keeps_parts_of_parameters())
    }

    /// Returns the entries of the same setup on one GPU.
    pub fn alone(&self) -> Self {
        Self {
            model: self.model.clone(),
            reading: Reading {
                parallel: None,
                ..self.reading.clone()
            },
            device: self.device.clone(),
        }
    }

    /// Number of GPUs that share the run.
    pub fn gpus(&self) -> u64 {
        self.reading.parallel.map_or(1, |parallel| parallel.world)
    }

    /// Number of tokens to generate; `None` for other tasks.
    pub const fn new_tokens(&self) -> Option<u64> {
        match self.reading.task {
            Task::Generate { new_tokens } => Some(new_tokens),
            Task::Train | Task::Evaluate => None,
        }
    }

    /// Bytes used on the card outside PyTorch's allocator; falls back to the reference card.
    pub fn outside(&self) -> Bytes {
        let device = self.device.clone().or_else(|_| Device::by_name(REFERENCE));
        device.map_or(Bytes::ZERO, outside::total)
    }

    /// Sizes of the inputs that the setup gives the model.
    pub fn inputs(&self, report: &Report) -> Inputs {
        let of = self.explained(report, None);
        let value = |found: Option<Derivation>| Some(found?.formula.value());
        Inputs {
            takes: self.model.takes(),
            seq: self.reading.setup.seq,
            positions: value(of.positions()),
            image_tokens: value(of.image_tokens()),
            logits: value(of.logits()).map(Bytes::new),
        }
    }

    /// Pairs the report with the setup, so that its numbers can be derived.
    pub fn explained<'a>(&'a self, report: &'a Report, card: Option<&'a Card>) -> derivation::Subject<'a> {
        derivation::Subject {
            model: &self.model,
            setup: &self.reading.setup,
            report,
            room: self.room().zip(card.map(|card| &card.fit)),
        }
    }
}

/// Applies the model's own default sequence length if none is entered.
pub fn settle_length(reading: &mut Reading, model: &Model) {
    if !reading.good.has(Setting::Seq) {
        reading.setup.seq = model.default_seq();
    }
}

/// Reads the model.
///
/// # Errors
/// Returns the engine's message if the model cannot be read.
pub fn model(reading: &Reading) -> Result<Model, String> {
    let setup = reading.setup.clone();
    let model = match &reading.source {
        Source::Config(text) => Model::from_config_for(text, &setup),
        Source::Catalogue(name) => Model::from_case(&Case {
            model: name.clone(),
            shape: serde_json::Map::new(),
            setup,
            limit_gib: None,
            parallel: None,
        }),
    };
    model.map_err(|e| e.to_string())
}
