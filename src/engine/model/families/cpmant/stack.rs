//! Embeddings, blocks and last norm.

use std::rc::Rc;

use super::CpmAntConfig;
use super::block::{Block, Norm, Shared};
use super::inputs::Inputs;
use crate::model::forward::Run;
use crate::model::parts::text::{Stack, run_blocks};
use crate::nn::{Builder, Embedding, Numbered};
use crate::tape::{Module, Tape, Tensor};

/// `CpmAntModel`.
pub(super) struct CpmAntStack {
    layers: Vec<Numbered<Block>>,
    output_norm: Norm,
    segments: Embedding,
    tokens: Embedding,
    bias: PositionBias,
    prompt: u64,
}

/// `CpmAntSegmentPositionEmbedding`.
struct PositionBias {
    module: Module,
    weight: Tensor,
}

impl PositionBias {
    /// Biases of attention, [batch, heads, seq, seq].
    fn call(&self, t: &Tape, inputs: &Inputs) -> Tensor {
        self.module.call(t, || {
            let [buckets, distances] = inputs.buckets(t);
            let bias = {
                let embedded = t.embedding(&self.weight, &buckets);
                t.contiguous(&t.permute(&embedded, &[0, 3, 1, 2]))
            };
            drop(distances);
            bias
        })
    }
}

impl CpmAntStack {
    /// Makes the stack.
    pub fn new(b: &Builder, c: &CpmAntConfig) -> Self {
        let t = b.tape();
        let (layers, output_norm) = t.scope("encoder", || {
            let block = |i| Numbered::new(b, "layers", i, || Rc::new(Block::new(b, c)));
            let layers = (0..c.layers as usize).map(block).collect();
            (layers, Norm::new(b, "output_layernorm", c.hidden))
        });
        Self {
            layers,
            output_norm,
            segments: Embedding::new(b, "segment_embedding", c.segments, c.hidden),
            tokens: Embedding::new(b, "input_embedding", c.vocab + c.prompts * c.prompt, c.hidden),
            bias: t.scope("position_bias", || PositionBias {
                module: b.module(),
                weight: b.weight(
                    "relative_attention_bias",
                    [c.segments * c.segments + c.buckets, c.heads],
                ),
            }),
            prompt: c.prompt,
        }
    }
}

impl Stack for CpmAntStack {
    fn hidden(&self, t: &Tape, run: &Run, ids: &Tensor, _: Option<&Tensor>) -> Tensor {
        let inputs = Inputs::new(t, ids, self.prompt);
        let cache = run.cache(&[]);
        let tokens = self
            .tokens
            .call_hooked(t, &inputs.ids, |embeds| run.embedded(t, embeds));
        let segments = self.segments.call(t, &inputs.segment);
        let h = t.add(&tokens, &segments);
        drop(tokens);
        let mask = inputs.mask(t, self.prompt);
        let bias = self.bias.call(t, &inputs);
        let shared = Rc::new(Shared { mask, bias, cache });
        let last = t.scope("encoder", || {
            let last = run_blocks(t, run, (&self.layers, &shared), h, Block::forward);
            self.output_norm.call(t, &last)
        });
        // The prompts are dropped.
        let out = t.narrow(&last, 1, ids.size(1));
        drop((last, shared, segments, inputs));
        out
    }

    fn table(&self) -> &Tensor {
        self.tokens.weight()
    }
}
