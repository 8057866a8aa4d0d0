//! The run that the files are of, where the person names it.

use serde::{Deserialize, Serialize};
use vramscope_diagnose::Step;
use vramscope_engine::device::{Device, outside};
use vramscope_engine::report::Phase;
use vramscope_engine::tape::{Gpu, Kind};
use vramscope_engine::units::Bytes;
use vramscope_engine::verdict::Room;
use vramscope_engine::{Case, Model, Report, Setup, simulate_on};
use vramscope_plan::{Effect, Now, Tried, WhatIf};

/// As the page sends it.
#[derive(Debug, Deserialize)]
struct Named {
    /// Of the catalogue.
    model: String,
    /// A `config.json` in the place of the model; empty where there is none.
    config: String,
    gpu: String,
    /// Whether the card was chosen, and is not only the page's first.
    gpu_is_chosen: bool,
    setup: Setup,
}

/// A run, simulated.
#[derive(Debug)]
pub struct Run {
    model: Model,
    /// Its setup.
    pub setup: Setup,
    gpu: Gpu,
    device: Option<&'static Device>,
    gpu_is_chosen: bool,
    /// What the simulation gave.
    pub report: Report,
}

/// One simulated step, to draw beside a recording.
#[derive(Debug, Serialize)]
pub struct Simulated {
    peak: Bytes,
    /// Of the stack, from below.
    kinds: [Kind; Kind::COUNT],
    columns: Vec<[Bytes; Kind::COUNT]>,
}

/// A change and what it saves.
#[derive(Debug, Serialize)]
pub struct Fix {
    key: &'static str,
    value: String,
    /// The step that it carries out.
    step: Option<Step>,
    #[serde(flatten)]
    effect: Effect,
}

/// One measure of the planner's ladder.
#[derive(Debug, Serialize)]
pub struct Rung {
    change: Option<(&'static str, String)>,
    peak: Option<Bytes>,
    difference: i64,
    phase: Option<Phase>,
    kept: bool,
    trains: bool,
}

impl Run {
    /// Reads and simulates what the page sent.
    ///
    /// # Errors
    /// The engine's message, where model or setup cannot be simulated.
    pub fn read(json: &str) -> Result<Self, String> {
        let named: Named = serde_json::from_str(json).map_err(|error| error.to_string())?;
        let model = match named.config.as_str() {
            "" => Model::from_case(&Case {
                model: named.model,
                shape: serde_json::Map::new(),
                setup: named.setup.clone(),
                limit_gib: None,
                parallel: None,
            }),
            config => Model::from_config_for(config, &named.setup),
        };
        let model = model.map_err(|error| error.to_string())?;
        let device = Device::by_name(&named.gpu).ok();
        let gpu = device.and_then(Device::gpu).unwrap_or_default();
        let report = simulate_on(&model, &named.setup, gpu).map_err(|error| error.to_string())?;
        Ok(Self {
            model,
            setup: named.setup,
            gpu,
            device,
            gpu_is_chosen: named.gpu_is_chosen,
            report,
        })
    }

    /// All memory of the card, where it was chosen.
    pub fn capacity(&self) -> Option<Bytes> {
        self.device.filter(|_| self.gpu_is_chosen).map(Device::usable)
    }

    /// What changes are held against: the card that was chosen; else what the error says that PyTorch can have;
    /// else the page's first card.
    pub fn room(&self, told: Option<Bytes>) -> Option<Room<'static>> {
        let card = self.device.map(Room::Card);
        match told.map(Room::Allocator) {
            Some(told) if !self.gpu_is_chosen => Some(told),
            _ => card,
        }
    }

    /// Every change that makes sense, to be tried one after another.
    pub fn changes(&self, room: Option<Room<'static>>) -> WhatIf {
        let now = Now::of(&self.report);
        WhatIf::new(self.model.clone(), self.setup.clone(), self.gpu, room, now)
    }

    /// Measures one after another until the setup trains in a room, and what the allocator has there.
    pub fn ladder(&self, room: Room) -> Option<(Bytes, Vec<Rung>)> {
        let limit = match room {
            Room::Allocator(limit) => limit,
            Room::Card(device) => device.usable().saturating_sub(outside::total(device)),
        };
        let rungs = vramscope_plan::ladder(&self.model, &self.setup, self.gpu, limit)
            .ok()?
            .rungs;
        let rung = |rung: vramscope_plan::Rung| Rung {
            change: rung.change.map(|change| (change.key(), change.value())),
            peak: rung.peak,
            difference: rung.difference,
            phase: rung.phase,
            kept: rung.kept,
            trains: rung.trains,
        };
        Some((limit, rungs.into_iter().map(rung).collect()))
    }

    /// The steady step, to draw.
    pub fn simulated(&self) -> Simulated {
        let columns = self.report.timeline.columns(COLUMNS);
        Simulated {
            peak: self.report.peak_allocated,
            kinds: Kind::ALL,
            columns: columns.into_iter().map(|(_, column)| column).collect(),
        }
    }
}

/// More columns than this say no more on any screen.
const COLUMNS: usize = 400;

impl Fix {
    /// Of a change that was tried; nothing where it cannot run.
    pub fn of(tried: Tried) -> Option<Self> {
        let effect = tried.effect.ok()?;
        Some(Self {
            key: tried.change.key(),
            value: tried.change.value(),
            step: Step::of(tried.change),
            effect,
        })
    }
}
