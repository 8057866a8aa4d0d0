//! Workspaces of cuDNN's convolutions, as recorded on an H200 with cuDNN 9.
//!
//! cuDNN's fast kernels read channels last. Given PyTorch's layout, they copy image, weight and
//! output into a workspace, in half precision with channels padded to groups of eight. Which kernel
//! is taken is cuDNN's own choice; the conditions here are those under which each was seen.

use super::super::tensor::Tensor;
use crate::dtype::DType;

/// Largest side of a plane for which bf16 kernels that copy were seen; from 448 on cuDNN takes
/// others, which need no workspace.
const LARGEST_BF16_SIDE: u64 = 384;

/// Least output positions for which fp32 kernels that copy were seen.
const LEAST_FP32_POSITIONS: u64 = 1458;

/// Least output positions for which the gradient of a weight was seen summed in several parts, with
/// a lock for each tile.
const LOCKED_FROM: u64 = 512;

/// Least output positions for which those parts were three whole fp32 copies.
const COPIED_FROM: u64 = 4096;

/// Channels that half-precision kernels read together.
const GROUP: u64 = 8;

/// Channels that fp32 kernels for volumes read together.
const FP32_GROUP: u64 = 4;

const ALIGNMENT: u64 = 128;

/// Bytes for the convolution of `x` [n, c, spatial…] to `out` [n, o, spatial…], if any.
pub(super) fn forward(x: &Tensor, w: &Tensor, out: &Tensor) -> Option<u64> {
    let plane = x.dim() == 4;
    match x.dtype() {
        DType::F32 if !plane => {
            // patches that are whole images are the rows of a matrix
            Some(if spread(out) {
                16 + 4 * (padded(x, FP32_GROUP) + padded(w, FP32_GROUP))
            } else {
                copies(x, w, out, 1)
            })
        }
        _ if !plane => None,
        DType::F32 => (positions(out) >= LEAST_FP32_POSITIONS).then(|| copies(x, w, out, 1)),
        _ if x.last() <= LARGEST_BF16_SIDE => Some(copies(x, w, out, GROUP)),
        DType::F16 => Some(copies(x, w, out, 1)),
        _ => None,
    }
}

/// Bytes for the gradient of `w` from `x` and the gradient `g` of the output, if any.
pub(super) fn weight_gradient(x: &Tensor, w: &Tensor, g: &Tensor) -> Option<u64> {
    match (x.dtype(), x.dim()) {
        (DType::F32, 4) => {
            (positions(g) >= LEAST_FP32_POSITIONS).then(|| copies(x, w, g, 1) + 4 * w.numel() + ALIGNMENT)
        }
        (DType::F32, _) => spread(g).then(|| copies(x, w, g, FP32_GROUP) + fp32_volume_sums(w)),
        (_, 4) => Some(copies(x, w, g, GROUP) + ALIGNMENT + partial_sums(w, g)),
        _ => Some(copies(x, w, g, GROUP) + volume_sums(w)),
    }
}

/// Output positions of all images.
fn positions(out: &Tensor) -> u64 {
    out.numel() / out.size(1)
}

/// Whether images have more than one output position.
fn spread(out: &Tensor) -> bool {
    positions(out) != out.size(0)
}

/// Copies of all operands with channels last and padded to a multiple of `group`; an output of one
/// position for each image is the same in both layouts.
fn copies(x: &Tensor, w: &Tensor, out: &Tensor, group: u64) -> u64 {
    let moved = if spread(out) { out.numel() } else { 0 };
    16 + x.dtype().width() * (padded(x, group) + padded(w, group) + moved)
}

fn padded(t: &Tensor, group: u64) -> u64 {
    t.numel() / t.size(1) * t.size(1).next_multiple_of(group)
}

fn partial_sums(w: &Tensor, g: &Tensor) -> u64 {
    match positions(g) {
        COPIED_FROM.. => 3 * 4 * padded(w, GROUP),
        LOCKED_FROM.. => 4 * tiles(w, 64),
        _ => 0,
    }
}

/// Kernels for volumes sum in place where the weight's rows fill whole tiles, else in fp32.
fn volume_sums(w: &Tensor) -> u64 {
    let row = padded(w, GROUP) / w.size(0);
    if row.is_multiple_of(128) {
        0
    } else {
        4 * padded(w, GROUP) + 32 * tiles(w, 128) - 1
    }
}

/// fp32 kernels for volumes sum beside the gradient, with what was recorded for each tile and in all.
fn fp32_volume_sums(w: &Tensor) -> u64 {
    let elements = padded(w, FP32_GROUP);
    let row = elements / w.size(0);
    4 * elements + 32 * w.size(0).div_ceil(128) * row.div_ceil(128) + 159
}

/// Square tiles that cover a weight of [o, padded c × kernel].
fn tiles(w: &Tensor, side: u64) -> u64 {
    let row = padded(w, GROUP) / w.size(0);
    w.size(0).div_ceil(side) * row.div_ceil(side)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tape::{Gpu, Tape};

    /// Images, side, patch and width of a tower, with the type; expects (forward, gradient).
    fn plane(n: u64, side: u64, patch: u64, width: u64, dtype: DType) -> (Option<u64>, Option<u64>) {
        let t = Tape::new(Gpu::H200);
        let x = t.empty([n, 3, side, side], dtype, "x");
        let w = t.empty([width, 3, patch, patch], dtype, "w");
        let out = t.empty([n, width, side / patch, side / patch], dtype, "out");
        (forward(&x, &w, &out), weight_gradient(&x, &w, &out))
    }

    /// CLIP-L, ViT-L, BLIP-2, PaliGemma and Llama-3.2-Vision, from their allocator traces.
    #[test]
    fn planes_take_what_was_recorded() {
        use DType::{Bf16, F16, F32};
        assert_eq!(plane(8, 224, 14, 1024, Bf16), (Some(13_828_112), Some(13_829_840)));
        assert_eq!(plane(16, 224, 14, 1024, Bf16), (Some(24_444_944), Some(43_712_656)));
        assert_eq!(plane(8, 224, 16, 1024, F16), (Some(13_828_112), Some(13_830_288)));
        assert_eq!(plane(2, 224, 14, 1408, Bf16), (Some(7_462_928), Some(7_465_256)));
        assert_eq!(plane(1, 224, 14, 1152, Bf16), (Some(5_005_328), Some(5_005_456)));
        assert_eq!(plane(4, 448, 14, 1280, Bf16), (None, Some(51_429_520)));
        assert_eq!(plane(4, 448, 14, 1280, F16).0, Some(16_807_952));
        assert_eq!(plane(8, 224, 14, 1024, F32), (Some(15_613_968), Some(18_022_544)));
        assert_eq!(plane(1, 336, 14, 1024, F32).0, None);
        assert_eq!(plane(4, 224, 14, 1408, F32).0, None);
        assert_eq!(plane(2, 384, 14, 1152, F32).0, Some(12_966_928));
    }

    /// VideoMAE-B, Qwen3-VL and Qwen2-VL, from their allocator traces.
    #[test]
    fn volumes_take_what_was_recorded() {
        let t = Tape::new(Gpu::H200);
        let gradient = |x: [u64; 5], w: [u64; 5], out: [u64; 5]| {
            let [x, w, out] = [x, w, out].map(|shape| t.empty(shape, DType::Bf16, "operand"));
            assert_eq!(forward(&x, &w, &out), None);
            weight_gradient(&x, &w, &out)
        };
        let videomae = gradient([2, 3, 16, 224, 224], [768, 3, 2, 16, 16], [2, 768, 8, 14, 14]);
        assert_eq!(videomae, Some(36_798_480));
        let fp32 = |videos| {
            let shapes = [[videos, 3, 16, 224, 224], [768, 3, 2, 16, 16], [videos, 768, 8, 14, 14]];
            let [x, w, out] = shapes.map(|shape| t.empty(shape, DType::F32, "operand"));
            [forward(&x, &w, &out), weight_gradient(&x, &w, &out)]
        };
        assert_eq!(fp32(2), [Some(31_981_584), Some(47_910_063)]);
        assert_eq!(fp32(4), [Some(57_671_696), Some(83_233_967)]);
        let patches = |n: u64| {
            let shapes = [[n, 3, 2, 14, 14], [1280, 3, 2, 14, 14], [n, 1280, 1, 1, 1]];
            let [x, w, out] = shapes.map(|shape| t.empty(shape, DType::F32, "operand"));
            forward(&x, &w, &out)
        };
        assert_eq!([256, 6144].map(patches), [Some(7_225_360), Some(34_922_512)]);
        let qwen3 = gradient([576, 3, 2, 16, 16], [1024, 3, 2, 16, 16], [576, 1024, 1, 1, 1]);
        assert_eq!(qwen3, Some(13_107_216));
        let qwen2 = gradient([768, 3, 2, 14, 14], [1280, 3, 2, 14, 14], [768, 1280, 1, 1, 1]);
        assert_eq!(qwen2, Some(28_909_391));
    }
}
