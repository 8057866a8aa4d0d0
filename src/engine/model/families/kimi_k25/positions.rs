//! Positions of patches: a square grid that is interpolated at each patch, and a sinusoid of each frame.

use crate::dtype::DType;
use crate::model::parts::qwen_vl::{Layout, interpolation_by};
use crate::nn::{Builder, ids};
use crate::tape::{Tape, Tensor};

/// `Kimi_K25VisionPositionEmbeddings`.
pub struct Positions {
    /// Learned grid, [side, side, width].
    grid: Tensor,
    /// Zeros, then a row for each frame, [frames + 1, width].
    of_frames: Tensor,
}

/// Neighbours along one axis.
const TAPS: u64 = 4;

impl Positions {
    pub fn new(b: &Builder, side: u64, frames: u64, width: u64) -> Self {
        let grid = b.weight("position_embeddings", [side, side, width]);
        let buffer = || b.buffer("time_position_embeddings", [frames + 1, width], DType::F32);
        Self {
            grid,
            of_frames: sinusoids(b.tape(), [frames, width], buffer),
        }
    }

    /// Runs `_init_weights` at the end of the tower's constructor.
    pub fn initialised(&self, t: &Tape) {
        let shape = *self.of_frames.shape();
        let again = || t.empty(shape, DType::F32, "time_position_embeddings again");
        drop(sinusoids(t, [shape[0] - 1, shape[1]], again));
    }

    /// Adds each patch's position to `embeddings` [patches, width]; `grid` is [images, 3].
    pub fn added(&self, t: &Tape, embeddings: &Tensor, layout: &Layout, grid: &Tensor) -> Tensor {
        let [side, width] = [self.grid.size(0), self.grid.size(2)];
        let table = t.view(&self.grid, [side * side, width]);
        let (indices, weights) = interpolation_by(t, layout, grid, (TAPS, axis));
        let mut positions = {
            let adapted = t.no_grad(|| t.to_dtype(&weights, table.dtype()));
            t.embedding_bag(&table, &indices, &adapted)
        };
        positions = {
            let of_frames = t.index(&self.of_frames, &[frame_index(t, layout)]);
            t.add(&positions, &of_frames)
        };
        t.add(embeddings, &t.to_dtype(&positions, embeddings.dtype()))
    }
}

/// `compute_pos_embed`: a sinusoid of each frame, [frames + 1, width], of which `last` is the result.
fn sinusoids(t: &Tape, [frames, width]: [u64; 2], last: impl FnOnce() -> Tensor) -> Tensor {
    let half = width.div_ceil(2);
    let part = |name| t.empty([half], DType::F32, name);
    let _position_ids = t.empty([frames], DType::F32, "arange");
    let _inv_freq = {
        let power = {
            let shares = {
                let steps = {
                    let _whole = ids(t, &[half], "arange");
                    part("arange as float")
                };
                let shares = part("div");
                drop(steps);
                shares
            };
            let power = part("pow");
            drop(ids(t, &[], "base"));
            drop(shares);
            power
        };
        let reciprocal = part("reciprocal");
        let inv_freq = part("mul");
        drop((reciprocal, power));
        inv_freq
    };
    let of_frames = |name| t.empty([frames, half], DType::F32, name);
    let _freqs = of_frames("outer");
    let _embedding = {
        let _waves = [of_frames("sin"), of_frames("cos")];
        t.empty([frames, 2 * half], DType::F32, "cat")
    };
    let _zeros = t.empty([1, width], DType::F32, "zeros");
    last()
}

/// `get_vision_frame_index` of images.
fn frame_index(t: &Tape, layout: &Layout) -> Tensor {
    let mut parts = Vec::new();
    let mut _frames = None;
    for image in layout.images() {
        _frames = Some({
            let _arange = ids(t, &[1], "arange");
            ids(t, &[1], "add a number")
        });
        parts.push(ids(t, &[image.patches()], "repeat_interleave"));
    }
    ids(t, &[layout.patches()], "cat")
}

/// `_interpolation_axis_taps_weights` with `mode="bicubic"`: neighbours of each of `n` patches on one axis, [n, 4], and
/// their weights.
fn axis(t: &Tape, n: u64) -> (Tensor, Tensor) {
    let float = |taps, name| t.empty([n, taps], DType::F32, name);
    // Each step replaces the one before it.
    let steps = |taps, names: &[&'static str]| {
        let mut out = float(taps, names[0]);
        for name in &names[1..] {
            out = float(taps, name);
        }
        out
    };
    let _index = float(1, "index as float");
    let _source = steps(1, &["add a number", "mul by a number", "div", "sub a number"]);
    let _floor = float(1, "floor");
    let _offsets = ids(t, &[TAPS], "arange");
    let _raw = {
        let _whole = ids(t, &[n], "floor as integers");
        ids(t, &[n, TAPS], "neighbours")
    };
    let taps = ids(t, &[n, TAPS], "clamp");
    let _distance = {
        let mut distance = float(1, "sub");
        for name in ["sub", "abs"] {
            distance = float(TAPS, name);
        }
        distance
    };
    let _near = steps(TAPS, &["mul by a number", "sub a number", "mul", "mul", "add a number"]);
    let _far = steps(
        TAPS,
        &[
            "mul by a number",
            "sub a number",
            "mul",
            "add a number",
            "mul",
            "sub a number",
        ],
    );
    let weights = {
        let _is_near = t.empty([n, TAPS], DType::Bool, "le");
        float(TAPS, "where")
    };
    (taps, weights)
}
