//! Finds better setups: sweeps of one setting, the largest batch that fits, the effect of each single change,
//! recommendations from a search, and the cards on which a run costs least.

mod answer;
mod axis;
mod builder;
mod change;
pub mod cost;
pub mod export;
mod ladder;
mod largest;
mod largest_recorded;
mod max_batch;
mod optimizers;
mod reason;
mod recommend;
pub mod search;
mod sweep;
mod what_if;

pub use answer::{Choice, LadderStep, Nearest, Plan, Reason, Target, less_margin};
pub use axis::Axis;
pub use builder::PlanBuilder;
pub use change::changes;
pub use ladder::{Ladder, Offer, Rung, ladder};
pub use largest::largest;
pub use largest_recorded::{Largest, RecordedLimits, RecordedSearch, largest_recorded};
pub use max_batch::{Batches, End, MOST as MOST_SAMPLES, MaxBatch, max_batch};
pub use optimizers::{named as optimizer_named, names as optimizer_names};
pub use recommend::{Judge, Recommended, Settled};
pub use sweep::{LargestValue, Limit, Needed, Point, Refusal, Sweep};
pub use vramscope_engine::setup::Change;
pub use what_if::{Effect, Now, SimulateSeveral, Tried, WhatIf};
