//! Sliding windows of a decoder's layers.

use serde_json::Value;

use super::DecoderFamily;
use crate::model::ModelError;
use crate::model::config::limits;
use crate::model::config::section::Section;

/// Reads each layer's sliding window, from `layer_types` or from the family's rule.
///
/// `full_layers` is the default of `max_window_layers`. Source: `__post_init__` of the families' configuration classes.
pub(super) fn read(
    s: &Section,
    family: DecoderFamily,
    layers: u64,
    full_layers: u64,
) -> Result<Vec<Option<u64>>, ModelError> {
    // `validate_layer_type` checks every configuration that holds the list.
    let stated = s
        .value("layer_types")
        .map(|types| from_types(s, types, layers))
        .transpose()?;
    let Some(window) = window(s, family)? else {
        return Ok(vec![None; layers as usize]);
    };
    let slides = match stated {
        Some(slides) if !family.has_one_mask() => slides,
        _ => by_rule(s, family, layers, full_layers)?,
    };
    Ok(slides.into_iter().map(|slides| slides.then_some(window)).collect())
}

/// Length of the window in positions, if the family has one and it is switched on.
fn window(s: &Section, family: DecoderFamily) -> Result<Option<u64>, ModelError> {
    let given = s.optional_size("sliding_window", limits::POSITIONS)?;
    let absent = !s.has("sliding_window");
    Ok(match family {
        DecoderFamily::Llama
        | DecoderFamily::Gemma
        | DecoderFamily::Ernie45
        | DecoderFamily::Granite
        | DecoderFamily::Helium
        | DecoderFamily::SeedOss => None,
        DecoderFamily::Phi3 | DecoderFamily::Ministral3 => given,
        DecoderFamily::Qwen2 | DecoderFamily::Qwen3 | DecoderFamily::SmolLm3
            if !s.flag("use_sliding_window", false)? =>
        {
            None
        }
        DecoderFamily::SmolLm3 => given,
        DecoderFamily::Cwm if absent => Some(8192),
        _ if absent => Some(4096),
        _ => given,
    })
}

fn from_types(s: &Section, types: &Value, layers: u64) -> Result<Vec<bool>, ModelError> {
    let allowed = format!("{layers} entries, each \"sliding_attention\" or \"full_attention\"");
    let wrong = || s.wrong("layer_types", types, &allowed);
    let list = types
        .as_array()
        .filter(|list| list.len() as u64 == layers)
        .ok_or_else(wrong)?;
    list.iter()
        .map(|kind| match kind.as_str() {
            Some("sliding_attention") => Ok(true),
            Some("full_attention") => Ok(false),
            _ => Err(wrong()),
        })
        .collect()
}

fn by_rule(s: &Section, family: DecoderFamily, layers: u64, full_layers: u64) -> Result<Vec<bool>, ModelError> {
    let rule: Box<dyn Fn(u64) -> bool> = match family {
        DecoderFamily::Qwen2 | DecoderFamily::Qwen3 => {
            let full = s
                .optional_count("max_window_layers", limits::LAYERS)?
                .unwrap_or(full_layers);
            Box::new(move |i| i >= full)
        }
        DecoderFamily::Gemma2 | DecoderFamily::VaultGemma => Box::new(|i| !(i + 1).is_multiple_of(2)),
        DecoderFamily::Cwm => Box::new(|i| !i.is_multiple_of(4)),
        DecoderFamily::SmolLm3 => {
            let every = s.size_or("no_rope_layer_interval", 4, limits::LAYERS)?;
            Box::new(move |i| (i + 1).is_multiple_of(every))
        }
        DecoderFamily::Gemma3 => {
            let pattern = s.size_or("sliding_window_pattern", 6, limits::LAYERS)?;
            Box::new(move |i| !(i + 1).is_multiple_of(pattern))
        }
        _ => Box::new(|_| true),
    };
    Ok((0..layers).map(rule).collect())
}
