//! Whether the patch grids of a setup can be run.

use super::SimulateError;
use crate::model::ModelConfig;
use crate::{Model, Setup};

/// Most patches of a batch; a GPU of 140 GiB takes fewer.
const MOST_PATCHES: u64 = 1 << 22;

/// Most images of a batch.
const MOST_IMAGES: u64 = 1 << 14;

/// Refuses grids that are not made of whole tokens, and batches of more than is simulated.
pub(super) fn check(model: &Model, setup: &Setup) -> Result<(), SimulateError> {
    let patches = match &model.config {
        ModelConfig::Qwen2Vl(c) => &c.vision.patches,
        ModelConfig::Qwen25Vl(c) => &c.vision.patches,
        ModelConfig::Qwen3Vl(c) => &c.vision.patches,
        _ => return Ok(()),
    };
    let [rows, columns] = patches.grid(setup);
    let merge = patches.merge;
    let whole = |n: u64| n > 0 && n <= MOST_PATCHES && n.is_multiple_of(merge);
    if !whole(rows) || !whole(columns) {
        return Err(SimulateError(format!(
            "`grid` is [{rows}, {columns}]; both are patches a side, multiples of {merge} up to {MOST_PATCHES}"
        )));
    }
    let images = setup.batch.saturating_mul(setup.images);
    if images > MOST_IMAGES || images.saturating_mul(rows * columns) > MOST_PATCHES {
        return Err(SimulateError(format!(
            "a batch of {images} images of {rows} × {columns} patches is more than the {MOST_IMAGES} images and \
             {MOST_PATCHES} patches that are simulated; lower `batch`, `images` or `grid`"
        )));
    }
    Ok(())
}
