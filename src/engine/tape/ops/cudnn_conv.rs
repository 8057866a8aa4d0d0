//! Workspaces of cuDNN's convolutions, as measured on an H200 with cuDNN 9.19 over 17,180 shapes
//! (`tests/data/truth/convolutions.jsonl.gz`, held by `tests/predictions/convolutions.rs`).
//!
//! cuDNN's fast kernels read channels last. Given PyTorch's layout, they copy image, weight and output into a
//! workspace, with channels padded to whole groups; gradients of a weight may be summed there in parts. cuDNN chooses
//! the kernel: each bound here lies between measured shapes on both sides of it.

use super::super::tensor::Tensor;
use crate::dtype::DType;

/// Channels that kernels read together in fp32 and in half precision.
const FP32_GROUP: u64 = 4;
const HALF_GROUP: u64 = 8;

/// Smallest side of images that half-precision kernels read in place; 392 is still copied.
const LEAST_DIRECT_SIDE: u64 = 400;

/// Most pixels of all images that half-precision kernels copy: 12,976,128 are, 13,547,520 are not.
const MOST_COPIED_PIXELS: u64 = 13_400_000;

/// Fewest elements of all images that fp32 kernels copy: 677,376 are, 602,112 are not.
const LEAST_COPIED_ELEMENTS: u64 = 677_376;

/// Fewest elements of all patches that are whole images for which fp32 kernels copy: 32,928 are, 30,720 are not.
const LEAST_ROWS: u64 = 1 << 15;

/// Fewest output channels measured.
const LEAST_MEASURED: u64 = 192;

/// Fewest output channels of which kernels take more at once; 896 are too few.
const WIDE: u64 = 1024;

/// Fewest output channels for which kernels sum the gradient of a weight of 14 × 14 patches as for wider weights (768
/// are, 512 are not), and for which fp32 kernels do so at once (1,280 are, 1,152 are not).
const BROAD: u64 = 576;
const BROADEST: u64 = 1280;

/// Most fp32 patches of 14 × 14 for which the kernel that pads channels is always taken (442 are too many), and fewest
/// elements of the output for which it may be taken again (2,064,384 are, 1,966,080 are not).
const MOST_GROUPED: u64 = 440;
const GROUPED_FROM: u64 = 2_000_000;

/// Most images that fp32 kernels take without padding.
const MOST_UNPADDED_IMAGES: u64 = 48;

/// Fewest output positions for which the gradient of a weight is summed in several whole copies (2,738 are, 2,704 are
/// not), and for which it is summed in one again (61,200 are, 60,800 are not).
const SUMMED_FROM: u64 = 2_738;
const SUMMED_ONCE_FROM: u64 = 61_200;

/// Fewest positions of volumes for which half-precision kernels sum the gradient of a weight beside it.
const VOLUMES_SUMMED_FROM: u64 = 17_280;

/// Bytes for locks and other state of kernels for planes and for volumes.
const PLANE_LOCKS: u64 = 128;
const VOLUME_LOCKS: u64 = 159;

/// Bytes for the convolution of `x` [n, c, spatial…] to `out` [n, o, spatial…], if any.
pub(super) fn forward(x: &Tensor, w: &Tensor, out: &Tensor) -> Option<u64> {
    if w.size(0) < LEAST_MEASURED {
        return Some(unmeasured(x, w, out));
    }
    let (images, side, all) = (x.size(0), x.last(), out.numel());
    let of_each = positions(out) / images;
    let (group, moved) = match (x.dtype(), x.dim()) {
        (DType::F32, 4) if images > MOST_UNPADDED_IMAGES => (FP32_GROUP, if images > 192 { 0 } else { all }),
        (DType::F32, 4) if w.size(0) >= WIDE && x.numel() >= LEAST_COPIED_ELEMENTS => (1, all),
        (DType::F32, 5) if of_each.is_multiple_of(4) => (FP32_GROUP, 0),
        // Patches that are whole images are the rows of a matrix.
        (DType::F32, 5) if of_each > 1 || x.numel() >= LEAST_ROWS => (1, spread(out)),
        (DType::F32, _) => return None,
        (_, 4) if side < LEAST_DIRECT_SIDE => {
            if images * side * side >= MOST_COPIED_PIXELS {
                // Offset of each element of a patch.
                return Some(4 * row(w, 1));
            }
            if w.size(0) < 512 {
                return None;
            }
            (HALF_GROUP, all)
        }
        (DType::F16, 4) => (1, all),
        _ => {
            let few = match (of_each, w.last()) {
                (1, 14) => 60,
                (1, _) => 48,
                _ => 96,
            };
            if x.dim() == 4 || positions(out) >= few {
                return None;
            }
            (HALF_GROUP, spread(out))
        }
    };
    Some(copies(x, w, group, moved))
}

/// Bytes for the gradient of `w` from `x` and the gradient `g` of the output, if any.
pub(super) fn weight_gradient(x: &Tensor, w: &Tensor, g: &Tensor) -> Option<u64> {
    if w.size(0) < LEAST_MEASURED {
        return Some(unmeasured(x, w, g));
    }
    let (images, side, positions) = (x.size(0), x.last(), positions(g));
    let (group, moved, beside) = match (x.dtype(), x.dim()) {
        (DType::F32, 4) => {
            if positions <= 392 {
                return None;
            }
            let locks = if images > 65 || side > 416 {
                4 * tiles(w, FP32_GROUP, [256, 64])
            } else {
                0
            };
            (FP32_GROUP, g.numel(), PLANE_LOCKS + locks)
        }
        (DType::F16, 4) if positions <= 392 && w.size(0) >= WIDE => (1, g.numel(), 0),
        (_, 4) => {
            if w.last() == 32 && w.size(0) < WIDE && positions >= 490 {
                // A kernel that sums in fp32 and keeps the offsets of a patch.
                return Some(16 + 4 * w.numel() + 6 * row(w, 1));
            }
            (HALF_GROUP, g.numel(), plane_sums(w, images, side, positions))
        }
        (DType::F32, _) if w.last() == 14 && w.size(2) == 2 && !keeps_groups(positions, images, g.numel()) => {
            let parts = narrow_parts(images, side, w.size(0));
            (1, g.numel(), narrow_sums(w, parts))
        }
        (DType::F32, _) => {
            let parts = fp32_parts(images, side, w.last());
            let least = match parts {
                1 => 0,
                3 => 254,
                _ => 64 * parts + 1,
            };
            let parts = if positions < least { 0 } else { parts };
            (FP32_GROUP, g.numel(), volume_sums(w, FP32_GROUP, (parts, 64)))
        }
        _ => (
            HALF_GROUP,
            spread(g),
            volume_sums(w, HALF_GROUP, half_parts(images, positions, w)),
        ),
    };
    Some(copies(x, w, group, moved) + beside)
}

/// Estimate for shapes that were not measured: image, weight and output are copied.
fn unmeasured(x: &Tensor, w: &Tensor, out: &Tensor) -> u64 {
    let group = if x.dtype() == DType::F32 {
        FP32_GROUP
    } else {
        HALF_GROUP
    };
    copies(x, w, group, out.numel())
}

/// Output positions of all images.
fn positions(out: &Tensor) -> u64 {
    out.numel() / out.size(1)
}

/// Elements of an output, or 0 if it needs no copy because each image has one position: both layouts are then equal.
fn spread(out: &Tensor) -> u64 {
    if positions(out) == out.size(0) { 0 } else { out.numel() }
}

/// Bytes of copies of image and weight, with channels last and padded to a multiple of `group`, and of `moved` elements
/// of the output.
fn copies(x: &Tensor, w: &Tensor, group: u64, moved: u64) -> u64 {
    16 + x.dtype().width() * (padded(x, group) + padded(w, group) + moved)
}

fn padded(t: &Tensor, group: u64) -> u64 {
    t.numel() / t.size(1) * t.size(1).next_multiple_of(group)
}

/// Elements of a weight [o, c, kernel…] for one output channel, channels padded.
fn row(w: &Tensor, group: u64) -> u64 {
    padded(w, group) / w.size(0)
}

/// Bytes of the parts of a plane's weight gradient from half precision, in fp32, with locks.
fn plane_sums(w: &Tensor, images: u64, side: u64, positions: u64) -> u64 {
    let wide = w.size(0) >= WIDE;
    match positions {
        SUMMED_ONCE_FROM.. => VOLUME_LOCKS + (4 * 256 * 128 + 8) * tiles(w, HALF_GROUP, [256, 128]),
        SUMMED_FROM.. => {
            let parts = match (side, images) {
                (532.., _) => 14,
                (_, 70..) => 4,
                _ => 3,
            };
            PLANE_LOCKS + 4 * parts * padded(w, HALF_GROUP)
        }
        512.. if wide && side < 476 => PLANE_LOCKS + 4 * tiles(w, HALF_GROUP, [64, 64]),
        _ if wide || images == 1 => PLANE_LOCKS,
        _ => 0,
    }
}

/// Number of parts in which fp32 kernels sum the gradient of a volume's weight.
const fn fp32_parts(images: u64, side: u64, kernel: u64) -> u64 {
    match (side, images) {
        (224.., _) => 1,
        _ if side == kernel => 3,
        (_, 48..) => 74,
        (_, 28..) => 47,
        (_, 18..) => 2,
        (_, 13..) => 22,
        (_, 8..) => 21,
        (128, _) => 6,
        (192, _) => 9,
        _ => 8,
    }
}

/// Returns true if patches of 14 × 14 that are whole images keep, in fp32, the kernel that pads channels: few patches,
/// or those of a large output that fill tiles of 64. All other volumes of such patches use a kernel that pads nothing.
const fn keeps_groups(positions: u64, images: u64, elements: u64) -> bool {
    positions == images && (positions <= MOST_GROUPED || (positions % 64 < 8 && elements >= GROUPED_FROM))
}

/// Number of parts in which the fp32 kernels that pad nothing sum the gradient of a volume's weight.
const fn narrow_parts(images: u64, side: u64, width: u64) -> u64 {
    match (side, images, width) {
        (14, ..) => 6,
        (_, ..8, BROADEST..) => 1,
        (_, ..8, BROAD..) => 3,
        (_, ..8, _) => 2,
        (..=112, ..33, _) => 32,
        (..=112, ..40, _) => 28,
        (..=112, ..) => 75,
        (_, ..12, _) => 34,
        (_, ..16, _) => 10,
        (_, ..34, _) => 45,
        _ => 16,
    }
}

/// Bytes of `parts` parts of a weight gradient in tiles of 64 × 32, with locks.
fn narrow_sums(w: &Tensor, parts: u64) -> u64 {
    VOLUME_LOCKS + (4 * 64 * 32 * parts + 16 * (parts + 1)) * tiles(w, 1, [64, 32])
}

/// Number of parts in which half-precision kernels sum the gradient of a volume's weight, and the width of their tiles.
fn half_parts(images: u64, positions: u64, w: &Tensor) -> (u64, u64) {
    let between = (13..=23).contains(&images);
    if row(w, HALF_GROUP).is_multiple_of(256) {
        return match positions {
            VOLUMES_SUMMED_FROM.. if between => (3, 64),
            VOLUMES_SUMMED_FROM.. => (1, 64),
            _ => (0, 64),
        };
    }
    if positions > images {
        return match (images, w.size(0)) {
            _ if positions < 96 => (0, 64),
            (_, BROAD..) if between => (3, 64),
            (30..=40, ..BROAD) => (6, 64),
            (..=4, ..BROAD) if positions >= 450 => (6, 64),
            (41.., ..BROAD) => (9, 64),
            _ => (1, 64),
        };
    }
    match positions {
        316.. => (1, 64),
        220.. => (6, 128),
        128..=192 => (3, 128),
        96 => (2, 128),
        _ => (0, 64),
    }
}

/// Bytes of `parts` parts of a volume's weight gradient in fp32, in whole tiles of 128 × `tile`, with locks for each
/// part and for the sum.
fn volume_sums(w: &Tensor, group: u64, (parts, tile): (u64, u64)) -> u64 {
    if parts == 0 {
        return 0;
    }
    VOLUME_LOCKS + (4 * 128 * tile * parts + tile / 8 * (parts + 1)) * tiles(w, group, [128, tile])
}

/// Tiles that cover a weight of [o, padded c × kernel].
fn tiles(w: &Tensor, group: u64, [rows, columns]: [u64; 2]) -> u64 {
    w.size(0).div_ceil(rows) * row(w, group).div_ceil(columns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tape::{Gpu, Tape};

    /// Returns (forward, gradient) for images, side, patch and width of a tower, in the given type.
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
