//! The time of a recorded step, by the same model as that of a simulated one.

use super::run::Run;
use crate::Setup;
use crate::dtype::DType;
use crate::setup::Precision;
use crate::simulate::{Recording, Step, StepMarks};
use crate::tape::Kind;
use crate::tape::work::{Class, Item};
use crate::time::pipeline::Pipeline;
use crate::time::{Asked, Clock, Expense, Milliseconds, Run as TimedRun, TimeAnswer};
use crate::units::Bytes;

impl Run {
    /// Milliseconds of each phase of the last step, and where the time goes, told by `clock`; the run without its work.
    ///
    /// What the host does between operations is told from what was recorded: views, nodes, modules, gradients. Kernels
    /// of which only their memory is known (`untimed` of [`About`](super::About)) count as copies of it, so the step
    /// takes at least this time. `feed` says how micro-batches of so many samples come.
    pub fn timed<'c>(
        mut self,
        clock: &'c Clock,
        expense: Expense,
        feed: impl FnOnce(u64) -> Option<Pipeline>,
    ) -> (Self, Milliseconds, TimeAnswer<'c>) {
        let setup = self.setup();
        let nothing = || Step {
            events: Vec::new(),
            marks: StepMarks::default(),
        };
        let recording = Recording {
            work: std::mem::take(&mut self.work),
            log: std::mem::take(&mut self.log),
            build: Vec::new(),
            first: nothing(),
            steady: nothing(),
            params: self.params,
            trainable: self.trainable,
            parameters: Vec::new(),
            streams: Vec::new(),
            stages: Vec::new(),
            paged: Bytes::ZERO,
            failure: None,
        };
        let sources = clock.sources();
        let mut timed = TimedRun::of(recording, (&setup, None), clock.network());
        timed.feed(feed(setup.batch));
        let (ms, answer) = timed.answer(&clock.costs(), Asked { sources, expense });
        self.log = timed.into_recording().log;
        (self, ms, answer)
    }

    /// What of a setup decides samples and tokens a second: the batch's extents, micro-batches and the type of products.
    fn setup(&self) -> Setup {
        let inputs = || self.log.births.iter().filter(|birth| birth.kind == Kind::Input);
        let ids = inputs()
            .find(|birth| birth.name == "input_ids")
            .map(|birth| birth.shape);
        let first = ids.or_else(|| inputs().next().map(|birth| birth.shape));
        let extent = |at: usize| first.as_ref().and_then(|shape| shape.get(at)).copied();
        let size = |name: &str| {
            let at = self.about.at.as_ref()?;
            at.sizes
                .iter()
                .find(|(known, _)| known == name)
                .map(|(_, value)| *value)
        };
        Setup {
            batch: size("batch").or(extent(0)).unwrap_or(1).max(1),
            seq: size("seq").or(ids.and(extent(1))).unwrap_or(0),
            accum: self.micro_batches.max(1),
            precision: self.precision(),
            ..Setup::default()
        }
    }

    /// The type of most of the arithmetic of products.
    fn precision(&self) -> Precision {
        let mut most = (0u128, DType::Bf16);
        for item in self.work.forward() {
            if let Item::Launch(launch) = item
                && matches!(launch.class, Class::Matmul(_) | Class::Convolution)
            {
                let work = launch.extents.iter().map(|&n| u128::from(n.max(1))).product();
                if work > most.0 {
                    most = (work, launch.dtype);
                }
            }
        }
        match most.1 {
            DType::F16 => Precision::AmpFp16,
            DType::F32 | DType::F64 => Precision::Fp32,
            _ => Precision::Bf16,
        }
    }
}
