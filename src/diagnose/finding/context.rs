//! Context of a diagnosis: the card, the simulated run, and changes to try.

use serde::{Deserialize, Serialize};

use vramscope_engine::Report;
use vramscope_engine::format::rounds_to_nothing;
use vramscope_engine::units::Bytes;
use vramscope_plan::{Change, Effect, Tried};

/// Knowledge beside the evidence: the card and the simulated run.
#[derive(Debug, Clone, Copy, Default)]
pub struct Context<'a> {
    /// Memory of the card in bytes, if the person named it.
    pub capacity: Option<Bytes>,
    /// Simulated run of the same model and setup, if the person named them.
    pub report: Option<&'a Report>,
}

/// A change of the setup and its effect, the difference of two simulations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fix {
    /// The change of the setup.
    pub change: Change,
    /// Difference in memory and time.
    pub effect: Effect,
}

/// Changes that save memory, the largest saving first.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Fixes(pub Vec<Fix>);

impl Fixes {
    /// Keeps the tried changes that save memory. This includes changes to what the run computes (another optimizer,
    /// other trained parts); the person decides whether such a change is acceptable.
    pub fn of(tried: impl IntoIterator<Item = Tried>) -> Self {
        let saving = tried.into_iter().filter_map(|Tried { change, effect }| {
            let effect = effect.ok()?;
            let saves = effect.difference < 0 && !rounds_to_nothing(effect.difference);
            saves.then_some(Fix { change, effect })
        });
        let mut fixes: Vec<Fix> = saving.collect();
        fixes.sort_by_key(|fix| fix.effect.difference);
        Self(fixes)
    }
}
