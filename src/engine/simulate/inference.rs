//! Evaluation and generation: a model's forward without training.

use serde::{Deserialize, Serialize};

use super::SimulateError;
use super::build::{Built, build, elements};
use super::check::check;
use super::steps::autocast_dtype;
use crate::allocator::{Block, CachingAllocator, Options, OutOfMemory};
use crate::dtype::DType;
use crate::model::forward::{Batch, Forward, Run};
use crate::setup::{Checkpointing, Loss};
use crate::tape::log::Event;
use crate::tape::{Gpu, Tape, Tensor};
use crate::units::Bytes;
use crate::{Model, Setup};

/// Most tokens that a simulated generation makes.
pub const MOST_NEW_TOKENS: u64 = 4096;

/// What a model takes without training, beside nothing else: no gradients, no optimizer states.
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
    /// Allocated bytes while the outputs are held: logits, and keys and values of generation.
    pub with_outputs: Bytes,
    /// Keys and values of all blocks at the end of a generation.
    pub cache: Bytes,
}

/// What evaluation or generation takes, as the command line's `--format json` has it.
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
    /// The answer about a model and a setup; with a number of tokens, it generated so many.
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

/// One batch in `model.eval()` under `torch.no_grad()`, logits kept until they are dropped.
///
/// # Errors
/// As [`simulate`](super::simulate).
pub fn evaluate(model: &Model, setup: &Setup, gpu: Gpu) -> Result<Inference, SimulateError> {
    run(model, setup, gpu, |pass| {
        let outputs = pass.forward(&pass.batch());
        let held = pass.tape.mark();
        drop(outputs);
        let cache = pass.run.drop_cache();
        Ok(End { held, cache })
    })
}

/// `model.generate(…, max_new_tokens=new_tokens)`, greedy, with a `DynamicCache`: the whole batch at
/// once, then token by token, each with a copy of a block's keys and values that is one longer.
///
/// Masks and positions of single tokens, a few bytes for each position, are not followed.
///
/// # Errors
/// As [`simulate`](super::simulate), and for models that do not generate.
pub fn generate(model: &Model, setup: &Setup, new_tokens: u64, gpu: Gpu) -> Result<Inference, SimulateError> {
    if !(1..=MOST_NEW_TOKENS).contains(&new_tokens) {
        return Err(SimulateError(format!(
            "{new_tokens} new tokens: generation is simulated for 1 to {MOST_NEW_TOKENS}"
        )));
    }
    let refused = || {
        SimulateError(format!(
            "{} does not generate; take a decoder or a vision-language model",
            model.name
        ))
    };
    if !model.takes().text {
        return Err(refused());
    }
    run(model, setup, gpu, |pass| {
        pass.run.generates = true;
        let held = pass.generate(new_tokens).ok_or_else(refused)?;
        let cache = pass.run.drop_cache();
        Ok(End { held, cache })
    })
}

/// The position at which outputs are still held, and the bytes of the cache then.
struct End {
    held: usize,
    cache: u64,
}

/// A model that does not train.
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
) -> Result<Inference, SimulateError> {
    check(model, setup)?;
    // Blocks are checkpointed, and Liger leaves logits out, in training only.
    let setup = &Setup {
        ckpt: Checkpointing::None,
        loss: Loss::Full,
        ..model.prepared(setup)
    };
    let tape = Tape::new(gpu);
    tape.set_autocast_cache(setup.autocast_cache);
    tape.set_padded(setup.is_padded());
    tape.set_training(false);
    let Built { forward, params, ema } = build(&tape, model, setup);
    let after_model = tape.mark();
    let mut this = Pass {
        run: Run::new(model, setup),
        autocast: autocast_dtype(setup.precision),
        tape: tape.clone(),
        forward,
    };
    let end = pass(&mut this)?;
    let last = tape.mark();
    let failure = tape.failure();
    let total = params.iter().map(elements).sum();
    drop((this, params, ema));
    if let Some(failure) = failure {
        return Err(SimulateError(failure));
    }
    let log = tape.finish();
    let bytes: Vec<u64> = log.births.iter().map(|b| b.bytes).collect();
    let marks = [after_model, end.held, last];
    let mut out = replay(&log.events, &bytes, marks).map_err(|e| SimulateError(e.to_string()))?;
    out.params = total;
    out.cache = Bytes::new(end.cache);
    Ok(out)
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

    /// `GenerationMixin._sample`; the answer is where the cache is at its longest.
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

    /// The most likely token of each sample, [batch, 1], by way of the logits in fp32.
    fn pick(&self, logits: &Tensor) -> Tensor {
        let t = &self.tape;
        let scores = t.empty([logits.size(0), logits.last()], DType::F32, "scores of the next token");
        let next = t.empty([logits.size(0), 1], DType::I64, "next token");
        drop(scores);
        next
    }
}

/// The allocator's figures: the model is made, the cache emptied, and the pass run.
fn replay(events: &[Event], bytes: &[u64], [after_model, held, last]: [usize; 3]) -> Result<Inference, OutOfMemory> {
    let mut allocator = CachingAllocator::new(Options::default());
    let mut blocks: Vec<Option<Block>> = vec![None; bytes.len()];
    let mut play = |allocator: &mut CachingAllocator, events: &[Event]| {
        events.iter().try_for_each(|event| {
            let id = event.storage() as usize;
            if event.is_birth() {
                blocks[id] = Some(allocator.alloc(bytes[id], 0)?);
            } else if let Some(block) = blocks[id].take() {
                allocator.free(block);
            }
            Ok(())
        })
    };
    play(&mut allocator, &events[..after_model])?;
    allocator.empty_cache();
    allocator.reset_peaks();
    let made = allocator.allocated();
    play(&mut allocator, &events[after_model..held])?;
    let with_outputs = allocator.allocated();
    play(&mut allocator, &events[held..last])?;
    Ok(Inference {
        params: 0,
        after_model: made,
        peak_allocated: allocator.peak_allocated(),
        peak_reserved: allocator.peak_reserved(),
        with_outputs,
        cache: Bytes::ZERO,
    })
}
