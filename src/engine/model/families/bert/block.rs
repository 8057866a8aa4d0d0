//! A block: attention and an MLP.

use super::adapters::Adapters;
use super::config::{AttentionForm, BertConfig, NormPlace};
use super::rotary;
use crate::model::config::Activation;
use crate::model::parts::text::Outputs;
use crate::nn::{self, AttentionCall, Builder, KvCache, LayerNorm, Linear};
use crate::setup::Attention;
use crate::tape::{Mask, Module, Tape, Tensor};

/// State that all blocks of one forward share.
pub(super) struct BlockContext {
    pub attn: Attention,
    pub mask: Option<Mask>,
    pub cache: Option<KvCache>,
    /// Languages of the samples, where there are adapters of them, [batch].
    pub languages: Option<Tensor>,
    /// Sines and cosines that rotate queries and keys, [1, 1, seq, head].
    pub waves: Option<Tensor>,
}

/// A block.
pub(super) struct Block {
    attention: SelfAttention,
    /// `attention.output`.
    attention_output: Closing,
    /// Norms before attention and before the MLP.
    before: Option<[LayerNorm; 2]>,
    intermediate: Linear,
    /// `output`.
    output: Closing,
    adapters: Option<Adapters>,
    activation: Activation,
    norms: NormPlace,
}

/// A projection into the residual stream, with the residual connection.
struct Closing {
    dense: Linear,
    norm: Option<LayerNorm>,
    dropout: f64,
}

/// `attention.self`.
struct SelfAttention {
    module: Module,
    qkv: [Linear; 3],
    heads: u64,
    dropout: f64,
    eager: bool,
    rotates_values: bool,
}

/// Names of the projections.
const PROJECTIONS: [&str; 3] = ["query", "key", "value"];

impl Closing {
    fn new(b: &Builder, c: &BertConfig, input: u64) -> Self {
        let normed = matches!(c.form.norms, NormPlace::After | NormPlace::OfOutputs);
        b.tape().scope("output", || Self {
            dense: Linear::new(b, "dense", input, c.hidden, true),
            norm: normed.then(|| LayerNorm::new(b, "LayerNorm", c.hidden)),
            dropout: c.hidden_dropout,
        })
    }

    fn forward(&self, t: &Tape, x: &Tensor, residual: &Tensor, norms: NormPlace) -> Tensor {
        t.scope("output", || {
            let (sum, held) = self.summed(t, x, residual, norms);
            let out = match &self.norm {
                Some(norm) if norms == NormPlace::After => norm.call(t, &sum),
                _ => sum,
            };
            drop(held);
            out
        })
    }

    /// Sum with the stream, and what the variable for the projection holds.
    fn summed(&self, t: &Tape, x: &Tensor, residual: &Tensor, norms: NormPlace) -> (Tensor, Tensor) {
        let mut h = self.dense.call(t, x);
        h = t.dropout(&h, self.dropout);
        let sum = match norms == NormPlace::Megatron {
            true => t.add(residual, &h),
            false => t.add(&h, residual),
        };
        (sum, h)
    }

    /// What it makes before a norm outside of it (X-MOD).
    fn unnormed(&self, t: &Tape, x: &Tensor, residual: &Tensor, norms: NormPlace) -> Tensor {
        t.scope("output", || self.summed(t, x, residual, norms).0)
    }

    /// Its norm, if that comes after it.
    fn normed(&self, t: &Tape, sum: Tensor, norms: NormPlace) -> Tensor {
        match &self.norm {
            Some(norm) if norms == NormPlace::After => t.scope("output", || norm.call(t, &sum)),
            _ => sum,
        }
    }
}

impl Block {
    pub fn new(b: &Builder, c: &BertConfig) -> Self {
        let (t, norms) = (b.tape(), c.form.norms);
        let norm = |name| LayerNorm::new(b, name, c.hidden);
        let outside = norms.ends_encoder();
        let (first, attention, attention_output) = t.scope("attention", || {
            let first = (norms == NormPlace::Megatron).then(|| norm("ln"));
            let attention = t.scope("self", || SelfAttention::new(b, c));
            let output = Closing::new(b, c, c.hidden);
            let late = matches!(norms, NormPlace::Before | NormPlace::Xl);
            let first = first.or_else(|| late.then(|| norm(norms.before_attention())));
            (first, attention, output)
        });
        let megatron = (outside && norms == NormPlace::Megatron).then(|| norm("ln"));
        let (second, intermediate) = t.scope("intermediate", || {
            let second = (norms == NormPlace::Before).then(|| norm("LayerNorm"));
            (second, Linear::new(b, "dense", c.hidden, c.intermediate, true))
        });
        let mut output = Closing::new(b, c, c.intermediate);
        if norms == NormPlace::Xl {
            output.dropout = 0.0;
        }
        let adapters = c
            .adapters
            .map(|config| t.scope("output", || Adapters::new(b, c, config)));
        let xl = (norms == NormPlace::Xl).then(|| norm("LayerNorm"));
        Self {
            attention,
            attention_output,
            before: first
                .zip(second.or(megatron).or(xl))
                .map(|(first, second)| [first, second]),
            intermediate,
            output,
            adapters,
            activation: c.activation,
            norms,
        }
    }

    pub fn forward(&self, t: &Tape, shared: &BlockContext, x: Tensor) -> Outputs {
        let (attended, weights) = t.scope("attention", || {
            let own = self.before.as_ref().map(|[norm, _]| norm);
            let before = own.or(self.of_output(&self.attention_output));
            let normed = before.map(|norm| norm.call(t, &x));
            let input = normed.as_ref().unwrap_or(&x);
            let (out, weights) = self.attention.call(t, shared, input);
            let output = &self.attention_output;
            if self.adapters.is_none() {
                return (output.forward(t, &out, &x, self.norms), weights);
            }
            let sum = output.unnormed(t, &out, &x, self.norms);
            // The sum takes the variable of what attention made.
            drop(out);
            (output.normed(t, sum, self.norms), weights)
        });
        let fed = match (&self.adapters, &shared.languages) {
            (Some(adapters), Some(languages)) => self.adapted(t, adapters, languages, &attended),
            _ => self.fed(t, &attended),
        };
        drop(attended);
        (fed, weights)
    }

    /// Norm of the module after a part, if it comes before the part.
    fn of_output<'a>(&self, output: &'a Closing) -> Option<&'a LayerNorm> {
        output.norm.as_ref().filter(|_| self.norms == NormPlace::OfOutputs)
    }

    /// The second half of `XmodLayer.forward`.
    fn adapted(&self, t: &Tape, adapters: &Adapters, languages: &Tensor, attended: &Tensor) -> Tensor {
        let norm = self.of_output(&self.output);
        let normed = norm.map(|norm| t.scope("output", || norm.call(t, attended)));
        let inner = t.scope("intermediate", || {
            let h = self.intermediate.call(t, normed.as_ref().unwrap_or(attended));
            nn::activate(t, self.activation, h)
        });
        let mut out = self.output.unnormed(t, &inner, attended, self.norms);
        out = t.scope("output", || adapters.call(t, languages, self.output.norm.as_ref(), out));
        out = self.output.normed(t, out, self.norms);
        drop((inner, normed));
        out
    }

    /// `feed_forward_chunk`.
    fn fed(&self, t: &Tape, attended: &Tensor) -> Tensor {
        let second = self.before.as_ref().map(|[_, norm]| norm);
        let outside = second.filter(|_| self.norms.ends_encoder());
        let mut normed = outside.map(|norm| norm.call(t, attended));
        let inner = t.scope("intermediate", || {
            let mut h = normed.as_ref().unwrap_or(attended).clone();
            if let Some(norm) = second.filter(|_| outside.is_none()) {
                h = norm.call(t, &h);
            }
            h = self.intermediate.call(t, &h);
            nn::activate(t, self.activation, h)
        });
        if self.norms == NormPlace::Xl {
            normed = None;
        }
        let out = self.output.forward(t, &inner, attended, self.norms);
        drop(normed);
        out
    }
}

impl SelfAttention {
    fn new(b: &Builder, c: &BertConfig) -> Self {
        Self {
            module: b.module(),
            qkv: PROJECTIONS.map(|name| Linear::new(b, name, c.hidden, c.hidden, c.attention_bias)),
            heads: c.heads,
            dropout: c.attention_dropout,
            eager: c.form.attention != AttentionForm::Chosen,
            rotates_values: c.rotates_values,
        }
    }

    fn call(&self, t: &Tape, shared: &BlockContext, x: &Tensor) -> (Tensor, Option<Tensor>) {
        self.module.call(t, move || {
            let [batch, seq, hidden] = [x.size(0), x.size(1), x.size(2)];
            let mask = shared.mask.as_ref();
            let [mut q, mut k, mut v] = [0, 1, 2].map(|i| {
                let flat = self.qkv[i].call(t, x);
                t.transpose(&t.view(&flat, [batch, seq, self.heads, hidden / self.heads]), 1, 2)
            });
            if let Some(waves) = &shared.waves {
                [q, k, v] = rotary::rotated(t, waves, [q, k, v], self.rotates_values);
            }
            if let Some(cache) = &shared.cache {
                (k, v) = cache.update(t, &k, &v);
            }
            if self.eager {
                return self.eager_attention(t, [&q, &k, &v], mask);
            }
            let call = AttentionCall {
                q: &q,
                k: &k,
                v: &v,
                mask,
                dropout: self.dropout,
                softmax: None,
            };
            let (out, weights) = nn::attention(t, shared.attn, &call);
            (t.reshape(&out, [batch, seq, hidden]), weights)
        })
    }

    /// Attention of older code.
    fn eager_attention(&self, t: &Tape, [q, k, v]: [&Tensor; 3], mask: Option<&Mask>) -> (Tensor, Option<Tensor>) {
        let mut scores = t.matmul(q, &t.transpose(k, 2, 3));
        scores = t.scale(&scores);
        if let Some(Mask::Bias(bias) | Mask::Bool(bias)) = mask {
            scores = t.add(&scores, bias);
        }
        let mut weights = t.softmax(&scores, None);
        weights = t.dropout(&weights, self.dropout);
        let out = {
            let out = t.matmul(&weights, v);
            t.contiguous(&t.permute(&out, &[0, 2, 1, 3]))
        };
        let [batch, seq] = [out.size(0), out.size(1)];
        let out = t.view(&out, [batch, seq, out.size(2) * out.size(3)]);
        drop(scores);
        (out, Some(weights))
    }
}
