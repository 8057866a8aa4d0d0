use serde::{Deserialize, Serialize};

use vramscope_engine::Report;
use vramscope_engine::format::rounds_to_nothing;
use vramscope_engine::units::Bytes;
use vramscope_plan::{Change, Effect, Tried};

/// What is known beside the evidence.
#[derive(Debug, Clone, Copy, Default)]
pub struct Context<'a> {
    /// All memory of the card, where it was named.
    pub capacity: Option<Bytes>,
    /// The simulated run of the same model and setup, where they were named.
    pub report: Option<&'a Report>,
}

/// A change of the setup and the bytes that it saves, as the difference of two simulations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fix {
    /// The change.
    pub change: Change,
    /// What it does.
    pub effect: Effect,
}

/// Changes that save memory, the most first.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Fixes(pub Vec<Fix>);

impl Fixes {
    /// Of everything tried, what saves something. A change of what the run computes (another optimizer, what
    /// is trained) saves as much as it does; whether it is wanted is for the person to say.
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
