//! The run that the files belong to, if the user names it.

use serde::{Deserialize, Serialize};
use vramscope_diagnose::Action;
use vramscope_engine::device::Device;
use vramscope_engine::report::Phase;
use vramscope_engine::tape::{Gpu, Kind};
use vramscope_engine::units::Bytes;
use vramscope_engine::verdict::Room;
use vramscope_engine::{Case, Model, Report, Setup, simulate_on};
use vramscope_plan::{Effect, Now, Tried, WhatIf};

/// Run as sent by the page.
#[derive(Debug, Deserialize)]
struct Named {
    /// Catalogue name.
    model: String,
    /// Text of a `config.json` that replaces the model; empty if there is none.
    config: String,
    gpu: String,
    /// True if the user selected the card, false if it is the page's default.
    gpu_is_chosen: bool,
    setup: Setup,
}

/// A simulated run.
#[derive(Debug)]
pub struct SimulatedRun {
    model: Model,
    /// Training setup.
    pub setup: Setup,
    gpu: Gpu,
    device: Option<&'static Device>,
    gpu_is_chosen: bool,
    /// Result of the simulation.
    pub report: Report,
}

/// Steady step of the run, to draw beside a recording.
#[derive(Debug, Serialize)]
pub struct Simulated {
    peak: Bytes,
    /// Kinds in stacking order, from the bottom.
    kinds: [Kind; Kind::COUNT],
    columns: Vec<[Bytes; Kind::COUNT]>,
}

/// A change and its effect.
#[derive(Debug, Serialize)]
pub struct Fix {
    key: &'static str,
    value: String,
    /// Next step of a finding that this change carries out.
    step: Option<Action>,
    #[serde(flatten)]
    effect: Effect,
}

/// A measure of the planner's ladder.
#[derive(Debug, Serialize)]
pub struct Rung {
    change: Option<(&'static str, String)>,
    peak: Option<Bytes>,
    difference: i64,
    phase: Option<Phase>,
    kept: bool,
    trains: bool,
}

impl SimulatedRun {
    /// Parses and simulates the run sent by the page.
    ///
    /// # Errors
    /// Returns the engine's message if model or setup cannot be simulated.
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

    /// Memory of the card, if the user selected it.
    pub fn capacity(&self) -> Option<Bytes> {
        self.device.filter(|_| self.gpu_is_chosen).map(Device::usable)
    }

    /// Memory that changes are compared with: the selected card's; otherwise what the error message says PyTorch can
    /// have; otherwise the page's default card.
    pub fn room(&self, told: Option<Bytes>) -> Option<Room<'static>> {
        let card = self.device.map(Room::Card);
        match told.map(Room::Allocator) {
            Some(told) if !self.gpu_is_chosen => Some(told),
            _ => card,
        }
    }

    /// All applicable changes, to be tried one after another.
    pub fn changes(&self, room: Option<Room<'static>>) -> WhatIf {
        let now = Now::of(&self.report);
        WhatIf::new(self.model.clone(), self.setup.clone(), self.gpu, room, now)
    }

    /// Applies measures one after another until the setup trains. Returns the allocator's limit and the measures.
    pub fn ladder(&self, room: Room) -> Option<(Bytes, Vec<Rung>)> {
        let limit = room.for_allocator(1);
        let rungs = vramscope_plan::ladder(&self.model, &self.setup, self.gpu, limit)
            .ok()?
            .rungs;
        let rung = |rung: vramscope_plan::Rung| Rung {
            change: rung.change.map(|change| (change.setting().key(), change.text())),
            peak: rung.peak,
            difference: rung.difference,
            phase: rung.phase,
            kept: rung.kept,
            trains: rung.trains,
        };
        Some((limit, rungs.into_iter().map(rung).collect()))
    }

    /// Returns the steady step for drawing.
    pub fn simulated(&self) -> Simulated {
        let columns = self.report.timeline.columns(COLUMNS);
        Simulated {
            peak: self.report.peak_allocated,
            kinds: Kind::ALL,
            columns: columns.into_iter().map(|(_, column)| column).collect(),
        }
    }
}

/// Maximum number of columns; more would not be visible on any screen.
const COLUMNS: usize = 400;

impl Fix {
    /// Converts a change that was tried; `None` if it cannot run.
    pub fn of(tried: Tried) -> Option<Self> {
        let effect = tried.effect.ok()?;
        Some(Self {
            key: tried.change.setting().key(),
            value: tried.change.text(),
            step: Action::of(&tried.change),
            effect,
        })
    }
}
