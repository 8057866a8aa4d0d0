//! Records single micro-batches and single updates, from which searches combine many setups.
//!
//! Nothing is replayed through an allocator here. Live bytes are counted in blocks of 512, and of a model's equal
//! blocks only one is run ([`Deduplication`], layer deduplication). The count must balance: a pass frees everything that it
//! makes by its end, otherwise it is recorded again with every block.

mod ledger;
mod ready_model;
mod work;

use std::ops::Range;

use ledger::{Ledger, Live};
use ready_model::ReadyModel;
pub use work::PassWork;

use super::check::check;
use super::steps::{Share, Trainer};
use super::{Change, SimulateError};
use crate::allocator::MIN_BLOCK;
use crate::setup::{TrainerKind, ZeroGrad};
use crate::tape::log::Event;
use crate::tape::work::WorkItem;
use crate::tape::{Deduplication, Gpu, Kind, Tape, Tensor};
use crate::units::Bytes;
use crate::{Model, Setup};

/// GPU, and share of the model on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelShare {
    /// The GPU.
    pub gpu: Gpu,
    /// The part of the model that it holds.
    pub share: Share,
}

impl From<Gpu> for ModelShare {
    fn from(gpu: Gpu) -> Self {
        Self {
            gpu,
            share: Share::ALONE,
        }
    }
}

/// Forward and backward of the last micro-batch in a step after the first.
pub struct Pass {
    /// Highest live bytes, without states of an optimizer.
    pub peak: Bytes,
    /// Kernels and host ops, without the update; empty unless requested.
    pub work: PassWork,
}

/// State that a pass leaves for the update, whichever optimizer runs it.
#[derive(Debug, Clone)]
pub struct UpdateInput {
    /// For each trained parameter, true if it has a gradient.
    has_gradient: Vec<bool>,
    /// Bytes that a pass leaves for good: workspaces of libraries.
    left: u64,
    /// The libraries whose workspaces these are.
    libraries: Vec<&'static str>,
}

/// Update of a step after the first.
pub struct Update {
    /// Live bytes of the optimizer's states.
    pub states: Bytes,
    /// Highest live bytes.
    pub peak: Bytes,
    /// States in managed memory, which CUDA moves between host and device.
    pub paged: Bytes,
    /// Bytes of the trained parameters.
    pub trained: Bytes,
    /// Kernels and host ops; empty unless requested.
    pub work: Vec<WorkItem>,
}

/// Records passes, one setup after the other, keeping the model from one to the next if both make the same model.
#[derive(Default)]
pub struct PassRecorder {
    ready_model: Option<ReadyModel>,
    /// Number of work items of the last pass, by which room is reserved for the next.
    items: usize,
}

impl PassRecorder {
    /// Records one micro-batch of a setup, running only one of several equal blocks.
    ///
    /// # Errors
    /// When the setup does not fit the model, or the run itself would fail; the message says what to change.
    pub fn record(
        &mut self,
        model: &Model,
        setup: &Setup,
        place: ModelShare,
        work: bool,
    ) -> Result<Pass, SimulateError> {
        check(model, setup)?;
        runs_in_a_loop(model, setup)?;
        match self.pass(model, setup, place, (work, false))? {
            (pass, 0) => Ok(pass),
            _ => Ok(self.pass(model, setup, place, (work, true))?.0),
        }
    }

    /// Records forward and backward, and returns the bytes of their storages that are left at the end.
    ///
    /// # Errors
    /// Returns the errors of [`Self::record`].
    pub fn pass(
        &mut self,
        model: &Model,
        setup: &Setup,
        place: ModelShare,
        (work, whole): (bool, bool),
    ) -> Result<(Pass, i64), SimulateError> {
        let accumulates = setup.accum > 1 || setup.zero_grad == ZeroGrad::ToZero;
        let one = Setup {
            accum: 1,
            ..setup.clone()
        };
        let mut ready_model = ReadyModel::switched_to(self.ready_model.take(), model, &one, place);
        let ReadyModel { tape, trainer, .. } = &mut ready_model;
        if work {
            tape.expect_work(self.items);
        }
        let start = tape.mark();
        tape.start_deduplication(Deduplication::new(whole, accumulates));
        let passes = trainer.micro_batches(tape);
        trainer.optimizer.zero_grad();
        let end = tape.mark();
        let deduplication = tape.take_deduplication();
        let items = tape.take_work();
        succeeds(tape)?;
        self.items = items.len();
        let marks = std::mem::take(&mut trainer.work);
        let (peak, left) = tape.read(|log| {
            let ledger = Ledger::new(log, &deduplication, start..end);
            let (before, after) = ledger.split(passes.after_backward);
            let mut live = Live::default();
            live.play(&ledger, &before);
            let peak = Bytes::new(ledger.base.saturating_add_signed(live.high));
            live.play(&ledger, &after);
            (peak, live.now)
        });
        let pieces = deduplication.pieces(marks.before_forward, marks.after_backward, |place| place.item);
        let work = PassWork::new(items, pieces, marks.after_forward);
        self.ready_model = Some(ready_model);
        Ok((Pass { peak, work }, left))
    }
}

/// Checks that the steps run in eager mode, whose memory is known, and in a loop of one's own: a trainer keeps tensors
/// from one step to the next, which a single pass does not have.
fn runs_in_a_loop(model: &Model, setup: &Setup) -> Result<(), SimulateError> {
    let (given, way) = match setup.trainer {
        _ if setup.compile => ("a plan for `compile`".to_owned(), Change::leave_out("compile")),
        TrainerKind::Loop => return Ok(()),
        trainer => (
            format!("a plan for `trainer` {}", trainer.name()),
            Change::set("trainer", "loop"),
        ),
    };
    Err(SimulateError::NotSimulated {
        model: model.name.clone(),
        given,
        ways: vec![way],
    })
}

/// Records the state that a pass of a setup leaves for every update.
///
/// # Errors
/// Returns the errors of [`PassRecorder::record`].
pub fn record_update_input(model: &Model, setup: &Setup, place: ModelShare) -> Result<UpdateInput, SimulateError> {
    check(model, setup)?;
    let tape = tape(place, false);
    let (mut trainer, params) = Trainer::new(model, setup, &tape);
    drop(params);
    let start = tape.mark();
    trainer.micro_batches(&tape);
    let has_gradient = trainer.optimizer.params().iter().map(|p| p.grad().is_some()).collect();
    trainer.optimizer.zero_grad();
    let end = tape.mark();
    succeeds(&tape)?;
    drop(trainer);
    let log = tape.finish();
    let ledger = Ledger::new(&log, &Deduplication::new(true, false), start..end);
    let allocations = (0..log.allocations.len()).map(|id| &log.allocations[id]);
    let libraries = allocations
        .filter(|allocation| allocation.kind == Kind::Workspace)
        .map(|allocation| allocation.name);
    Ok(UpdateInput {
        has_gradient,
        left: ledger.left,
        libraries: libraries.collect(),
    })
}

/// Records an update of a setup in a step after the first.
///
/// # Errors
/// Returns the errors of [`PassRecorder::record`].
pub fn record_update(
    model: &Model,
    setup: &Setup,
    place: ModelShare,
    (update_input, work): (&UpdateInput, bool),
) -> Result<Update, SimulateError> {
    check(model, setup)?;
    let tape = tape(place, work);
    let (mut trainer, params) = Trainer::new(model, setup, &tape);
    let trained: Vec<_> = params
        .iter()
        .filter(|p| p.requires_grad())
        .filter_map(|p| p.storage().id())
        .collect();
    drop(params);
    let graded = trainer.optimizer.params().iter().zip(&update_input.has_gradient);
    graded
        .filter(|(_, has)| **has)
        .for_each(|(p, _): (&Tensor, _)| p.hold_gradient(&tape));
    let start = tape.mark();
    trainer.update(&tape);
    let first = tape.mark();
    trainer.update(&tape);
    let second = tape.mark();
    succeeds(&tape)?;
    let paged = trainer.optimizer.paged();
    let marks = std::mem::take(&mut trainer.work);
    let items = tape.take_work();
    drop(trainer);
    let log = tape.finish();
    let size = |event: &Event| {
        let allocation = &log.allocations[event.storage() as usize];
        // Workspaces that the pass has made are there already.
        let is_there = allocation.kind == Kind::Workspace && update_input.libraries.contains(&allocation.name);
        let bytes = if is_there {
            0
        } else {
            block(allocation.bytes).cast_signed()
        };
        if event.is_alloc() { bytes } else { -bytes }
    };
    let sum = |range: Range<usize>| log.events[range].iter().map(size).sum::<i64>();
    let base = sum(0..start) + update_input.left.cast_signed();
    let mut now = base + sum(start..first);
    let mut high = now;
    for event in &log.events[first..second] {
        now += size(event);
        high = high.max(now);
    }
    let bytes = |count: i64| Bytes::new(u64::try_from(count).unwrap_or(0));
    Ok(Update {
        states: bytes(now - base),
        peak: bytes(high),
        paged,
        trained: trained
            .iter()
            .map(|&id| Bytes::new(log.allocations[id as usize].bytes))
            .sum(),
        work: items
            .get(marks.update..marks.end)
            .map(<[WorkItem]>::to_vec)
            .unwrap_or_default(),
    })
}

fn tape(place: ModelShare, work: bool) -> Tape {
    let tape = Tape::new(place.gpu);
    place.share.set(&tape);
    if work {
        tape.write_work();
    }
    tape.sum_segments();
    tape
}

fn succeeds(tape: &Tape) -> Result<(), SimulateError> {
    tape.failure()
        .map_or(Ok(()), |failure| Err(SimulateError::Fails(failure)))
}

const fn block(bytes: u64) -> u64 {
    bytes.next_multiple_of(MIN_BLOCK)
}
