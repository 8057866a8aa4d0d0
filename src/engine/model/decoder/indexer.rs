//! Indexers of latent attention, which choose the keys that each query attends to
//! (`transformers/models/{deepseek_v32,glm_moe_dsa}/modeling_*.py`).

use super::block::BlockContext;
use super::own_sizes::Indexers;
use crate::dtype::DType;
use crate::model::config::Activation;
use crate::nn::{self, Builder, LayerNorm, Linear};
use crate::tape::{Mask, Module, Tape, Tensor};

/// `DeepseekV32Indexer`, whose forward is outside the graph.
pub(super) struct Indexer {
    module: Module,
    wq_b: Linear,
    wk: Linear,
    k_norm: LayerNorm,
    weights_proj: Linear,
    /// Type of weights, in which keys of HY-4 pass their norm.
    dtype: DType,
    sizes: Indexers,
    /// Elements of a head that RoPE rotates.
    rope_dim: u64,
}

impl Indexer {
    /// Makes the indexer of a block of `hidden` elements, whose queries have a latent of `rank`.
    pub fn new(b: &Builder, sizes: &Indexers, [hidden, rank, rope_dim]: [u64; 3]) -> Self {
        Self {
            module: b.module(),
            wq_b: Linear::new(b, "wq_b", rank, sizes.heads * sizes.width, false),
            wk: Linear::new(b, "wk", hidden, sizes.width, false),
            k_norm: LayerNorm::new(b, "k_norm", sizes.width),
            weights_proj: Linear::new(b, "weights_proj", hidden, sizes.heads, false),
            dtype: b.dtype(),
            sizes: sizes.clone(),
            rope_dim,
        }
    }

    /// Hidden states [batch, seq, hidden] and the latent of queries [batch, seq, rank] → indices of the chosen keys,
    /// [batch, seq, chosen].
    pub fn call(&self, t: &Tape, shared: &BlockContext, x: &Tensor, latent: &Tensor) -> Tensor {
        self.module.call(t, || t.no_grad(|| self.forward(t, shared, x, latent)))
    }

    fn forward(&self, t: &Tape, shared: &BlockContext, x: &Tensor, latent: &Tensor) -> Tensor {
        let [batch, seq] = [x.size(0), x.size(1)];
        let last = self.sizes.rotates_last;
        let in_order = |x: Tensor, rest: Tensor| if last { [rest, x] } else { [x, rest] };
        let [rope, rest] = [self.rope_dim, self.sizes.width - self.rope_dim];
        let parts = if last { [rest, rope] } else { [rope, rest] };
        let (rotated, rest) = (usize::from(last), usize::from(!last));
        let shape = [batch, seq, self.sizes.heads, self.sizes.width];
        let of_q = t.split(&t.view(&self.wq_b.call(t, latent), shape), 3, &parts);
        let of_k = {
            let mut k = self.wk.call(t, x);
            if last {
                k = t.to_dtype(&k, self.dtype);
            }
            let mut normed = self.k_norm.call(t, &k);
            drop(k);
            if last {
                normed = t.to_dtype(&normed, x.dtype());
            }
            t.split(&t.unsqueeze(&normed, 2), 3, &parts)
        };
        let [rotated_q, rotated_k] = self.apply_rope(t, [&of_q[rotated], &of_k[rotated]], shared);
        let of_q = in_order(rotated_q, of_q[rest].clone());
        let of_k = in_order(rotated_k, of_k[rest].clone());
        let q = t.cat(&[&of_q[0], &of_q[1]], 3);
        let mut k = t.squeeze(&t.cat(&[&of_k[0], &of_k[1]], 3), 2);
        if let Some(cache) = &shared.cache {
            // `update_indexer`, to keys that begin empty: these models do not generate here.
            k = t.cat_as(&[&k], 1, k.dtype());
            cache.keep(k.clone());
        }
        let mut scores = {
            let wide_q = t.to_dtype(&q, DType::F32);
            let wide_k = t.to_dtype(&t.transpose(&k, 1, 2), DType::F32);
            t.matmul(&wide_q, &t.unsqueeze(&wide_k, 1))
        };
        if !last {
            scores = t.scale(&scores);
        }
        scores = nn::activate(t, Activation::Relu, scores);
        let mut weights = self.weights_proj.call(t, x);
        weights = t.to_dtype(&weights, DType::F32);
        weights = t.scale(&weights);
        if last {
            weights = t.scale(&weights);
        }
        let mut of_keys = t.squeeze(&t.matmul(&t.unsqueeze(&weights, 2), &scores), 2);
        of_keys = match &shared.mask {
            Some(Mask::Bool(_)) => {
                let hidden = t.empty(*of_keys.shape(), DType::Bool, "bitwise_not");
                t.masked_fill(&of_keys, &hidden)
            }
            Some(Mask::Bias(bias)) => t.add(&of_keys, &t.select(bias, 1)),
            None => of_keys,
        };
        let indices = {
            let [_, indices] = t.topk(&of_keys, self.sizes.chosen.min(of_keys.last()));
            indices
        };
        t.compute(&indices, DType::I32, "indices as int32")
    }

    /// Rotates queries and keys, [batch, seq, heads, width] each.
    fn apply_rope(&self, t: &Tape, x: [&Tensor; 2], shared: &BlockContext) -> [Tensor; 2] {
        let [cos, sin] = [&shared.cos, &shared.sin].map(|wave| t.unsqueeze(wave, 2));
        match self.sizes.rotates_pairs {
            true => {
                let [cos, sin] = [&cos, &sin].map(|wave| t.slice(wave, 3, wave.last() / 2));
                nn::apply_rotary_to_pairs(t, x, &cos, &sin)
            }
            false => x.map(|x| nn::apply_rotary(t, x, &cos, &sin)),
        }
    }
}

/// Hides the keys that are not among the chosen ones, `indices` [batch, seq, chosen], of `keys` in all: a mask of its own for the
/// block, and true for each key that is hidden.
pub(super) fn hide_others(t: &Tape, mask: &Mask, indices: &Tensor, keys: u64) -> (Mask, Tensor) {
    let [batch, seq] = [indices.size(0), indices.size(1)];
    let others = {
        let ones = t.empty([batch, seq, keys], DType::Bool, "ones");
        let places = t.compute(indices, DType::I64, "indices as int64");
        let scattered = t.empty([batch, seq, keys], DType::Bool, "scatter");
        drop((places, ones));
        t.unsqueeze(&scattered, 1)
    };
    let mask = match mask {
        Mask::Bool(mask) => {
            let kept = t.compute(&others, DType::Bool, "bitwise_not");
            let both = t.compute(&kept, mask.dtype(), "bitwise_and");
            drop(kept);
            Mask::Bool(both)
        }
        Mask::Bias(bias) => Mask::Bias(t.compute(&others, bias.dtype(), "masked_fill")),
    };
    (mask, others)
}
