//! Evaluation and generation: a model's forward without training.

use serde::{Deserialize, Serialize};

use super::build::{Built, build, elements};
use super::check::check;
use super::replayer::Replayer;
use super::sampling::MOST_NEW_TOKENS;
use super::{Change, SimulateError};
use crate::allocator::{CachingAllocator, Options, OutOfMemory, PoolKind};
use crate::dtype::DType;
use crate::model::forward::{Batch, Forward, Run};
use crate::report::{BlockBytes, Breakdown, Outputs, Phase, Recorded, Reserved, SegmentLayout, StepBytes, Timeline};
use crate::setup::{Checkpointing, Loss};
use crate::tape::dims::Dims;
use crate::tape::log::{Event, StorageId};
use crate::tape::{Gpu, Tape, Tensor};
use crate::units::Bytes;
use crate::{Model, Report, Setup};

/// Figures of a model without training: it has no gradients and no optimizer states.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inference {
    /// Parameters of the model (elements).
    pub params: u64,
    /// Allocated bytes once the model is made.
    pub after_model: Bytes,
    /// Highest allocated bytes.
    pub peak_allocated: Bytes,
    /// Highest reserved bytes.
    pub peak_reserved: Bytes,
    /// Allocated bytes while the batch and its outputs are held: logits, and keys and values of generation.
    pub with_outputs: Bytes,
    /// Keys and values of all blocks at the end of a generation.
    pub cache: Bytes,
}

/// Figures of evaluation or generation, as the command line's `--format json` prints them.
#[derive(Debug, Serialize)]
pub struct InferenceAnswer<'a> {
    model: &'a str,
    setup: &'a Setup,
    /// `evaluate` or `generate`.
    phase: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    new_tokens: Option<u64>,
    #[serde(flatten)]
    figures: &'a Inference,
}

impl Inference {
    /// Returns the figures with their model and setup; with `new_tokens`, of a generation of that many tokens.
    pub fn answer<'a>(
        &'a self,
        (model, setup): (&'a Model, &'a Setup),
        new_tokens: Option<u64>,
    ) -> InferenceAnswer<'a> {
        InferenceAnswer {
            model: &model.name,
            setup,
            phase: if new_tokens.is_some() { "generate" } else { "evaluate" },
            new_tokens,
            figures: self,
        }
    }
}

/// Result of an evaluation or a generation.
#[derive(Debug, Clone)]
pub struct Passed {
    /// Figures of the pass.
    pub figures: Inference,
    /// Report of the pass, whose only phase is forward.
    pub report: Report,
}

/// Runs one batch in `model.eval()` under `torch.no_grad()`, keeping the logits until the end.
///
/// # Errors
/// Returns the errors of [`simulate`](super::simulate).
pub fn evaluate(model: &Model, setup: &Setup, gpu: Gpu) -> Result<Passed, SimulateError> {
    run(model, setup, gpu, |pass| {
        let batch = pass.batch();
        let outputs = pass.forward(&batch);
        let held = pass.tape.mark();
        drop((outputs, batch));
        let cache = pass.run.drop_cache();
        Ok(End { held, cache })
    })
}

/// Runs `model.generate(…, max_new_tokens=new_tokens)`, greedy, with a `DynamicCache`: the whole batch at once, then
/// token by token, each of which copies a block's keys and values to extend them by one.
///
/// Masks and positions of single tokens, a few bytes for each position, are left out.
///
/// # Errors
/// Returns the errors of [`simulate`](super::simulate), or an error if the model does not generate.
pub fn generate(model: &Model, setup: &Setup, new_tokens: u64, gpu: Gpu) -> Result<Passed, SimulateError> {
    if !(1..=MOST_NEW_TOKENS).contains(&new_tokens) {
        return Err(SimulateError::NewTokens {
            given: new_tokens,
            most: MOST_NEW_TOKENS,
        });
    }
    let refused = || SimulateError::NoGeneration {
        model: model.name.clone(),
    };
    if !model.takes().text {
        return Err(refused());
    }
    if setup.images == 0 && model.takes().parts {
        return Err(SimulateError::NotSimulated {
            model: model.name.clone(),
            given: "generation after text without images".into(),
            ways: vec![Change::set("images", "1")],
        });
    }
    // Most of these models are recurrent: between two tokens they keep a state, which other kernels update than those of
    // training.
    if !model.absent_packages().is_empty() {
        return Err(SimulateError::NotSimulated {
            model: model.name.clone(),
            given: "generation".into(),
            ways: Vec::new(),
        });
    }
    run(model, setup, gpu, |pass| {
        pass.run.generates = true;
        let held = pass.generate(new_tokens).ok_or_else(refused)?;
        let cache = pass.run.drop_cache();
        Ok(End { held, cache })
    })
}

/// State of a pass before it drops its outputs.
struct End {
    /// Number of events up to then.
    held: usize,
    /// Shapes and types of the cache's keys and values.
    cache: Vec<(Dims, DType)>,
}

/// A model on the tape that does not train.
struct Pass {
    tape: Tape,
    forward: Box<dyn Forward>,
    run: Run,
    autocast: Option<DType>,
}

fn run(
    model: &Model,
    setup: &Setup,
    gpu: Gpu,
    pass: impl FnOnce(&mut Pass) -> Result<End, SimulateError>,
) -> Result<Passed, SimulateError> {
    check(model, setup)?;
    // Blocks are checkpointed, and Liger leaves logits out, only in training.
    let setup = &Setup {
        ckpt: Checkpointing::None,
        loss: Loss::Full,
        ..model.prepared(setup)
    };
    let tape = Tape::new(gpu);
    tape.set_autocast_cache(setup.autocast_cache);
    tape.set_padded(setup.is_padded());
    tape.set_training(false);
    let Built {
        forward, params, ema, ..
    } = build(&tape, model, setup);
    let after_model = tape.mark();
    let mut this = Pass {
        run: Run::new(model, setup),
        autocast: setup.precision.autocast(),
        tape: tape.clone(),
        forward,
    };
    let end = pass(&mut this)?;
    let last = tape.mark();
    let failure = tape.failure();
    let total = params.iter().map(elements).sum();
    let parameters = params.iter().filter_map(|p| Some((p.storage().id()?, false)));
    let parameters = parameters.collect();
    drop((this, params, ema));
    if let Some(failure) = failure {
        return Err(SimulateError::Fails(failure));
    }
    let mut log = tape.finish();
    let mut events = std::mem::take(&mut log.events);
    events.truncate(last);
    let pass = events.split_off(after_model);
    let replay = replay([&events, &pass], end.held - after_model, log.allocations.requests())?;
    let bytes = |(shape, dtype): &(Dims, DType)| Bytes::new(shape.numel() * dtype.width());
    let figures = Inference {
        params: total,
        after_model: replay.after_model,
        peak_allocated: replay.peak,
        peak_reserved: replay.reserved.bytes,
        with_outputs: replay.with_outputs,
        cache: end.cache.iter().map(bytes).sum(),
    };
    let outputs = Outputs {
        held: end.held - after_model,
        cache: end.cache,
    };
    let timeline = Timeline::new(Recorded {
        phases: vec![(Phase::Forward, 0)],
        log,
        events: pass,
        initial: replay.initial,
        block_bytes: replay.block_bytes,
        peak: replay.peak_instant,
        parameters,
    });
    let report = report(&figures, replay.reserved, outputs, timeline);
    Ok(Passed { figures, report })
}

/// Makes a report of a step with only a forward.
fn report(figures: &Inference, reserved: Reserved, outputs: Outputs, timeline: Timeline) -> Report {
    let steady = StepBytes {
        before_forward: figures.after_model,
        after_forward: figures.with_outputs,
        peak_forward: figures.peak_allocated,
        end: figures.after_model,
        ..StepBytes::default()
    };
    Report {
        params: figures.params,
        trainable: 0,
        after_model: figures.after_model,
        first: steady,
        steady,
        peak_allocated: figures.peak_allocated,
        peak_reserved: figures.peak_reserved,
        reserved: vec![reserved],
        fragmentation: figures.peak_reserved.saturating_sub(figures.peak_allocated),
        paged: Bytes::ZERO,
        peak_phase: Phase::Forward,
        breakdown: Breakdown::of(&timeline),
        timeline,
        is_compiled: false,
        outputs: Some(outputs),
        warnings: Vec::new(),
    }
}

impl Pass {
    fn batch(&self) -> Batch {
        self.forward.batch(&self.tape, &self.run)
    }

    fn forward(&self, batch: &Batch) -> (Tensor, Vec<Tensor>) {
        let t = &self.tape;
        let output = t.no_grad(|| t.autocast(self.autocast, || self.forward.loss(t, &self.run, batch)));
        (output.loss, output.held)
    }

    /// `GenerationMixin._sample`; returns the number of events after the last token, when the cache is longest, or `None` if the
    /// model does not generate.
    fn generate(&self, new_tokens: u64) -> Option<usize> {
        let t = &self.tape;
        let mut batch = self.batch();
        batch.labels = None;
        let mut ids = batch.ids.clone()?;
        let (logits, _) = self.forward(&batch);
        let mut next = self.pick(&logits);
        ids = t.cat(&[&ids, &next], 1);
        drop(logits);
        for _ in 1..new_tokens {
            let logits = t.no_grad(|| t.autocast(self.autocast, || self.forward.next_logits(t, &self.run, &next)))?;
            next = self.pick(&logits);
            ids = t.cat(&[&ids, &next], 1);
        }
        Some(t.mark())
    }

    /// Picks the most likely token of each sample, [batch, 1], by way of the logits in fp32.
    fn pick(&self, logits: &Tensor) -> Tensor {
        let t = &self.tape;
        let scores = t.empty([logits.size(0), logits.last()], DType::F32, "scores of the next token");
        let next = t.empty([logits.size(0), 1], DType::I64, "next token");
        drop(scores);
        next
    }
}

/// Figures of the allocator over a pass.
struct Replay {
    after_model: Bytes,
    with_outputs: Bytes,
    peak: Bytes,
    /// Number of events before the pass's highest total.
    peak_instant: usize,
    reserved: Reserved,
    initial: Vec<StorageId>,
    block_bytes: BlockBytes,
}

/// Replays the making of the model, then, from an empty cache, the pass, whose outputs are held up to event `held`.
fn replay([build, pass]: [&[Event]; 2], held: usize, requests: Vec<u64>) -> Result<Replay, OutOfMemory> {
    let mut replayer = Replayer::new(requests.into_iter(), &[], CachingAllocator::new(Options::default()));
    replayer.build(build, &[build.len()])?;
    let after_model = replayer.allocator().allocated();
    let initial = replayer.lasting().storages();
    replayer.restart();
    replayer.play(&pass[..held])?;
    let with_outputs = replayer.allocator().allocated();
    replayer.play(&pass[held..])?;
    let segments = [PoolKind::Small, PoolKind::Large].map(|kind| replayer.segments(kind));
    // Without a limit nothing is released, so the reserved bytes at the end are the peak.
    let reserved = Reserved::new(SegmentLayout::FreshProcess, segments.into_iter().flatten());
    Ok(Replay {
        after_model,
        with_outputs,
        peak: replayer.allocator().peak_allocated(),
        peak_instant: replayer.peak(),
        reserved,
        initial,
        block_bytes: replayer.block_bytes(),
    })
}
