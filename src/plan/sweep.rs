//! Sweeps one numeric setting and simulates each value.

use std::convert::Infallible;

use serde::{Deserialize, Serialize};

use super::axis::Axis;
use super::largest::largest;
use vramscope_engine::device::Device;
use vramscope_engine::model::ModelError;
use vramscope_engine::setup::Parallel;
use vramscope_engine::units::Bytes;
use vramscope_engine::verdict::{Fit, Room};
use vramscope_engine::{Model, Setup, SimulateError, Simulation};

/// Memory that a run needs on a card.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Needed {
    /// Peak of allocated bytes of the steady step.
    pub allocated: Bytes,
    /// Bytes of the reserved peak and of memory outside the allocator, as in [`Fit::needed`].
    pub needed: Bytes,
}

/// One simulated value of a sweep.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Point {
    /// Value of the setting.
    pub value: u64,
    /// Memory of the run, or the reason why it cannot run.
    pub outcome: Result<Needed, Refusal>,
}

/// What stops the value after the largest one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Limit {
    /// It needs more memory than there is.
    Memory,
    /// It cannot run at any memory: the model has no positions for it, or its processor makes no such image.
    Refused(Refusal),
    /// Nothing: larger values are not tried.
    Untried,
}

/// The largest value of a setting that fits, and what stops the next one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LargestValue {
    /// The value and the memory it needs; `None` if no value fits.
    pub found: Option<(u64, Needed)>,
    /// What stops the next larger one.
    pub limit: Limit,
}

/// Reason why a value cannot run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Refusal {
    /// The model cannot be read; the message says what to change.
    #[error("{0}")]
    Model(String),
    /// The setup does not fit the model.
    #[error("{0}")]
    Setup(SimulateError),
}

impl From<ModelError> for Refusal {
    fn from(why: ModelError) -> Self {
        Self::Model(why.to_string())
    }
}

impl From<SimulateError> for Refusal {
    fn from(why: SimulateError) -> Self {
        Self::Setup(why)
    }
}

/// A sweep of one setting on a card. Each [`next`](Iterator::next) simulates one value.
///
/// It ends after the last value, after the first value that needs more than `beyond`, or at the first value that cannot
/// run after one that could. Earlier values that cannot run are returned with the reason.
pub struct Sweep<M> {
    /// Builds the model of a setup, since image sizes and frames can belong to the model.
    model: M,
    setup: Setup,
    axis: Axis,
    room: (&'static Device, Room<'static>),
    beyond: Bytes,
    /// Several GPUs that share each run.
    parallel: Option<Parallel>,
    values: std::vec::IntoIter<u64>,
    ran: bool,
}

impl<M: FnMut(&Setup) -> Result<Model, ModelError>> Sweep<M> {
    /// Starts at the first of `values`, which must be in ascending order.
    pub fn new(
        model: M,
        setup: Setup,
        axis: Axis,
        room: (&'static Device, Room<'static>),
        beyond: Bytes,
        values: Vec<u64>,
    ) -> Self {
        Self {
            model,
            setup,
            axis,
            room,
            beyond,
            parallel: None,
            values: values.into_iter(),
            ran: false,
        }
    }

    /// The same sweep where several GPUs share each run; that of one GPU for none.
    #[must_use]
    pub fn on_several(self, parallel: Option<Parallel>) -> Self {
        Self { parallel, ..self }
    }

    /// Upper bound of the number of remaining values.
    pub fn left(&self) -> usize {
        self.values.len()
    }

    /// What stops the value after `value`, which fits or is 0.
    pub fn limit(&mut self, value: u64, (unit, most): (u64, u64), card: (&'static Device, Room<'static>)) -> Limit {
        let next = value.saturating_add(unit);
        if next > most {
            return Limit::Untried;
        }
        match self.needed(next, card) {
            Ok(_) => Limit::Memory,
            Err(why) => Limit::Refused(why),
        }
    }

    /// The largest multiple of `unit`, up to `most`, that fits a card. `values` are those of a sweep: the first of them
    /// that runs tells below which the setup is refused for another reason than its memory.
    ///
    /// # Errors
    /// The reason why none of the values can run.
    pub fn largest(
        &mut self,
        (unit, most): (u64, u64),
        card: (&'static Device, Room<'static>),
    ) -> Result<LargestValue, Refusal> {
        let values: Vec<u64> = self.values.clone().collect();
        let (mut first, mut refused) = (None, None);
        for value in values {
            match self.needed(value, card) {
                Ok(_) => {
                    first = Some(value);
                    break;
                }
                Err(why) => _ = refused.get_or_insert(why),
            }
        }
        let Some(first) = first else {
            return Err(refused.unwrap_or_else(|| Refusal::Model("no value can be tried".to_owned())));
        };
        let mut known = None;
        let value = largest(unit, most, |value| {
            if value < first {
                return Ok::<_, Infallible>(true);
            }
            let needed = self
                .needed(value, card)
                .ok()
                .filter(|needed| needed.needed <= card.1.bytes());
            if let Some(needed) = needed {
                known = Some((value, needed));
            }
            Ok(needed.is_some())
        });
        let value = match value {
            Ok(value) => value,
            Err(never) => match never {},
        };
        // Below the first value that runs, the search has gone through what it did not try.
        let found = known.filter(|(known, _)| *known == value);
        let last = found.map_or(first.saturating_sub(unit), |(value, _)| value);
        Ok(LargestValue {
            found,
            limit: self.limit(last, (unit, most), card),
        })
    }

    /// Memory of the run at one value, on another card and in another room.
    ///
    /// # Errors
    /// If the value cannot run.
    pub fn needed(&mut self, value: u64, (device, room): (&'static Device, Room<'static>)) -> Result<Needed, Refusal> {
        let setup = self.axis.set(&self.setup, value);
        let model = (self.model)(&setup)?;
        let gpu = device.gpu().unwrap_or_default();
        let simulation = Simulation::new(&model, &setup).gpu(gpu);
        let report = simulation.parallel(self.parallel).run()?;
        let gpus = self.parallel.map_or(1, |parallel| parallel.world);
        Ok(Needed {
            allocated: report.peak_allocated,
            needed: Fit::of_each(&report, room, gpus).needed,
        })
    }
}

impl<M: FnMut(&Setup) -> Result<Model, ModelError>> Iterator for Sweep<M> {
    type Item = Point;

    fn next(&mut self) -> Option<Point> {
        let value = self.values.next()?;
        let outcome = self.needed(value, self.room);
        let ends = match &outcome {
            Ok(needed) => needed.needed > self.beyond,
            Err(_) => self.ran,
        };
        self.ran |= outcome.is_ok();
        if ends {
            self.values = Vec::new().into_iter();
        }
        Some(Point { value, outcome })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vramscope_engine::Case;
    use vramscope_engine::simulate;

    fn sweep(name: &'static str, setup: &Setup, axis: Axis, values: Vec<u64>, beyond: Bytes) -> Vec<Point> {
        let model = move |setup: &Setup| {
            Model::from_case(&Case {
                model: name.into(),
                shape: serde_json::Map::new(),
                setup: setup.clone(),
                limit_gib: None,
                parallel: None,
            })
        };
        let card = Device::by_name("H200").expect("it is known");
        Sweep::new(model, setup.clone(), axis, (card, Room::Card(card)), beyond, values).collect()
    }

    #[test]
    fn a_point_is_what_a_run_of_its_value_takes() {
        let setup = Setup {
            seq: 64,
            ..Setup::default()
        };
        let points = sweep("gpt2", &setup, Axis::BATCH, vec![1, 3], Bytes::gib(999));
        for point in points {
            let alone = Axis::BATCH.set(&setup, point.value);
            let report = simulate(&Model::from_catalogue("gpt2").expect("it is known"), &alone).expect("it runs");
            assert_eq!(point.outcome.map(|n| n.allocated), Ok(report.peak_allocated));
        }
    }

    /// The largest value is the last of a scan; memory limits one length, the model's positions the other.
    #[test]
    fn the_largest_value_says_what_limits_it() {
        let model = |_: &Setup| Model::from_catalogue("gpt2");
        let of = |name: &str| {
            let card = Device::by_name(name).expect("it is known");
            let room = (card, Room::Card(card));
            let setup = Setup {
                seq: 64,
                batch: 48,
                ..Setup::default()
            };
            let mut sweep = Sweep::new(model, setup, Axis::SEQ, room, Bytes::gib(999), vec![32, 64]);
            (sweep.largest((32, 1 << 20), room).expect("it runs"), sweep, room)
        };
        let (on_small, mut sweep, room) = of("RTX 4060");
        let (value, needed) = on_small.found.expect("some length fits");
        assert_eq!(on_small.limit, Limit::Memory);
        assert!(needed.needed <= room.1.bytes());
        assert!(sweep.needed(value + 32, room).expect("it runs").needed > room.1.bytes());
        let (on_large, ..) = of("B200");
        assert_eq!(on_large.found.map(|(value, _)| value), Some(1024));
        assert!(matches!(on_large.limit, Limit::Refused(_)), "{:?}", on_large.limit);
    }

    #[test]
    fn it_ends_beyond_the_room_and_where_nothing_runs_any_more() {
        let setup = Setup {
            seq: 64,
            ..Setup::default()
        };
        let one = sweep("gpt2", &setup, Axis::BATCH, vec![1, 2, 4], Bytes::mib(1));
        assert_eq!(one.len(), 1);
        let refused = sweep("gpt2", &setup, Axis::BATCH, vec![1, 100_000, 200_000], Bytes::gib(999));
        assert!(refused.len() == 2 && refused[1].outcome.is_err());
    }

    #[test]
    fn values_that_cannot_run_yet_are_told() {
        let setup = Setup::default();
        let points = sweep("tinyllava-1.5b", &setup, Axis::SEQ, vec![64, 640], Bytes::gib(999));
        assert!(
            points[0]
                .outcome
                .as_ref()
                .is_err_and(|why| why.to_string().contains("seq")),
            "{points:?}"
        );
        assert!(points[1].outcome.is_ok());
    }
}
