//! Checks a setup against a model before anything is simulated.

use super::change::Change;
use super::way_out::Refused;
use super::{NoFlash, SimulateError, batching, grid, options, samples};
use crate::setup::{Attention, Precision, Setting};
use crate::{Model, Setup};

/// Most pixels a side of an image.
const MOST_PIXELS: u64 = 1 << 14;

/// Largest batch × seq × seq, the pairs of positions that attention covers: a thousand times what any GPU holds. With
/// the limits of a configuration, no product of a tensor's extents overflows 64 bits.
const MOST_PAIRS: u64 = 1 << 49;

/// Refuses setups that cannot run, with the ways out that are none of these.
pub(super) fn check(model: &Model, setup: &Setup) -> Result<(), SimulateError> {
    refused(model, setup).map_err(|why| why.into_error(model, setup, |changed| refused(model, changed).is_ok()))
}

/// What [`check`] refuses, before any way out is tried: trying one tries no further ones.
fn refused(model: &Model, setup: &Setup) -> Result<(), Refused> {
    if !model.has_forward() {
        let model = model.name.clone();
        return Err(SimulateError::NoForward { model }.into());
    }
    batching::check(model, setup)?;
    image_sizes(model, setup)?;
    samples::check(model, &setup.batched())?;
    let setup = &model.prepared(setup);
    let takes = model.takes();
    for setting in Setting::ALL {
        let least = match setting {
            Setting::Seq => u64::from(takes.text),
            Setting::Images => u64::from(takes.parts && !takes.text_alone),
            Setting::Beside | Setting::Fetched => 0,
            _ => 1,
        };
        in_range(setup, *setting, least)?;
    }
    if !(0.0..1.0).contains(&setup.lora_dropout) {
        return Err(SimulateError::Dropout {
            given: setup.lora_dropout.to_string(),
        }
        .into());
    }
    let pairs = setup.seq.saturating_mul(setup.seq).saturating_mul(setup.batch);
    if pairs > MOST_PAIRS {
        return Err(SimulateError::OutOfRange {
            entry: "batch × seq × seq".into(),
            value: pairs,
            least: 1,
            most: MOST_PAIRS,
        }
        .into());
    }
    options::check(model, setup)?;
    grid::check(model, setup)?;
    flash_attention_runs(model, setup)?;
    image_tokens_fit(model, setup)?;
    length_is_simulated(model, setup)?;
    Ok(positions_are_learned(model, setup)?)
}

/// Checks that a number of a setup is within its range; passes a setting that is no number, or absent.
fn in_range(setup: &Setup, setting: Setting, least: u64) -> Result<(), SimulateError> {
    let Some(most) = setting.declaration().most else {
        return Ok(());
    };
    match setting.of(setup).count() {
        Some(value) if value < least || value > most => Err(SimulateError::OutOfRange {
            entry: setting.key().into(),
            value,
            least,
            most,
        }),
        _ => Ok(()),
    }
}

/// Checks that sizes of images are those of photographs, for models that take images beside text.
fn image_sizes(model: &Model, setup: &Setup) -> Result<(), SimulateError> {
    if setup.image_sizes.is_empty() {
        return Ok(());
    }
    if !model.takes().parts {
        let model = model.name.clone();
        return Err(SimulateError::NoImages { model });
    }
    if !model.knows_image_sizes() {
        let model = model.name.clone();
        return Err(SimulateError::ImageSizesUnknown { model });
    }
    if !model.takes().image_count && setup.image_sizes.len() > 1 {
        return Err(SimulateError::OneImage {
            model: model.name.clone(),
            images: setup.image_sizes.len(),
        });
    }
    let good = |[height, width]: [u64; 2]| {
        let (short, long) = (height.min(width), height.max(width));
        (1..=MOST_PIXELS).contains(&short) && long <= MOST_PIXELS && long <= 200 * short
    };
    match setup.image_sizes.iter().find(|&&size| !good(size)) {
        None => Ok(()),
        Some(&size) => Err(SimulateError::ImageSize {
            size,
            most: MOST_PIXELS,
        }),
    }
}

/// Checks that transformers 5.17 and flash-attn 2.8 can run the model with `flash_attention_2`.
fn flash_attention_runs(model: &Model, setup: &Setup) -> Result<(), SimulateError> {
    if setup.attn != Attention::FlashAttention2 {
        return Ok(());
    }
    let in_fp32 = (setup.precision == Precision::Fp32).then_some(NoFlash::Fp32);
    match model.config.family().support().no_flash.or(in_fp32) {
        Some(why) => Err(SimulateError::NoFlash(why)),
        None => Ok(()),
    }
}

/// Checks that the table of learned positions is as long as the sequence.
fn positions_are_learned(model: &Model, setup: &Setup) -> Result<(), SimulateError> {
    let seq = setup.seq;
    match model.learned_positions() {
        Some(learned) if seq > learned => Err(SimulateError::BeyondPositions { learned, seq }),
        _ => Ok(()),
    }
}

/// Refuses a text that runs through code that is not simulated, because it is long.
fn length_is_simulated(model: &Model, setup: &Setup) -> Result<(), SimulateError> {
    match model.simulated_positions() {
        Some(most) if setup.seq > most => Err(SimulateError::NotSimulated {
            model: model.name.clone(),
            given: format!("`seq` {}", setup.seq),
            ways: vec![Change::Set(vec![("seq".into(), most.to_string().into())])],
        }),
        _ => Ok(()),
    }
}

/// Checks that the positions of a sample have room for its image tokens.
fn image_tokens_fit(model: &Model, setup: &Setup) -> Result<(), SimulateError> {
    let tokens = model.image_tokens_of_samples(setup);
    // Where samples are alike in their images, the longest has room for those of each.
    let lengths = match tokens.len() == setup.lengths.len() {
        true => setup.lengths.clone(),
        false => vec![setup.seq; tokens.len()],
    };
    match tokens.into_iter().zip(lengths).find(|(tokens, seq)| tokens > seq) {
        None => Ok(()),
        Some((tokens, seq)) => Err(SimulateError::TooShort {
            images: setup.images,
            tokens,
            seq,
        }),
    }
}
