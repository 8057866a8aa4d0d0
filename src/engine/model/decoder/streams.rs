//! Streams of the residual that blocks mix (`transformers/models/hy_v4/modeling_hy_v4.py`).

use super::config::DecoderConfig;
use crate::dtype::DType;
use crate::nn::Builder;
use crate::tape::{Module, Tape, Tensor};

/// `HYV4HyperConnection`: mixes the streams into what a part of a block gets.
pub(crate) struct Connection {
    module: Module,
    /// Module of the norm, which has no weight.
    norm: Module,
    /// [2 × streams, streams × hidden].
    mix: Tensor,
    /// [2 × streams].
    base: Tensor,
    /// [2].
    scale: Tensor,
    streams: u64,
}

/// `HYV4HyperHead`: mixes the streams into the last hidden states.
pub(super) struct StreamHead {
    module: Module,
    norm: Module,
    mix: Tensor,
    base: Tensor,
    scale: Tensor,
    streams: u64,
}

/// Products of the streams, flat in fp32, with a weight, times the reciprocal of their root mean square.
fn mixed(t: &Tape, flat: &Tensor, weight: &Tensor, norm: &Module) -> Tensor {
    let products = {
        let weight = t.to_dtype(weight, DType::F32);
        t.linear(flat, &weight, None)
    };
    let inverse = norm.call(t, || {
        let mean = {
            let squares = t.pow(flat);
            t.mean_last(&squares)
        };
        let shifted = t.shift(&mean);
        drop(mean);
        t.rsqrt(&shifted)
    });
    t.mul(&products, &inverse)
}

/// The streams [batch, seq, streams, hidden] as rows [batch, seq, streams × hidden] in fp32.
fn flat(t: &Tape, x: &Tensor) -> Tensor {
    let rows = t.view(x, [x.size(0), x.size(1), x.size(2) * x.last()]);
    t.to_dtype(&rows, DType::F32)
}

/// Sum of the streams by their weights [batch, seq, streams], in the type of the product.
fn weighed(t: &Tape, weights: &Tensor, x: &Tensor) -> Tensor {
    let product = t.mul(&t.unsqueeze(weights, 3), x);
    t.sum_dim(&product, 2)
}

impl Connection {
    pub fn new(b: &Builder, c: &DecoderConfig, streams: u64) -> Self {
        Self {
            module: b.module(),
            norm: b.tape().scope("input_norm", || b.module()),
            mix: b.weight("fn", [2 * streams, streams * c.hidden]),
            base: b.weight("base", [2 * streams]),
            scale: b.weight("scale", [2]),
            streams,
        }
    }

    /// Streams → weights of each stream that a part's output is added with, and what the part gets.
    pub fn call(&self, t: &Tape, x: &Tensor) -> [Tensor; 2] {
        self.module.call(t, || t.autocast(None, || self.forward(t, x)))
    }

    fn forward(&self, t: &Tape, x: &Tensor) -> [Tensor; 2] {
        let flat = flat(t, x);
        let mixes = mixed(t, &flat, &self.mix, &self.norm);
        let halves = [self.streams; 2];
        let bases = t.split(&self.base, 0, &halves);
        let scales = t.unbind(&self.scale);
        let logits = t.split(&mixes, 2, &halves);
        let activated = |which: usize| {
            let biased = {
                let scaled = t.mul(&logits[which], &scales[which]);
                t.add(&scaled, &bases[which])
            };
            t.sigmoid(&biased)
        };
        let before = t.shift(&activated(0));
        let after = {
            let scaled = t.scale(&activated(1));
            t.shift(&scaled)
        };
        let out = weighed(t, &before, x);
        let narrow = t.to_dtype(&out, x.dtype());
        drop((out, before, mixes, flat));
        [after, narrow]
    }

    /// Adds what a part made, [batch, seq, hidden], to each stream by its weight.
    pub fn added(t: &Tape, weights: &Tensor, part: &Tensor, streams: &Tensor) -> Tensor {
        let sum = {
            let product = {
                let wide = t.to_dtype(part, DType::F32);
                t.mul(&t.unsqueeze(weights, 3), &t.unsqueeze(&wide, 2))
            };
            let wide = t.to_dtype(streams, DType::F32);
            t.add(&product, &wide)
        };
        t.to_dtype(&sum, streams.dtype())
    }
}

impl StreamHead {
    pub fn new(b: &Builder, c: &DecoderConfig, streams: u64) -> Self {
        b.tape().scope("hc_head", || Self {
            module: b.module(),
            norm: b.tape().scope("input_norm", || b.module()),
            mix: b.weight("hc_fn", [streams, streams * c.hidden]),
            base: b.weight("hc_base", [streams]),
            scale: b.weight("hc_scale", [1]),
            streams,
        })
    }

    /// Copies of the embeddings [batch, seq, hidden] as streams.
    pub fn copies(&self, t: &Tape, embeds: &Tensor) -> Tensor {
        let [batch, seq, hidden] = [embeds.size(0), embeds.size(1), embeds.size(2)];
        t.contiguous(&t.expand(&t.unsqueeze(embeds, 2), [batch, seq, self.streams, hidden]))
    }

    /// Streams → hidden states [batch, seq, hidden].
    pub fn call(&self, t: &Tape, x: &Tensor) -> Tensor {
        self.module.call(t, || {
            let (flat, out) = t.autocast(None, || {
                let flat = flat(t, x);
                let mixes = mixed(t, &flat, &self.mix, &self.norm);
                let activated = {
                    let biased = {
                        let scaled = t.mul(&mixes, &t.to_dtype(&self.scale, DType::F32));
                        t.add(&scaled, &t.to_dtype(&self.base, DType::F32))
                    };
                    t.sigmoid(&biased)
                };
                let weights = t.shift(&activated);
                drop(activated);
                let out = weighed(t, &weights, x);
                ((flat, mixes, weights), out)
            });
            let narrow = t.to_dtype(&out, x.dtype());
            drop((out, flat));
            narrow
        })
    }
}
