//! PaddleOCR-VL's vision tower (`transformers/models/paddleocr_vl/modeling_paddleocr_vl.py`).

use std::cell::OnceCell;
use std::rc::Rc;

use super::config::PaddleVisionConfig;
use super::projector::Projector;
use crate::dtype::DType;
use crate::model::forward::Run;
use crate::model::parts::packed_vision::{PackedBlocks, PatchConv};
use crate::model::parts::qwen_vl::{
    LayerPositions, Layout, Segments, VisionIds, VisionOutput, VisionRotary, VisionTower, interpolation,
};
use crate::nn::{Builder, Embedding, LayerNorm, MropeLayout};
use crate::tape::{Component, Tape, Tensor};

/// `PaddleOCRVisionModel` and the projector after it.
pub struct PaddleVision {
    patch_embedding: PatchConv,
    position_embedding: Embedding,
    _position_ids: Tensor,
    blocks: PackedBlocks,
    rotary_pos_emb: VisionRotary,
    post_layernorm: LayerNorm,
    /// The projector, which is made after the language model.
    projector: Rc<OnceCell<Projector>>,
}

impl PaddleVision {
    pub fn new(b: &Builder, c: &PaddleVisionConfig, projector: Rc<OnceCell<Projector>>) -> Self {
        let (t, tower) = (b.tape(), &c.tower);
        t.scope("vision_model", || {
            let (patch_embedding, position_embedding, _position_ids) = t.scope("embeddings", || {
                let patches = PatchConv::new(b, tower.patches.channels, tower.patches.patch, tower.shape.hidden);
                let positions = Embedding::new(b, "position_embedding", c.positions, tower.shape.hidden);
                (
                    patches,
                    positions,
                    b.buffer("position_ids", [1, c.positions], DType::I64),
                )
            });
            let blocks = PackedBlocks::new(b, tower);
            let rotary_pos_emb = VisionRotary::named(b, "encoder.rotary_pos_emb", tower.shape.head_dim(), false);
            let made = Self {
                patch_embedding,
                position_embedding,
                _position_ids,
                blocks,
                rotary_pos_emb,
                post_layernorm: LayerNorm::new(b, "post_layernorm", tower.shape.hidden),
                projector,
            };
            made.rotary_pos_emb.initialised(t);
            made
        })
    }

    /// `PaddleOCRVisionEmbeddings`: [patches, elements of a patch] → [patches, width].
    fn embed(&self, t: &Tape, pixels: &Tensor, layout: &Layout, grid: &Tensor) -> Tensor {
        let patches = self.patch_embedding.of_patches(t, pixels);
        let patches = t.view(&patches, [patches.size(0), patches.size(1)]);
        let (indices, weights) = interpolation(t, layout, grid);
        let positions = {
            let neighbours = self.position_embedding.call(t, &indices);
            let weighted = t.mul(&neighbours, &t.unsqueeze(&weights, 2));
            drop(neighbours);
            t.sum_dim(&weighted, 1)
        };
        let narrowed = t.to_dtype(&positions, patches.dtype());
        t.add(&patches, &narrowed)
    }

    /// `PaddleOCRVisionEncoder`: positions count patches, not tokens.
    fn encode(&self, t: &Tape, run: &Run, embedded: Tensor, layout: &Layout, grid: &Tensor) -> Tensor {
        let mut unmerged = layout.clone();
        unmerged.merge = 1;
        let VisionIds {
            position_ids,
            cu_seqlens,
        } = VisionIds::new(t, &unmerged, grid);
        let segments = Rc::new(Segments::of_frames(layout, cu_seqlens));
        let positions = Rc::new(self.rotary_pos_emb.call(t, &position_ids));
        let shared = (segments, Some(positions.clone()));
        let (h, segments) = self.blocks.forward(t, run, embedded, shared, |_, h, _| h);
        drop((position_ids, positions, segments));
        h
    }
}

impl VisionTower for PaddleVision {
    const MROPE: MropeLayout = MropeLayout::Sections;
    const OUTPUT_IS_KEPT: bool = false;
    const LAYERS_GET: LayerPositions = LayerPositions::Never;
    const TAKES_VIDEOS: bool = false;

    fn forward(&self, t: &Tape, run: &Run, pixels: &Tensor, layout: &Layout, grid: &Tensor) -> VisionOutput {
        let last = t.scope("vision_model", || {
            let embedded = t.scope("embeddings", || self.embed(t, pixels, layout, grid));
            let h = self.encode(t, run, embedded.clone(), layout, grid);
            let last = self.post_layernorm.call(t, &h);
            drop((h, embedded));
            last
        });
        let projector = self.projector.get().expect("it is made with the model");
        let merged = t.component("model.projector", Component::Connector, || {
            projector.forward(t, &last, layout)
        });
        VisionOutput {
            last,
            merged,
            deepstack: Vec::new(),
        }
    }
}
