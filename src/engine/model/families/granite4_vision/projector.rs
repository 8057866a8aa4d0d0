//! Granite 4 Vision's projectors (`transformers/models/granite4_vision/modeling_granite4_vision.py`).

use super::config::Granite4VisionConfig;
use crate::model::families::blip2::QFormer;
use crate::model::forward::Run;
use crate::nn::{Builder, LayerNorm, Linear};
use crate::tape::{Tape, Tensor};

/// `Granite4VisionWindowQFormerDownsampler`.
pub struct Projector {
    qformer: QFormer,
    norm: LayerNorm,
    /// [1, queries of a window, width].
    query: Tensor,
    /// [1, patches of a window, width].
    image_positions: Tensor,
    out_linear: Linear,
    /// Patches along a side.
    side: u64,
    /// Queries along a side of a window, and patches along it.
    window: [u64; 2],
    /// True if it takes a corner of each square of four patches, false if it averages them.
    takes_corners: bool,
    dropout: f64,
}

impl Projector {
    pub fn new(b: &Builder, c: &Granite4VisionConfig, takes_corners: bool) -> Self {
        let width = c.vision.shape().hidden;
        let [queries, patches] = c.window;
        Self {
            qformer: b.tape().scope("qformer", || QFormer::new(b, &c.qformer)),
            norm: LayerNorm::new(b, "norm", width),
            query: b.weight("query", [1, queries * queries, width]),
            image_positions: b.weight("image_positions", [1, patches * patches, width]),
            out_linear: Linear::new(b, "out_linear", width, c.text.hidden, true),
            side: c.vision.grid().side(),
            window: c.window,
            takes_corners,
            dropout: c.projector_dropout,
        }
    }

    /// Features of the patches [tiles, patches, width] → [tiles, queries, text width].
    pub fn forward(&self, t: &Tape, run: &Run, x: &Tensor) -> Tensor {
        let [queries, patches] = self.window;
        let windows = self.side / patches;
        let features = self.norm.call(t, x);
        let windowed = raster(t, &features, self.side, patches);
        let downsampled = match self.takes_corners {
            true => self.corners(t, &features),
            false => self.averages(t, &features, windows * queries),
        };
        let of_windows = raster(t, &downsampled, windows * queries, queries);
        let query_embeds = t.add(&self.query, &of_windows);
        let encoder_embeds = t.dropout(&t.add(&windowed, &self.image_positions), self.dropout);
        let out_windowed = self.qformer.call(t, run, &query_embeds, &encoder_embeds, None);
        let mut out = unwindowed(t, &out_windowed, windows, queries);
        out = t.dropout(&out, self.dropout);
        let projected = self.out_linear.call(t, &out);
        drop((features, windowed, downsampled, of_windows));
        drop((query_embeds, encoder_embeds, out_windowed));
        projected
    }

    /// `spatial_offset_downsample`.
    fn corners(&self, t: &Tape, x: &Tensor) -> Tensor {
        let [tiles, half, width] = [x.size(0), self.side / 2, x.size(2)];
        let grid = t.view(x, [tiles, self.side, self.side, width]);
        let squares = t.view(&grid, [tiles, half, 2, half, 2, width]);
        let corner = t.select(&t.select(&squares, 2), 3);
        t.reshape(&corner, [tiles, half * half, width])
    }

    /// `interpolate_downsample` to `side` features a side.
    fn averages(&self, t: &Tape, x: &Tensor, side: u64) -> Tensor {
        let [tiles, width] = [x.size(0), x.size(2)];
        let planes = t.permute(&t.view(x, [tiles, self.side, self.side, width]), &[0, 3, 1, 2]);
        let pooled = t.adaptive_avg_pool2d(&planes, [side; 2]);
        t.reshape(&t.permute(&pooled, &[0, 2, 3, 1]), [tiles, side * side, width])
    }
}

/// `_windowed_raster`: [tiles, side², width] → [tiles × windows, window², width].
fn raster(t: &Tape, x: &Tensor, side: u64, window: u64) -> Tensor {
    let [tiles, windows, width] = [x.size(0), side / window, x.size(2)];
    let mut squares = t.view(x, [tiles, side, side, width]);
    squares = t.view(&squares, [tiles, windows, window, windows, window, width]);
    squares = t.transpose(&squares, 2, 3);
    let of_windows = t.reshape(&squares, [tiles * windows * windows, window, window, width]);
    t.reshape(&of_windows, [tiles * windows * windows, window * window, width])
}

/// `_unwindowed_raster`: [tiles × windows², window², width] → [tiles, side², width].
fn unwindowed(t: &Tape, x: &Tensor, windows: u64, window: u64) -> Tensor {
    let [tiles, side, width] = [x.size(0) / (windows * windows), windows * window, x.size(2)];
    let mut squares = t.view(x, [tiles, windows, windows, window, window, width]);
    squares = t.contiguous(&t.transpose(&squares, 2, 3));
    t.view(
        &t.view(&squares, [tiles, side, side, width]),
        [tiles, side * side, width],
    )
}
