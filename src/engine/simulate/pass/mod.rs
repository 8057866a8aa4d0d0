//! One micro-batch, and one update, by themselves: for those who put many setups together from them.
//!
//! Nothing is played through an allocator here. Live bytes are counted in blocks of 512, and of the blocks of a model
//! that do alike only one is run ([`Light`]). Whatever is left out has to come out even: what a pass makes is gone in
//! the end, or the pass is recorded anew with every block.

mod ledger;
mod standing;
mod work;

use std::ops::Range;

use ledger::{Ledger, Live};
use standing::Standing;
pub use work::PassWork;

use super::SimulateError;
use super::check::check;
use super::steps::{Share, Trainer};
use crate::allocator::MIN_BLOCK;
use crate::setup::ZeroGrad;
use crate::tape::log::Event;
use crate::tape::work::Item;
use crate::tape::{Gpu, Kind, Light, Tape, Tensor};
use crate::units::Bytes;
use crate::{Model, Setup};

/// Where it runs: on a GPU, alone or as one of several that share a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The GPU.
    pub gpu: Gpu,
    /// The part of the model that it holds.
    pub share: Share,
}

impl From<Gpu> for Place {
    fn from(gpu: Gpu) -> Self {
        Self {
            gpu,
            share: Share::ALONE,
        }
    }
}

/// Forward and backward of a later step's last micro-batch.
pub struct Pass {
    /// Highest live bytes, without states of an optimizer.
    pub peak: Bytes,
    /// What GPU and host do, where it was asked for; no update.
    pub work: PassWork,
}

/// What an update finds, whichever it is.
#[derive(Debug, Clone)]
pub struct Ground {
    /// Which of the trained parameters have a gradient.
    has_gradient: Vec<bool>,
    /// What a pass leaves behind for good: workspaces of libraries.
    left: u64,
    /// The libraries whose workspaces these are.
    libraries: Vec<&'static str>,
}

/// A later step's update.
pub struct Update {
    /// Live bytes of the optimizer's states.
    pub states: Bytes,
    /// Highest live bytes.
    pub peak: Bytes,
    /// States in managed memory, which CUDA moves between host and device.
    pub paged: Bytes,
    /// Bytes of what is trained.
    pub trained: Bytes,
    /// What GPU and host do, where it was asked for.
    pub work: Vec<Item>,
}

/// Records passes, one setup after the other. The model stands from one to the next where both make the same.
#[derive(Default)]
pub struct PassRecorder {
    standing: Option<Standing>,
    /// How many items the last one wrote down: about as many come next.
    items: usize,
}

impl PassRecorder {
    /// Records one micro-batch of a setup, of whose blocks those that do alike are run once.
    ///
    /// # Errors
    /// When the setup does not fit the model, or the run itself would fail; the message says what to change.
    pub fn record(&mut self, model: &Model, setup: &Setup, place: Place, work: bool) -> Result<Pass, SimulateError> {
        check(model, setup)?;
        match self.pass(model, setup, place, (work, false))? {
            (pass, 0) => Ok(pass),
            _ => Ok(self.pass(model, setup, place, (work, true))?.0),
        }
    }

    /// Forward and backward, and how many bytes of what they make are left in the end.
    ///
    /// # Errors
    /// As [`Self::record`].
    pub fn pass(
        &mut self,
        model: &Model,
        setup: &Setup,
        place: Place,
        (work, whole): (bool, bool),
    ) -> Result<(Pass, i64), SimulateError> {
        let held = setup.accum > 1 || setup.zero_grad == ZeroGrad::ToZero;
        let one = Setup {
            accum: 1,
            ..setup.clone()
        };
        let mut standing = Standing::turned_to(self.standing.take(), model, &one, place);
        let Standing { tape, trainer, .. } = &mut standing;
        if work {
            tape.expect_work(self.items);
        }
        let start = tape.mark();
        tape.lighten(Light::new(whole, held));
        let passes = trainer.micro_batches(tape);
        trainer.optimizer.zero_grad();
        let end = tape.mark();
        let light = tape.take_light();
        let items = tape.take_work();
        succeeds(tape)?;
        self.items = items.len();
        let marks = std::mem::take(&mut trainer.work);
        let (peak, left) = tape.read(|log| {
            let ledger = Ledger::new(log, &light, start..end);
            let (before, after) = ledger.split(passes.after_backward);
            let mut live = Live::default();
            live.play(&ledger, &before);
            let peak = Bytes::new(ledger.base.saturating_add_signed(live.high));
            live.play(&ledger, &after);
            (peak, live.now)
        });
        let pieces = light.pieces(marks.before_forward, marks.after_backward, |place| place.item);
        let work = PassWork::new(items, pieces, marks.after_forward);
        self.standing = Some(standing);
        Ok((Pass { peak, work }, left))
    }
}

/// Records what a pass of a setup leaves to every update.
///
/// # Errors
/// As [`PassRecorder::record`].
pub fn record_ground(model: &Model, setup: &Setup, place: Place) -> Result<Ground, SimulateError> {
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
    let ledger = Ledger::new(&log, &Light::new(true, false), start..end);
    let births = (0..log.births.len()).map(|id| &log.births[id]);
    let libraries = births
        .filter(|birth| birth.kind == Kind::Workspace)
        .map(|birth| birth.name);
    Ok(Ground {
        has_gradient,
        left: ledger.left,
        libraries: libraries.collect(),
    })
}

/// Records a later update of a setup.
///
/// # Errors
/// As [`PassRecorder::record`].
pub fn record_update(
    model: &Model,
    setup: &Setup,
    place: Place,
    (ground, work): (&Ground, bool),
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
    let graded = trainer.optimizer.params().iter().zip(&ground.has_gradient);
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
        let birth = &log.births[event.storage() as usize];
        // What the pass has left is there already.
        let is_there = birth.kind == Kind::Workspace && ground.libraries.contains(&birth.name);
        let bytes = if is_there { 0 } else { block(birth.bytes).cast_signed() };
        if event.is_birth() { bytes } else { -bytes }
    };
    let sum = |range: Range<usize>| log.events[range].iter().map(size).sum::<i64>();
    let base = sum(0..start) + ground.left.cast_signed();
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
            .map(|&id| Bytes::new(log.births[id as usize].bytes))
            .sum(),
        work: items
            .get(marks.update..marks.end)
            .map(<[Item]>::to_vec)
            .unwrap_or_default(),
    })
}

fn tape(place: Place, work: bool) -> Tape {
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
