//! Embeddings, blocks and last norm of the decoders.

use std::rc::Rc;

use super::attention::{Attend, BlockContext, attention};
use super::config::GptConfig;
use super::window;
use crate::model::forward::Run;
use crate::model::parts::text::{MlpForm, Outputs, PlainMlp, Stack, run_blocks, run_blocks_with_weights};
use crate::nn::{self, Builder, Embedding, LayerNorm, Numbered};
use crate::setup::Attention;
use crate::tape::{Tape, Tensor};

/// A decoder without its head.
pub(super) struct GptStack {
    wte: Embedding,
    wpe: Option<Embedding>,
    blocks: Vec<Numbered<Block>>,
    ln_f: LayerNorm,
    dropout: f64,
    /// True if attention is always eager, and the blocks return its weights.
    is_eager: bool,
    /// GPTBigCode's causal mask, which nothing reads.
    _bias: Option<Tensor>,
}

struct Block {
    ln_1: LayerNorm,
    attn: Box<dyn Attend>,
    ln_2: Option<LayerNorm>,
    mlp: PlainMlp,
    dropout: f64,
}

impl GptStack {
    pub fn new(b: &Builder, c: &GptConfig) -> Self {
        let t = b.tape();
        let wte = Embedding::new(b, "wte", c.vocab, c.hidden);
        let wpe = (!c.is_parallel()).then(|| Embedding::new(b, "wpe", c.positions, c.hidden));
        let blocks: Vec<Numbered<Block>> = (0..c.layers as usize)
            .map(|i| Numbered::new(b, "h", i, || Rc::new(Block::new(b, c, i))))
            .collect();
        let ln_f = LayerNorm::new(b, "ln_f", c.hidden);
        let bias = (!c.is_eager()).then(|| window::lower_triangle(b, c.positions, false));
        for block in &blocks {
            block.attn.initialise(t);
        }
        if !c.is_eager() {
            window::lower_triangle_again(t, c.positions, false);
        }
        Self {
            wte,
            wpe,
            blocks,
            ln_f,
            dropout: c.dropouts.embedding,
            is_eager: c.is_eager(),
            _bias: bias,
        }
    }
}

impl Stack for GptStack {
    fn hidden(&self, t: &Tape, run: &Run, ids: &Tensor, _: Option<&Tensor>) -> Tensor {
        let cache = run.cache(&[]);
        let embeds = self.wte.call_hooked(t, ids, |embeds| run.embedded(t, embeds));
        let position_ids = nn::position_ids(t, &embeds);
        let attn = if self.is_eager { Attention::Eager } else { run.attn };
        let mask = nn::causal_mask(t, attn, &embeds);
        let positions = self.wpe.as_ref().map(|wpe| wpe.call(t, &position_ids));
        let mut h = match &positions {
            Some(positions) => t.add(&embeds, positions),
            None => embeds.clone(),
        };
        h = t.dropout(&h, self.dropout);
        let shared = Rc::new(BlockContext {
            attn,
            mask,
            cache,
            position_ids,
        });
        let (last, held) = if self.is_eager {
            run_blocks_with_weights(t, run, (&self.blocks, &shared), h, Block::forward)
        } else {
            let forward = |block: &Block, t: &Tape, shared: &BlockContext, x| block.forward(t, shared, x).0;
            (run_blocks(t, run, (&self.blocks, &shared), h, forward), None)
        };
        let out = self.ln_f.call(t, &last);
        drop((held, shared, positions, embeds));
        out
    }

    fn table(&self) -> &Tensor {
        self.wte.weight()
    }
}

impl Block {
    fn new(b: &Builder, c: &GptConfig, index: usize) -> Self {
        let t = b.tape();
        let mlp = MlpForm {
            names: if c.is_parallel() {
                ["fc_in", "fc_out"]
            } else {
                ["c_fc", "c_proj"]
            },
            bias: true,
        };
        Self {
            ln_1: LayerNorm::new(b, "ln_1", c.hidden),
            attn: t.scope("attn", || attention(b, c, index)),
            ln_2: (!c.is_parallel()).then(|| LayerNorm::new(b, "ln_2", c.hidden)),
            mlp: t.scope("mlp", || {
                PlainMlp::new(b, mlp, [c.hidden, c.intermediate], c.activation)
            }),
            dropout: c.dropouts.residual,
        }
    }

    fn forward(&self, t: &Tape, shared: &BlockContext, x: Tensor) -> Outputs {
        let feed = |h: &Tensor| self.mlp.call_with_dropout(t, h, self.dropout);
        let mut h = self.ln_1.call(t, &x);
        let (attended, weights) = self.attn.call(t, shared, &h);
        let Some(ln_2) = &self.ln_2 else {
            let fed = feed(&h);
            return (t.add(&t.add(&attended, &fed), &x), weights);
        };
        h = t.add(&attended, &x);
        let residual = h.clone();
        h = ln_2.call(t, &h);
        let fed = feed(&h);
        (t.add(&residual, &fed), weights)
    }
}
