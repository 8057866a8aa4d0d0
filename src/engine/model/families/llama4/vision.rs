//! Llama 4's vision tower and adapter (`transformers/models/llama4/modeling_llama4.py`).

use std::rc::Rc;

use super::config::Llama4VisionConfig;
use crate::dtype::DType;
use crate::model::config::Activation;
use crate::model::forward::Run;
use crate::model::parts::pixel_shuffle::pixel_shuffle;
use crate::model::parts::text::{MlpForm, PlainMlp};
use crate::nn::{self, AttentionCall, Builder, LayerNorm, Linear, Numbered};
use crate::setup::Attention;
use crate::tape::{Module, Tape, Tensor};

const MLP: MlpForm = MlpForm {
    names: ["fc1", "fc2"],
    bias: true,
};

/// `Llama4VisionModel`.
pub struct Vision {
    class_embedding: Tensor,
    positional_embedding_vlm: Tensor,
    patch_embedding: Linear,
    /// Rotations of every position, [1, positions, 1, half of a head] in complex numbers.
    freqs_ci: Tensor,
    layernorm_pre: LayerNorm,
    layernorm_post: LayerNorm,
    layers: Vec<Numbered<Layer>>,
    /// The adapter's linear layers.
    adapter: [Linear; 2],
    config: Llama4VisionConfig,
}

/// State that all blocks of one forward share.
struct Shared {
    attn: Attention,
    freqs_cis: Tensor,
}

struct Layer {
    self_attn: SelfAttention,
    mlp: PlainMlp,
    input_layernorm: LayerNorm,
    post_attention_layernorm: LayerNorm,
}

struct SelfAttention {
    module: Module,
    q_proj: Linear,
    k_proj: Linear,
    v_proj: Linear,
    o_proj: Linear,
    heads: u64,
    dropout: f64,
}

impl Vision {
    pub fn new(b: &Builder, c: &Llama4VisionConfig) -> Self {
        let t = b.tape();
        let hidden = c.shape.hidden;
        let positions = c.grid.patches() + 1;
        let patch_embedding = t.scope("patch_embedding", || {
            let elements = c.grid.channels * c.grid.patch * c.grid.patch;
            Linear::new(b, "linear", elements, hidden, false)
        });
        let class_embedding = b.weight_computed("class_embedding", [hidden], 1);
        let positional_embedding_vlm = b.weight_computed("positional_embedding_vlm", [positions, hidden], 1);
        let freqs_ci = t.scope("rotary_embedding", || {
            b.buffer("freqs_ci", [1, positions, 1, c.shape.head_dim() / 2], DType::C64)
        });
        let norm = |name| LayerNorm::new(b, name, hidden);
        let (layernorm_pre, layernorm_post) = (norm("layernorm_pre"), norm("layernorm_post"));
        let layers = (0..c.shape.layers as usize)
            .map(|i| Numbered::new(b, "model.layers", i, || Rc::new(Layer::new(b, c))))
            .collect();
        let adapter = t.scope("vision_adapter.mlp", || {
            [
                Linear::new(b, "fc1", c.shape.intermediate, c.adapter_input, false),
                Linear::new(b, "fc2", c.adapter_output, c.adapter_output, false),
            ]
        });
        Self {
            class_embedding,
            positional_embedding_vlm,
            patch_embedding,
            freqs_ci,
            layernorm_pre,
            layernorm_post,
            layers,
            adapter,
            config: c.clone(),
        }
    }

    /// Pixels [tiles, channels, side, side] → [tiles, tokens, width].
    pub fn forward(&self, t: &Tape, run: &Run, pixels: &Tensor) -> Tensor {
        let embedded = self.embed(t, run, pixels);
        let shared = Rc::new(Shared {
            attn: run.attn,
            freqs_cis: self.freqs_ci.clone(),
        });
        let mut h = embedded.clone();
        for layer in &self.layers {
            let (called, shared) = (layer.clone(), shared.clone());
            let forward = move |t: &Tape, x: Tensor| called.forward(t, &shared, x);
            h = run.block_by_name(t, layer, h.clone(), forward);
        }
        let last = h.clone();
        drop(embedded);
        h = self.layernorm_post.call(t, &h);
        h = t.narrow(&h, 1, h.size(1) - 1);
        let out = t.scope("vision_adapter", || self.adapt(t, &h));
        drop((last, h));
        out
    }

    fn embed(&self, t: &Tape, run: &Run, pixels: &Tensor) -> Tensor {
        let tiles = pixels.size(0);
        let patches = t.scope("patch_embedding", || {
            let mut x = t.unfold(pixels, self.config.grid.patch);
            x = t.permute(&x, &[0, 2, 1]);
            let out = self.patch_embedding.call(t, &x);
            run.embedded(t, out)
        });
        let hidden = patches.last();
        let class = t.expand(&self.class_embedding, [tiles, 1, hidden]);
        let mut h = t.cat(&[&patches, &class], 1);
        drop(patches);
        let positions = h.size(1);
        h = t.view(&h, [tiles, 1, positions, hidden]);
        h = t.add(&h, &t.to_dtype(&self.positional_embedding_vlm, h.dtype()));
        h = self.layernorm_pre.call(t, &h);
        t.view(&h, [tiles, positions, hidden])
    }

    /// `Llama4VisionPixelShuffleMLP`: [tiles, patches, hidden] → [tiles, tokens, width].
    fn adapt(&self, t: &Tape, x: &Tensor) -> Tensor {
        let shuffled = self.shuffle(t, x);
        t.scope("mlp", || {
            let [fc1, fc2] = &self.adapter;
            let mut h = fc1.call(t, &shuffled);
            h = nn::activate(t, Activation::Gelu, h);
            h = t.dropout(&h, self.config.adapter_dropout);
            let out = fc2.call(t, &h);
            nn::activate(t, Activation::Gelu, out)
        })
    }

    /// [tiles, patches, hidden] → [tiles, tokens, hidden of all patches of a token].
    fn shuffle(&self, t: &Tape, x: &Tensor) -> Tensor {
        let side = self.config.grid.side();
        let square = t.view(x, [x.size(0), side, side, x.last()]);
        let h = pixel_shuffle(t, &square, self.config.shuffle);
        t.view(&h, [h.size(0), h.size(1) * h.size(2), h.last()])
    }
}

impl Layer {
    fn new(b: &Builder, c: &Llama4VisionConfig) -> Self {
        let t = b.tape();
        let (hidden, intermediate) = (c.shape.hidden, c.shape.intermediate);
        let self_attn = t.scope("self_attn", || {
            // The paths of its layers hold `model.layers` as the decoder's do, so that patterns for those match them too.
            let linear = |name| Linear::adapted(b, name, hidden, hidden, true);
            SelfAttention {
                module: b.module(),
                q_proj: linear("q_proj"),
                k_proj: linear("k_proj"),
                v_proj: linear("v_proj"),
                o_proj: linear("o_proj"),
                heads: c.shape.heads,
                dropout: c.attention_dropout,
            }
        });
        let mlp = t.scope("mlp", || {
            PlainMlp::new(b, MLP, [hidden, intermediate], Activation::Gelu)
        });
        Self {
            self_attn,
            mlp,
            input_layernorm: LayerNorm::new(b, "input_layernorm", hidden),
            post_attention_layernorm: LayerNorm::new(b, "post_attention_layernorm", hidden),
        }
    }

    fn forward(&self, t: &Tape, shared: &Shared, x: Tensor) -> Tensor {
        let residual = x.clone();
        let mut h = self.input_layernorm.call(t, &x);
        drop(x);
        let (out, _weights) = self.self_attn.call(t, shared, &h);
        h = out;
        h = t.add(&residual, &h);
        let residual = h.clone();
        h = self.post_attention_layernorm.call(t, &h);
        h = self.mlp.call(t, &h);
        t.add(&residual, &h)
    }
}

impl SelfAttention {
    fn call(&self, t: &Tape, shared: &Shared, x: &Tensor) -> (Tensor, Option<Tensor>) {
        self.module.call(t, move || {
            let [tiles, positions, hidden] = [x.size(0), x.size(1), x.size(2)];
            let project = |proj: &Linear| {
                let out = proj.call(t, x);
                t.view(&out, [tiles, positions, self.heads, hidden / self.heads])
            };
            let mut q = project(&self.q_proj);
            let mut k = project(&self.k_proj);
            let mut v = project(&self.v_proj);
            [q, k] = nn::apply_complex_rotary(t, [&q, &k], &shared.freqs_cis);
            for x in [&mut q, &mut k, &mut v] {
                *x = t.transpose(x, 1, 2);
            }
            let call = AttentionCall {
                q: &q,
                k: &k,
                v: &v,
                mask: None,
                dropout: self.dropout,
                softmax: None,
            };
            let (mut out, weights) = nn::attention(t, shared.attn, &call);
            out = t.reshape(&out, [tiles, positions, hidden]);
            out = self.o_proj.call(t, &out);
            (out, weights)
        })
    }
}
