//! Pixtral's vision tower (`transformers/models/pixtral/modeling_pixtral.py`).

use std::rc::Rc;

use super::config::PixtralVisionConfig;
use super::positions::{PatchRotary, position_ids};
use crate::dtype::DType;
use crate::model::decoder::mlp::Mlp;
use crate::model::forward::Run;
use crate::nn::{self, AttentionCall, Builder, Linear, Numbered, RmsNorm};
use crate::setup::Attention;
use crate::tape::{Mask, Module, Tape, Tensor};

/// `PixtralVisionModel`.
pub struct PixtralVision {
    patch_conv: Tensor,
    ln_pre: RmsNorm,
    layers: Vec<Numbered<Layer>>,
    rotary: PatchRotary,
    patch: u64,
}

/// `PixtralAttentionLayer`.
struct Layer {
    attention_norm: RmsNorm,
    feed_forward: Mlp,
    attention: SelfAttention,
    ffn_norm: RmsNorm,
}

struct SelfAttention {
    module: Module,
    k_proj: Linear,
    v_proj: Linear,
    q_proj: Linear,
    o_proj: Linear,
    heads: u64,
    dropout: f64,
}

/// State that all layers of one forward share.
struct Shared {
    attn: Attention,
    mask: Option<Mask>,
    cos: Tensor,
    sin: Tensor,
    _position_ids: Tensor,
}

/// `size // patch_size` of the sides of an image on the GPU: one number each.
pub fn side_in_patches(t: &Tape) -> [Tensor; 2] {
    [0, 1].map(|_| nn::ids(t, &[], "side in patches"))
}

impl PixtralVision {
    pub fn new(b: &Builder, c: &PixtralVisionConfig) -> Self {
        let (t, hidden) = (b.tape(), c.shape.hidden);
        let patch_conv = t.scope("patch_conv", || {
            b.weight("weight", [hidden, c.grid.channels, c.grid.patch, c.grid.patch])
        });
        Self {
            patch_conv,
            ln_pre: RmsNorm::new(b, "ln_pre", hidden),
            layers: (0..c.shape.layers as usize)
                .map(|i| Numbered::new(b, "transformer.layers", i, || Rc::new(Layer::new(b, c))))
                .collect(),
            rotary: PatchRotary::new(b, c.shape.head_dim()).initialised(t),
            patch: c.grid.patch,
        }
    }

    /// Pixels [images, channels, height, width] of images of the sizes given → [1, patches of all, hidden]. `see` gets
    /// the embedding and the output of each block.
    pub fn forward(
        &self,
        t: &Tape,
        run: &Run,
        pixels: &Tensor,
        sizes: &[[u64; 2]],
        mut see: impl FnMut(&Tensor),
    ) -> Tensor {
        let images: Vec<[u64; 2]> = sizes.iter().map(|size| size.map(|n| n / self.patch)).collect();
        let pixels = t.to_dtype(pixels, t.type_of(&self.patch_conv));
        let (embeds, embeds_of_images) = self.embed(t, run, pixels, &images);
        let (position_ids, axes) = position_ids(t, &images);
        let (cos, sin) = t.scope("patch_positional_embedding", || {
            self.rotary.forward(t, embeds.dtype(), &position_ids)
        });
        let shared = Rc::new(Shared {
            attn: run.attn,
            mask: mask(t, run.attn, &embeds),
            cos,
            sin,
            _position_ids: position_ids,
        });
        see(&embeds);
        let mut h = embeds.clone();
        for layer in &self.layers {
            let (block, shared) = (layer.clone(), shared.clone());
            let forward = move |t: &Tape, x: Tensor| block.forward(t, &shared, x);
            h = run.block(t, layer, h.clone(), forward);
            see(&h);
        }
        drop((embeds, embeds_of_images, axes));
        h
    }

    /// Embeddings of all patches, [1, patches, hidden], and the convolution's outputs, which the forward holds.
    fn embed(&self, t: &Tape, run: &Run, pixels: Tensor, images: &[[u64; 2]]) -> (Tensor, Vec<Tensor>) {
        let convolved = run.embedded(t, t.conv_patches(&pixels, &self.patch_conv, None));
        drop(pixels);
        let cut = |(x, &[rows, columns]): (Tensor, &[u64; 2])| {
            let _sides = side_in_patches(t);
            t.slice(&t.slice(&x, 1, rows), 2, columns)
        };
        let of_images: Vec<Tensor> = t.unbind(&convolved).into_iter().zip(images).map(cut).collect();
        drop(convolved);
        let flat = |x: &Tensor| {
            let flat = t.reshape(x, [x.size(0), x.size(1) * x.size(2)]);
            t.transpose(&flat, 0, 1)
        };
        let rows: Vec<Tensor> = of_images.iter().map(flat).collect();
        let joined = t.cat(&rows.iter().collect::<Vec<_>>(), 0);
        drop(rows);
        let embeds = t.unsqueeze(&joined, 0);
        drop(joined);
        (self.ln_pre.call(t, &embeds), of_images)
    }
}

/// `generate_block_attention_mask`: what is added to the scores, so that patches see those of their image.
fn mask(t: &Tape, attn: Attention, embeds: &Tensor) -> Option<Mask> {
    let patches = embeds.size(1);
    let made = || {
        let bias = t.empty([patches, patches], embeds.dtype(), "block attention mask");
        Mask::Bias(t.unsqueeze(&t.unsqueeze(&bias, 0), 0))
    };
    (attn != Attention::FlashAttention2).then(made)
}

impl Layer {
    fn new(b: &Builder, c: &PixtralVisionConfig) -> Self {
        let (t, hidden) = (b.tape(), c.shape.hidden);
        let maps = [hidden, c.shape.intermediate];
        let project = |name| Linear::new(b, name, hidden, hidden, false);
        Self {
            attention_norm: RmsNorm::new(b, "attention_norm", hidden),
            feed_forward: t.scope("feed_forward", || Mlp::of_tower(b, maps, hidden, false, c.activation)),
            attention: t.scope("attention", || SelfAttention {
                module: b.module(),
                k_proj: project("k_proj"),
                v_proj: project("v_proj"),
                q_proj: project("q_proj"),
                o_proj: project("o_proj"),
                heads: c.shape.heads,
                dropout: c.attention_dropout,
            }),
            ffn_norm: RmsNorm::new(b, "ffn_norm", hidden),
        }
    }

    fn forward(&self, t: &Tape, shared: &Shared, x: Tensor) -> Tensor {
        let residual = x.clone();
        let mut h = self.attention_norm.call(t, &x);
        drop(x);
        let (out, _weights) = self.attention.call(t, shared, h);
        h = out;
        h = t.add(&residual, &h);
        let residual = h.clone();
        h = self.ffn_norm.call(t, &h);
        h = self.feed_forward.call(t, h);
        t.add(&residual, &h)
    }
}

impl SelfAttention {
    fn call(&self, t: &Tape, shared: &Shared, x: Tensor) -> (Tensor, Option<Tensor>) {
        self.module.call(t, move || {
            let [batch, patches, hidden] = [x.size(0), x.size(1), x.size(2)];
            let heads = |x: Tensor| t.transpose(&t.view(&x, [batch, patches, self.heads, hidden / self.heads]), 1, 2);
            let q = self.q_proj.call(t, &x);
            let k = self.k_proj.call(t, &x);
            let v = self.v_proj.call(t, &x);
            let (mut q, mut k, v) = (heads(q), heads(k), heads(v));
            let [cos, sin] = [&shared.cos, &shared.sin].map(|x| t.unsqueeze(x, 0));
            let rotated = [nn::apply_rotary(t, &q, &cos, &sin), nn::apply_rotary(t, &k, &cos, &sin)];
            [q, k] = rotated;
            let call = AttentionCall {
                q: &q,
                k: &k,
                v: &v,
                mask: shared.mask.as_ref(),
                dropout: self.dropout,
                softmax: Some(DType::F32),
            };
            let (mut out, weights) = nn::attention(t, shared.attn, &call);
            out = t.reshape(&out, [batch, patches, hidden]);
            out = self.o_proj.call(t, &out);
            (out, weights)
        })
    }
}
