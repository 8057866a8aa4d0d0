//! Whether a setup makes sense for a model, before anything is simulated.

use super::{SimulateError, batching, grid, options};
use crate::model::ModelConfig;
use crate::setup::{Attention, Precision};
use crate::{Model, Setup};

/// Largest values that a setup may hold; beyond them a figure says nothing about a real run.
const LIMITS: [(&str, u64); 6] = [
    ("batch", 65_536),
    ("seq", 4_194_304),
    ("images", 4_096),
    ("accum", 64),
    ("rank", 8_192),
    ("frames", 4_096),
];

/// Most pixels a side of an image.
const MOST_PIXELS: u64 = 1 << 14;

/// Refuses what cannot run.
pub(super) fn check(model: &Model, setup: &Setup) -> Result<(), SimulateError> {
    if !model.has_forward() {
        return Err(SimulateError(format!(
            "the configuration of {} is read, but this version does not simulate its forward",
            model.name
        )));
    }
    batching::check(model, setup)?;
    image_sizes(model, setup)?;
    let setup = &model.prepared(setup);
    let takes = model.takes();
    let given = [
        ("batch", setup.batch, 1),
        ("seq", setup.seq, u64::from(takes.text)),
        ("images", setup.images, u64::from(takes.parts)),
        ("accum", setup.accum, 1),
        ("rank", setup.rank, 1),
        ("frames", setup.frames.unwrap_or(1), 1),
    ];
    for ((name, value, least), (_, most)) in given.into_iter().zip(LIMITS) {
        if value < least || value > most {
            return Err(SimulateError(format!(
                "`{name}` is {value}; it must be between {least} and {most}"
            )));
        }
    }
    if !(0.0..1.0).contains(&setup.lora_dropout) {
        return Err(SimulateError(format!(
            "`lora_dropout` is {}; it is a probability below 1, such as 0.05",
            setup.lora_dropout
        )));
    }
    options::check(model, setup)?;
    grid::check(model, setup)?;
    flash_attention_runs(model, setup)?;
    image_tokens_fit(model, setup)
}

/// Sizes of images are those of photographs, for models that take images beside text.
fn image_sizes(model: &Model, setup: &Setup) -> Result<(), SimulateError> {
    if setup.image_sizes.is_empty() {
        return Ok(());
    }
    let refuse = |why: String| Err(SimulateError(why));
    if !model.takes().parts {
        return refuse(format!(
            "`image_sizes` are of images beside text, and {} takes none; leave them out",
            model.name
        ));
    }
    if !model.takes().images && setup.image_sizes.len() > 1 {
        return refuse(format!(
            "`image_sizes` has {} images, but {} takes one for each sample",
            setup.image_sizes.len(),
            model.name
        ));
    }
    let good = |[height, width]: [u64; 2]| {
        let (short, long) = (height.min(width), height.max(width));
        (1..=MOST_PIXELS).contains(&short) && long <= MOST_PIXELS && long <= 200 * short
    };
    match setup.image_sizes.iter().find(|&&size| !good(size)) {
        None => Ok(()),
        Some([height, width]) => refuse(format!(
            "`image_sizes` holds [{height}, {width}]; a side has 1 to {MOST_PIXELS} pixels, and the longer one at most 200 \
             times the shorter"
        )),
    }
}

/// What transformers 5.17 and flash-attn 2.8 run with `flash_attention_2`.
fn flash_attention_runs(model: &Model, setup: &Setup) -> Result<(), SimulateError> {
    if setup.attn != Attention::FlashAttention2 {
        return Ok(());
    }
    let why = match &model.config {
        ModelConfig::Blip2(_) => "transformers refuses it for BLIP-2, whose querying transformer stays in fp32",
        ModelConfig::Mllama(_) => {
            "transformers 5.17 fails for Llama-3.2-Vision: the attention of its tower has no `is_causal`"
        }
        _ if setup.precision == Precision::Fp32 => "FlashAttention runs in fp16 and bf16 only, and `precision` is fp32",
        _ => return Ok(()),
    };
    Err(SimulateError(format!(
        "`attn` is flash_attention_2, but {why}; set `attn` to sdpa"
    )))
}

/// The positions of a sample hold its image tokens.
fn image_tokens_fit(model: &Model, setup: &Setup) -> Result<(), SimulateError> {
    let tokens = model.image_tokens(setup);
    if tokens > setup.seq {
        return Err(SimulateError(format!(
            "{} images take {tokens} of the sequence's positions, but `seq` is {}; raise `seq` to at least {tokens} or \
             lower `images`",
            setup.images, setup.seq
        )));
    }
    Ok(())
}
