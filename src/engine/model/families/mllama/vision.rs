//! Llama-3.2-Vision's tower: every tile of an image in one sequence
//! (`transformers/models/mllama/modeling_mllama.py`).

use super::config::MllamaVisionConfig;
use super::positions::{TileEmbedding, TilePositions};
use crate::dtype::DType;
use crate::model::config::Activation;
use crate::model::forward::Run;
use crate::nn::{self, AttentionCall, Builder, LayerNorm, Linear};
use crate::setup::Attention;
use crate::tape::{Mask, Module, Tape, Tensor};

/// `MllamaVisionModel`.
pub struct MllamaVision {
    patch_embedding: Tensor,
    class_embedding: Tensor,
    positions: TilePositions,
    pre_tile: TileEmbedding,
    post_tile: TileEmbedding,
    layernorm_pre: LayerNorm,
    layernorm_post: LayerNorm,
    local: Vec<Layer>,
    global: Vec<Layer>,
    /// Local blocks whose outputs are concatenated with the last.
    joined: Vec<u64>,
}

/// `MllamaVisionEncoderLayer`; only global ones have gates.
struct Layer {
    self_attn: SelfAttention,
    mlp: Mlp,
    input_layernorm: LayerNorm,
    post_attention_layernorm: LayerNorm,
    gates: Option<[Tensor; 2]>,
}

struct SelfAttention {
    module: Module,
    q_proj: Linear,
    k_proj: Linear,
    v_proj: Linear,
    o_proj: Linear,
    heads: u64,
}

struct Mlp {
    module: Module,
    fc1: Linear,
    fc2: Linear,
    activation: Activation,
}

/// Sequences are padded to a multiple of this many positions.
const ALIGNMENT: u64 = 8;

impl MllamaVision {
    pub fn new(b: &Builder, c: &MllamaVisionConfig) -> Self {
        let t = b.tape();
        let (hidden, patch) = (c.shape.hidden, c.grid.patch);
        let layers = |name, count: u64, gated| {
            (0..count as usize)
                .map(|i| t.layer(name, i, || Layer::new(b, c, gated)))
                .collect()
        };
        Self {
            patch_embedding: b.weight("patch_embedding.weight", [hidden, c.grid.channels, patch, patch]),
            // `scale * torch.randn(hidden)`
            class_embedding: b.weight_computed("class_embedding", [hidden], 1),
            positions: t.scope("gated_positional_embedding", || TilePositions::new(b, c)),
            pre_tile: t.scope("pre_tile_positional_embedding", || TileEmbedding::new(b, c)),
            post_tile: t.scope("post_tile_positional_embedding", || TileEmbedding::new(b, c)),
            layernorm_pre: LayerNorm::new(b, "layernorm_pre", hidden),
            layernorm_post: LayerNorm::new(b, "layernorm_post", hidden),
            local: layers("transformer.layers", c.shape.layers, false),
            global: layers("global_transformer.layers", c.global_layers, true),
            joined: c.intermediate_layers.clone(),
        }
    }

    /// Pixels [samples, images, tiles, 3, side, side] and each image's arrangement of tiles
    /// [samples, images] → [samples, images, tiles, positions, output].
    pub fn forward(&self, t: &Tape, run: &Run, pixels: &Tensor, arrangements: &Tensor) -> Tensor {
        let [samples, per_sample, tiles] = [pixels.size(0), pixels.size(1), pixels.size(2)];
        let images = samples * per_sample;
        let patches = self.embed_patches(t, run, pixels);
        let width = patches.size(1);
        let mut h = {
            let flat = t.view(&patches, [images * tiles, width, patches.size(2) * patches.size(3)]);
            t.transpose(&flat, 1, 2)
        };
        let mut positions = h.size(1);
        h = t.reshape(&h, [images, tiles, positions, width]);
        h = self.pre_tile.call(t, &h, arrangements);
        h = t.reshape(&h, [images * tiles, positions, width]);
        h = {
            let class = t.expand(&self.class_embedding, [images * tiles, 1, width]);
            t.cat(&[&class, &h], 1)
        };
        positions += 1;
        h = t.reshape(&h, [images, tiles, positions, width]);
        h = self.positions.call(t, &h, arrangements);
        h = self.layernorm_pre.call(t, &h);
        let padded = positions.next_multiple_of(ALIGNMENT);
        h = t.pad_end(&h, 2, padded - positions);
        let mask = padding_bias(t, &[images, tiles, padded], self.patch_embedding.dtype());
        h = t.view(&h, [images, tiles * padded, width]);
        let states = run_layers(t, run.attn, "transformer.layers", &self.local, &mask, h.clone());
        h = states
            .last()
            .cloned()
            .unwrap_or_else(|| unreachable!("a tower has blocks"));
        h = self.layernorm_post.call(t, &h);
        h = t.reshape(&h, [images, tiles, padded, width]);
        h = self.post_tile.call(t, &h, arrangements);
        h = t.reshape(&h, [images, tiles * padded, width]);
        let global_states = run_layers(t, run.attn, "global_transformer.layers", &self.global, &mask, h.clone());
        if let Some(last) = global_states.last() {
            h = last.clone();
        }
        let unpadded = |x: &Tensor, width: u64| {
            let x = t.reshape(x, [images, tiles, padded, width]);
            let x = t.slice(&x, 2, positions);
            t.reshape(&x, [samples, per_sample, tiles, positions, width])
        };
        h = unpadded(&h, width);
        let joined: Vec<&Tensor> = self.joined.iter().map(|&i| &states[i as usize]).collect();
        let mut intermediate = t.stack_last(&joined);
        intermediate = unpadded(&intermediate, width * joined.len() as u64);
        h = t.cat(&[&h, &intermediate], 4);
        drop((intermediate, global_states, states, mask, patches));
        h
    }

    fn embed_patches(&self, t: &Tape, run: &Run, pixels: &Tensor) -> Tensor {
        let shape = pixels.shape();
        let tiles = t.view(pixels, [shape[0] * shape[1] * shape[2], shape[3], shape[4], shape[5]]);
        let tiles = t.to_dtype(&tiles, t.type_of(&self.patch_embedding));
        run.embedded(t, t.conv_patches(&tiles, &self.patch_embedding, None))
    }
}

/// `_prepare_aspect_ratio_attention_mask`: a bias [images, 1, length, length] against padding; `length` is all
/// positions of all tiles.
fn padding_bias(t: &Tape, &[images, tiles, positions]: &[u64; 3], dtype: DType) -> Mask {
    let mut mask = t.empty([images, tiles, 1, 1], dtype, "tiles that count");
    mask = t.empty([images, tiles, positions, 1], mask.dtype(), "positions that count");
    mask = t.shift_negated(&mask);
    mask = t.view(&mask, [images, tiles * positions, 1]);
    let product = t.matmul(&mask, &t.transpose(&mask, 1, 2));
    let bias = t.scale(&product);
    drop((product, mask));
    Mask::Bias(t.unsqueeze(&bias, 1))
}

/// Outputs of all blocks: the encoder's output object holds them all.
fn run_layers(
    t: &Tape,
    attn: Attention,
    name: &'static str,
    layers: &[Layer],
    mask: &Mask,
    mut h: Tensor,
) -> Vec<Tensor> {
    let mut states = Vec::with_capacity(layers.len());
    for (i, layer) in layers.iter().enumerate() {
        h = t.layer(name, i, || layer.forward(t, attn, mask, h));
        states.push(h.clone());
    }
    states
}

impl Layer {
    fn new(b: &Builder, c: &MllamaVisionConfig, gated: bool) -> Self {
        let t = b.tape();
        let (hidden, intermediate) = (c.shape.hidden, c.shape.intermediate);
        let linear = |name| Linear::new(b, name, hidden, hidden, false);
        Self {
            self_attn: t.scope("self_attn", || SelfAttention {
                module: b.module(),
                q_proj: linear("q_proj"),
                k_proj: linear("k_proj"),
                v_proj: linear("v_proj"),
                o_proj: linear("o_proj"),
                heads: c.shape.heads,
            }),
            mlp: t.scope("mlp", || Mlp {
                module: b.module(),
                fc1: Linear::new(b, "fc1", hidden, intermediate, true),
                fc2: Linear::new(b, "fc2", intermediate, hidden, true),
                activation: c.activation,
            }),
            input_layernorm: LayerNorm::new(b, "input_layernorm", hidden),
            post_attention_layernorm: LayerNorm::new(b, "post_attention_layernorm", hidden),
            // `torch.ones(1) * math.pi / 4`
            gates: gated.then(|| ["gate_attn", "gate_ffn"].map(|name| b.weight_computed(name, [1], 2))),
        }
    }

    fn forward(&self, t: &Tape, attn: Attention, mask: &Mask, x: Tensor) -> Tensor {
        let gated = |i: usize, h: Tensor| match &self.gates {
            Some(gates) => nn::gated(t, &gates[i], &h),
            None => h,
        };
        let residual = x.clone();
        let mut h = self.input_layernorm.call(t, &x);
        drop(x);
        let (out, _weights) = self.self_attn.call(t, attn, mask, &h);
        h = out;
        h = gated(0, h);
        h = t.add(&residual, &h);
        let residual = h.clone();
        h = self.post_attention_layernorm.call(t, &h);
        h = self.mlp.call(t, &h);
        h = gated(1, h);
        t.add(&residual, &h)
    }
}

impl SelfAttention {
    fn call(&self, t: &Tape, attn: Attention, mask: &Mask, x: &Tensor) -> (Tensor, Option<Tensor>) {
        self.module.call(t, move || {
            let [batch, seq, hidden] = [x.size(0), x.size(1), x.size(2)];
            let q = self.q_proj.call(t, x);
            let k = self.k_proj.call(t, x);
            let v = self.v_proj.call(t, x);
            let heads = |x: Tensor| t.transpose(&t.view(&x, [batch, seq, self.heads, hidden / self.heads]), 1, 2);
            let (q, k, v) = (heads(q), heads(k), heads(v));
            let call = AttentionCall {
                q: &q,
                k: &k,
                v: &v,
                mask: Some(mask),
                dropout: 0.0,
                softmax: Some(DType::F32),
            };
            let (mut out, weights) = nn::attention(t, attn, &call);
            out = t.reshape(&out, [batch, seq, hidden]);
            out = self.o_proj.call(t, &out);
            (out, weights)
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
