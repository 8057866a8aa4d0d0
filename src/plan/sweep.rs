//! Sweeps one numeric setting and simulates each value.

use serde::{Deserialize, Serialize};

use super::axis::Axis;
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
