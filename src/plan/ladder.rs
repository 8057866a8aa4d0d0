//! The ladder: memory-saving measures applied in a fixed order until the setup fits.

use super::search::repeated;
use vramscope_engine::allocator::Options;
use vramscope_engine::report::{Phase, StepBytes};
use vramscope_engine::setup::{Change, Checkpointing, Freeze, Loss, Optimizer, Precision};
use vramscope_engine::simulate::{SimulateError, attempt, simulate_on, steady_bytes};
use vramscope_engine::tape::Gpu;
use vramscope_engine::units::Bytes;
use vramscope_engine::{Model, Setup};

/// One measure, applied on top of the measures kept before it.
#[derive(Debug, Clone, PartialEq)]
pub struct Rung {
    /// The measure; `None` for the asked setup.
    pub change: Option<Change>,
    /// Peak of allocated bytes of the steady step; `None` if the setup cannot run.
    pub peak: Option<Bytes>,
    /// Change of the peak in bytes, relative to the last rung that was kept.
    pub difference: i64,
    /// Phase of the peak with this measure.
    pub phase: Option<Phase>,
    /// True if the measure saves memory and is kept; a measure that does not affect the phase of the peak saves
    /// nothing.
    pub kept: bool,
    /// True if the setup now trains within the limit.
    pub trains: bool,
}

/// A ladder, and the single best measure if the first of the ladder does not help.
#[derive(Debug, Clone, PartialEq)]
pub struct Ladder {
    /// The asked setup, followed by one rung per measure.
    pub rungs: Vec<Rung>,
    /// The measure that alone saves most, if the first of the ladder saves nothing: it shrinks the phase of the peak.
    pub offer: Option<Offer>,
}

/// A single measure applied to the asked setup.
#[derive(Debug, Clone, PartialEq)]
pub struct Offer {
    /// The measure.
    pub change: Change,
    /// Change of the peak, in bytes.
    pub difference: i64,
    /// True if this measure alone makes the setup train within the limit.
    pub trains: bool,
}

/// Measures that save less than 1/200 of the peak are not worth their cost.
const LEAST: u64 = 200;

/// Applies measures one after another until the setup trains within `limit`. Measures that compute the same update come
/// first (smaller micro-batches with more accumulation, lower precision, checkpointing, fused optimizer and loss), then
/// 8-bit states, then measures that train fewer parameters. The first rung is the asked setup.
///
/// # Errors
/// If the asked setup cannot be simulated.
pub fn ladder(model: &Model, asked: &Setup, gpu: Gpu, limit: Bytes) -> Result<Ladder, SimulateError> {
    let options = Options {
        limit: Some(limit),
        ..Options::default()
    };
    let trains = |setup: &Setup, peak: Bytes| {
        // A setup with more live bytes than the limit need not be replayed.
        Ok::<_, SimulateError>(peak <= limit && attempt(model, &repeated(setup), gpu, &options, 2)?.trains())
    };
    let first = bytes(model, asked, gpu, limit)?;
    let mut now = (asked.clone(), first.peak());
    let mut rungs = vec![Rung {
        change: None,
        peak: Some(first.peak()),
        difference: 0,
        phase: Some(first.peak_phase()),
        kept: true,
        trains: trains(asked, first.peak())?,
    }];
    for change in measures(model, asked) {
        if rungs.last().is_some_and(|rung| rung.trains) {
            break;
        }
        let setup = apply(&change, &now.0);
        if setup == now.0 {
            continue;
        }
        let Ok(bytes) = bytes(model, &setup, gpu, limit) else {
            continue;
        };
        let difference = bytes.peak().difference_to(now.1);
        let kept = difference < 0 && difference.unsigned_abs() * LEAST >= now.1.get();
        rungs.push(Rung {
            change: Some(change),
            peak: Some(bytes.peak()),
            difference,
            phase: Some(bytes.peak_phase()),
            kept,
            trains: kept && trains(&setup, bytes.peak())?,
        });
        if kept {
            now = (setup, bytes.peak());
        }
    }
    let helpless = rungs.get(1).is_some_and(|rung| !rung.kept);
    let offer = helpless.then(|| offer(model, asked, gpu, first.peak())).flatten();
    let offer = offer.map(|(change, difference)| {
        let left = Bytes::new(first.peak().get().saturating_add_signed(difference));
        let trains = trains(&apply(&change, asked), left)?;
        Ok::<_, SimulateError>(Offer {
            change,
            difference,
            trains,
        })
    });
    Ok(Ladder {
        rungs,
        offer: offer.transpose()?,
    })
}

/// Memory of a setup's step: exact if it may fit, otherwise without trying orders of segments.
fn bytes(model: &Model, setup: &Setup, gpu: Gpu, limit: Bytes) -> Result<StepBytes, SimulateError> {
    let setup = repeated(setup);
    let bytes = steady_bytes(model, &setup, gpu)?;
    match bytes.peak() > limit + Bytes::mib(64) {
        true => Ok(bytes),
        false => Ok(simulate_on(model, &setup, gpu)?.steady),
    }
}

/// The measure that alone saves most; ties go to the first.
fn offer(model: &Model, asked: &Setup, gpu: Gpu, peak: Bytes) -> Option<(Change, i64)> {
    let alone = measures(model, asked).into_iter().filter_map(|change| {
        let bytes = steady_bytes(model, &repeated(&apply(&change, asked)), gpu).ok()?;
        Some((change, bytes.peak().difference_to(peak)))
    });
    let best = alone.reduce(|best, next| if next.1 < best.1 { next } else { best })?;
    (best.1 < 0 && best.1.unsigned_abs() * LEAST >= peak.get()).then_some(best)
}

fn measures(model: &Model, asked: &Setup) -> Vec<Change> {
    let takes = model.takes();
    let mut all = Vec::new();
    let halves = std::iter::successors(Some(asked.batch / 2), |batch| Some(batch / 2));
    all.extend(halves.take_while(|batch| *batch > 0).map(Change::Batch));
    match asked.precision {
        Precision::Fp32 => all.extend([Precision::AmpBf16, Precision::Bf16].map(Change::Precision)),
        Precision::Bf16Amp | Precision::AmpBf16 | Precision::AmpFp16 => all.push(Change::Precision(Precision::Bf16)),
        Precision::Bf16 | Precision::Fp16 | Precision::Fp16Amp => {}
    }
    if takes.parts {
        all.push(Change::Ckpt(Checkpointing::Language));
    }
    all.push(Change::Ckpt(Checkpointing::Full));
    all.push(Change::Optim(Optimizer::AdamwFused));
    if takes.text && asked.loss.alike().contains(&Loss::FusedLinear) {
        all.push(Change::Loss(Loss::FusedLinear));
    }
    all.push(Change::Optim(Optimizer::Adamw8bit));
    if takes.parts {
        all.push(Change::Freeze(Freeze::VISION));
    }
    if takes.text {
        all.extend([Freeze::Lora, Freeze::Qlora].map(Change::Freeze));
    }
    all
}

/// Applies a change; a smaller micro-batch is made up for by more accumulation.
fn apply(change: &Change, setup: &Setup) -> Setup {
    let mut changed = change.apply(setup);
    if let Change::Batch(batch) = change {
        changed.accum = setup.accum * setup.batch.div_ceil(*batch);
    }
    changed
}

#[cfg(test)]
mod tests {
    use super::*;
    use vramscope_engine::report::Phase;

    fn climbed(name: &str, setup: &Setup, gib: u64) -> Vec<Rung> {
        let model = Model::from_catalogue(name).unwrap();
        ladder(&model, setup, Gpu::default(), Bytes::gib(gib)).unwrap().rungs
    }

    #[test]
    fn what_fits_needs_no_measure() {
        let rungs = climbed(
            "gpt2",
            &Setup {
                seq: 128,
                ..Setup::default()
            },
            8,
        );
        assert_eq!(rungs.len(), 1);
        assert!(rungs[0].trains);
    }

    #[test]
    fn measures_go_on_until_it_trains_and_those_that_save_nothing_are_left_out() {
        // The foreach optimizer holds the peak: neither a smaller batch nor checkpointing helps.
        let setup = Setup {
            batch: 2,
            seq: 128,
            precision: Precision::Fp32,
            ..Setup::default()
        };
        let peak = climbed("gpt2-medium", &setup, 80)[0].peak.unwrap();
        assert_eq!(climbed("gpt2-medium", &setup, 80)[0].phase, Some(Phase::Optimizer));
        let rungs = climbed("gpt2-medium", &setup, peak.get() / (1 << 30));
        assert!(!rungs[0].trains && rungs.last().unwrap().trains, "{rungs:#?}");
        let batch = rungs.iter().find(|rung| rung.change == Some(Change::Batch(1))).unwrap();
        assert!(!batch.kept);
        let model = Model::from_catalogue("gpt2-medium").unwrap();
        let offer = ladder(&model, &setup, Gpu::default(), Bytes::gib(peak.get() / (1 << 30)))
            .unwrap()
            .offer
            .unwrap();
        // A measure on the update does help: no fp32 gradients and states, or no temporaries of the foreach
        // implementation.
        assert!(offer.difference < -(1 << 30), "{offer:?}");
        let kept: i64 = rungs.iter().filter(|rung| rung.kept).map(|rung| rung.difference).sum();
        assert_eq!(rungs.last().unwrap().peak.unwrap().difference_to(peak), kept);
    }
}
