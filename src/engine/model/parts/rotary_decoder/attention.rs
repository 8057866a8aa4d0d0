//! Attention of the decoders.

use super::config::{QkvForm, QueryNorms, RotaryDecoderConfig};
use crate::dtype::DType;
use crate::model::decoder::block::BlockContext;
use crate::nn::{self, AttentionCall, Builder, LayerNorm, Linear};
use crate::tape::{Module, Tape, Tensor};

/// Names of the norms of queries and keys.
const NORMS: [&str; 2] = ["q_layernorm", "k_layernorm"];

/// Attention whose heads are partly rotated.
pub(super) struct SelfAttention {
    module: Module,
    qkv: Projections,
    output: Linear,
    norms: Option<[HeadNorms; 2]>,
    keeps_rotated: bool,
    head_dim: u64,
    dropout: f64,
}

enum Projections {
    Separate(Box<[Linear; 3]>),
    Chunked(Linear),
    Selected(Linear),
}

/// Names of separate projections.
const SEPARATE: [&str; 3] = ["q_proj", "k_proj", "v_proj"];

/// Norms of queries or keys.
enum HeadNorms {
    EachHead(Module, Vec<LayerNorm>),
    Shared(LayerNorm),
}

impl HeadNorms {
    fn new(b: &Builder, name: &'static str, form: QueryNorms, heads: u64, width: u64) -> Self {
        let t = b.tape();
        match form {
            QueryNorms::Shared => Self::Shared(LayerNorm::new(b, name, width)),
            QueryNorms::EachHead => t.scope(name, || {
                let norm = |i| t.layer("norms", i, || LayerNorm::unnamed(b, width));
                Self::EachHead(b.module(), (0..heads as usize).map(norm).collect())
            }),
        }
    }

    fn call(&self, t: &Tape, x: &Tensor) -> Tensor {
        match self {
            Self::Shared(norm) => norm.call(t, x),
            Self::EachHead(module, norms) => module.call(t, || {
                let heads = t.split(x, 1, &vec![1; norms.len()]);
                let normed: Vec<Tensor> = norms
                    .iter()
                    .zip(&heads)
                    .map(|(norm, head)| norm.call(t, head))
                    .collect();
                let parts: Vec<&Tensor> = normed.iter().collect();
                t.cat(&parts, 1)
            }),
        }
    }
}

impl SelfAttention {
    pub fn new(b: &Builder, c: &RotaryDecoderConfig) -> Self {
        let (form, head_dim) = (c.form, c.head_dim());
        let kv = c.kv_heads * head_dim;
        let fused = || Linear::new(b, "query_key_value", c.hidden, 3 * c.hidden, c.qkv_bias);
        let separate = form.qkv == QkvForm::Separate;
        let qkv = match form.qkv {
            QkvForm::Separate => Projections::Separate(Box::new([0, 1, 2].map(|i| {
                let width = if i == 0 { c.hidden } else { kv };
                Linear::adapted(b, SEPARATE[i], c.hidden, width, c.qkv_bias)
            }))),
            QkvForm::Chunked => Projections::Chunked(fused()),
            QkvForm::Selected => Projections::Selected(fused()),
        };
        let output = if separate { Linear::adapted } else { Linear::new };
        let norm = |i: usize, heads| HeadNorms::new(b, NORMS[i], form.query_norms, heads, head_dim);
        Self {
            module: b.module(),
            qkv,
            output: output(b, form.output, c.hidden, c.hidden, c.output_bias),
            norms: c.qk_norm.then(|| [norm(0, c.heads), norm(1, c.kv_heads)]),
            keeps_rotated: form.keeps_rotated,
            head_dim,
            dropout: c.attention_dropout,
        }
    }

    /// Output and weights of attention over `x`, [batch, seq, hidden].
    pub fn call(&self, t: &Tape, shared: &BlockContext, x: &Tensor) -> (Tensor, Option<Tensor>) {
        self.module.call(t, move || {
            let [batch, seq, hidden] = [x.size(0), x.size(1), x.size(2)];
            let ([mut q, mut k, mut v], _fused) = self.projected(t, x);
            let (rotated, _parts);
            {
                let cos = t.unsqueeze(&shared.cos, 1);
                let sin = t.unsqueeze(&shared.sin, 1);
                (rotated, _parts) = if self.keeps_rotated {
                    let (whole, parts) = nn::apply_partial_rotary(t, [&q, &k], &cos, &sin);
                    (whole, Some(parts))
                } else {
                    (nn::apply_rotary_to_part(t, [&q, &k], &cos, &sin), None)
                };
            }
            [q, k] = rotated;
            if let Some(cache) = &shared.cache {
                (k, v) = cache.update(t, &k, &v);
            }
            let call = AttentionCall {
                q: &q,
                k: &k,
                v: &v,
                mask: shared.mask.as_ref(),
                dropout: self.dropout,
                softmax: Some(DType::F32),
            };
            let (mut out, weights) = nn::attention(t, shared.attn, &call);
            out = t.reshape(&out, [batch, seq, hidden]);
            out = self.output.call(t, &out);
            (out, weights)
        })
    }

    /// Queries, keys and values, [batch, heads, seq, width] each, after their norms; and the fused projection.
    fn projected(&self, t: &Tape, x: &Tensor) -> ([Tensor; 3], Option<Tensor>) {
        let [batch, seq, width] = [x.size(0), x.size(1), self.head_dim];
        let norm = |i: usize, x: Tensor| match &self.norms {
            Some(norms) if i < 2 => norms[i].call(t, &x),
            _ => x,
        };
        let fused = |qkv: &Linear| qkv.call(t, x);
        match &self.qkv {
            Projections::Separate(qkv) => {
                let flat = [0, 1, 2].map(|i| qkv[i].call(t, x));
                let [q, k, v] = flat.map(|flat| {
                    let split = t.view(&flat, [batch, seq, flat.last() / width, width]);
                    t.transpose(&split, 1, 2)
                });
                ([norm(0, q), norm(1, k), v], None)
            }
            Projections::Chunked(qkv) => {
                let all = fused(qkv);
                let heads = all.last() / (3 * width);
                let all = t.transpose(&t.view(&all, [batch, seq, heads, 3 * width]), 1, 2);
                let parts = t.split(&all, 3, &[width; 3]);
                ([0, 1, 2].map(|i| parts[i].clone()), Some(all))
            }
            Projections::Selected(qkv) => {
                let all = fused(qkv);
                let heads = all.last() / (3 * width);
                let split = t.view(&all, [batch, seq, heads, 3, width]);
                let [q, k, v] = [0, 1, 2].map(|_| t.select(&split, 3));
                let (q, k) = (norm(0, q), norm(1, k));
                ([q, k, v].map(|x| t.transpose(&x, 1, 2)), Some(all))
            }
        }
    }
}
