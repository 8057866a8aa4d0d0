//! Checks if the patch grids of a setup can be simulated.

use super::SimulateError;
use crate::model::answers::ImageForm;
use crate::setup::{Attention, Checkpointing, Freeze};
use crate::{Model, Setup};

/// Most patches of a batch; a GPU of 140 GiB holds fewer.
const MOST_PATCHES: u64 = 1 << 22;

/// Most calls of attention in the vision tower, weighted by [`tensors`]: one for each image or window and block. A call of a
/// fused kernel makes about ten tensors.
const MOST_ATTENTIONS: u64 = 1 << 19;

/// Most of them in all micro-batches of a step. Those that repeat cost less than the first.
const MOST_IN_STEP: u64 = 1 << 21;

/// Most images of a batch that are packed one by one (`pack_image_features`): each makes tensors of its own.
const MOST_PACKED: u64 = 1 << 13;

/// Tensors of one call of attention in the vision tower, relative to a fused kernel's without checkpointing: eager
/// attention makes the scores anew for each of its operations, and checkpoints run each call of a tower that trains twice.
const fn tensors(setup: &Setup) -> u64 {
    let kernel = match setup.attn {
        Attention::Eager => 3,
        _ => 1,
    };
    match setup.ckpt {
        _ if matches!(setup.freeze, Freeze::Parts(frozen) if frozen.vision) => kernel,
        Checkpointing::Full | Checkpointing::Vision | Checkpointing::Trained => 2 * kernel,
        _ => kernel,
    }
}

/// Most calls of attention in the vision tower that are simulated in a micro-batch.
fn most_attentions(setup: &Setup) -> u64 {
    MOST_ATTENTIONS.min(MOST_IN_STEP / setup.accum.max(1)) / tensors(setup)
}

/// Refuses more images than can be simulated, for models that pack each by itself.
fn packed_images(setup: &Setup) -> Result<(), SimulateError> {
    let value = setup.batch.saturating_mul(setup.images);
    if value <= MOST_PACKED {
        return Ok(());
    }
    Err(SimulateError::OutOfRange {
        entry: "batch × images".into(),
        value,
        least: 1,
        most: MOST_PACKED,
    })
}

/// Refuses grids that are not made of whole tokens, and batches that are too large.
pub(super) fn check(model: &Model, setup: &Setup) -> Result<(), SimulateError> {
    let (patches, window) = match model.config.family().image_form() {
        ImageForm::Stacked => return Ok(()),
        ImageForm::Packed => return packed_images(setup),
        ImageForm::Patches(patches, window) => (patches, window),
    };
    let merge = patches.merge;
    let whole = |n: u64| n > 0 && n <= MOST_PATCHES && n.is_multiple_of(merge);
    let windows = |n: u64| window.map_or(1, |side| (n / merge).div_ceil(side));
    let (mut attentions, mut of_sample) = (0_u64, 0_u64);
    for [rows, columns] in patches.grids(setup) {
        if !whole(rows) || !whole(columns) {
            return Err(SimulateError::Grid {
                grid: [rows, columns],
                multiple: merge,
                most: MOST_PATCHES,
            });
        }
        attentions = attentions.saturating_add(windows(rows) * windows(columns) * patches.layers);
        of_sample = of_sample.saturating_add(rows * columns);
    }
    // Where samples differ, the grids are those of all.
    let samples = if setup.image_counts.is_empty() { setup.batch } else { 1 };
    let all = |n: u64| n.saturating_mul(samples);
    if all(attentions) > most_attentions(setup) || all(of_sample) > MOST_PATCHES {
        return Err(SimulateError::Patches {
            samples,
            each: of_sample,
            most: MOST_PATCHES,
            attentions: most_attentions(setup),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_case(name: &str, setup: &Setup) -> Result<(), SimulateError> {
        check(&Model::from_catalogue(name).expect("it is known"), setup)
    }

    #[test]
    fn grids_are_whole_tokens_of_a_batch_that_can_be_simulated() {
        let with = |grid, batch| Setup {
            grid: Some(grid),
            batch,
            ..Setup::default()
        };
        for model in ["qwen2-vl-2b", "qwen2.5-vl-3b", "qwen3-vl-2b"] {
            assert_eq!(check_case(model, &with([24, 26], 2)), Ok(()));
            let odd = check_case(model, &with([23, 24], 2)).unwrap_err().to_string();
            assert!(odd.contains("[23, 24]") && odd.contains("multiples of 2"), "{odd}");
            let huge = check_case(model, &with([24, 24], 65_536)).unwrap_err().to_string();
            assert!(huge.contains("lower `batch`"), "{huge}");
            assert!(check_case(model, &with([u64::MAX, 2], 1)).is_err());
            let accum = |accum| Setup {
                accum,
                ..with([256, 256], 2)
            };
            assert_eq!(check_case(model, &accum(2)), Ok(()), "{model}");
            let long = check_case(model, &accum(1 << 20)).unwrap_err().to_string();
            assert!(long.contains("`accum`"), "{long}");
        }
    }
}
