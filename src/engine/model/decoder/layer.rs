//! Llama's block (`transformers/models/{llama,mistral,qwen2,…}/modeling_*.py`).

use super::block::{Block, BlockContext};
use super::config::DecoderConfig;
use super::forms::{NormPlacement, QueryNorms, Rotation};
use super::mlp::Mlp;
use crate::dtype::DType;
use crate::nn::{self, AttentionCall, Builder, Linear, Norm};
use crate::tape::{Module, Tape, Tensor};

/// The part of a block that takes each position by itself: an MLP, or experts.
pub trait FeedForward {
    /// [batch, seq, hidden] → [batch, seq, hidden].
    fn call(&self, t: &Tape, x: Tensor) -> Tensor;

    /// Runs it, and returns the router's logits too if the block holds them until it returns.
    fn call_with_logits(&self, t: &Tape, x: Tensor) -> (Tensor, Option<Tensor>) {
        (self.call(t, x), None)
    }
}

/// The attention of a block.
pub trait Attend {
    /// [batch, seq, hidden] → [batch, seq, hidden], and the weights that eager attention returns.
    fn call(&self, t: &Tape, shared: &BlockContext, x: Tensor) -> (Tensor, Option<Tensor>);
}

/// Llama's block: attention and an MLP, each with a norm and a residual connection.
pub struct Layer {
    self_attn: Box<dyn Attend>,
    mlp: Box<dyn FeedForward>,
    /// Norms before attention, after it, before the MLP and after it.
    norms: [Option<Norm>; 4],
    placement: NormPlacement,
    /// True if what each part adds to the residual stream is multiplied by a number.
    scales: bool,
    /// Dropout after attention and after the MLP (Seed-OSS).
    dropout: f64,
    /// True if what a part makes lives until its copy after dropout is added.
    keeps_undropped: bool,
}

/// `LlamaAttention` and its variants.
pub(crate) struct SelfAttention {
    module: Module,
    q_proj: Linear,
    k_proj: Linear,
    v_proj: Linear,
    o_proj: Linear,
    /// Norms of queries and keys.
    norms: Option<[Norm; 2]>,
    place: QueryNorms,
    /// Norm of what enters the output projection (BitNet).
    sub_norm: Option<Norm>,
    /// Gate of each element that attention makes (HRM-Text).
    gate_proj: Option<Linear>,
    /// Rotation by positions, if there is one.
    rotation: Option<Rotation>,
    /// True if queries are then multiplied by a number that grows with their position (Ministral 3).
    scales_queries: bool,
    /// True if keys are multiplied by a number before RoPE rotates them (Falcon H1).
    scales_keys: bool,
    /// True if Liger replaces the rotation.
    liger_rope: bool,
    head_dim: u64,
    dropout: f64,
}

impl FeedForward for Mlp {
    fn call(&self, t: &Tape, x: Tensor) -> Tensor {
        self.call(t, x)
    }
}

impl Layer {
    pub fn new(b: &Builder, c: &DecoderConfig, index: usize) -> Self {
        Self::with_mlp(b, c, index, &|| Box::new(Mlp::new(b, c)))
    }

    /// Makes a block with another module in place of the MLP.
    pub fn with_mlp(b: &Builder, c: &DecoderConfig, index: usize, mlp: &dyn Fn() -> Box<dyn FeedForward>) -> Self {
        Self::with_parts(b, c, &|| Box::new(SelfAttention::new(b, c, index)), mlp)
    }

    /// Makes a block with other modules in place of attention and the MLP.
    pub fn with_parts(
        b: &Builder,
        c: &DecoderConfig,
        attention: &dyn Fn() -> Box<dyn Attend>,
        mlp: &dyn Fn() -> Box<dyn FeedForward>,
    ) -> Self {
        let t = b.tape();
        let block = c.family.block();
        let self_attn = t.scope("self_attn", attention);
        let mlp = t.scope("mlp", mlp);
        let norm = |name| Some(Norm::new(b, name, c.hidden, c.norm));
        let norms = match block.placement {
            NormPlacement::Shared => [norm("input_layernorm"), None, None, None],
            NormPlacement::After => {
                let after = ["post_attention_layernorm", "post_feedforward_layernorm"].map(norm);
                let [attention, mlp] = after;
                [None, attention, None, mlp]
            }
            NormPlacement::Sandwich => [
                "input_layernorm",
                "post_attention_layernorm",
                "pre_feedforward_layernorm",
                "post_feedforward_layernorm",
            ]
            .map(norm),
            NormPlacement::Before | NormPlacement::BeforeAs(_) | NormPlacement::Around(..) => {
                let names = match block.placement {
                    NormPlacement::BeforeAs(names) => names,
                    _ => ["input_layernorm", "post_attention_layernorm"],
                };
                let before = names.map(norm);
                let after = match block.placement {
                    NormPlacement::Around(names, _) if c.norms_around => names.map(norm),
                    _ => [None, None],
                };
                let ([before_attention, before_mlp], [after_attention, after_mlp]) = (before, after);
                [before_attention, after_attention, before_mlp, after_mlp]
            }
        };
        Self {
            self_attn,
            mlp,
            norms,
            placement: block.placement,
            scales: block.scales_stream,
            dropout: c.residual_dropout,
            keeps_undropped: block.keeps_undropped,
        }
    }

    /// Runs one of the block's norms, if it has that.
    fn normed(&self, t: &Tape, which: usize, x: Tensor) -> Tensor {
        match &self.norms[which] {
            Some(norm) => norm.call(t, &x),
            None => x,
        }
    }

    /// Holds a part's output where it lives beside its copy after dropout (Emu3).
    fn kept(&self, h: &Tensor) -> Option<Tensor> {
        self.keeps_undropped.then(|| h.clone())
    }

    /// Drops elements of what a part makes: in a module of its own in Emu3, by a function elsewhere.
    fn dropped(&self, t: &Tape, h: &Tensor) -> Tensor {
        match self.keeps_undropped {
            true => t.dropout(h, self.dropout),
            false => t.functional_dropout(h, self.dropout),
        }
    }

    /// Adds what a part makes to the residual stream.
    fn added(&self, t: &Tape, residual: &Tensor, part: &Tensor) -> Tensor {
        match self.scales {
            true => t.add(residual, &t.scale(part)),
            false => t.add(residual, part),
        }
    }

    /// `CohereDecoderLayer.forward`: attention and the MLP side by side.
    fn forward_side_by_side(&self, t: &Tape, shared: &BlockContext, x: Tensor) -> Tensor {
        let residual = x.clone();
        let h = self.normed(t, 0, x);
        let (attended, _weights) = self.self_attn.call(t, shared, h.clone());
        let of_mlp = self.mlp.call(t, h.clone());
        let sum = t.add(&residual, &attended);
        let out = t.add(&sum, &of_mlp);
        drop(h);
        out
    }
}

impl Block for Layer {
    fn forward(&self, t: &Tape, shared: &BlockContext, x: Tensor) -> Tensor {
        if self.placement == NormPlacement::Shared {
            return self.forward_side_by_side(t, shared, x);
        }
        let residual = x.clone();
        let mut h = self.normed(t, 0, x);
        let (mut out, mut held) = self.self_attn.call(t, shared, h);
        h = out;
        let undropped = self.kept(&h);
        if self.dropout > 0.0 {
            h = t.scope("self_attn", || self.dropped(t, &h));
        }
        h = self.normed(t, 1, h);
        h = self.added(t, &residual, &h);
        drop(undropped);
        let residual = h.clone();
        h = self.normed(t, 2, h);
        let logits;
        (out, logits) = self.mlp.call_with_logits(t, h);
        h = out;
        // One variable holds what attention returns beside its output, and then the router's logits.
        held = logits.or(held);
        let _undropped = self.kept(&h);
        if self.dropout > 0.0 {
            h = t.scope("mlp", || self.dropped(t, &h));
        }
        h = self.normed(t, 3, h);
        let out = self.added(t, &residual, &h);
        drop(held);
        out
    }
}

impl SelfAttention {
    pub fn new(b: &Builder, c: &DecoderConfig, index: usize) -> Self {
        let (q, kv) = (c.heads * c.head_dim, c.kv_heads * c.head_dim);
        let block = c.family.block();
        let [of_q, of_k] = match block.query_norms {
            QueryNorms::Whole => [q, kv],
            QueryNorms::Heads | QueryNorms::SplitHeads | QueryNorms::RotatedHeads(_) => [c.head_dim; 2],
        };
        let names = query_norm_names(block.query_norms);
        let norm = |name, width| Norm::new(b, name, width, block.norm);
        let has_rope_anyway = c.experts.as_ref().is_some_and(|e| e.dense_rope && !e.sparse[index]);
        let sees_all = c.windows[index].is_none() && c.windows.iter().any(Option::is_some);
        Self {
            module: b.module(),
            q_proj: Linear::columns(b, "q_proj", c.hidden, q, c.qkv_bias),
            k_proj: Linear::columns(b, "k_proj", c.hidden, kv, c.qkv_bias),
            v_proj: Linear::columns(b, "v_proj", c.hidden, kv, c.qkv_bias),
            o_proj: Linear::rows(b, "o_proj", q, c.hidden, c.o_bias),
            norms: c.qk_norm.then(|| [norm(names[0], of_q), norm(names[1], of_k)]),
            place: block.query_norms,
            sub_norm: block.sub_norms.then(|| norm("attn_sub_norm", c.hidden)),
            gate_proj: block
                .gates
                .then(|| Linear::adapted(b, "gate_proj", c.hidden, q, c.qkv_bias)),
            rotation: (!block.only_sliding_rope || !sees_all || has_rope_anyway).then_some(block.rotation),
            scales_queries: block.scales_queries,
            scales_keys: block.scales_keys,
            liger_rope: b.has_liger_rope(),
            head_dim: c.head_dim,
            dropout: c.attention_dropout,
        }
    }

    /// Leaves queries and keys as they are, without RoPE.
    pub(crate) fn without_positions(self) -> Self {
        Self { rotation: None, ..self }
    }

    /// What attention makes of queries, keys and values [batch, heads, seq, width], and the weights that eager attention
    /// returns.
    fn attended(
        &self,
        t: &Tape,
        shared: &BlockContext,
        [q, k, v]: [&Tensor; 3],
        gate: Option<&Tensor>,
    ) -> (Tensor, Option<Tensor>) {
        let call = AttentionCall {
            q,
            k,
            v,
            mask: shared.mask.as_ref(),
            dropout: self.dropout,
            softmax: Some(DType::F32),
        };
        let (mut out, weights) = nn::attention(t, shared.attn, &call);
        if let Some(gate) = gate {
            let activated = t.sigmoid(gate);
            out = t.mul(&activated, &out);
        }
        out = t.reshape(&out, [q.size(0), q.size(2), q.size(1) * self.head_dim]);
        if let Some(norm) = &self.sub_norm {
            out = norm.call(t, &out);
        }
        out = self.o_proj.call(t, &out);
        (out, weights)
    }

    /// Multiplies keys by a number, in a family that does.
    fn scaled_keys(&self, t: &Tape, k: Tensor) -> Tensor {
        match self.scales_keys {
            true => t.scale(&k),
            false => k,
        }
    }
}

impl Attend for SelfAttention {
    fn call(&self, t: &Tape, shared: &BlockContext, x: Tensor) -> (Tensor, Option<Tensor>) {
        self.module.call(t, move || {
            let names = query_norm_names(self.place);
            let norm = |which: usize, place: QueryNorms, x: Tensor| match &self.norms {
                Some(norms) if self.place == place => norms[which].call(t, &x),
                _ => x,
            };
            let heads = |x: Tensor, which: Option<usize>| {
                let mut split = heads_of(t, &x, self.head_dim);
                if let Some(which) = which {
                    split = norm(which, QueryNorms::Heads, split);
                }
                t.transpose(&split, 1, 2)
            };
            let (mut q, mut k, mut v);
            let splits_last = shared.splits_last && self.place != QueryNorms::SplitHeads;
            if splits_last || self.place == QueryNorms::Whole {
                q = norm(0, QueryNorms::Whole, self.q_proj.call(t, &x));
                k = norm(1, QueryNorms::Whole, self.k_proj.call(t, &x));
                let unsplit = self.v_proj.call(t, &x);
                q = heads(q, Some(0));
                k = heads(k, Some(1));
                v = heads(unsplit, None);
            } else {
                q = heads(self.q_proj.call(t, &x), Some(0));
                k = self.scaled_keys(t, heads(self.k_proj.call(t, &x), Some(1)));
                v = heads(self.v_proj.call(t, &x), None);
            }
            let gate = self
                .gate_proj
                .as_ref()
                .map(|gate| heads_of(t, &gate.call(t, &x), self.head_dim));
            q = norm(0, QueryNorms::SplitHeads, q);
            k = norm(1, QueryNorms::SplitHeads, k);
            if let Some(rotation) = self.rotation {
                [q, k] = match self.liger_rope {
                    true => t.liger_rope([&q, &k], [&shared.cos, &shared.sin]),
                    false => apply_rope(t, rotation, [q, k], shared),
                };
            }
            q = norm(0, QueryNorms::RotatedHeads(names), q);
            k = norm(1, QueryNorms::RotatedHeads(names), k);
            if let Some(position_ids) = shared.position_ids.as_ref().filter(|_| self.scales_queries) {
                q = scaled_by_position(t, q, position_ids);
            }
            if let Some(cache) = &shared.cache {
                (k, v) = cache.update(t, &k, &v);
            }
            self.attended(t, shared, [&q, &k, &v], gate.as_ref())
        })
    }
}

/// A projection [batch, seq, heads × width] as [batch, seq, heads, width].
fn heads_of(t: &Tape, x: &Tensor, width: u64) -> Tensor {
    t.view(x, [x.size(0), x.size(1), x.last() / width, width])
}

/// Names of the norms of queries and keys.
const fn query_norm_names(place: QueryNorms) -> [&'static str; 2] {
    match place {
        QueryNorms::RotatedHeads(names) => names,
        _ => ["q_norm", "k_norm"],
    }
}

/// `apply_rotary_pos_emb` of the family.
fn apply_rope(t: &Tape, rotation: Rotation, [q, k]: [Tensor; 2], shared: &BlockContext) -> [Tensor; 2] {
    let cos = t.unsqueeze(&shared.cos, 1);
    let sin = t.unsqueeze(&shared.sin, 1);
    let whole = |x: [&Tensor; 2]| x.map(|x| nn::apply_rotary(t, x, &cos, &sin));
    let back = |rotated: &[Tensor; 2]| [t.to_dtype(&rotated[0], q.dtype()), t.to_dtype(&rotated[1], k.dtype())];
    match rotation {
        Rotation::Whole | Rotation::Halves => whole([&q, &k]),
        Rotation::Back => [&q, &k].map(|x| nn::apply_rotary_back(t, x, &cos, &sin)),
        Rotation::ByF32 => back(&whole([&q, &k])),
        Rotation::InF32 => {
            let wide = [t.to_dtype(&q, DType::F32), t.to_dtype(&k, DType::F32)];
            back(&whole([&wide[0], &wide[1]]))
        }
        Rotation::Part => {
            let (whole, rotated) = nn::apply_partial_rotary(t, [&q, &k], &cos, &sin);
            drop(rotated);
            whole
        }
        Rotation::FreedPart => nn::apply_rotary_to_part(t, [&q, &k], &cos, &sin),
        Rotation::AlternatingInF32 => {
            let waves = [&cos, &sin].map(|x| t.no_grad(|| t.compute(x, x.dtype(), "repeat_interleave")));
            back(&[&q, &k].map(|x| alternating_in_f32(t, x, &waves)))
        }
        Rotation::PairedInF32 => back(&[&q, &k].map(|x| alternating_in_f32(t, x, &[cos.clone(), sin.clone()]))),
        Rotation::AlternatingPart => {
            let [cos, sin] = [&cos, &sin].map(|x| t.no_grad(|| t.compute(x, x.dtype(), "repeat_interleave")));
            nn::apply_rotary_to_part(t, [&q, &k], &cos, &sin)
        }
        Rotation::PairedPart => nn::apply_rotary_to_part(t, [&q, &k], &cos, &sin),
    }
}

/// `q * get_llama_4_attn_scale(…)`: queries [batch, heads, seq, width] times a number for each position,
/// `1 + beta * log(1 + floor(position / length))`.
pub(super) fn scaled_by_position(t: &Tape, q: Tensor, position_ids: &Tensor) -> Tensor {
    let step = |x: &Tensor, name| t.compute(x, DType::F32, name);
    let mut scale = step(position_ids, "position / length");
    for name in ["floor", "1 + floor", "log", "beta * log", "1 + beta * log"] {
        scale = step(&scale, name);
    }
    scale = t.to_dtype(&t.unsqueeze(&t.unsqueeze(&scale, 1), 3), q.dtype());
    t.mul(&q, &scale)
}

/// ERNIE 4.5's rotation of queries or keys by cosines and sines, before the result is back in its own type.
fn alternating_in_f32(t: &Tape, x: &Tensor, [cos, sin]: &[Tensor; 2]) -> Tensor {
    let straight = {
        let wide = t.to_dtype(x, DType::F32);
        t.mul(&wide, cos)
    };
    let rotated = {
        let wide = {
            let rotated = {
                let [first, second] = [0, 1].map(|_| t.narrow(x, 3, x.last() / 2));
                let negated = t.neg(&second);
                t.stack_last(&[&negated, &first])
            };
            t.to_dtype(&t.reshape(&rotated, *x.shape()), DType::F32)
        };
        t.mul(&wide, sin)
    };
    t.add(&straight, &rotated)
}
