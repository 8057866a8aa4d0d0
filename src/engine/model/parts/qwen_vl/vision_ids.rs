//! Ids of patches that a vision tower works with (`transformers/vision_utils.py`).

use super::layout::{Grid, Layout};
use crate::dtype::DType;
use crate::nn::ids;
use crate::tape::{Tape, Tensor};

/// Positions and segment bounds of all patches.
pub struct VisionIds {
    /// Row and column of each patch, [patches, 2].
    pub position_ids: Tensor,
    /// Bounds of the segments that attend to themselves, [segments + 1] in int32.
    pub cu_seqlens: Tensor,
}

impl VisionIds {
    /// Makes both, in the order of the towers' forwards. `grid` is [images, 3] on the GPU.
    pub fn new(t: &Tape, layout: &Layout, grid: &Tensor) -> Self {
        Self::after(t, position_ids(t, layout), layout, grid)
    }

    /// Makes both where a tensor holds each image's merge size.
    pub fn of_given_merge_sizes(t: &Tape, layout: &Layout, grid: &Tensor) -> Self {
        Self::after(t, position_ids_of_images(t, layout), layout, grid)
    }

    fn after(t: &Tape, position_ids: Tensor, layout: &Layout, grid: &Tensor) -> Self {
        Self {
            position_ids,
            cu_seqlens: cu_seqlens(t, layout, grid),
        }
    }
}

/// `get_vision_position_ids`.
pub fn position_ids(t: &Tape, layout: &Layout) -> Tensor {
    let _merge_size = ids(t, &[1], "spatial_merge_size");
    // `tolist` copies the expanded size, unless it is of a single element, which is contiguous.
    if layout.images().len() > 1 {
        drop(ids(t, &[layout.images().len() as u64], "contiguous copy"));
    }
    position_ids_of_images(t, layout)
}

/// `get_vision_position_ids` where a tensor holds each image's merge size.
fn position_ids_of_images(t: &Tape, layout: &Layout) -> Tensor {
    let images = layout.images();
    let m = layout.merge;
    let mut parts = Vec::with_capacity(images.len());
    let mut before: Option<[Tensor; 2]> = None;
    for image in images {
        let [h, w] = [image.rows, image.columns];
        let [rows, columns] = in_blocks(t, image, m, &mut before);
        let pairs = ids(t, &[h * w, 2], "stack");
        parts.push(ids(t, &[image.frames * h * w, 2], "repeat"));
        drop(pairs);
        before = Some([rows, columns]);
    }
    ids(t, &[layout.patches(), 2], "position ids of patches")
}

/// `get_vision_cu_seqlens` with `merge_temporal`: each image attends to itself.
pub fn cu_seqlens_of_images(t: &Tape, layout: &Layout) -> Tensor {
    let images = layout.images().len() as u64;
    let lengths = {
        let _of_columns = ids(t, &[images], "frames times rows");
        ids(t, &[images], "patches of an image")
    };
    let ends = t.cumsum_ids(&lengths, DType::I32);
    let padded = t.empty([images + 1], DType::I32, "cu_seqlens");
    drop((ends, lengths));
    padded
}

/// `get_vision_position_ids` with a position in time before rows and columns, [patches, 3].
pub fn position_ids_in_time(t: &Tape, layout: &Layout) -> Tensor {
    let _merge_size = ids(t, &[1], "spatial_merge_size");
    if layout.images().len() > 1 {
        drop(ids(t, &[layout.images().len() as u64], "contiguous copy"));
    }
    let mut parts = Vec::with_capacity(layout.images().len());
    // The loop's variables hold an image's ids until the next image's are made.
    let (mut before, mut _times): (Option<[Tensor; 2]>, Option<Tensor>) = (None, None);
    for image in layout.images() {
        let [rows, columns] = in_blocks(t, image, layout.merge, &mut before);
        let patches = image.patches();
        let times = {
            let _steps = ids(t, &[image.frames], "arange");
            ids(t, &[patches], "repeat_interleave")
        };
        _times = Some(times);
        let repeated = [0, 1].map(|_| ids(t, &[patches], "repeat"));
        parts.push(ids(t, &[patches, 3], "stack"));
        drop(repeated);
        before = Some([rows, columns]);
    }
    ids(t, &[layout.patches(), 3], "position ids of patches")
}

/// Rows and columns of an image's patches, in the order of the squares that become tokens. Those of the image `before`
/// are freed once these are made.
fn in_blocks(t: &Tape, image: &Grid, m: u64, before: &mut Option<[Tensor; 2]>) -> [Tensor; 2] {
    let [h, w] = [image.rows, image.columns];
    let along = |n, shape: [u64; 2]| t.expand(&t.view(&ids(t, &[n], "arange"), shape), [h, w]);
    let (mut rows, mut columns) = (along(h, [h, 1]), along(w, [1, w]));
    drop(before.take());
    let by_block = |x: &Tensor| {
        let blocks = t.reshape(x, [h / m, m, w / m, m]);
        t.reshape(&t.transpose(&blocks, 1, 2), [h * w])
    };
    rows = by_block(&rows);
    columns = by_block(&columns);
    [rows, columns]
}

/// `get_vision_cu_seqlens`: each frame attends to itself.
pub fn cu_seqlens(t: &Tape, layout: &Layout, grid: &Tensor) -> Tensor {
    let segments = layout.images().iter().map(|g| g.frames).sum();
    let lengths = {
        let areas = ids(t, &[layout.images().len() as u64], "patches of a frame");
        t.repeat_interleave_ids(&areas, &t.select(grid, 1), segments)
    };
    let ends = t.cumsum_ids(&lengths, DType::I32);
    let padded = t.empty([segments + 1], DType::I32, "cu_seqlens");
    drop((ends, lengths));
    padded
}
