//! Configurations of families that are not simulated and that transformers itself cannot train: the reason is its own error.
//! Those that their classes make by default are among them.

use serde_json::{Map, Value};

use super::ModelError;
use super::config::class_defaults::SizeLog;
use super::config::limits;
use super::config::section::Section;

/// Reads what makes transformers stop, and returns its error; `None` if nothing that is looked at does.
type Stops = fn(&Section) -> Result<Option<String>, ModelError>;

/// Families that are not simulated, and how their forward stops.
static STOPS: &[(&str, Stops)] = &[
    ("florence2", |s| outside_vocabulary(s, [51_289, 50_265])),
    ("step3p7", |s| match outside_vocabulary(s, [151_679, 128_815])? {
        None => no_window(s),
        why => Ok(why),
    }),
    ("t5gemma2", pools_nothing),
    ("glm5_next", other_width),
    ("udop", starts_with_nothing),
];

/// Error of a configuration of a family that is not simulated and whose forward stops.
pub(super) fn error(model_type: &str, object: &Map<String, Value>) -> Option<ModelError> {
    let (family, stops) = STOPS.iter().find(|(family, _)| *family == model_type)?;
    let log = SizeLog::default();
    match stops(&Section::root(object, family, &log)) {
        Ok(None) => None,
        Ok(Some(why)) => Some(ModelError(format!(
            "{family} does not run with this configuration: {why}. With other values it is not simulated: `vramscope \
             record --model config.json` records any model without a GPU"
        ))),
        Err(error) => Some(error),
    }
}

/// Florence-2 and Step-3.7 look up image tokens in the embedding before image features take their place.
fn outside_vocabulary(s: &Section, [token, vocab]: [u64; 2]) -> Result<Option<String>, ModelError> {
    let token = s.optional_count("image_token_id", limits::VOCAB)?.unwrap_or(token);
    let vocab = s
        .nested_or_empty("text_config", "language")?
        .size_or("vocab_size", vocab, limits::VOCAB)?;
    Ok((token >= vocab).then(|| {
        format!(
            "`image_token_id` is {token}, of which the embedding of {vocab} tokens (`text_config.vocab_size`) has no row; \
             transformers 5.17 looks it up and stops with \"index out of range in self\", on a GPU with \"device-side \
             assert triggered\""
        )
    }))
}

/// Step-3.7 makes the mask of sliding layers whether there are some or not.
fn no_window(s: &Section) -> Result<Option<String>, ModelError> {
    let window = s
        .nested_or_empty("text_config", "language")?
        .optional_count("sliding_window", limits::POSITIONS)?;
    Ok(window.is_none().then(|| {
        "`text_config` has no `sliding_window`, of which transformers 5.17 makes a mask in every case; it stops with \"Could \
         not find a `sliding_window` argument in the config, or it is not set\""
            .into()
    }))
}

/// T5Gemma 2 joins patches to tokens as Gemma 3 does, by means of squares whose side may be 0.
fn pools_nothing(s: &Section) -> Result<Option<String>, ModelError> {
    let encoder = s.nested_or_empty("encoder", "encoder")?;
    let vision = encoder.nested_or_empty("vision_config", "vision")?;
    let image = vision.size_or("image_size", 224, limits::PIXELS)?;
    let patch = vision.size_or("patch_size", 16, limits::PIXELS)?;
    let tokens = encoder.size_or("mm_tokens_per_image", 256, limits::POSITIONS)?;
    let [patches, side] = [image / patch, tokens.isqrt()];
    Ok((patches < side).then(|| {
        format!(
            "images of {patches} × {patches} patches are fewer than {side} × {side} tokens (`mm_tokens_per_image`); \
             transformers 5.17 takes means of 0 × 0 patches, which PyTorch's avg_pool2d refuses"
        )
    }))
}

/// GLM-5's tower makes features of a width of its own, which have to fill the embeddings of their tokens.
fn other_width(s: &Section) -> Result<Option<String>, ModelError> {
    let made = s
        .nested_or_empty("vision_config", "vision")?
        .size_or("out_hidden_size", 1536, limits::WIDTH)?;
    let hidden = s
        .nested_or_empty("text_config", "language")?
        .size_or("hidden_size", 4096, limits::WIDTH)?;
    Ok((made != hidden).then(|| {
        format!(
            "`vision_config.out_hidden_size` is {made} and `text_config.hidden_size` {hidden}; transformers 5.17 stops \
             with \"Image features and image tokens do not match\""
        )
    }))
}

/// UDOP's decoder reads the labels behind a first token, which its class has no default for.
fn starts_with_nothing(s: &Section) -> Result<Option<String>, ModelError> {
    let token = s.optional_count("decoder_start_token_id", limits::VOCAB)?;
    Ok(token.is_none().then(|| {
        "it has no `decoder_start_token_id`, which transformers 5.17 puts before the labels; it stops with \"'UdopConfig' \
         object has no attribute 'decoder_start_token_id'\", or asks for one where it is null"
            .into()
    }))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn stops(config: &Value) -> bool {
        let object = config.as_object().expect("an object");
        let model_type = object["model_type"].as_str().expect("a type");
        error(model_type, object).is_some()
    }

    #[test]
    fn defaults_stop() {
        for (family, _) in STOPS {
            assert!(stops(&json!({ "model_type": family })), "{family}");
        }
    }

    #[test]
    fn other_values_run() {
        for config in [
            json!({"model_type": "florence2", "text_config": {"vocab_size": 51_290}}),
            json!({"model_type": "step3p7", "image_token_id": 128_001, "text_config": {"sliding_window": 512}}),
            json!({"model_type": "t5gemma2", "encoder": {"vision_config": {"image_size": 896, "patch_size": 14}}}),
            json!({"model_type": "glm5_next", "vision_config": {"out_hidden_size": 4096}}),
            json!({"model_type": "udop", "decoder_start_token_id": 0}),
            json!({"model_type": "llama"}),
        ] {
            assert!(!stops(&config), "{config}");
        }
    }
}
