//! Attention of a block (`BartAttention`).

use super::block::{AttentionForm, BlockConfig};
use crate::dtype::DType;
use crate::nn::{self, AttentionCall, Builder, KvCache, Linear};
use crate::setup::Attention;
use crate::tape::{Mask, Module, Tape, Tensor};

/// State that all blocks of one forward share.
pub(crate) struct BlockContext {
    pub attn: Attention,
    pub mask: Option<Mask>,
    /// Mask of cross attention, over the positions of the encoder's output.
    pub mask_across: Option<Mask>,
    pub cache: Option<KvCache>,
    /// Read by no block. Some families pass it to each, so that a checkpointed block keeps it.
    pub _position_ids: Option<Tensor>,
}

/// `BartAttention`: of positions to themselves ([`Self::call`]), or to an encoder's output ([`Self::call_across`]).
pub(super) struct BartAttention {
    module: Module,
    k_proj: Linear,
    v_proj: Linear,
    q_proj: Linear,
    out_proj: Linear,
    form: AttentionForm,
    heads: u64,
    dropout: f64,
}

impl BartAttention {
    pub fn new(b: &Builder, c: &BlockConfig) -> Self {
        let form = c.attention;
        // `WhisperAttention`'s keys have no bias.
        let bias_of_keys = c.bias && form != AttentionForm::Contiguous;
        Self {
            module: b.module(),
            form,
            k_proj: Linear::adapted(b, "k_proj", c.hidden, c.hidden, bias_of_keys),
            v_proj: Linear::adapted(b, "v_proj", c.hidden, c.hidden, c.bias),
            q_proj: Linear::adapted(b, "q_proj", c.hidden, c.hidden, c.bias),
            out_proj: Linear::new(b, "out_proj", c.hidden, c.hidden, c.bias),
            heads: c.heads,
            dropout: c.attention_dropout,
        }
    }

    /// Self-attention: output [batch, seq, hidden], and the weights where PyTorch's module returns them.
    pub fn call(&self, t: &Tape, shared: &BlockContext, x: Tensor) -> (Tensor, Option<Tensor>) {
        self.module.call(t, move || {
            let [batch, seq, hidden] = [x.size(0), x.size(1), x.size(2)];
            let mut unsplit = self.q_proj.call(t, &x);
            if self.form != AttentionForm::Interface {
                unsplit = t.scale(&unsplit);
            }
            // Each form makes its tensors in the order of its PyTorch module.
            let (mut q, mut k, mut v);
            match self.form {
                AttentionForm::Contiguous => {
                    q = t.contiguous(&self.split(t, unsplit));
                    k = t.contiguous(&self.split(t, self.k_proj.call(t, &x)));
                    v = t.contiguous(&self.split(t, self.v_proj.call(t, &x)));
                }
                AttentionForm::Interface => {
                    q = self.split(t, unsplit);
                    let [keys, values] = [self.k_proj.call(t, &x), self.v_proj.call(t, &x)];
                    (k, v) = (self.split(t, keys), self.split(t, values));
                }
                AttentionForm::WrittenOut | AttentionForm::Clamped => {
                    let [keys, values] = [self.k_proj.call(t, &x), self.v_proj.call(t, &x)];
                    (k, v) = (self.split(t, keys), self.split(t, values));
                    q = self.split(t, unsplit);
                }
            }
            if let Some(cache) = &shared.cache {
                (k, v) = cache.update(t, &k, &v);
            }
            if matches!(self.form, AttentionForm::WrittenOut | AttentionForm::Clamped) {
                for x in [&mut q, &mut k, &mut v] {
                    *x = t.reshape(x, [batch * self.heads, x.size(2), hidden / self.heads]);
                }
                return self.written_out(t, shared, [&q, &k, &v]);
            }
            let call = AttentionCall {
                q: &q,
                k: &k,
                v: &v,
                mask: shared.mask.as_ref(),
                dropout: self.dropout,
                softmax: None,
            };
            let (mut out, weights) = nn::attention(t, shared.attn, &call);
            out = t.reshape(&out, [batch, seq, hidden]);
            out = self.out_proj.call(t, &out);
            (out, weights)
        })
    }

    /// Cross attention: queries of `x`, and keys and values of `context`, an encoder's output [batch, positions,
    /// hidden]. The models that run it have the form [`AttentionForm::Interface`].
    pub fn call_across(
        &self,
        t: &Tape,
        shared: &BlockContext,
        x: Tensor,
        context: &Tensor,
    ) -> (Tensor, Option<Tensor>) {
        self.module.call(t, move || {
            let [batch, seq, hidden] = [x.size(0), x.size(1), x.size(2)];
            let q = self.split(t, self.q_proj.call(t, &x));
            let [keys, values] = [self.k_proj.call(t, context), self.v_proj.call(t, context)];
            let (mut k, mut v) = (self.split(t, keys), self.split(t, values));
            if let Some(cache) = &shared.cache {
                (k, v) = cache.update(t, &k, &v);
            }
            let call = AttentionCall {
                q: &q,
                k: &k,
                v: &v,
                mask: shared.mask_across.as_ref(),
                dropout: self.dropout,
                softmax: None,
            };
            let (mut out, weights) = nn::attention(t, shared.attn, &call);
            out = t.reshape(&out, [batch, seq, hidden]);
            out = self.out_proj.call(t, &out);
            (out, weights)
        })
    }

    /// [batch, seq, hidden] → [batch, heads, seq, width].
    fn split(&self, t: &Tape, x: Tensor) -> Tensor {
        let [batch, seq, hidden] = [x.size(0), x.size(1), x.size(2)];
        t.transpose(&t.view(&x, [batch, seq, self.heads, hidden / self.heads]), 1, 2)
    }

    /// Attention without transformers' interface, of queries, keys and values [batch × heads, seq, width], and the
    /// output projection.
    fn written_out(&self, t: &Tape, shared: &BlockContext, [q, k, v]: [&Tensor; 3]) -> (Tensor, Option<Tensor>) {
        let [all, seq, keys, width] = [q.size(0), q.size(1), k.size(1), q.size(2)];
        let batch = all / self.heads;
        let clamped = self.form == AttentionForm::Clamped;
        let mut weights = t.matmul(q, &t.transpose(k, 1, 2));
        if let Some(Mask::Bias(bias) | Mask::Bool(bias)) = &shared.mask {
            weights = t.add(&t.view(&weights, [batch, self.heads, seq, keys]), bias);
            if clamped {
                let lowest = t.empty([], DType::F32, "lowest value");
                weights = t.maximum(&weights, &lowest);
            }
            weights = t.view(&weights, [all, seq, keys]);
        }
        weights = if clamped && weights.dtype() == DType::F16 {
            t.to_dtype(&t.softmax(&weights, Some(DType::F32)), DType::F16)
        } else {
            t.softmax(&weights, None)
        };
        let returned = clamped.then(|| t.view(&weights, [batch, self.heads, seq, keys]));
        let probabilities = t.functional_dropout(&weights, self.dropout);
        let mut out = t.matmul(&probabilities, v);
        out = t.transpose(&t.view(&out, [batch, self.heads, seq, width]), 1, 2);
        out = t.reshape(&out, [batch, seq, self.heads * width]);
        (self.out_proj.call(t, &out), returned)
    }
}
