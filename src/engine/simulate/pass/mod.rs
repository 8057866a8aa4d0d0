//! One micro-batch, and one update, by themselves: for those who put many setups together from them.
//!
//! Nothing is played through an allocator here. Live bytes are counted in blocks of 512, and of the blocks of a model
//! that do alike only one is run ([`Light`]). Whatever is left out has to come out even: what a pass makes is gone in
//! the end, or the pass is recorded anew with every block.

mod ledger;
#[cfg(test)]
mod tests;

use std::ops::Range;

use ledger::{Ledger, Live};

use super::SimulateError;
use super::check::check;
use super::steps::{Share, Trainer, Work};
use crate::allocator::MIN_BLOCK;
use crate::nn::Builder;
use crate::setup::ZeroGrad;
use crate::tape::log::Event;
use crate::tape::work::Item;
use crate::tape::{Gpu, Kind, Light, Piece, Tape, Tensor};
use crate::units::Bytes;
use crate::{Model, Setup};

/// Where it runs: on a GPU, alone or as one of several that share a model.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub gpu: Gpu,
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
    pub work: Work,
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

/// Records one micro-batch of a setup, of whose blocks those that do alike are run once.
///
/// # Errors
/// When the setup does not fit the model, or the run itself would fail; the message says what to change.
pub(crate) fn record_pass(model: &Model, setup: &Setup, place: Place, work: bool) -> Result<Pass, SimulateError> {
    check(model, setup)?;
    match pass(model, setup, place, (work, false))? {
        (pass, 0) => Ok(pass),
        _ => Ok(pass(model, setup, place, (work, true))?.0),
    }
}

/// The pass, and how many bytes of what it makes are left in the end.
fn pass(model: &Model, setup: &Setup, place: Place, (work, whole): (bool, bool)) -> Result<(Pass, i64), SimulateError> {
    let tape = tape(place, work);
    let held = setup.accum > 1 || setup.zero_grad == ZeroGrad::ToZero;
    if held {
        tape.settle();
    }
    let one = Setup {
        accum: 1,
        ..setup.clone()
    };
    // No optimizer turns to one parameter after the other here.
    let (mut trainer, params) = Trainer::with(model, &one, &tape, Builder::made);
    drop(params);
    let after_model = tape.mark();
    tape.lighten(Light::new(whole, held));
    let passes = trainer.micro_batches(&tape);
    trainer.optimizer.zero_grad();
    let end = tape.mark();
    succeeds(&tape)?;
    let light = tape.take_light();
    let items = tape.take_work();
    let marks = std::mem::take(&mut trainer.work);
    drop(trainer);
    let log = tape.finish();
    let ledger = Ledger::new(&log, &light, after_model..end);
    let (before, after) = ledger.split(passes.after_backward);
    let mut live = Live::default();
    live.play(&ledger, &before);
    let peak = Bytes::new(ledger.base.saturating_add_signed(live.high));
    live.play(&ledger, &after);
    let [forward, backward] = cut(
        &items,
        light.pieces(marks.before_forward, marks.after_backward, |place| place.item),
        marks.after_forward,
    );
    let work = Work {
        forward,
        backward,
        optimizer: Vec::new(),
    };
    Ok((Pass { peak, work }, live.now))
}

/// Records what a pass of a setup leaves to every update.
///
/// # Errors
/// As [`record_pass`].
pub(crate) fn record_ground(model: &Model, setup: &Setup, place: Place) -> Result<Ground, SimulateError> {
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
/// As [`record_pass`].
pub(crate) fn record_update(
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

/// Items of pieces before a mark, and after it.
fn cut(items: &[Item], pieces: Vec<Piece>, mark: usize) -> [Vec<Item>; 2] {
    let mut out = [Vec::new(), Vec::new()];
    for Piece { range, times, .. } in pieces {
        let middle = mark.clamp(range.start, range.end);
        for (out, part) in out.iter_mut().zip([range.start..middle, middle..range.end]) {
            match items.get(part).unwrap_or_default() {
                [] => {}
                part if times == 1 => out.extend_from_slice(part),
                part => out.push(Item::Repeat(part.into(), times)),
            }
        }
    }
    out
}
