//! `SamVisionLayer`: attention within windows or over the image, and an MLP.

use super::attention::SelfAttention;
use super::config::SamVisionConfig;
use crate::model::parts::text::{MlpForm, PlainMlp};
use crate::nn::{Builder, LayerNorm};
use crate::setup::Attention;
use crate::tape::{Tape, Tensor};

/// `SamMLPBlock`.
const MLP: MlpForm = MlpForm {
    names: ["lin1", "lin2"],
    bias: true,
};

/// A block.
pub(super) struct Block {
    layer_norm1: LayerNorm,
    attn: SelfAttention,
    layer_norm2: LayerNorm,
    mlp: PlainMlp,
    /// Patches a side of its windows; 0 if it sees whole images.
    window: u64,
}

impl Block {
    pub fn new(b: &Builder, c: &SamVisionConfig, index: usize) -> Self {
        let window = c.window_of(index);
        Self {
            layer_norm1: LayerNorm::new(b, "layer_norm1", c.hidden),
            attn: b.tape().scope("attn", || SelfAttention::new(b, c, window)),
            layer_norm2: LayerNorm::new(b, "layer_norm2", c.hidden),
            mlp: b.tape().scope("mlp", || {
                PlainMlp::new(b, MLP, [c.hidden, c.intermediate], c.activation)
            }),
            window,
        }
    }

    /// [images, rows, columns, width] → the same.
    pub fn forward(&self, t: &Tape, implementation: Attention, x: &Tensor) -> Tensor {
        let mut h = self.layer_norm1.call(t, x);
        let side = x.size(1);
        if self.window > 0 {
            h = partition(t, &h, self.window);
        }
        let (attended, _weights) = self.attn.call(t, implementation, &h);
        h = attended;
        if self.window > 0 {
            h = join(t, &h, [self.window, side]);
        }
        h = t.add(x, &h);
        let normed = self.layer_norm2.call(t, &h);
        let fed = self.mlp.call(t, &normed);
        t.add(&h, &fed)
    }
}

/// `window_partition`: pads [images, side, side, width] to whole windows, and makes each window an image.
fn partition(t: &Tape, x: &Tensor, window: u64) -> Tensor {
    let [images, side, width] = [x.size(0), x.size(1), x.last()];
    let missing = side.next_multiple_of(window) - side;
    let padded = t.pad_ends(x, &[(1, missing), (2, missing)]);
    let of_each = (side + missing) / window;
    let cut = t.reshape(&padded, [images, of_each, window, of_each, window, width]);
    let windows = t.contiguous(&t.permute(&cut, &[0, 1, 3, 2, 4, 5]));
    t.reshape(&windows, [images * of_each * of_each, window, window, width])
}

/// `window_unpartition`: joins windows to images, and cuts their padding off.
fn join(t: &Tape, windows: &Tensor, [window, side]: [u64; 2]) -> Tensor {
    let padded = side.next_multiple_of(window);
    let (of_each, width) = (padded / window, windows.last());
    let images = windows.size(0) / (of_each * of_each);
    let cut = t.reshape(windows, [images, of_each, of_each, window, window, width]);
    let whole = t.contiguous(&t.permute(&cut, &[0, 1, 3, 2, 4, 5]));
    let whole = t.reshape(&whole, [images, padded, padded, width]);
    t.contiguous(&t.slice(&t.slice(&whole, 1, side), 2, side))
}
