//! Both stacks, and the cycles in which they run.

use std::rc::Rc;

use super::HrmTextConfig;
use crate::model::decoder::block::{Block, BlockContext};
use crate::model::decoder::layer::Layer;
use crate::model::forward::Run;
use crate::model::parts::text::{Stack, run_blocks};
use crate::nn::{self, Builder, Embedding, Norm, Numbered, Rotary};
use crate::tape::{Module, Tape, Tensor};

/// `HrmTextModel`.
pub(super) struct HrmTextStack {
    embed_tokens: Embedding,
    rotary: Rotary,
    low: Cycle,
    high: Cycle,
    /// `z_L_init`, the frozen first state of the low stack, [hidden].
    initial: Tensor,
    low_cycles: u64,
    trained: Vec<u64>,
}

/// `HrmTextStack`.
struct Cycle {
    module: Module,
    layers: Vec<Numbered<Layer>>,
    final_norm: Norm,
}

impl Cycle {
    fn new(b: &Builder, name: &'static str, c: &HrmTextConfig) -> Self {
        let text = &c.text;
        let layer = |i| Numbered::new(b, "layers", i, || Rc::new(Layer::new(b, text, i)));
        b.tape().scope(name, || Self {
            module: b.module(),
            layers: (0..text.layers as usize).map(layer).collect(),
            final_norm: Norm::new(b, "final_norm", text.hidden, text.norm),
        })
    }

    /// Runs the stack; the caller's arguments hold its input until it returns.
    fn call(&self, t: &Tape, run: &Run, shared: &Rc<BlockContext>, x: &Tensor) -> Tensor {
        self.module.call(t, || {
            let forward = |layer: &Layer, t: &Tape, shared: &BlockContext, x| layer.forward(t, shared, x);
            let h = run_blocks(t, run, (&self.layers, shared), x.clone(), forward);
            self.final_norm.call(t, &h)
        })
    }
}

impl HrmTextStack {
    /// Makes the stacks.
    pub fn new(b: &Builder, c: &HrmTextConfig) -> Self {
        let text = &c.text;
        let embed_tokens = Embedding::new(b, "embed_tokens", text.vocab, text.hidden);
        let rotary = Rotary::new(b, text.head_dim).dynamic(text.rope.is_dynamic());
        let [low, high] = ["L_module", "H_module"].map(|name| Cycle::new(b, name, c));
        Self {
            embed_tokens,
            low,
            high,
            initial: b.frozen_weight("z_L_init", [text.hidden]),
            rotary: rotary.initialised(b.tape()),
            low_cycles: c.low_cycles,
            trained: c.trained.clone(),
        }
    }
}

impl Stack for HrmTextStack {
    fn hidden(&self, t: &Tape, run: &Run, ids: &Tensor, _: Option<&Tensor>) -> Tensor {
        let embeds = {
            let looked_up = self.embed_tokens.call_hooked(t, ids, |embeds| run.embedded(t, embeds));
            t.scale(&looked_up)
        };
        let cache = run.cache(&[]);
        let position_ids = run.position_ids(t, &embeds);
        let mask = nn::causal_mask(t, run.attn, &embeds);
        let (cos, sin) = self.rotary.call(t, &embeds, &position_ids);
        let shared = Rc::new(BlockContext {
            attn: run.attn,
            mask,
            cos,
            sin,
            splits_last: false,
            position_ids: Some(position_ids),
            cache,
        });
        let mut low = {
            let initial = t.to_dtype(&self.initial, embeds.dtype());
            t.contiguous(&t.expand(&initial, *embeds.shape()))
        };
        let mut high = embeds.clone();
        for trained in &self.trained {
            for cycle in 0..self.low_cycles {
                let next = || {
                    let input = t.add(&low, &high);
                    self.low.call(t, run, &shared, &input)
                };
                let next = match cycle + trained < self.low_cycles {
                    true => t.no_grad(next),
                    false => next(),
                };
                low = next;
            }
            let input = t.add(&high, &low);
            high = self.high.call(t, run, &shared, &input);
        }
        drop((low, shared, embeds));
        high
    }

    fn table(&self) -> &Tensor {
        self.embed_tokens.weight()
    }
}
