//! `Qwen3VLVisionModel` and `Qwen3_5VisionModel` (`transformers/models/{qwen3_vl,qwen3_5}/modeling_*.py`).

use std::rc::Rc;

use super::config::Qwen3VlVisionConfig;
use crate::model::config::Activation;
use crate::model::forward::Run;
use crate::model::parts::qwen_vl::{
    LayerPositions, Layout, Map, PatchEmbed, Segments, VisionAttention, VisionBlock, VisionBlocks, VisionIds,
    VisionOutput, VisionRotary, VisionTower, interpolation,
};
use crate::nn::{self, Builder, Embedding, LayerNorm, Linear, MropeLayout};
use crate::tape::{Component, Module, Tape, Tensor};

/// `Qwen3VLVisionModel`.
pub(crate) struct Qwen3Vision {
    patch_embed: PatchEmbed,
    pos_embed: Embedding,
    rotary: VisionRotary,
    blocks: VisionBlocks<LayerNorm, Mlp>,
    merger: Merger,
    deepstack_mergers: Vec<Merger>,
    deepstack_layers: Vec<u64>,
}

struct Mlp {
    module: Module,
    linear_fc1: Linear,
    linear_fc2: Linear,
    activation: Activation,
}

/// `Qwen3VLVisionPatchMerger`.
struct Merger {
    norm: LayerNorm,
    linear_fc1: Linear,
    linear_fc2: Linear,
    width: u64,
    /// True if the norm comes after patches are merged.
    joins_first: bool,
    /// True if what the first linear layer takes is freed once it has run.
    frees_tokens: bool,
}

impl Qwen3Vision {
    pub(crate) fn new(b: &Builder, c: &Qwen3VlVisionConfig) -> Self {
        let (t, p) = (b.tape(), &c.patches);
        let mergers = |name| {
            t.component(name, Component::Connector, || -> Vec<Merger> {
                let merger = |i| t.layer("", i, || Merger::new(b, c, true));
                (0..c.deepstack_layers.len()).map(merger).collect()
            })
        };
        let first = c.makes_mergers_first.then(|| mergers("merger_list"));
        let tower = Self {
            patch_embed: PatchEmbed::new(b, p, c.width, true),
            pos_embed: Embedding::new(b, "pos_embed", c.positions, c.width),
            rotary: VisionRotary::new(b, c.width / p.heads),
            blocks: VisionBlocks::new(b, p.layers, || Self::block(b, c)),
            merger: t.component("merger", Component::Connector, || Merger::new(b, c, false)),
            deepstack_mergers: first.unwrap_or_else(|| mergers("deepstack_merger_list")),
            deepstack_layers: c.deepstack_layers.clone(),
        };
        tower.rotary.initialised(b.tape());
        tower
    }

    fn block(b: &Builder, c: &Qwen3VlVisionConfig) -> VisionBlock<LayerNorm, Mlp> {
        let t = b.tape();
        VisionBlock {
            norm1: LayerNorm::new(b, "norm1", c.width),
            norm2: LayerNorm::new(b, "norm2", c.width),
            attn: t.scope("attn", || VisionAttention::new(b, c.width, c.patches.heads)),
            mlp: t.scope("mlp", || Mlp {
                module: b.module(),
                linear_fc1: Linear::new(b, "linear_fc1", c.width, c.intermediate, true),
                linear_fc2: Linear::new(b, "linear_fc2", c.intermediate, c.width, true),
                activation: c.activation,
            }),
        }
    }

    /// Learned positions of each patch, interpolated between its neighbours on the grid, in fp32.
    fn learned_positions(&self, t: &Tape, indices: &Tensor, weights: &Tensor) -> Tensor {
        t.scope("pos_embed", || {
            let neighbours = self.pos_embed.forward(t, indices);
            let weighted = t.mul(&neighbours, &t.unsqueeze(weights, 2));
            drop(neighbours);
            t.sum_dim(&weighted, 1)
        })
    }

    /// Features of block `i` for the language model; `None` if it provides none.
    fn deepstack(&self, t: &Tape, i: usize, h: &Tensor) -> Option<Tensor> {
        let at = self.deepstack_layers.iter().position(|&layer| layer == i as u64)?;
        Some(
            t.component("model.visual.deepstack_merger_list", Component::Connector, || {
                t.layer("", at, || self.deepstack_mergers[at].forward(t, h))
            }),
        )
    }
}

impl VisionTower for Qwen3Vision {
    const MROPE: MropeLayout = MropeLayout::Interleaved;
    const OUTPUT_IS_KEPT: bool = true;
    const LAYERS_GET: LayerPositions = LayerPositions::Counted;

    fn forward(&self, t: &Tape, run: &Run, pixels: &Tensor, layout: &Layout, grid: &Tensor) -> VisionOutput {
        let (indices, weights) = interpolation(t, layout, grid);
        let VisionIds {
            position_ids,
            cu_seqlens,
        } = VisionIds::new(t, layout, grid);
        let segments = Rc::new(Segments::of_frames(layout, cu_seqlens));
        // Not an embedding by transformers' naming, so it is never made a leaf.
        let mut h = self.patch_embed.call(t, pixels);
        let learned = self.learned_positions(t, &indices, &weights);
        h = {
            let narrowed = t.to_dtype(&learned, h.dtype());
            t.add(&h, &narrowed)
        };
        let positions = Rc::new(self.rotary.call(t, &position_ids));
        let mut deepstack = Vec::with_capacity(self.deepstack_layers.len());
        let each = |_| segments.clone();
        let seen = (&self.deepstack_layers[..], |t: &Tape, i: usize, h: &Tensor| {
            deepstack.extend(self.deepstack(t, i, h));
        });
        let last = self.blocks.forward(t, run, h, &positions, each, seen);
        let merged = t.component("merger", Component::Connector, || self.merger.forward(t, &last));
        drop(learned);
        VisionOutput {
            last,
            merged,
            deepstack,
        }
    }
}

impl Map for Mlp {
    fn call(&self, t: &Tape, x: &Tensor) -> Tensor {
        self.module.call(t, move || {
            let mut h = self.linear_fc1.call(t, x);
            h = nn::activate(t, self.activation, h);
            self.linear_fc2.call(t, &h)
        })
    }
}

impl Merger {
    fn new(b: &Builder, c: &Qwen3VlVisionConfig, joins_first: bool) -> Self {
        let width = c.width * c.patches.merged();
        Self {
            norm: LayerNorm::new(b, "norm", if joins_first { width } else { c.width }),
            linear_fc1: Linear::new(b, "linear_fc1", width, width, true),
            linear_fc2: Linear::new(b, "linear_fc2", width, c.output, true),
            width,
            joins_first,
            frees_tokens: c.makes_mergers_first,
        }
    }

    /// [patches, width] → [tokens, width of a token].
    fn forward(&self, t: &Tape, x: &Tensor) -> Tensor {
        let joined = [x.numel() / self.width, self.width];
        let x = if self.joins_first { t.view(x, joined) } else { x.clone() };
        let normed = self.norm.call(t, &x);
        let tokens = t.view(&normed, joined);
        drop(normed);
        let mut h = self.linear_fc1.call(t, &tokens);
        let _tokens = (!self.frees_tokens).then_some(tokens);
        h = nn::activate(t, Activation::Gelu, h);
        self.linear_fc2.call(t, &h)
    }
}
