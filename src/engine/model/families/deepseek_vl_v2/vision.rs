//! DeepSeek-VL2's tower and projector (`siglip_vit.py`, `MlpProjector` of `modeling_deepseek_vl_v2.py`).

use std::rc::Rc;

use super::config::{ProjectorConfig, TowerConfig};
use crate::model::config::{Activation, EncoderShape};
use crate::model::forward::Run;
use crate::model::parts::encoder::Mlp;
use crate::nn::{self, AttentionCall, Builder, LayerNorm, Linear, Numbered};
use crate::setup::Attention;
use crate::tape::{Module, Tape, Tensor};

/// `VisionTransformer`.
pub struct Tower {
    pos_embed: Tensor,
    weight: Tensor,
    bias: Tensor,
    blocks: Vec<Numbered<Block>>,
    norm: LayerNorm,
}

struct Block {
    norm1: LayerNorm,
    attn: SelfAttention,
    norm2: LayerNorm,
    mlp: Mlp,
}

/// `Attention`, whose kernel is xformers' and PyTorch's here: both keep the sums of scores beside the output.
struct SelfAttention {
    module: Module,
    qkv: Linear,
    proj: Linear,
    heads: u64,
}

impl Tower {
    pub fn new(b: &Builder, c: &TowerConfig) -> Self {
        let (t, hidden, grid) = (b.tape(), c.shape.hidden, &c.grid);
        let pos_embed = b.weight("pos_embed", [1, grid.patches(), hidden]);
        let weight = b.weight(
            "patch_embed.proj.weight",
            [hidden, grid.channels, grid.patch, grid.patch],
        );
        let bias = b.weight("patch_embed.proj.bias", [hidden]);
        let blocks = (0..c.shape.layers as usize)
            .map(|i| Numbered::new(b, "blocks", i, || Rc::new(Block::new(b, c.shape))))
            .collect();
        let norm = LayerNorm::new(b, "norm", hidden);
        if c.has_pool {
            t.scope("attn_pool", || pool(b, c.shape));
        }
        Self {
            pos_embed,
            weight,
            bias,
            blocks,
            norm,
        }
    }

    /// Tiles [tiles, channels, side, side] → [tiles, patches, width].
    pub fn forward(&self, t: &Tape, run: &Run, tiles: &Tensor) -> Tensor {
        let patches = run.embedded(t, t.conv_patches(tiles, &self.weight, Some(&self.bias)));
        let [count, width] = [patches.size(0), patches.size(1)];
        let flat = t.view(&patches, [count, width, patches.size(2) * patches.size(3)]);
        drop(patches);
        let mut h = t.transpose(&flat, 1, 2);
        drop(flat);
        h = t.add(&h, &self.pos_embed);
        let kinds = vec![0; self.blocks.len()];
        let mut input = Some(h);
        t.stack(&kinds, &mut |i| {
            let block = self.blocks[i].clone();
            let Some(x) = input.take() else { return };
            // transformers turns checkpointing on in its own models alone, of which the tower is none.
            input = Some(self.blocks[i].enter(t, || block.forward(t, x)));
        });
        self.norm.call(t, &input.expect("a tower has blocks"))
    }
}

impl Block {
    fn new(b: &Builder, shape: EncoderShape) -> Self {
        let t = b.tape();
        let norm = |name| LayerNorm::new(b, name, shape.hidden);
        let norm1 = norm("norm1");
        let attn = t.scope("attn", || SelfAttention {
            module: b.module(),
            qkv: Linear::new(b, "qkv", shape.hidden, 3 * shape.hidden, true),
            proj: Linear::new(b, "proj", shape.hidden, shape.hidden, true),
            heads: shape.heads,
        });
        Self {
            norm1,
            attn,
            norm2: norm("norm2"),
            mlp: t.scope("mlp", || Mlp::new(b, shape, Activation::GeluTanh)),
        }
    }

    fn forward(&self, t: &Tape, mut x: Tensor) -> Tensor {
        x = {
            let normed = self.norm1.call(t, &x);
            let attended = self.attn.call(t, normed);
            t.add(&x, &attended)
        };
        let normed = self.norm2.call(t, &x);
        let made = self.mlp.call(t, &normed);
        drop(normed);
        t.add(&x, &made)
    }
}

impl SelfAttention {
    fn call(&self, t: &Tape, mut x: Tensor) -> Tensor {
        self.module.call(t, move || {
            let [tiles, patches, width] = [x.size(0), x.size(1), x.size(2)];
            let made = self.qkv.call(t, &x);
            let qkv = t.view(&made, [tiles, patches, 3, self.heads, width / self.heads]);
            drop(made);
            let parts = t.unbind_at(&qkv, 2);
            let [q, k, v] = [0, 1, 2].map(|i| t.transpose(&parts[i], 1, 2));
            let call = AttentionCall {
                q: &q,
                k: &k,
                v: &v,
                mask: None,
                dropout: 0.0,
                softmax: None,
            };
            (x, _) = nn::attention(t, Attention::Sdpa, &call);
            drop((q, k, v));
            x = t.reshape(&x, [tiles, patches, width]);
            x = self.proj.call(t, &x);
            drop((parts, qkv));
            x
        })
    }
}

/// `AttentionPoolLatent` of timm, which is made and not run.
fn pool(b: &Builder, shape: EncoderShape) {
    let (t, hidden) = (b.tape(), shape.hidden);
    b.weight("latent", [1, 1, hidden]);
    Linear::new(b, "q", hidden, hidden, true);
    Linear::new(b, "kv", hidden, 2 * hidden, true);
    Linear::new(b, "proj", hidden, hidden, true);
    LayerNorm::new(b, "norm", hidden);
    t.scope("mlp", || Mlp::new(b, shape, Activation::Gelu));
}

/// `MlpProjector`.
pub struct Projector {
    layers: Vec<Linear>,
    square: u64,
}

/// Names of the linear layers in their `nn.Sequential`, between activations.
const NAMES: [&str; 8] = ["0", "2", "4", "6", "8", "10", "12", "14"];

impl Projector {
    pub fn new(b: &Builder, c: &ProjectorConfig) -> Self {
        let inner = c.output * c.ratio;
        let depth = (c.depth as usize).min(NAMES.len());
        let of = |i: usize| {
            let input = if i == 0 { c.input * c.square * c.square } else { inner };
            let output = if i + 1 == depth { c.output } else { inner };
            Linear::new(b, NAMES[i], input, output, true)
        };
        Self {
            layers: (0..depth).map(of).collect(),
            square: c.square,
        }
    }

    /// [tiles, patches, width] → [tiles, tokens, width of the text].
    pub fn forward(&self, t: &Tape, features: &Tensor) -> Tensor {
        let [tiles, patches, width] = [features.size(0), features.size(1), features.last()];
        let side = patches.isqrt();
        let missing = side.next_multiple_of(self.square) - side;
        let mut x = t.view(features, [tiles, side, side, width]);
        if missing > 0 {
            x = t.pad_ends(&x, &[(1, missing), (2, missing)]);
        }
        x = t.permute(&x, &[0, 3, 1, 2]);
        x = t.unfold(&x, self.square);
        x = t.permute(&x, &[0, 2, 1]);
        // The caller's variable holds what enters the maps.
        let held = x.clone();
        for (i, layer) in self.layers.iter().enumerate() {
            if i > 0 {
                x = nn::activate(t, Activation::Gelu, x);
            }
            x = t.scope("layers", || layer.call(t, &x));
        }
        drop(held);
        x
    }
}
