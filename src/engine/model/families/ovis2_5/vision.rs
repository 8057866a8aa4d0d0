//! Ovis2.5's vision tower (`Siglip2NavitModel` of `modeling_ovis2_5.py`).

use std::rc::Rc;

use super::config::Ovis25Config;
use crate::dtype::DType;
use crate::model::forward::Run;
use crate::model::parts::packed_vision::{PackedBlocks, PatchConv};
use crate::model::parts::qwen_vl::{Layout, Positions, Segments, cu_seqlens, windows};
use crate::nn::{Builder, Embedding, LayerNorm};
use crate::tape::{Tape, Tensor};

/// `Siglip2NavitModel`.
pub struct Vision {
    patch_embedding: PatchConv,
    position_embedding: Embedding,
    blocks: PackedBlocks,
    inv_freq: Tensor,
    post_layernorm: LayerNorm,
    side: u64,
    window: u64,
}

impl Vision {
    pub fn new(b: &Builder, c: &Ovis25Config) -> Self {
        let (t, v) = (b.tape(), &c.vision);
        let hidden = v.shape.hidden;
        let (patch_embedding, position_embedding) = t.scope("embeddings", || {
            (
                PatchConv::new(b, v.patches.channels, v.patches.patch, hidden),
                Embedding::new(b, "position_embedding", c.positions_side * c.positions_side, hidden),
            )
        });
        let blocks = PackedBlocks::new(b, v);
        let pairs = (v.shape.head_dim() / 2).div_ceil(2);
        let inv_freq = t.scope("encoder.rotary_pos_emb", || {
            crate::nn::inverse_frequencies(t, pairs, || b.buffer("inv_freq", [pairs], DType::F32))
        });
        Self {
            patch_embedding,
            position_embedding,
            blocks,
            inv_freq,
            post_layernorm: LayerNorm::new(b, "post_layernorm", hidden),
            side: c.positions_side,
            window: c.window,
        }
    }

    /// Patches [patches, elements of a patch] → the output of the last block, [patches, width].
    ///
    /// `output_hidden_states` keeps what each block makes, in the order of the patches, until the last is taken.
    pub fn forward(&self, t: &Tape, run: &Run, pixels: &Tensor, (layout, grid): (&Layout, &Tensor)) -> Tensor {
        let embedded = t.scope("embeddings", || self.embed(t, run, pixels, layout));
        let (hidden, states) = self.encode(t, run, embedded.clone(), (layout, grid));
        drop(embedded);
        let _last = self.post_layernorm.call(t, &hidden);
        drop(hidden);
        let mut states = states;
        states.pop().expect("a tower has blocks")
    }

    fn embed(&self, t: &Tape, run: &Run, pixels: &Tensor, layout: &Layout) -> Tensor {
        let patches = run.embedded(t, self.patch_embedding.of_patches(t, pixels));
        let patches = t.view(&patches, [patches.size(0), patches.size(1)]);
        let mut positions = t.compute(&patches, patches.dtype(), "zeros_like");
        let weight = self.position_embedding.weight();
        let width = weight.last();
        let table = t.unsqueeze(&t.view(weight, [self.side, self.side, width]), 0);
        let table = t.permute(&table, &[0, 3, 1, 2]);
        let mut _of_image = None;
        for image in layout.images() {
            let [rows, columns, m] = [image.rows, image.columns, layout.merge];
            let mut pe = t.interpolate_bicubic(&table, [rows, columns]);
            drop(_of_image.take());
            pe = t.reshape(&t.permute(&pe, &[0, 2, 3, 1]), [1, rows * columns, width]);
            pe = t.repeat_rows(&t.select(&pe, 0), image.frames);
            pe = t.view(&pe, [image.frames, rows / m, m, columns / m, m, width]);
            pe = t.reshape(&t.permute(&pe, &[0, 1, 3, 2, 4, 5]), [image.patches(), width]);
            positions = t.set_slice(positions, &pe);
            _of_image = Some(pe);
        }
        t.add(&patches, &positions)
    }

    /// `Siglip2Encoder.forward`: the last block's output, and those of all blocks, each in the order of the patches.
    fn encode(&self, t: &Tape, run: &Run, h: Tensor, (layout, grid): (&Layout, &Tensor)) -> (Tensor, Vec<Tensor>) {
        let unit = layout.merge * layout.merge;
        let patches = layout.patches();
        // The order of windows, and back, is on the host.
        let reordered = |x: &Tensor| {
            let tokens = t.view(x, [patches / unit, unit, x.last()]);
            let ordered = t.index_from_host(&tokens, [patches / unit]);
            t.view(&ordered, [patches, x.last()])
        };
        let mut angles = self.angles(t, layout);
        let _windows = windows(t, layout, self.window);
        let h = reordered(&h);
        angles = reordered(&angles);
        let both = t.cat(&[&angles, &angles], 1);
        let positions = Rc::new(Positions {
            cos: t.compute(&both, DType::F32, "cos"),
            sin: t.compute(&both, DType::F32, "sin"),
        });
        let segments = Rc::new(Segments::of_frames(layout, cu_seqlens(t, layout, grid)).sliced());
        let mut states = Vec::new();
        let shared = (segments, Some(positions.clone()));
        let (h, segments) = self.blocks.forward(t, run, h, shared, |_, h, _| {
            states.push(reordered(&h));
            h
        });
        let last = reordered(&h);
        drop((h, segments, both, angles, positions));
        (last, states)
    }

    /// `rot_pos_emb`: angles of the rows and columns of each patch, [patches, half a head].
    fn angles(&self, t: &Tape, layout: &Layout) -> Tensor {
        let sides = layout.images().iter().map(|image| image.rows.max(image.columns));
        let [most, pairs] = [sides.max().unwrap_or(1), self.inv_freq.size(0)];
        let angles = {
            let steps = t.empty([most], DType::F32, "arange");
            let angles = t.empty([most, pairs], DType::F32, "outer");
            drop(steps);
            angles
        };
        let of_patches = t.index_from_host(&angles, [layout.patches(), 2]);
        t.view(&of_patches, [layout.patches(), 2 * pairs])
    }
}
