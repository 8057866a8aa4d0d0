//! Attention of DeepSeek-VL2's language model: Llama's, as transformers 4.41 has it (`modeling_llama.py`), and a latent one
//! (`modeling_deepseek.py`), both eager.

use super::config::{AttentionConfig, LanguageConfig};
use crate::dtype::DType;
use crate::nn::{self, AttentionCall, Builder, Linear, RmsNorm};
use crate::setup::Attention;
use crate::tape::{Mask, Module, Tape, Tensor};

/// Mask and positions, which the model makes once and each block gets.
pub struct Shared {
    /// Mask in the type of the hidden states, [batch, 1, seq, seq].
    pub mask: Mask,
    /// [1, seq].
    pub positions: Tensor,
}

/// Attention of a block.
pub enum SelfAttention {
    Llama(Box<Llama>),
    Latent(Box<Latent>),
}

impl SelfAttention {
    pub fn new(b: &Builder, c: &LanguageConfig) -> Self {
        match c.attention {
            AttentionConfig::Llama(shared) => Self::Llama(Box::new(Llama::new(b, c, shared))),
            AttentionConfig::Latent { .. } => Self::Latent(Box::new(Latent::new(b, c))),
        }
    }

    pub fn call(&self, t: &Tape, shared: &Shared, x: Tensor) -> Tensor {
        match self {
            Self::Llama(attention) => attention.call(t, shared, x),
            Self::Latent(attention) => attention.call(t, shared, x),
        }
    }
}

/// `LlamaAttention` of transformers 4.41, in which each block computes cosines and sines.
pub struct Llama {
    module: Module,
    q_proj: Linear,
    k_proj: Linear,
    v_proj: Linear,
    o_proj: Linear,
    inv_freq: Tensor,
    head: u64,
    dropout: f64,
}

impl Llama {
    fn new(b: &Builder, c: &LanguageConfig, shared: u64) -> Self {
        let head = c.hidden / c.heads;
        let project = |name, heads: u64| Linear::adapted(b, name, c.hidden, heads * head, c.attention_bias);
        Self {
            module: b.module(),
            q_proj: project("q_proj", c.heads),
            k_proj: project("k_proj", shared),
            v_proj: project("v_proj", shared),
            o_proj: Linear::adapted(b, "o_proj", c.hidden, c.hidden, c.attention_bias),
            inv_freq: b
                .tape()
                .scope("rotary_emb", || b.buffer("inv_freq", [head / 2], DType::F32)),
            head,
            dropout: c.attention_dropout,
        }
    }

    /// `LlamaRotaryEmbedding.forward`: cosines and sines, [1, seq, head] each.
    fn waves(&self, t: &Tape, positions: &Tensor, dtype: DType) -> [Tensor; 2] {
        let [seq, pairs] = [positions.last(), self.inv_freq.size(0)];
        let wide = t.empty([1, 1, seq], DType::F32, "positions as float");
        let freqs = t.empty([1, pairs, seq], DType::F32, "bmm");
        let both = t.empty([1, seq, self.head], DType::F32, "cat");
        let waves = ["cos", "sin"].map(|name| t.compute(&both, DType::F32, name));
        let out = [0, 1].map(|i| t.no_grad(|| t.to_dtype(&waves[i], dtype)));
        drop((waves, both, freqs, wide));
        out
    }

    fn call(&self, t: &Tape, shared: &Shared, x: Tensor) -> Tensor {
        self.module.call(t, move || {
            let [batch, seq, hidden] = [x.size(0), x.size(1), x.size(2)];
            let q = self.q_proj.call(t, &x);
            let k = self.k_proj.call(t, &x);
            let v = self.v_proj.call(t, &x);
            let heads = |x: Tensor| t.transpose(&t.view(&x, [batch, seq, x.last() / self.head, self.head]), 1, 2);
            let (mut q, mut k, v) = (heads(q), heads(k), heads(v));
            let [cos, sin] = self.waves(t, &shared.positions, v.dtype());
            {
                let [cos, sin] = [&cos, &sin].map(|wave| t.unsqueeze(wave, 1));
                let rotated = [&q, &k].map(|x| nn::apply_rotary(t, x, &cos, &sin));
                [q, k] = rotated;
            }
            let call = AttentionCall {
                q: &q,
                k: &k,
                v: &v,
                mask: Some(&shared.mask),
                dropout: self.dropout,
                softmax: Some(DType::F32),
            };
            let (mut out, weights) = nn::attention(t, Attention::Eager, &call);
            out = t.view(&out, [batch, seq, hidden]);
            out = self.o_proj.call(t, &out);
            drop((weights, cos, sin, q, k, v));
            out
        })
    }
}

/// `DeepseekV2Attention`: scores and outputs are of the latent itself. Its forward is that of a recorded step. Its backward is
/// not: PyTorch makes the sum of the latent's two gradients, [batch, seq, rank], anew, where this adds in place, and the
/// counts of events leave room for more.
pub struct Latent {
    module: Module,
    queries: Queries,
    kv_a_proj_with_mqa: Linear,
    kv_a_layernorm: RmsNorm,
    kv_b_proj: Linear,
    o_proj: Linear,
    waves: [Tensor; 2],
    heads: u64,
    kv_rank: u64,
    unrotated: u64,
    rotated: u64,
    values: u64,
    dropout: f64,
}

/// Projection of the queries.
enum Queries {
    Whole(Linear),
    Latent(Linear, RmsNorm, Linear),
}

impl Latent {
    fn new(b: &Builder, c: &LanguageConfig) -> Self {
        let AttentionConfig::Latent {
            q_rank,
            kv_rank,
            unrotated,
            rotated,
            values,
        } = c.attention
        else {
            unreachable!("the attention is latent")
        };
        let (heads, bias) = (c.heads, c.attention_bias);
        let width = heads * (unrotated + rotated);
        let queries = match q_rank {
            None => Queries::Whole(Linear::adapted(b, "q_proj", c.hidden, width, false)),
            Some(rank) => Queries::Latent(
                Linear::new(b, "q_a_proj", c.hidden, rank, bias),
                RmsNorm::new(b, "q_a_layernorm", rank),
                Linear::new(b, "q_b_proj", rank, width, false),
            ),
        };
        Self {
            module: b.module(),
            queries,
            kv_a_proj_with_mqa: Linear::new(b, "kv_a_proj_with_mqa", c.hidden, kv_rank + rotated, bias),
            kv_a_layernorm: RmsNorm::new(b, "kv_a_layernorm", kv_rank),
            kv_b_proj: Linear::new(b, "kv_b_proj", kv_rank, heads * (unrotated + values), false),
            o_proj: Linear::adapted(b, "o_proj", heads * values, c.hidden, bias),
            waves: b.tape().scope("rotary_emb", || {
                b.buffer("inv_freq", [rotated / 2], DType::F32);
                // The first forward makes them again, of its own length, which is at most this.
                ["cos_cached", "sin_cached"].map(|name| b.buffer(name, [c.max_positions, rotated], b.dtype()))
            }),
            heads,
            kv_rank,
            unrotated,
            rotated,
            values,
            dropout: c.attention_dropout,
        }
    }

    fn of_queries(&self, t: &Tape, x: &Tensor) -> Tensor {
        match &self.queries {
            Queries::Whole(q_proj) => q_proj.call(t, x),
            Queries::Latent(q_a_proj, norm, q_b_proj) => {
                let normed = {
                    let latent = q_a_proj.call(t, x);
                    norm.call(t, &latent)
                };
                q_b_proj.call(t, &normed)
            }
        }
    }

    /// `apply_rotary_pos_emb`: queries and keys whose alternating elements are put in halves and rotated.
    fn rotate(&self, t: &Tape, [q, k]: [&Tensor; 2], shared: &Shared) -> [Tensor; 2] {
        let seq = shared.positions.last();
        let [cos, sin] = [0, 1].map(|i| {
            let wave = t.empty([1, seq, self.rotated], self.waves[i].dtype(), "index");
            t.unsqueeze(&t.to_dtype(&wave, q.dtype()), 1)
        });
        let halved = |x: &Tensor| {
            let [b, h, s, d] = [x.size(0), x.size(1), x.size(2), x.size(3)];
            let pairs = t.transpose(&t.view(x, [b, h, s, d / 2, 2]), 4, 3);
            t.reshape(&pairs, [b, h, s, d])
        };
        let (q, k) = (halved(q), halved(k));
        [&q, &k].map(|x| nn::apply_rotary(t, x, &cos, &sin))
    }

    fn call(&self, t: &Tape, shared: &Shared, x: Tensor) -> Tensor {
        self.module.call(t, move || {
            let [batch, seq] = [x.size(0), x.size(1)];
            let (heads, rank) = (self.heads, self.kv_rank);
            let q = self.of_queries(t, &x);
            let q = t.transpose(&t.view(&q, [batch, seq, heads, self.unrotated + self.rotated]), 1, 2);
            let of_q = t.split(&q, 3, &[self.unrotated, self.rotated]);
            let (mut q_nope, mut q_pe) = (of_q[0].clone(), of_q[1].clone());
            drop(of_q);
            let compressed = self.kv_a_proj_with_mqa.call(t, &x);
            let of_kv = t.split(&compressed, 2, &[rank, self.rotated]);
            drop(compressed);
            let mut k_pe = of_kv[1].clone();
            let latent = self.kv_a_layernorm.call(t, &of_kv[0]);
            drop(of_kv);
            k_pe = t.transpose(&t.view(&k_pe, [batch, seq, 1, self.rotated]), 1, 2);
            [q_pe, k_pe] = self.rotate(t, [&q_pe, &k_pe], shared);
            let of_head = self.unrotated + self.values;
            let weight = self.kv_b_proj.read_weight(t);
            // Without a weight, the run has failed, and its events count no more.
            let weight = weight.unwrap_or_else(|| t.empty([heads * of_head, rank], x.dtype(), "weight"));
            let kv_b = t.view(&weight, [heads, of_head, rank]);
            let absorbed = t.split(&kv_b, 1, &[self.unrotated, self.values]);
            q_nope = t.matmul(&q_nope, &absorbed[0]);
            let mut weights = {
                let sum = {
                    let of_positions = t.matmul(&q_pe, &t.transpose(&k_pe, 2, 3));
                    let of_latent = t.matmul(&q_nope, &t.transpose(&t.unsqueeze(&latent, 1), 2, 3));
                    t.add(&of_positions, &of_latent)
                };
                t.scale(&sum)
            };
            let (Mask::Bias(bias) | Mask::Bool(bias)) = &shared.mask;
            weights = t.add(&weights, bias);
            weights = t.to_dtype(&t.softmax(&weights, Some(DType::F32)), q_pe.dtype());
            weights = t.functional_dropout(&weights, self.dropout);
            let mut out = {
                let flat = t.view(&weights, [batch, heads * seq, seq]);
                t.view(&t.bmm(&flat, &latent), [batch, heads, seq, rank])
            };
            out = t.matmul(&out, &t.transpose(&absorbed[1], 1, 2));
            out = t.contiguous(&t.transpose(&out, 1, 2));
            out = t.view(&out, [batch, seq, heads * self.values]);
            out = self.o_proj.call(t, &out);
            drop((weights, latent, q_nope, q_pe, k_pe, q));
            out
        })
    }
}
