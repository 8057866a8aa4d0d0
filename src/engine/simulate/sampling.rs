//! `generate` of transformers as GRPO calls it: sampling from the whole distribution with a `DynamicCache`
//! (`GenerationMixin._sample` in `transformers/generation/utils.py`, 5.17).

use crate::dtype::DType;
use crate::model::forward::{Batch, Forward, Run};
use crate::tape::{Kind, Tape, Tensor};

/// Most tokens that a simulated generation makes.
pub const MOST_NEW_TOKENS: u64 = 4096;

/// A model that generates.
pub(super) struct Sampling<'a> {
    pub tape: &'a Tape,
    pub forward: &'a dyn Forward,
    /// The forward's view of the prompts: their number and length.
    pub run: &'a Run,
    /// Autocast around each forward.
    pub autocast: Option<DType>,
}

impl Sampling<'_> {
    /// Extends prompts, ids and mask of [samples, prompt], by `tokens` tokens each; returns prompts and completions, [samples, prompt +
    /// tokens]. `None` if the model does not generate.
    pub fn extend(&self, [prompts, mask]: &[Tensor; 2], tokens: u64) -> Option<Tensor> {
        let t = self.tape;
        let samples = prompts.size(0);
        let ends = [
            t.empty([1], DType::I64, "eos_token_id"),
            t.empty([], DType::I64, "pad_token_id"),
        ];
        let prompt_positions = position_ids(t, mask);
        let mut state = State {
            ids: prompts.clone(),
            mask: mask.clone(),
            positions: prompt_positions.clone(),
            unfinished: t.empty([samples], DType::I64, "unfinished_sequences"),
            next: None,
            scores: None,
            probs: None,
        };
        let mut inputs = Inputs {
            ids: t.clone_of(&state.ids),
            _positions: None,
            _mask: state.mask.clone(),
        };
        let mut logits = self.prefill(&inputs.ids, mask, &prompt_positions);
        for made in 1..=tokens {
            if made == 1 {
                // The prompts' copy ends with `_prefill`.
                inputs.ids = state.ids.clone();
            }
            self.take(&mut state, logits);
            if made == tokens {
                break;
            }
            let next = t.empty([samples, 1], DType::I64, "input_ids of the next token");
            let positions = t.empty([samples, 1], DType::I64, "position_ids of the next token");
            inputs = Inputs {
                ids: next,
                _positions: Some(positions.clone()),
                _mask: state.mask.clone(),
            };
            self.run.give_positions(Some(positions));
            t.set_cached_positions(state.mask.size(1) - 1);
            let next = t.no_grad(|| t.autocast(self.autocast, || self.forward.next_logits(t, self.run, &inputs.ids)));
            logits = self.in_f32(next?);
        }
        self.run.give_positions(None);
        t.set_cached_positions(0);
        drop((ends, inputs, prompt_positions));
        drop(self.run.drop_cache());
        Some(state.ids)
    }

    /// Runs the prompts and returns the logits of their last positions.
    fn prefill(&self, ids: &Tensor, mask: &Tensor, positions: &Tensor) -> Tensor {
        let t = self.tape;
        let batch = Batch {
            ids: Some(ids.clone()),
            others: vec![mask.clone()],
            ..Batch::default()
        };
        self.run.give_positions(Some(positions.clone()));
        let output = t.no_grad(|| t.autocast(self.autocast, || self.forward.loss(t, self.run, &batch)));
        self.in_f32(output.loss)
    }

    /// Logits as accelerate's `convert_outputs_to_fp32` returns them, which wraps the forward that autocast wraps.
    fn in_f32(&self, logits: Tensor) -> Tensor {
        match self.autocast {
            Some(_) => self.tape.to_dtype(&logits, DType::F32),
            None => logits,
        }
    }

    /// Samples the next token of each sample and appends it. A variable of the token before lives until it is assigned anew.
    fn take(&self, state: &mut State, logits: Tensor) {
        let t = self.tape;
        let [samples, vocab] = [logits.size(0), logits.last()];
        let ids = |name| t.empty([samples], DType::I64, name);
        let column = |name| t.empty([samples, 1], DType::I64, name);
        let moved = column("add");
        let position = column("position_ids of the next token");
        drop(moved);
        let positions = t.cat(&[&state.positions, &position], 1);
        drop(position);
        let one = column("attention_mask of the next token");
        state.mask = t.cat(&[&state.mask, &one], 1);
        drop(one);
        state.positions = positions;
        let scores = t.empty([samples, vocab], DType::F32, "next_token_scores");
        state.scores = Some(scores.clone());
        let probs = t.softmax(&scores, None);
        drop(scores);
        state.probs = Some(probs.clone());
        let drawn = t.multinomial(&probs);
        drop(probs);
        state.next = None;
        let kept = ids("mul");
        let finished = ids("rsub");
        let padding = ids("mul");
        drop(finished);
        let next = ids("next_tokens");
        drop((kept, padding, drawn));
        state.ids = t.cat(&[&state.ids, &t.unsqueeze(&next, 1)], 1);
        state.next = Some(next);
        state.unfinished = ids("unfinished_sequences");
        drop(logits);
    }
}

/// Variables of `_sample`.
struct State {
    ids: Tensor,
    mask: Tensor,
    positions: Tensor,
    unfinished: Tensor,
    next: Option<Tensor>,
    scores: Option<Tensor>,
    probs: Option<Tensor>,
}

/// `model_inputs` of one forward.
struct Inputs {
    ids: Tensor,
    _positions: Option<Tensor>,
    _mask: Tensor,
}

/// Positions of the prompts' tokens, [samples, prompt], counted by their mask (`_prepare_position_ids_for_generation`).
fn position_ids(t: &Tape, mask: &Tensor) -> Tensor {
    t.as_kind(Kind::Input, || {
        let counted = t.compute(mask, DType::I64, "cumsum");
        let shifted = t.compute(mask, DType::I64, "sub");
        drop(counted);
        let is_padding = t.compute(mask, DType::Bool, "attention_mask == 0");
        let positions = t.compute(mask, DType::I64, "position_ids");
        drop((is_padding, shifted));
        positions
    })
}
