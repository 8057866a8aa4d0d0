//! MiniMax-M3's vision tower and projector (`transformers/models/minimax_m3_vl/modeling_minimax_m3_vl.py`).

use std::rc::Rc;

use super::config::{M3VisionConfig, MiniMaxM3VlConfig};
use crate::dtype::DType;
use crate::model::config::Activation;
use crate::model::forward::Run;
use crate::model::parts::encoder::Mlp;
use crate::model::parts::qwen_vl::{Layout, PatchEmbed, Positions, VisionRotary, position_ids_in_time};
use crate::nn::{self, AttentionCall, Builder, LayerNorm, Linear, Numbered};
use crate::setup::Attention;
use crate::tape::{Module, Tape, Tensor};

/// `MiniMaxM3VLVisionModel`.
pub struct M3Vision {
    embeddings: PatchEmbed,
    pre_layrnorm: LayerNorm,
    layers: Vec<Numbered<Block>>,
    rotary: VisionRotary,
    dtype: DType,
}

/// `MiniMaxM3VLVisionEncoderLayer`.
struct Block {
    self_attn: SelfAttention,
    layer_norm1: LayerNorm,
    mlp: Mlp,
    layer_norm2: LayerNorm,
}

struct SelfAttention {
    module: Module,
    k_proj: Linear,
    v_proj: Linear,
    q_proj: Linear,
    out_proj: Linear,
    head_dim: u64,
    dropout: f64,
}

/// `MiniMaxM3VLMultiModalProjector`.
pub struct Projector {
    linear_1: Linear,
    linear_2: Linear,
    merge_linear_1: Linear,
    merge_linear_2: Linear,
    merged: u64,
}

impl M3Vision {
    pub fn new(b: &Builder, c: &M3VisionConfig) -> Self {
        let (t, width) = (b.tape(), c.shape.hidden);
        let block = |i| Numbered::new(b, "layers", i, || Rc::new(Block::new(b, c)));
        let tower = Self {
            embeddings: t.scope("embeddings", || PatchEmbed::named(b, "proj", &c.patches, width, false)),
            pre_layrnorm: LayerNorm::new(b, "pre_layrnorm", width),
            layers: (0..c.shape.layers as usize).map(block).collect(),
            rotary: VisionRotary::named(b, "rotary_emb", c.shape.head_dim(), false),
            dtype: b.dtype(),
        };
        tower.rotary.initialised(t);
        tower
    }

    /// Patches [patches, elements of a patch] → [1, patches, width].
    pub fn forward(&self, t: &Tape, run: &Run, pixels: &Tensor, layout: &Layout) -> Tensor {
        let mut embeds = t.scope("embeddings", || self.embeddings.call(t, pixels));
        embeds = t.to_dtype(&embeds, self.dtype);
        let position_ids = position_ids_in_time(t, layout);
        let positions = t.scope("rotary_emb", || {
            self.rotary.forward_in(t, &position_ids, embeds.dtype())
        });
        let positions = Rc::new(positions);
        let mut h = t.unsqueeze(&self.pre_layrnorm.call(t, &embeds), 0);
        let attn = run.attn;
        for layer in &self.layers {
            let (block, positions) = (layer.clone(), positions.clone());
            let forward = move |t: &Tape, x: Tensor| block.forward(t, attn, &positions, x);
            h = run.block(t, layer, h, forward);
        }
        drop((position_ids, embeds));
        h
    }
}

impl Block {
    fn new(b: &Builder, c: &M3VisionConfig) -> Self {
        let (t, width) = (b.tape(), c.shape.hidden);
        let linear = |name| Linear::new(b, name, width, width, true);
        Self {
            self_attn: t.scope("self_attn", || SelfAttention {
                module: b.module(),
                k_proj: linear("k_proj"),
                v_proj: linear("v_proj"),
                q_proj: linear("q_proj"),
                out_proj: linear("out_proj"),
                head_dim: c.shape.head_dim(),
                dropout: c.attention_dropout,
            }),
            layer_norm1: LayerNorm::new(b, "layer_norm1", width),
            mlp: t.scope("mlp", || Mlp::new(b, c.shape, c.activation)),
            layer_norm2: LayerNorm::new(b, "layer_norm2", width),
        }
    }

    fn forward(&self, t: &Tape, attn: Attention, positions: &Positions, x: Tensor) -> Tensor {
        let mut h = self.layer_norm1.call(t, &x);
        let (out, _weights) = self.self_attn.call(t, attn, positions, h);
        h = t.add(&x, &out);
        drop(out);
        let residual = h.clone();
        h = self.layer_norm2.call(t, &h);
        h = self.mlp.call(t, &h);
        let out = t.add(&residual, &h);
        drop(x);
        out
    }
}

impl SelfAttention {
    fn call(&self, t: &Tape, attn: Attention, positions: &Positions, x: Tensor) -> (Tensor, Option<Tensor>) {
        self.module.call(t, move || {
            let [batch, patches, width] = [x.size(0), x.size(1), x.size(2)];
            let shape = [batch, patches, width / self.head_dim, self.head_dim];
            let project = |proj: &Linear| t.view(&proj.call(t, &x), shape);
            let mut q = project(&self.q_proj);
            let mut k = project(&self.k_proj);
            let v = t.transpose(&project(&self.v_proj), 1, 2);
            let [cos, sin] = [&positions.cos, &positions.sin].map(|x| t.unsqueeze(&t.unsqueeze(x, 0), 2));
            let (rotated, held) = nn::apply_partial_rotary(t, [&q, &k], &cos, &sin);
            drop(held);
            [q, k] = rotated;
            [q, k] = [t.transpose(&q, 1, 2), t.transpose(&k, 1, 2)];
            let call = AttentionCall {
                q: &q,
                k: &k,
                v: &v,
                mask: None,
                dropout: self.dropout,
                softmax: Some(DType::F32),
            };
            let (mut out, weights) = nn::attention(t, attn, &call);
            out = t.reshape(&out, [batch, patches, width]);
            (self.out_proj.call(t, &out), weights)
        })
    }
}

impl Projector {
    pub fn new(b: &Builder, c: &MiniMaxM3VlConfig) -> Self {
        let (text, merged) = (c.text.hidden, c.vision.patches.merged());
        Self {
            linear_1: Linear::new(b, "linear_1", c.vision.shape.hidden, c.projector, true),
            linear_2: Linear::new(b, "linear_2", c.projector, text, true),
            merge_linear_1: Linear::new(b, "merge_linear_1", text * merged, c.projector, true),
            merge_linear_2: Linear::new(b, "merge_linear_2", c.projector, text, true),
            merged,
        }
    }

    /// [patches, width] → [tokens, text width].
    pub fn forward(&self, t: &Tape, x: &Tensor) -> Tensor {
        let mut h = self.linear_1.call(t, x);
        h = nn::activate(t, Activation::Gelu, h);
        h = self.linear_2.call(t, &h);
        h = t.view(&h, [h.size(0) / self.merged, h.size(1) * self.merged]);
        let mut joined = self.merge_linear_1.call(t, &h);
        joined = nn::activate(t, Activation::Gelu, joined);
        self.merge_linear_2.call(t, &joined)
    }
}
