//! TRL's log-probabilities of tokens, without the logits of all of them (`ChunkedLogProbFunction` in
//! `trl/kernels/chunked_logprob.py`, 1.16).

use smallvec::smallvec;

use super::super::autograd::{Backward, Grads};
use super::super::core::Tape;
use super::super::tensor::Tensor;
use crate::dtype::DType;

/// Tokens of a tile.
const TOKENS: u64 = 4096;

/// Entries of the vocabulary in a tile.
const ENTRIES: u64 = 32_768;

/// Figures of each token that are asked for beside its log-probability.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TokenFigures {
    /// Entropy of the next token's distribution.
    pub entropy: bool,
    /// Mean of the logits.
    pub mean_logits: bool,
    /// True where the label is the most likely token.
    pub is_top1: bool,
}

/// Log-probabilities of tokens in fp32, and other figures of each.
pub struct LogProbs {
    /// Log-probability of each label.
    pub log_probs: Tensor,
    /// Entropies, part of the graph too.
    pub entropy: Option<Tensor>,
    /// Means of the logits.
    pub mean_logits: Option<Tensor>,
    /// Marks of the labels that are most likely, one byte each.
    pub is_top1: Option<Tensor>,
}

/// Number format and extents of one call.
#[derive(Clone, Copy)]
struct Tiles {
    compute: DType,
    tokens: u64,
    entries: u64,
}

/// The head: its weight [vocab, width] and bias [vocab].
type Head<'a> = (&'a Tensor, Option<&'a Tensor>);

impl Tiles {
    /// Extents of the pieces of `all` that hold at most `most`.
    fn pieces(all: u64, most: u64) -> impl Iterator<Item = u64> {
        (0..all.div_ceil(most)).map(move |i| most.min(all - i * most))
    }

    /// Memory that the products of all tiles are written to.
    fn buffer(self, t: &Tape) -> Tensor {
        t.empty([self.tokens.min(TOKENS), ENTRIES], self.compute, "logits of a tile")
    }
}

impl Tape {
    /// `ChunkedLogProbFunction.apply`: hidden states [n, width], a head, and labels [n] → [n] of each figure.
    pub fn chunked_log_probs(&self, hidden: &Tensor, head: Head<'_>, labels: &Tensor, asked: TokenFigures) -> LogProbs {
        let (weight, bias) = head;
        let inputs: Vec<&Tensor> = [hidden, weight].into_iter().chain(bias).collect();
        let mut rec = self.record("ChunkedLogProbFunctionBackward", &inputs);
        let tiles = Tiles {
            compute: self.autocast_dtype().unwrap_or(hidden.dtype()),
            tokens: hidden.size(0),
            entries: weight.size(0),
        };
        let (mut made, log_z) = self.no_grad(|| self.log_probs_of_tiles(hidden, head, tiles, asked));
        inputs.iter().for_each(|input| rec.save(self, input));
        rec.save(self, labels);
        rec.save(self, &log_z);
        // Without an entropy, the normaliser fills its place.
        rec.save(self, made.entropy.as_ref().unwrap_or(&log_z));
        drop(log_z);
        let has_bias = bias.is_some();
        let outs = [Some(made.log_probs.clone()), made.entropy.clone()];
        let outs = rec.finish_many(self, outs.into_iter().flatten().collect(), move |t, bw| {
            t.log_probs_backward(bw, tiles, has_bias)
        });
        let mut outs = outs.into_iter();
        made.log_probs = outs.next().unwrap_or(made.log_probs);
        made.entropy = outs.next();
        made
    }

    /// Folds the products of all tiles into statistics of each token; returns the normaliser too.
    fn log_probs_of_tiles(
        &self,
        hidden: &Tensor,
        (weight, bias): Head<'_>,
        tiles: Tiles,
        asked: TokenFigures,
    ) -> (LogProbs, Tensor) {
        let figure = |name| self.empty([tiles.tokens], DType::F32, name);
        let marks = |name| self.empty([tiles.tokens], DType::Bool, name);
        // `running_max`, `sum_exp`, `x_sum_exp`, `sq_sum_exp`, `z_sum`, `max_before_target` and `target_logit`, even where only
        // some of them are read.
        let statistics: Vec<Tensor> = (0..7).map(|_| figure("statistics of each token")).collect();
        let buffer = tiles.buffer(self);
        let mut states = None;
        for tokens in Tiles::pieces(tiles.tokens, TOKENS) {
            // The piece before lives until this one is made.
            states = Some(self.to_dtype(&hidden.narrow_raw(0, tokens), tiles.compute));
            for entries in Tiles::pieces(tiles.entries, ENTRIES) {
                let part = self.to_dtype(&weight.narrow_raw(0, entries), tiles.compute);
                self.cublas();
                drop(part);
                drop(bias.map(|bias| self.to_dtype(&bias.narrow_raw(0, entries), tiles.compute)));
            }
        }
        let logarithm = figure("log");
        let log_z = figure("log of the normaliser");
        drop(logarithm);
        let log_probs = figure("log-probabilities");
        let entropy = asked.entropy.then(|| {
            let quotient = figure("div");
            let entropy = figure("entropy");
            drop(quotient);
            entropy
        });
        let mean_logits = asked.mean_logits.then(|| figure("mean of the logits"));
        let is_top1 = asked.is_top1.then(|| {
            let halves = [marks("comparison"), marks("comparison")];
            let both = marks("labels that are most likely");
            drop(halves);
            both
        });
        drop((states, buffer, statistics));
        let made = LogProbs {
            log_probs,
            entropy,
            mean_logits,
            is_top1,
        };
        (made, log_z)
    }

    /// Computes every tile again, turns it into the gradient of its logits in place, and sums products with it in fp32.
    fn log_probs_backward(&self, bw: &mut Backward<'_>, tiles: Tiles, has_bias: bool) -> Grads {
        let saved = std::mem::take(&mut bw.saved);
        let (hidden, weight) = (&saved[0], &saved[1]);
        let bias = has_bias.then(|| &saved[2]);
        let zeros = |like: &Tensor| self.empty(*like.shape(), DType::F32, "gradient in fp32");
        let of_hidden = bw.want(0, || zeros(hidden));
        let of_weight = bw.want(1, || zeros(weight));
        let of_bias = bias.and_then(|bias| bw.want(2, || zeros(bias)));
        let buffer = tiles.buffer(self);
        let (mut states, mut part) = (None, None);
        for tokens in Tiles::pieces(tiles.tokens, TOKENS) {
            states = Some(self.to_dtype(&hidden.narrow_raw(0, tokens), tiles.compute));
            for entries in Tiles::pieces(tiles.entries, ENTRIES) {
                part = Some(self.to_dtype(&weight.narrow_raw(0, entries), tiles.compute));
                self.cublas();
                drop(bias.map(|bias| self.to_dtype(&bias.narrow_raw(0, entries), tiles.compute)));
                if of_bias.is_some() {
                    let tile = buffer.narrow_raw(0, tokens).narrow_raw(1, entries);
                    drop(self.reduce(&tile, &[true, false], DType::F32, "sum"));
                }
            }
        }
        let to = |grad: Option<Tensor>, like: &Tensor| grad.map(|grad| self.to_dtype(&grad, like.dtype()));
        // The sums in fp32 are variables of the function, and live until it returns.
        let kept = [of_hidden.clone(), of_weight.clone(), of_bias.clone()];
        let mut grads: Grads = smallvec![to(of_hidden, hidden), to(of_weight, weight)];
        if let Some(bias) = bias {
            grads.push(to(of_bias, bias));
        }
        drop((kept, states, part, buffer));
        grads
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tape::Gpu;

    /// Bytes that forward and backward allocate after hidden states, head and labels: 96 tokens of 64 elements, and a
    /// vocabulary of two tiles.
    fn allocations(dtype: DType, low: Option<DType>) -> Vec<u64> {
        let t = Tape::new(Gpu::H200);
        let hidden = t.parameter([96, 64], dtype, "hidden states");
        let weight = t.parameter([40_000, 64], dtype, "weight");
        let labels = t.empty([96], DType::I64, "labels");
        let made = t.autocast(low, || {
            t.chunked_log_probs(&hidden, (&weight, None), &labels, TokenFigures::default())
        });
        t.backward(&made.log_probs);
        drop((made, hidden, weight, labels));
        let log = t.finish();
        let made = log.allocations.iter().skip(3).filter(|b| !b.name.starts_with("cuBLAS"));
        made.map(|b| b.bytes).filter(|&bytes| bytes > 384).collect()
    }

    #[test]
    fn gradients_are_summed_in_fp32_whatever_the_type_of_weights() {
        let tile = 96 * 32_768 * 2;
        let sums = [96 * 64 * 4, 40_000 * 64 * 4];
        let in_bf16 = [96 * 64 * 2, 40_000 * 64 * 2];
        let expected = [vec![tile], sums.to_vec(), vec![tile], in_bf16.to_vec()].concat();
        assert_eq!(allocations(DType::Bf16, None), expected);
    }

    #[test]
    fn autocast_casts_the_head_tile_by_tile() {
        let (tile, states) = (96 * 32_768 * 2, 96 * 64 * 2);
        let parts = [32_768 * 64 * 2, (40_000 - 32_768) * 64 * 2];
        let sums = [96 * 64 * 4, 40_000 * 64 * 4];
        let casts = [vec![tile, states], parts.to_vec()].concat();
        let expected = [casts.clone(), sums.to_vec(), casts].concat();
        assert_eq!(allocations(DType::F32, Some(DType::Bf16)), expected);
    }
}
