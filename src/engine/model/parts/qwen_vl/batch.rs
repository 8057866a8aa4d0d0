//! Batches whose images come as patches in one row.

use super::layout::Layout;
use super::patches::QwenPatches;
use crate::model::forward::{Batch, Run, cast_pixels};
use crate::nn::ids;
use crate::tape::{Kind, Tape, Tensor};

/// Makes a batch of text and images: `pixel_values`, [patches, elements of a patch], and in [`Batch::others`]
/// `image_grid_thw`, [images, 3], and whatever else `others` makes. Pixels are cast last.
pub fn batch_of_patches<Others: IntoIterator<Item = Tensor>>(
    t: &Tape,
    run: &Run,
    patches: &QwenPatches,
    others: impl FnOnce(&Layout) -> Others,
) -> Batch {
    let layout = Layout::of(&run.setup, patches);
    let mut batch = Batch::of_text(t, run);
    t.as_kind(Kind::Input, || {
        let shape = [layout.patches(), patches.patch_elements()];
        let pixels = t.empty(shape, run.patches_arrive_in(), "pixel_values");
        batch
            .others
            .push(ids(t, &[layout.images().len() as u64, 3], "image_grid_thw"));
        batch.others.extend(others(&layout));
        batch.pixels = Some(match run.setup.trainer.is_swift() {
            true => pixels,
            false => cast_pixels(t, run, pixels),
        });
    });
    batch
}
