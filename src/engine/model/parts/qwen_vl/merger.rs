//! The map from patches to tokens of the language model.

use super::block::Map;
use super::patches::QwenPatches;
use crate::model::config::Activation;
use crate::nn::{self, Builder, Linear};
use crate::tape::{Tape, Tensor};

/// `PatchMerger`: a norm, then neighbouring patches through two linear layers.
pub struct Merger<N> {
    ln_q: N,
    mlp: [Linear; 2],
    width: u64,
}

impl<N: Map> Merger<N> {
    /// Makes a merger from patches of width `patch` to tokens of width `token`.
    pub fn new(b: &Builder, ln_q: N, patches: &QwenPatches, [patch, token]: [u64; 2]) -> Self {
        let width = patch * patches.merged();
        Self {
            ln_q,
            mlp: [
                Linear::new(b, "mlp.0", width, width, true),
                Linear::new(b, "mlp.2", width, token, true),
            ],
            width,
        }
    }

    /// [patches, width] → [tokens, width of a token].
    pub fn forward(&self, t: &Tape, x: &Tensor) -> Tensor {
        let normed = self.ln_q.call(t, x);
        let joined = t.view(&normed, [x.numel() / self.width, self.width]);
        drop(normed);
        let mut h = self.mlp[0].call(t, &joined);
        h = nn::activate(t, Activation::Gelu, h);
        self.mlp[1].call(t, &h)
    }
}
