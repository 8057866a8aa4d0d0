//! Reads values as the tools' parsers take them.

use serde_json::Value;
use vramscope_plan::export::names_in_language_model;

use super::draft::Fault::{self, NotSimulated, Wrong};
use super::draft::{Set, Targets, Weights};

/// True for the memory of the host as the place of an offload.
pub(crate) fn host(value: &Value) -> Result<bool, Fault> {
    match text(value)?.as_str() {
        "cpu" => Ok(true),
        "none" => Ok(false),
        _ => Err(NotSimulated(
            "of places to offload to, the memory of the host (cpu) is simulated",
        )),
    }
}

pub(crate) fn text(value: &Value) -> Result<String, Fault> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) => Ok(number.to_string()),
        Value::Bool(truth) => Ok(truth.to_string()),
        _ => Err(Wrong("a text")),
    }
}

pub(crate) fn truth(value: &Value) -> Result<bool, Fault> {
    match value {
        Value::Bool(truth) => Ok(*truth),
        Value::String(text) if ["true", "yes", "on", "1"].contains(&text.to_ascii_lowercase().as_str()) => Ok(true),
        Value::String(text) if ["false", "no", "off", "0"].contains(&text.to_ascii_lowercase().as_str()) => Ok(false),
        Value::Number(number) if number.as_u64() == Some(1) => Ok(true),
        Value::Number(number) if number.as_u64() == Some(0) => Ok(false),
        _ => Err(Wrong("true or false")),
    }
}

pub(crate) fn number(value: &Value) -> Result<f64, Fault> {
    let read = value.as_f64().or_else(|| value.as_str()?.trim().parse().ok());
    read.filter(|n: &f64| n.is_finite()).ok_or(Wrong("a number"))
}

pub(crate) fn whole(value: &Value) -> Result<u64, Fault> {
    value
        .as_u64()
        .or_else(|| value.as_str()?.trim().parse().ok())
        .ok_or(Wrong("a whole number"))
}

pub(crate) fn count(value: &Value) -> Result<u64, Fault> {
    whole(value)
        .ok()
        .filter(|n| *n > 0)
        .ok_or(Wrong("a whole number from 1"))
}

/// Processes of one machine; `gpu` and `auto` of torchrun are as many as it has.
pub(crate) fn gpus(value: &Value) -> Result<Option<u64>, Fault> {
    match value.as_str() {
        Some("gpu" | "auto") => Ok(None),
        _ => count(value).map(Some),
    }
}

/// GPUs in a list such as `0,1`; `None` where a variable or nothing stands in it.
pub(crate) fn visible(list: &str) -> Option<u64> {
    let is_plain = !list.is_empty() && !list.contains('$');
    is_plain.then(|| list.trim_end_matches(',').split(',').count() as u64)
}

/// Machines; a range such as `1:2` leaves it open.
pub(crate) fn nodes(value: &Value) -> Result<Option<u64>, Fault> {
    match value.as_str() {
        Some(text) if text.contains(':') || text.starts_with('$') => Ok(None),
        _ => count(value).map(Some),
    }
}

pub(crate) fn bits(value: &Value) -> Result<Option<u64>, Fault> {
    match whole(value)? {
        // ms-swift's word for none.
        0 => Ok(None),
        4 => Ok(Some(4)),
        16 | 32 => Ok(None),
        8 => Err(NotSimulated("8-bit weights are not simulated")),
        _ => Err(NotSimulated("only 4-bit weights are simulated")),
    }
}

pub(crate) fn checkpoints(value: &Value) -> Result<bool, Fault> {
    match value.as_str() {
        Some("offload" | "offload_disk" | "unsloth") => {
            Err(NotSimulated("checkpoints that are offloaded are not simulated"))
        }
        _ => truth(value),
    }
}

pub(crate) fn attention(value: &Value) -> Result<Option<&'static str>, Fault> {
    match text(value)?.as_str() {
        "auto" => Ok(None),
        "sdpa" => Ok(Some("sdpa")),
        "eager" | "disabled" => Ok(Some("eager")),
        "fa2" | "flash_attention_2" | "flash_attn" => Ok(Some("flash_attention_2")),
        "flash_attention_3" | "fa3" | "flex_attention" => {
            Err(NotSimulated("sdpa, eager and flash_attention_2 are simulated"))
        }
        name if name.starts_with("kernels-community/") => Err(NotSimulated("kernels of the hub are not simulated")),
        _ => Err(Wrong("sdpa, eager or flash_attention_2")),
    }
}

pub(crate) fn weights(value: &Value) -> Result<Weights, Fault> {
    match text(value)?.trim_start_matches("torch.") {
        "float32" | "fp32" => Ok(Weights::Fp32),
        "bfloat16" | "bf16" => Ok(Weights::Bf16),
        "float16" | "fp16" | "half" => Ok(Weights::Fp16),
        "auto" | "AUTO" => Ok(Weights::Auto),
        _ => Err(Wrong("float32, bfloat16, float16 or auto")),
    }
}

/// Names of modules in a list or between commas, or the regular expression of an export; `all` is LLaMA-Factory's word
/// for all linear maps.
pub(crate) fn targets(value: &Value) -> Result<Targets, Fault> {
    let names: Vec<String> = match value {
        Value::Array(items) => items.iter().map(text).collect::<Result<_, _>>()?,
        other => text(other)?.split(',').map(|name| name.trim().to_owned()).collect(),
    };
    if let [pattern] = &names[..]
        && let Some(names) = names_in_language_model(pattern).or_else(|| names_in_layers(pattern))
    {
        return Ok(Targets::InLanguageModel(names));
    }
    if names.iter().any(|name| name.contains(['*', '(', '|', '\\'])) {
        return Err(NotSimulated(
            "a regular expression for modules is not simulated; give names",
        ));
    }
    // What ms-swift 2 takes for `DEFAULT` of Llama's kind (`LoRATM.llama`).
    if names.iter().any(|name| name == "DEFAULT" || name == "AUTO") {
        return Ok(Targets::Named(["q_proj", "k_proj", "v_proj"].map(String::from).into()));
    }
    Ok(
        match names
            .iter()
            .any(|name| matches!(name.as_str(), "all" | "ALL" | "all-linear"))
        {
            true => Targets::AllLinear,
            false => Targets::Named(names),
        },
    )
}

/// Names of the maps that axolotl's examples take of a language model's layers, by the regular expression that they have
/// in common: `model.language_model.layers.[\d]+.(mlp|cross_attn|self_attn).(up|down|gate|q|k|v|o)_proj`.
fn names_in_layers(pattern: &str) -> Option<Vec<String>> {
    let plain = pattern.replace("\\.", ".").replace("[\\d]+", "\\d+");
    let inner = plain.strip_prefix("model.")?;
    let layers = ["language_model.layers.\\d+.", "text_model.layers.\\d+."];
    let maps = layers.iter().find_map(|prefix| inner.strip_prefix(prefix))?;
    let (blocks, maps) = maps.strip_prefix('(')?.split_once(").(")?;
    let names = maps.strip_suffix(")_proj")?;
    let has = |block: &str| blocks.split('|').any(|own| own == block);
    let is_word = |name: &str| name.chars().all(|c| c.is_ascii_lowercase());
    (has("mlp") && has("self_attn") && names.split('|').all(is_word))
        .then(|| names.split('|').map(|name| format!("{name}_proj")).collect())
}

pub(crate) fn deepspeed_optimizer(value: &Value) -> Result<&'static str, Fault> {
    match text(value)?.as_str() {
        "AdamW" | "Adam" => Ok("adamw_torch_fused"),
        _ => Err(NotSimulated("of DeepSpeed's optimizers AdamW is simulated")),
    }
}

pub(crate) fn distributed(word: &str) -> Set {
    match word {
        "NO" | "MULTI_GPU" | "DEEPSPEED" => Ok(()),
        "FSDP" => Err(NotSimulated("accelerate's FSDP is not simulated")),
        _ => Err(NotSimulated("only one GPU and DDP are simulated")),
    }
}

/// Checks an option of TRL's trainers that has one simulated value.
pub(crate) fn trl_option(knob: &str, value: &Value) -> Set {
    match knob {
        "trl_loss" if text(value)? != "nll" => Err(NotSimulated("only the loss `nll` is simulated")),
        "dpo_loss" if text(value)? != "sigmoid" => Err(NotSimulated("only the loss `sigmoid` is simulated")),
        "divergence" if text(value)? != "reverse_kl" => Err(NotSimulated("only `reverse_kl` is simulated")),
        "disable_dropout" if !truth(value)? => Err(NotSimulated("dropout in DPO is not simulated")),
        _ => Ok(()),
    }
}
