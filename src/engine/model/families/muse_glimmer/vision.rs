//! Muse Glimmer's vision tower and adapter (`transformers/models/muse_glimmer/modeling_muse_glimmer.py`).

use std::rc::Rc;

use super::config::{MuseGlimmerConfig, MuseVisionConfig};
use crate::dtype::DType;
use crate::model::config::Activation;
use crate::model::forward::Run;
use crate::model::parts::qwen_vl::{
    Layout, PlainMlp, Segments, VisionAttention, VisionBlock, VisionBlocks, VisionRotary, cu_seqlens, interpolation_by,
    position_ids, windows,
};
use crate::nn::{self, Builder, Embedding, LayerNorm, Linear, PowerRmsNorm, ids};
use crate::tape::{Component, Module, Tape, Tensor};

/// `MuseGlimmerVisionModel`.
pub(super) struct Vision {
    patch_embedder: PatchEmbedder,
    rotary_emb: VisionRotary,
    ln_pre: LayerNorm,
    layers: VisionBlocks<LayerNorm, PlainMlp>,
    ln_post: LayerNorm,
    /// Patches a side of a window.
    window: u64,
    sees_all: Vec<bool>,
}

/// `MuseGlimmerVisionPatchEmbedder`.
struct PatchEmbedder {
    module: Module,
    patch_embedding: Linear,
    position_embedding_table: Embedding,
}

/// `MuseGlimmerVisionAdapter`, `vision_projection` and `perception_emb_norm`.
pub(super) struct Projector {
    adapter: Adapter,
    vision_projection: Linear,
    perception_emb_norm: PowerRmsNorm,
}

struct Adapter {
    fc1: Linear,
    fc2: Linear,
    activation: Activation,
}

const ADAPTER: &str = "model.vision_adapter";

/// Neighbours along one axis.
const TAPS: u64 = 2;

impl Vision {
    pub fn new(b: &Builder, c: &MuseVisionConfig) -> Self {
        let (t, p) = (b.tape(), &c.patches);
        let tower = Self {
            patch_embedder: t.scope("patch_embedder", || PatchEmbedder {
                module: b.module(),
                patch_embedding: Linear::new(b, "patch_embedding", p.patch_elements(), c.width, false),
                position_embedding_table: Embedding::new(b, "position_embedding_table", c.side * c.side, c.width),
            }),
            rotary_emb: VisionRotary::named(b, "rotary_emb", c.width / p.heads, false),
            ln_pre: LayerNorm::new(b, "ln_pre", c.width),
            layers: VisionBlocks::named(b, "layers", p.layers, || VisionBlock {
                norm1: LayerNorm::new(b, "norm1", c.width),
                norm2: LayerNorm::new(b, "norm2", c.width),
                attn: t.scope("attn", || VisionAttention::separate(b, c.width, p.heads)),
                mlp: t.scope("mlp", || PlainMlp::new(b, [c.width, c.intermediate], c.activation)),
            }),
            ln_post: LayerNorm::new(b, "ln_post", c.width),
            window: c.side,
            sees_all: c.sees_all.clone(),
        };
        tower.rotary_emb.initialised(t);
        tower
    }

    /// Patches [patches, elements of a patch] → [tokens, width of all patches of a token].
    pub fn forward(&self, t: &Tape, run: &Run, pixels: &Tensor, layout: &Layout, grid: &Tensor) -> Tensor {
        // Patches are joined once all blocks have run: until then each is a token of its own.
        let mut unmerged = layout.clone();
        unmerged.merge = 1;
        let whole = Rc::new(Segments::of_frames(layout, cu_seqlens(t, layout, grid)));
        let windows = Rc::new(windows(t, &unmerged, self.window));
        let embeds = self.patch_embedder.call(t, pixels, layout, grid);
        let mut h = self.ln_pre.call(t, &embeds);
        h = ordered(t, &h);
        let position_ids = {
            let found = position_ids(t, &unmerged);
            let shifted = {
                let flipped = t.compute(&found, DType::I64, "flip");
                t.compute(&flipped, DType::I64, "add a number")
            };
            drop(found);
            ordered(t, &shifted)
        };
        let positions = Rc::new(self.rotary_emb.call_in(t, &position_ids, h.dtype()));
        let segments = |i: usize| match self.sees_all[i] {
            true => whole.clone(),
            false => windows.clone(),
        };
        h = self
            .layers
            .forward(t, run, h, &positions, segments, (&[], |_: &Tape, _, _: &Tensor| ()));
        h = ordered(t, &h);
        h = self.ln_post.call(t, &h);
        h = shuffled(t, &h, layout);
        drop((position_ids, positions, embeds, whole, windows));
        h
    }
}

/// `x[window_index, :]`, whose index is computed on the host.
fn ordered(t: &Tape, x: &Tensor) -> Tensor {
    t.index_from_host(x, [x.size(0)])
}

/// `pixel_shuffle`: the patches of each token in one row, [patches, width] → [tokens, width × patches of a token].
fn shuffled(t: &Tape, h: &Tensor, layout: &Layout) -> Tensor {
    let (patches, merged) = (h.size(0), layout.merge * layout.merge);
    let index = {
        let mut indices = Vec::new();
        let mut _permutation = None;
        for image in layout.images() {
            let (n, m) = (image.rows * image.columns, layout.merge);
            let arange = ids(t, &[n], "arange");
            let squares = t.view(&arange, [image.rows / m, m, image.columns / m, m]);
            // The permutation of the image before lives until here.
            _permutation = Some(arange);
            _permutation = Some(t.reshape(&t.permute(&squares, &[0, 2, 1, 3]), [n]));
            drop(squares);
            indices.push(ids(t, &[image.patches()], "add a number"));
        }
        ids(t, &[patches], "cat")
    };
    let index = [index];
    let gathered = t.index(h, &index);
    let grouped = t.view(&gathered, [patches / merged, merged, h.last()]);
    let joined = t.reshape(&t.permute(&grouped, &[0, 2, 1]), [patches / merged, h.last() * merged]);
    drop(index);
    joined
}

impl PatchEmbedder {
    fn call(&self, t: &Tape, pixels: &Tensor, layout: &Layout, grid: &Tensor) -> Tensor {
        self.module.call(t, || {
            let mut embeddings = {
                let cast = t.to_dtype(pixels, t.type_of(self.position_embedding_table.weight()));
                self.patch_embedding.call(t, &cast)
            };
            let (indices, weights) = interpolation_by(t, layout, grid, (TAPS, axis));
            let positions = {
                let weighted = {
                    let neighbours = self.position_embedding_table.call(t, &indices);
                    t.mul(&neighbours, &t.unsqueeze(&weights, 2))
                };
                t.sum_dim(&weighted, 1)
            };
            embeddings = {
                let cast = t.to_dtype(&positions, embeddings.dtype());
                t.add(&embeddings, &cast)
            };
            drop((indices, weights));
            embeddings
        })
    }
}

/// `_interpolation_axis_taps_weights` with `align_corners=False` and `padding="zeros"`: neighbours of each of `n` patches on
/// one axis, [n, 2], and their weights.
fn axis(t: &Tape, n: u64) -> (Tensor, Tensor) {
    let float = |taps, name| t.empty([n, taps], DType::F32, name);
    let marks = |name| t.empty([n, TAPS], DType::Bool, name);
    // Each step replaces the one before it.
    let steps = |taps, names: &[&'static str]| {
        let mut out = float(taps, names[0]);
        for name in &names[1..] {
            out = float(taps, name);
        }
        out
    };
    let index = float(1, "index as float");
    let source = steps(1, &["add a number", "mul by a number", "div", "place on the grid"]);
    let floor = float(1, "floor");
    let offsets = ids(t, &[TAPS], "arange");
    let raw = {
        let whole = ids(t, &[n], "floor as integers");
        let raw = ids(t, &[n, TAPS], "neighbours");
        drop(whole);
        raw
    };
    let taps = ids(t, &[n, TAPS], "clamp");
    let distance = {
        let mut distance = float(1, "sub");
        for name in ["sub", "abs"] {
            distance = float(TAPS, name);
        }
        distance
    };
    let mut weights = steps(TAPS, &["sub", "clamp"]);
    weights = {
        let on_grid = {
            let sides = [marks("not before the first"), marks("not behind the last")];
            let on_grid = marks("on the grid");
            drop(sides);
            on_grid
        };
        let masked = t.compute(&weights, DType::F32, "weights on the grid");
        drop(on_grid);
        masked
    };
    drop((index, source, floor, offsets, raw, distance));
    (taps, weights)
}

impl Projector {
    pub fn new(b: &Builder, c: &MuseGlimmerConfig) -> Self {
        let t = b.tape();
        Self {
            adapter: t.component(ADAPTER, Component::Connector, || Adapter {
                fc1: Linear::new(b, "fc1", c.merged, c.adapter, false),
                fc2: Linear::new(b, "fc2", c.adapter, c.adapter, false),
                activation: c.activation,
            }),
            vision_projection: t.component("model", Component::Connector, || {
                Linear::new(b, "vision_projection", c.adapter, c.text.hidden, false)
            }),
            perception_emb_norm: PowerRmsNorm::plain("perception_emb_norm"),
        }
    }

    /// [tokens, width of all patches of a token] → [tokens, text width].
    pub fn forward(&self, t: &Tape, x: &Tensor) -> Tensor {
        let mut h = t.component(ADAPTER, Component::Connector, || self.adapter.forward(t, x));
        t.component("model", Component::Connector, || {
            h = self.vision_projection.call(t, &h);
            self.perception_emb_norm.call(t, &h)
        })
    }
}

impl Adapter {
    fn forward(&self, t: &Tape, x: &Tensor) -> Tensor {
        let mut h = nn::activate(t, self.activation, self.fc1.call(t, x));
        h = self.fc2.call(t, &h);
        nn::activate(t, self.activation, h)
    }
}
