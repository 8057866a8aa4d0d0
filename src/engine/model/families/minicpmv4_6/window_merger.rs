//! Merger of windows within MiniCPM-V 4.6's tower (`transformers/models/minicpmv4_6/modeling_minicpmv4_6.py`).

use crate::model::config::Activation;
use crate::model::parts::packed_vision::{PackedAttention, PackedVisionConfig};
use crate::model::parts::qwen_vl::{Layout, windows};
use crate::nn::{self, Builder, LayerNorm, Linear, ids};
use crate::setup::Attention;
use crate::tape::{Tape, Tensor};

/// Patches along each side of a window.
const SIDE: u64 = 2;

/// `MiniCPMV4_6ViTWindowAttentionMerger`.
pub struct WindowMerger {
    self_attn: PackedAttention,
    layer_norm1: LayerNorm,
    pre_norm: LayerNorm,
    linear_1: Linear,
    linear_2: Linear,
}

impl WindowMerger {
    pub fn new(b: &Builder, c: &PackedVisionConfig) -> Self {
        let (hidden, merged) = (c.shape.hidden, SIDE * SIDE);
        let inner = c.shape.intermediate * merged;
        Self {
            self_attn: b.tape().scope("self_attn", || {
                PackedAttention::new(b, hidden, c.shape.heads, c.attention_dropout)
            }),
            layer_norm1: LayerNorm::new(b, "layer_norm1", hidden),
            pre_norm: LayerNorm::new(b, "pre_norm", hidden * merged),
            linear_1: Linear::new(b, "linear_1", hidden * merged, inner, true),
            linear_2: Linear::new(b, "linear_2", inner, hidden, true),
        }
    }

    /// [1, patches, hidden] → [1, patches ÷ 4, hidden]; all images are alike.
    pub fn forward(&self, t: &Tape, attn: Attention, x: &Tensor, layout: &Layout, sizes: &Tensor) -> Tensor {
        let normed = self.layer_norm1.call(t, x);
        let segments = {
            let _grid = t.empty([sizes.size(0), 3], sizes.dtype(), "pad");
            let mut unmerged = layout.clone();
            unmerged.merge = 1;
            windows(t, &unmerged, SIDE)
        };
        let patches = x.size(1);
        let window_index = ids(t, &[patches], "window index");
        let ordered = by_index(t, &normed, &window_index);
        drop(normed);
        let attended = self.self_attn.call(t, attn, ordered, &segments);
        let order = {
            let [values, order] = t.sort_ids(&window_index);
            drop(values);
            order
        };
        let restored = by_index(t, &attended, &order);
        drop((attended, order));
        let h = t.add(x, &restored);
        drop(restored);
        let out = self.merge(t, h, layout);
        drop((window_index, segments));
        out
    }

    /// Joins windows of [1, patches, hidden], and adds their means.
    fn merge(&self, t: &Tape, h: Tensor, layout: &Layout) -> Tensor {
        let (images, hidden) = (layout.images().len() as u64, h.last());
        let [rows, columns] = [layout.images()[0].rows, layout.images()[0].columns].map(|n| n / SIDE);
        let windows = t.view(&h, [images, rows, SIDE, columns, SIDE, hidden]);
        let windows = t.permute(&windows, &[0, 1, 3, 2, 4, 5]);
        let tokens = images * rows * columns;
        let flat = t.reshape(&windows, [tokens, SIDE * SIDE * hidden]);
        let residual = {
            let each = t.reshape(&windows, [tokens, SIDE * SIDE, hidden]);
            t.mean(&each, 1)
        };
        let mut x = self.pre_norm.call(t, &flat);
        x = self.linear_1.call(t, &x);
        x = nn::activate(t, Activation::GeluTanh, x);
        x = self.linear_2.call(t, &x);
        let sum = t.add(&x, &residual);
        drop((h, windows, flat, residual, x));
        t.unsqueeze(&sum, 0)
    }
}

/// `x[:, index, :]` of a first dimension of extent 1.
fn by_index(t: &Tape, x: &Tensor, index: &Tensor) -> Tensor {
    let rows = t.view(x, [x.size(1), x.size(2)]);
    let ordered = t.index(&rows, std::slice::from_ref(index));
    t.unsqueeze(&ordered, 0)
}
