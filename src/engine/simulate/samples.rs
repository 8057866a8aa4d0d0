//! Checks what is told of the samples of a batch one by one.

use super::SimulateError;
use super::way_out::Refused;
use crate::simulate::way_out::ways;
use crate::{Model, Setup};

/// Refuses lists of another number of samples than the batch has, and images that differ where no such batch is simulated.
/// The setup is a batched one.
pub(super) fn check(model: &Model, setup: &Setup) -> Result<(), Refused> {
    let samples = match setup.lengths.len() as u64 {
        0 => setup.batch,
        samples => samples,
    };
    for (entry, given) in [
        ("labels", setup.labels.len()),
        ("image_counts", setup.image_counts.len()),
    ] {
        if given > 0 && given as u64 != samples {
            let entry = entry.to_owned();
            return Err(SimulateError::SampleCount { entry, given, samples }.into());
        }
    }
    if setup.image_counts.is_empty() {
        return Ok(());
    }
    if !model.config.family().batches_other_images() || !model.takes().image_count || setup.is_packed() {
        return Err(Refused::NotSimulated {
            given: "`image_counts`".into(),
            ways: ways![leave "image_counts", "image_sizes" => |s, _| {
                s.image_counts.clear();
                s.image_sizes.clear();
            },],
        });
    }
    let (counted, given) = (setup.given_images(), setup.image_sizes.len());
    if given > 0 && given as u64 != counted {
        return Err(SimulateError::ImageCount { counted, given }.into());
    }
    Ok(())
}
