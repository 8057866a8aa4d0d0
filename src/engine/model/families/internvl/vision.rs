//! InternVL's vision tower (`transformers/models/{internvl,qianfan_ocr}/modeling_*.py`).

use std::rc::Rc;

use super::config::{InternVlVisionConfig, VisionForm};
use crate::model::config::Activation;
use crate::model::forward::Run;
use crate::nn::{self, AttentionCall, Builder, LayerNorm, Linear, Numbered, RmsNorm};
use crate::setup::Attention;
use crate::tape::{Module, Tape, Tensor};

/// `InternVLVisionModel`.
pub struct InternVlVision {
    embeddings: Embeddings,
    /// True in Qianfan-OCR.
    is_qianfan: bool,
    layers: Vec<Numbered<Layer>>,
    /// Last norm; `None` if the configuration pools by the mean.
    layernorm: Option<LayerNorm>,
}

struct Embeddings {
    module: Module,
    cls_token: Tensor,
    projection_weight: Tensor,
    projection_bias: Tensor,
    position_embeddings: Option<Tensor>,
    dropout: f64,
}

struct Layer {
    attention: SelfAttention,
    mlp: Mlp,
    layernorm_before: Norm,
    layernorm_after: Norm,
    lambda_1: Tensor,
    lambda_2: Tensor,
    dropout: f64,
    /// True in Qianfan-OCR.
    is_qianfan: bool,
    /// True if whole samples may be dropped.
    drops_samples: bool,
}

enum Norm {
    Layer(LayerNorm),
    Rms(RmsNorm),
}

struct SelfAttention {
    module: Module,
    q_proj: Linear,
    k_proj: Linear,
    v_proj: Linear,
    projection_layer: Linear,
    /// Norms of queries and keys, over all heads.
    norms: Option<[RmsNorm; 2]>,
    heads: u64,
    dropout: f64,
    projection_dropout: f64,
}

struct Mlp {
    module: Module,
    fc1: Linear,
    fc2: Linear,
    activation: Activation,
}

impl InternVlVision {
    pub fn new(b: &Builder, c: &InternVlVisionConfig) -> Self {
        let t = b.tape();
        let embeddings = t.scope("embeddings", || Embeddings::new(b, c));
        let norm = || (!c.mean_pooling).then(|| LayerNorm::new(b, "layernorm", c.shape.hidden));
        let (name, first_norm) = match c.form {
            VisionForm::InternVl => ("encoder.layer", None),
            VisionForm::Qianfan(_) => ("layers", norm()),
        };
        let layers = (0..c.shape.layers as usize)
            .map(|i| Numbered::new(b, name, i, || Rc::new(Layer::new(b, c, i))))
            .collect();
        let layernorm = match c.form {
            VisionForm::InternVl => norm(),
            VisionForm::Qianfan(_) => first_norm,
        };
        Self {
            embeddings,
            is_qianfan: matches!(c.form, VisionForm::Qianfan(_)),
            layers,
            layernorm,
        }
    }

    /// Pixels [tiles, channels, side, side] → [tiles, 1 + patches, hidden].
    pub fn forward(&self, t: &Tape, run: &Run, pixels: &Tensor) -> Tensor {
        let mut h = self.embeddings.call(t, run, pixels);
        // The encoder of InternVL is a module, whose caller holds what it is given.
        let _embedded = (!self.is_qianfan).then(|| h.clone());
        for layer in &self.layers {
            let (block, attn) = (layer.clone(), run.attn);
            let forward = move |t: &Tape, x: Tensor| block.forward(t, attn, x);
            h = run.block(t, layer, h.clone(), forward);
        }
        match &self.layernorm {
            Some(norm) => norm.call(t, &h),
            None => h,
        }
    }
}

impl Embeddings {
    fn new(b: &Builder, c: &InternVlVisionConfig) -> Self {
        let (hidden, grid) = (c.shape.hidden, &c.grid);
        let cls_token = b.weight("cls_token", [1, 1, hidden]);
        if c.mask_token {
            b.weight("mask_token", [1, 1, hidden]);
        }
        let (projection_weight, projection_bias) = b.tape().scope("patch_embeddings.projection", || {
            let weight = b.weight("weight", [hidden, grid.channels, grid.patch, grid.patch]);
            (weight, b.weight("bias", [hidden]))
        });
        let positions = || b.weight("position_embeddings", [1, grid.patches() + 1, hidden]);
        Self {
            module: b.module(),
            cls_token,
            projection_weight,
            projection_bias,
            position_embeddings: c.position_embeddings.then(positions),
            dropout: c.hidden_dropout,
        }
    }

    fn call(&self, t: &Tape, run: &Run, pixels: &Tensor) -> Tensor {
        self.module.call(t, move || {
            let mut embedded = run.embedded(t, self.patches(t, pixels));
            let cls = t.expand(&self.cls_token, [pixels.size(0), 1, self.cls_token.last()]);
            embedded = t.cat(&[&cls, &embedded], 1);
            if let Some(positions) = &self.position_embeddings {
                embedded = t.add(&embedded, positions);
            }
            t.dropout(&embedded, self.dropout)
        })
    }

    /// [tiles, channels, side, side] → [tiles, patches, hidden].
    fn patches(&self, t: &Tape, pixels: &Tensor) -> Tensor {
        let pixels = t.to_dtype(pixels, self.projection_weight.dtype());
        let grid = t.conv_patches(&pixels, &self.projection_weight, Some(&self.projection_bias));
        let flat = t.view(&grid, [grid.size(0), grid.size(1), grid.size(2) * grid.size(3)]);
        t.transpose(&flat, 1, 2)
    }
}

impl Layer {
    fn new(b: &Builder, c: &InternVlVisionConfig, index: usize) -> Self {
        let (t, hidden) = (b.tape(), c.shape.hidden);
        Self {
            attention: t.scope("attention", || SelfAttention::new(b, c)),
            mlp: t.scope("mlp", || Mlp {
                module: b.module(),
                fc1: Linear::new(b, "fc1", hidden, c.shape.intermediate, true),
                fc2: Linear::new(b, "fc2", c.shape.intermediate, hidden, true),
                activation: c.activation,
            }),
            layernorm_before: Norm::new(b, "layernorm_before", c),
            layernorm_after: Norm::new(b, "layernorm_after", c),
            lambda_1: b.weight("lambda_1", [hidden]),
            lambda_2: b.weight("lambda_2", [hidden]),
            dropout: c.hidden_dropout,
            is_qianfan: matches!(c.form, VisionForm::Qianfan(_)),
            // The probability is 0 in the first block.
            drops_samples: index > 0 && matches!(c.form, VisionForm::Qianfan(rate) if rate > 0.0),
        }
    }

    /// `QianfanOCRDropPath`, if the block has it: drops whole samples, and scales the others.
    fn drop_path(&self, t: &Tape, x: Tensor) -> Tensor {
        if !self.drops_samples {
            return x;
        }
        let kept = {
            let random = || t.empty([x.size(0), 1, 1], x.dtype(), "random numbers");
            let numbers = random();
            let shifted = random();
            let kept = random();
            drop((shifted, numbers));
            kept
        };
        t.mul(&t.scale(&x), &kept)
    }

    fn forward(&self, t: &Tape, attn: Attention, mut h: Tensor) -> Tensor {
        if self.is_qianfan {
            return self.forward_qianfan(t, attn, h);
        }
        let (mut attended, _weights) = {
            let normed = self.layernorm_before.call(t, &h);
            self.attention.call(t, attn, normed)
        };
        attended = t.mul(&self.lambda_1, &attended);
        h = t.add(&attended, &h);
        let mut out = self.layernorm_after.call(t, &h);
        out = self.mlp.call(t, &out);
        out = t.dropout(&out, self.dropout);
        out = t.mul(&self.lambda_2, &out);
        t.add(&out, &h)
    }

    /// `QianfanOCRVisionLayer.forward`, in which one variable holds what InternVL's has several for.
    fn forward_qianfan(&self, t: &Tape, attn: Attention, x: Tensor) -> Tensor {
        let residual = x.clone();
        let mut h = self.layernorm_before.call(t, &x);
        drop(x);
        let (attended, _weights) = self.attention.call(t, attn, h);
        h = attended;
        h = t.mul(&self.lambda_1, &h);
        h = self.drop_path(t, h);
        h = t.add(&h, &residual);
        let residual = h.clone();
        h = self.layernorm_after.call(t, &h);
        h = self.mlp.call(t, &h);
        h = t.dropout(&h, self.dropout);
        h = t.mul(&self.lambda_2, &h);
        let kept = self.drop_path(t, h.clone());
        h = t.add(&kept, &residual);
        drop(kept);
        h
    }
}

impl Norm {
    fn new(b: &Builder, name: &'static str, c: &InternVlVisionConfig) -> Self {
        if c.rms_norm {
            Self::Rms(RmsNorm::new(b, name, c.shape.hidden))
        } else {
            Self::Layer(LayerNorm::new(b, name, c.shape.hidden))
        }
    }

    fn call(&self, t: &Tape, x: &Tensor) -> Tensor {
        match self {
            Self::Layer(norm) => norm.call(t, x),
            Self::Rms(norm) => norm.call(t, x),
        }
    }
}

impl SelfAttention {
    fn new(b: &Builder, c: &InternVlVisionConfig) -> Self {
        let hidden = c.shape.hidden;
        let qkv = |name| Linear::new(b, name, hidden, hidden, c.attention_bias);
        let norm = |name| RmsNorm::new(b, name, hidden);
        Self {
            module: b.module(),
            q_proj: qkv("q_proj"),
            k_proj: qkv("k_proj"),
            v_proj: qkv("v_proj"),
            projection_layer: Linear::new(b, "projection_layer", hidden, hidden, true),
            norms: c.qk_norm.then(|| ["q_norm", "k_norm"].map(norm)),
            heads: c.shape.heads,
            dropout: c.attention_dropout,
            projection_dropout: c.projection_dropout,
        }
    }

    fn call(&self, t: &Tape, attn: Attention, x: Tensor) -> (Tensor, Option<Tensor>) {
        self.module.call(t, move || {
            let [batch, seq, hidden] = [x.size(0), x.size(1), x.size(2)];
            let mut q = self.q_proj.call(t, &x);
            let mut k = self.k_proj.call(t, &x);
            let v = self.v_proj.call(t, &x);
            if let Some([q_norm, k_norm]) = &self.norms {
                q = q_norm.call(t, &q);
                k = k_norm.call(t, &k);
            }
            let heads = |x: Tensor| t.transpose(&t.view(&x, [batch, seq, self.heads, hidden / self.heads]), 1, 2);
            let (q, k, v) = (heads(q), heads(k), heads(v));
            let call = AttentionCall {
                q: &q,
                k: &k,
                v: &v,
                mask: None,
                dropout: self.dropout,
                softmax: None,
            };
            let (mut out, weights) = nn::attention(t, attn, &call);
            out = t.reshape(&out, [batch, seq, hidden]);
            let projected = self.projection_layer.call(t, &out);
            (t.dropout(&projected, self.projection_dropout), weights)
        })
    }
}

impl Mlp {
    fn call(&self, t: &Tape, x: &Tensor) -> Tensor {
        self.module.call(t, move || {
            let mut h = self.fc1.call(t, x);
            h = nn::activate(t, self.activation, h);
            self.fc2.call(t, &h)
        })
    }
}
