//! Translates the reasons why there is no run.

use vramscope_engine::order::sort_by_key;
use vramscope_engine::simulate::{Change, Missing, NoFlash, SimulateError, Unshared};
use vramscope_engine::tape::Failure;
use vramscope_plan::Refusal;

use super::label;
use super::labels::with_labels;
use crate::i18n::{Words, phrases, t_string};
use crate::state::Key;

/// Explains why there is no run. English uses the engine's own text; so do all languages for a configuration that
/// cannot be read.
pub fn refusal(i18n: Words, refusal: &Refusal) -> String {
    match refusal {
        Refusal::Model(message) => message.clone(),
        Refusal::Setup(why) => setup(i18n, why),
    }
}

/// Explains why a setup cannot be simulated, with the page's names of settings.
pub fn setup(i18n: Words, why: &SimulateError) -> String {
    with_labels(i18n, &of_setup(i18n, why))
}

fn of_setup(i18n: Words, why: &SimulateError) -> String {
    use SimulateError as E;
    let message = why.to_string();
    match why.clone() {
        E::OutOfRange { .. }
        | E::OneImage { .. }
        | E::SampleCount { .. }
        | E::ImageCount { .. }
        | E::ImageSize { .. }
        | E::Grid { .. }
        | E::Patches { .. }
        | E::TooShort { .. }
        | E::BeyondPositions { .. }
        | E::NewTokens { .. } => limit(i18n, message, why.clone()),
        E::Fails(failure) => fails(i18n, message, failure),
        E::NoForward { model } => t_string!(i18n, refusal.no_forward, message, model),
        E::Dropout { given } => t_string!(i18n, refusal.dropout, message, given),
        E::NoImages { model } => t_string!(i18n, refusal.no_images, message, model),
        E::NoFlash(NoFlash::Blip2) => t_string!(i18n, refusal.flash_blip2, message),
        E::NoFlash(NoFlash::Mllama) => t_string!(i18n, refusal.flash_mllama, message),
        E::NoFlash(NoFlash::WideHeads) => t_string!(i18n, refusal.flash_wide, message),
        E::NoFlash(NoFlash::NotSimulated) => message,
        E::NoFlash(NoFlash::Fp32) => t_string!(i18n, refusal.flash_fp32, message),
        E::NoText { model } => t_string!(i18n, refusal.no_text, message, model),
        E::EmptySample => t_string!(i18n, refusal.empty_sample, message),
        E::RaggedFlash => t_string!(i18n, refusal.ragged_flash, message),
        E::ImageSizesUnknown { model } => t_string!(i18n, refusal.image_sizes_unknown, message, model),
        E::RaggedUnknown { model } => t_string!(i18n, refusal.ragged_unknown, message, model),
        E::PackedImages { model } => t_string!(i18n, refusal.packed_images, message, model),
        E::PackedCache => t_string!(i18n, refusal.packed_cache, message),
        E::Freeze { model, missing } => match missing {
            Missing::Tower => t_string!(i18n, refusal.freeze_tower, message, model),
            Missing::Connector => t_string!(i18n, refusal.freeze_connector, message, model),
            Missing::UsualMaps => t_string!(i18n, refusal.freeze_usual_maps, message, model),
            Missing::Maps => t_string!(i18n, refusal.freeze_maps, message, model),
        },
        E::NotQuantised { model } => t_string!(i18n, refusal.not_quantised, message, model),
        E::LigerFails { model } => t_string!(i18n, refusal.liger_fails, message, model),
        E::NotSimulated { model, given, ways } => {
            let told = t_string!(i18n, refusal.not_simulated, model, given);
            with_ways(i18n, message, told, &ways)
        }
        E::NoLiger { model } => t_string!(i18n, refusal.no_liger, message, model),
        E::NoGeneration { model } => t_string!(i18n, refusal.no_generation, message, model),
        E::Parallel(why) => unshared(i18n, why),
        // Never reached on the page, which sets no allocator limit and searches no batch here.
        E::LengthsDecide | E::OutOfMemory(_) => message,
    }
}

/// Explains why GPUs cannot share a run. The phrase is found by the reason's code.
fn unshared(i18n: Words, why: Unshared) -> String {
    let Some(place) = phrases::unshared::named(&why.code) else {
        return why.to_string();
    };
    let message = why.to_string();
    let mut values = why.args;
    values.push(("message".into(), why.message));
    // `filled_at` takes the values in the order of their names.
    sort_by_key(&mut values, |(name, _)| name.clone());
    let values: Vec<String> = values.into_iter().map(|(_, value)| value).collect();
    with_ways(i18n, message, i18n.filled_at(place, &values), &why.ways)
}

/// A reason with its ways out behind it; `message` is the engine's English of both.
fn with_ways(i18n: Words, message: String, reason: String, ways: &[Change]) -> String {
    if ways.is_empty() {
        return reason;
    }
    let ways: Vec<String> = ways.iter().map(|way| change(i18n, way)).collect();
    let ways = ways.join(t_string!(i18n, refusal.or));
    t_string!(i18n, refusal.ways_out, message, reason, ways)
}

/// Says a way out, with the page's names of settings.
pub fn way_out(i18n: Words, way: &Change) -> String {
    with_labels(i18n, &change(i18n, way))
}

fn change(i18n: Words, change: &Change) -> String {
    let (each, whole): (Vec<String>, fn(Words, String) -> String) = match change {
        Change::Set(all) => {
            let one = |(name, value): &(_, _)| {
                t_string!(
                    i18n,
                    refusal.one_set,
                    name = format!("{name}"),
                    value = format!("{value}")
                )
            };
            (all.iter().map(one).collect(), |i18n, each| {
                t_string!(i18n, refusal.set, each)
            })
        }
        Change::LeaveOut(all) => (all.iter().map(|name| format!("`{name}`")).collect(), |i18n, each| {
            t_string!(i18n, refusal.leave_out, each)
        }),
    };
    whole(i18n, each.join(t_string!(i18n, refusal.and)))
}

/// Explains a number that is beyond its limit.
fn limit(i18n: Words, message: String, why: SimulateError) -> String {
    use SimulateError as E;
    match why {
        E::OutOfRange {
            entry,
            value,
            least,
            most,
        } => {
            let entry = Key::named(&entry).map_or_else(|| entry.to_string(), |key| label(i18n, key));
            let [value, least, most] = [value, least, most].map(|n| n.to_string());
            t_string!(i18n, refusal.out_of_range, message, entry, value, least, most)
        }
        E::OneImage { model, images } => {
            let images = images.to_string();
            t_string!(i18n, refusal.one_image, message, model, images)
        }
        E::SampleCount { entry, given, samples } => {
            let entry = Key::named(&entry).map_or_else(|| entry.to_string(), |key| label(i18n, key));
            let (given, samples) = (given.to_string(), samples.to_string());
            t_string!(i18n, refusal.sample_count, message, entry, given, samples)
        }
        E::ImageCount { counted, given } => {
            let (counted, given) = (counted.to_string(), given.to_string());
            t_string!(i18n, refusal.image_count, message, counted, given)
        }
        E::ImageSize { size, most } => {
            let (size, most) = (sides(size), most.to_string());
            t_string!(i18n, refusal.image_size, message, size, most)
        }
        E::Grid { grid, multiple, most } => {
            let grid = sides(grid);
            let [multiple, most] = [multiple, most].map(|n| n.to_string());
            t_string!(i18n, refusal.grid, message, grid, multiple, most)
        }
        E::Patches {
            samples,
            each,
            most,
            attentions,
        } => {
            let [samples, each, most, attentions] = [samples, each, most, attentions].map(|n| n.to_string());
            t_string!(i18n, refusal.patches, message, samples, each, most, attentions)
        }
        E::TooShort { images, tokens, seq } => {
            let [images, tokens, seq] = [images, tokens, seq].map(|n| n.to_string());
            t_string!(i18n, refusal.too_short, message, images, tokens, seq)
        }
        E::BeyondPositions { learned, seq } => {
            let [learned, seq] = [learned, seq].map(|n| n.to_string());
            t_string!(i18n, refusal.beyond_positions, message, learned, seq)
        }
        E::NewTokens { given, most } => {
            let [given, most] = [given, most].map(|n| n.to_string());
            t_string!(i18n, refusal.new_tokens, message, given, most)
        }
        _ => message,
    }
}

/// Explains why the simulated code itself would fail.
fn fails(i18n: Words, message: String, failure: Failure) -> String {
    match failure {
        Failure::FlashInFp32 => t_string!(i18n, refusal.flash_fp32, message),
        Failure::NoGradient => t_string!(i18n, refusal.no_gradient, message),
        Failure::CausalConv1d { channels, kernel } => {
            let [channels, kernel] = [channels, kernel].map(|n| n.to_string());
            t_string!(i18n, refusal.causal_conv1d, message, channels, kernel)
        }
        Failure::AdaptedRouter { model } => t_string!(i18n, refusal.adapted_router, message, model),
        Failure::NoTargets { targets, model } => t_string!(i18n, refusal.no_targets, message, targets, model),
        Failure::PutUnderAutocast { module, rows, tensor } => {
            let [rows, tensor] = [rows, tensor].map(|dtype| dtype.name());
            t_string!(i18n, refusal.put_under_autocast, message, module, rows, tensor)
        }
        Failure::Shapes {
            layer,
            operation,
            shapes,
        } => {
            let shapes: Vec<String> = shapes.iter().map(|shape| format!("{shape:?}")).collect();
            let shapes = shapes.join(", ");
            t_string!(i18n, refusal.shapes, message, layer, operation, shapes)
        }
        Failure::TooLarge { layer, tensor, shape } => {
            let shape = format!("{shape:?}");
            t_string!(i18n, refusal.too_large, message, layer, tensor, shape)
        }
        Failure::LongStep { accum, each, most } => {
            let [accum, each, most] = [accum, each, most].map(|n| n.to_string());
            t_string!(i18n, refusal.long_step, message, accum, each, most)
        }
        Failure::WeightRead => t_string!(i18n, refusal.weight_read, message),
        Failure::NotSaved { module, error } => t_string!(i18n, refusal.not_saved, message, module, error),
        Failure::HeadNotReplaced => t_string!(i18n, refusal.head_not_replaced, message),
        Failure::LlavaNextFull => t_string!(i18n, refusal.llava_next_full, message),
        Failure::NoQueries { patches } => {
            let patches = patches.to_string();
            t_string!(i18n, refusal.no_queries, message, patches)
        }
        Failure::NoRow { token, rows } => {
            let [token, rows] = [token, rows].map(|n| n.to_string());
            t_string!(i18n, refusal.no_row, message, token, rows)
        }
        Failure::ScalarParameter { parameter } => t_string!(i18n, refusal.scalar_parameter, message, parameter),
        Failure::UnusedParameter { parameter } => t_string!(i18n, refusal.unused_parameter, message, parameter),
        Failure::BackwardTwice { module } => t_string!(i18n, refusal.backward_twice, message, module),
        Failure::TrainedInPart { module } => t_string!(i18n, refusal.trained_in_part, message, module),
        Failure::LeafChangedInPlace { model } => t_string!(i18n, refusal.leaf_changed_in_place, message, model),
    }
}

fn sides([height, width]: [u64; 2]) -> String {
    format!("{height} × {width}")
}
