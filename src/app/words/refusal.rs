//! Translates the reasons why there is no run.

use vramscope_engine::simulate::{Missing, NoFlash, SimulateError};
use vramscope_engine::tape::Failure;
use vramscope_plan::Refusal;

use super::label;
use crate::i18n::{Words, t_string};
use crate::state::Key;

/// Explains why there is no run. English uses the engine's own text; so do all languages for a configuration that
/// cannot be read.
pub fn refusal(i18n: Words, refusal: &Refusal) -> String {
    match refusal {
        Refusal::Model(message) => message.clone(),
        Refusal::Setup(why) => setup(i18n, why),
    }
}

/// Explains why a setup cannot be simulated.
pub fn setup(i18n: Words, why: &SimulateError) -> String {
    use SimulateError as E;
    let m = why.to_string();
    match why.clone() {
        E::NoForward { model } => t_string!(i18n, refusal.no_forward, message = m, model = model),
        E::OutOfRange {
            entry,
            value,
            least,
            most,
        } => {
            let entry = Key::named(&entry).map_or_else(|| entry.to_string(), |key| label(i18n, key));
            let [value, least, most] = [value, least, most].map(|n| n.to_string());
            t_string!(
                i18n,
                refusal.out_of_range,
                message = m,
                entry = entry,
                value = value,
                least = least,
                most = most
            )
        }
        E::Dropout { given } => t_string!(i18n, refusal.dropout, message = m, given = given),
        E::NoImages { model } => t_string!(i18n, refusal.no_images, message = m, model = model),
        E::OneImage { model, images } => {
            t_string!(
                i18n,
                refusal.one_image,
                message = m,
                model = model,
                images = images.to_string()
            )
        }
        E::ImageSize { size, most } => {
            t_string!(
                i18n,
                refusal.image_size,
                message = m,
                size = sides(size),
                most = most.to_string()
            )
        }
        E::Grid { grid, multiple, most } => {
            let [multiple, most] = [multiple, most].map(|n| n.to_string());
            t_string!(
                i18n,
                refusal.grid,
                message = m,
                grid = sides(grid),
                multiple = multiple,
                most = most
            )
        }
        E::Patches {
            samples,
            each,
            most,
            attentions,
        } => {
            let [samples, each, most, attentions] = [samples, each, most, attentions].map(|n| n.to_string());
            t_string!(
                i18n,
                refusal.patches,
                message = m,
                samples = samples,
                each = each,
                most = most,
                attentions = attentions
            )
        }
        E::TooShort { images, tokens, seq } => {
            let [images, tokens, seq] = [images, tokens, seq].map(|n| n.to_string());
            t_string!(
                i18n,
                refusal.too_short,
                message = m,
                images = images,
                tokens = tokens,
                seq = seq
            )
        }
        E::BeyondPositions { learned, seq } => {
            let [learned, seq] = [learned, seq].map(|n| n.to_string());
            t_string!(
                i18n,
                refusal.beyond_positions,
                message = m,
                learned = learned,
                seq = seq
            )
        }
        E::NoFlash(NoFlash::Blip2) => t_string!(i18n, refusal.flash_blip2, message = m),
        E::NoFlash(NoFlash::Mllama) => t_string!(i18n, refusal.flash_mllama, message = m),
        E::NoFlash(NoFlash::Fp32) | E::Fails(Failure::FlashInFp32) => {
            t_string!(i18n, refusal.flash_fp32, message = m)
        }
        E::NoText { model } => t_string!(i18n, refusal.no_text, message = m, model = model),
        E::EmptySample => t_string!(i18n, refusal.empty_sample, message = m),
        E::RaggedFlash => t_string!(i18n, refusal.ragged_flash, message = m),
        E::PackedImages { model } => t_string!(i18n, refusal.packed_images, message = m, model = model),
        E::PackedCache => t_string!(i18n, refusal.packed_cache, message = m),
        E::Freeze { model, missing } => match missing {
            Missing::Tower => t_string!(i18n, refusal.freeze_tower, message = m, model = model),
            Missing::Connector => t_string!(i18n, refusal.freeze_connector, message = m, model = model),
            Missing::Maps => t_string!(i18n, refusal.freeze_maps, message = m, model = model),
        },
        E::ExpertAdapters { model } => t_string!(i18n, refusal.expert_adapters, message = m, model = model),
        E::NotQuantised { model } => t_string!(i18n, refusal.not_quantised, message = m, model = model),
        E::LigerFails { model } => t_string!(i18n, refusal.liger_fails, message = m, model = model),
        E::NoLiger { model } => t_string!(i18n, refusal.no_liger, message = m, model = model),
        E::NewTokens { given, most } => {
            let [given, most] = [given, most].map(|n| n.to_string());
            t_string!(i18n, refusal.new_tokens, message = m, given = given, most = most)
        }
        E::NoGeneration { model } => t_string!(i18n, refusal.no_generation, message = m, model = model),
        E::Fails(Failure::NoGradient) => t_string!(i18n, refusal.no_gradient, message = m),
        E::Fails(Failure::NoTargets { targets, model }) => {
            t_string!(i18n, refusal.no_targets, message = m, targets = targets, model = model)
        }
        E::Fails(Failure::SmolVlmUnderAutocast { features, embeddings }) => {
            let [features, embeddings] = [features, embeddings].map(|dtype| dtype.name());
            t_string!(
                i18n,
                refusal.smolvlm_autocast,
                message = m,
                features = features,
                embeddings = embeddings
            )
        }
        E::Fails(Failure::Shapes {
            layer,
            operation,
            shapes,
        }) => {
            let shapes: Vec<String> = shapes.iter().map(|shape| format!("{shape:?}")).collect();
            t_string!(
                i18n,
                refusal.shapes,
                message = m,
                layer = layer,
                operation = operation,
                shapes = shapes.join(", ")
            )
        }
        E::Fails(Failure::TooLarge { layer, tensor, shape }) => {
            t_string!(
                i18n,
                refusal.too_large,
                message = m,
                layer = layer,
                tensor = tensor,
                shape = format!("{shape:?}")
            )
        }
        E::Fails(Failure::LlavaNextFull) => t_string!(i18n, refusal.llava_next_full, message = m),
        // Never reached on the page, which simulates one GPU, sets no allocator limit and searches no batch here.
        E::LengthsDecide | E::OutOfMemory(_) | E::Parallel(_) => m,
    }
}

fn sides([height, width]: [u64; 2]) -> String {
    format!("{height} × {width}")
}
