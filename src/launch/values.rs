//! Reads values as the tools' parsers take them.

use serde_json::Value;
use vramscope_plan::export::names_in_language_model;

use super::given::Fault::{self, NotSimulated, Wrong};
use super::given::{Set, Targets, Weights};

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

/// A truth value, in the words of YAML and those that transformers' parser takes (`string_to_bool` in
/// `transformers/hf_argparser.py`).
pub(crate) fn truth(value: &Value) -> Result<bool, Fault> {
    const TRUE: [&str; 6] = ["true", "yes", "on", "t", "y", "1"];
    const FALSE: [&str; 6] = ["false", "no", "off", "f", "n", "0"];
    let is_of = |words: &[&str], text: &str| words.iter().any(|word| text.eq_ignore_ascii_case(word));
    match value {
        Value::Bool(truth) => Ok(*truth),
        Value::String(text) if is_of(&TRUE, text) => Ok(true),
        Value::String(text) if is_of(&FALSE, text) => Ok(false),
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

/// Processes of one machine; `gpu` and `auto` of torchrun are as many as it has, and a variable that no line sets, or what a
/// program prints, leaves it open.
pub(crate) fn gpus(value: &Value) -> Result<Option<u64>, Fault> {
    match value.as_str() {
        Some("gpu" | "auto") => Ok(None),
        Some(text) if text.starts_with('$') => Ok(None),
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

/// Attention that keeps as much as one that is not simulated: kernels like FlashAttention keep the same, and FlexAttention
/// makes no masks that PyTorch's own has not.
pub(crate) fn stand_in(value: &Value) -> Option<&'static str> {
    match value.as_str()? {
        "flex_attention" => Some("sdpa"),
        name if is_like_flash(name) => Some("flash_attention_2"),
        _ => None,
    }
}

/// True for kernels that take the place of FlashAttention 2: its successor, and those of the hub.
pub(crate) fn is_like_flash(name: &str) -> bool {
    matches!(name, "flash_attention_3" | "fa3") || name.starts_with("kernels-community/") && name.contains("flash")
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

/// Names in a list, or between commas.
pub(crate) fn names(value: &Value) -> Result<Vec<String>, Fault> {
    match value {
        Value::Array(items) => items.iter().map(text).collect(),
        other => Ok(split(&text(other)?)
            .into_iter()
            .filter(|name| !name.is_empty())
            .collect()),
    }
}

/// Names of modules in a list or between commas, or the regular expression of an export; `all` is LLaMA-Factory's word
/// for all linear layers.
pub(crate) fn targets(value: &Value) -> Result<Targets, Fault> {
    let names: Vec<String> = match value {
        Value::Array(items) => items.iter().map(text).collect::<Result<_, _>>()?,
        other => split(&text(other)?),
    };
    if let [pattern] = &names[..]
        && let Some(names) = names_in_language_model(pattern).or_else(|| names_in_layers(pattern))
    {
        return Ok(Targets::InLanguageModel(names));
    }
    if let [pattern] = &names[..]
        && let Some(targets) = matched(pattern)
    {
        return Ok(targets);
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

/// Names between commas; a regular expression, which may hold commas, is one.
fn split(text: &str) -> Vec<String> {
    match text.contains(['(', '|', '\\', '*']) {
        true => vec![text.trim().to_owned()],
        false => text.split(',').map(|name| name.trim().to_owned()).collect(),
    }
}

/// Modules that a regular expression over whole names matches (`re.fullmatch`, as peft takes a text), where it says their last
/// parts and leaves the layers open: `.*\.(q_proj|v_proj)`, `llm\..*layers\.\d+\.self_attn\.(q_proj|k_proj)`,
/// `^(?!.*visual).*(?:q|k|v|o)_proj$`.
fn matched(pattern: &str) -> Option<Targets> {
    let plain = pattern
        .trim_start_matches('^')
        .trim_end_matches('$')
        .replace("\\.", ".");
    // What a name may not contain.
    let (refused, plain) = match plain.strip_prefix("(?!") {
        Some(rest) => {
            let end = closing(rest)?;
            (&rest[..end], &rest[end + 1..])
        }
        None => ("", &plain[..]),
    };
    let is_of_tower = |text: &str| {
        ["vis", "vit", "vpm", "tower", "image"]
            .iter()
            .any(|part| text.contains(part))
    };
    let (head, names) = last_names(plain.strip_suffix(".*").unwrap_or(plain))?;
    let in_language = ["llm", "language_model", "text_model", "model.layers"];
    let any = ["d", "w", "."].map(|kind| match kind {
        "." => ".*".to_owned(),
        kind => format!("\\{kind}+"),
    });
    // Layers that are counted out, and parts that are looked for.
    let mut open = head.replace("[\\d]+", "\\d+").replace("[0-9]+", "\\d+");
    for text in any {
        open = open.replace(&text, "");
    }
    let is_plain = open.chars().all(|c| c.is_ascii_alphabetic() || "._(|):?".contains(c));
    match () {
        () if !is_plain || is_of_tower(head) => None,
        () if is_of_tower(refused) || in_language.iter().any(|part| head.contains(part)) => {
            Some(Targets::InLanguageModel(names))
        }
        () if refused.is_empty() => Some(Targets::Named(names)),
        () => None,
    }
}

/// Place of the bracket that closes one before a text.
fn closing(text: &str) -> Option<usize> {
    let mut open = 1;
    text.char_indices().find_map(|(at, c)| {
        open += match c {
            '(' => 1,
            ')' => -1,
            _ => 0,
        };
        (open == 0).then_some(at)
    })
}

/// The last names of a pattern, and what stands before them: `(q|v)_proj`, `(q_proj|v_proj)` or `q_proj`.
fn last_names(pattern: &str) -> Option<(&str, Vec<String>)> {
    let is_word = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let Some((head, rest)) = pattern.rfind('(').map(|at| pattern.split_at(at)) else {
        let (head, name) = pattern.rsplit_once('.')?;
        return is_word(name).then(|| (head, vec![name.to_owned()]));
    };
    let (all, end) = rest[1..].trim_start_matches("?:").split_once(')')?;
    // A group in the middle, with a plain name behind it.
    if let Some(name) = end.strip_prefix('.') {
        return is_word(name).then(|| (&pattern[..pattern.len() - name.len()], vec![name.to_owned()]));
    }
    let names: Vec<String> = all.split('|').map(|name| format!("{name}{end}")).collect();
    names.iter().all(|name| is_word(name)).then_some((head, names))
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
        "NO" | "MULTI_GPU" | "DEEPSPEED" | "FSDP" => Ok(()),
        _ => Err(NotSimulated("one GPU, DDP, DeepSpeed and FSDP are simulated")),
    }
}

/// Checks an option of TRL's trainers that has one simulated value.
pub(crate) fn trl_option(knob: &str, value: &Value) -> Set {
    match knob {
        "trl_loss" if text(value)? != "nll" => Err(NotSimulated("only the losses `nll` and `dft` are simulated")),
        "dpo_loss" if text(value)? != "sigmoid" => Err(NotSimulated("only the loss `sigmoid` is simulated")),
        "divergence" if text(value)? != "reverse_kl" => Err(NotSimulated("only `reverse_kl` is simulated")),
        "disable_dropout" if !truth(value)? => Err(NotSimulated("dropout in DPO is not simulated")),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn regular_expressions_over_names_are_read_where_they_leave_the_layers_open() {
        let names = |all: &[&str]| all.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        for (pattern, wanted) in [
            (r".*\.(q_proj|v_proj)", Targets::Named(names(&["q_proj", "v_proj"]))),
            (r".*(q|v)_proj$", Targets::Named(names(&["q_proj", "v_proj"]))),
            (
                r"llm\..*layers\.\d+\.self_attn\.(q_proj|k_proj)",
                Targets::InLanguageModel(names(&["q_proj", "k_proj"])),
            ),
            (
                r"^(?!.*(?:visual|merger)).*(?:gate|down)_proj.*",
                Targets::InLanguageModel(names(&["gate_proj", "down_proj"])),
            ),
            (
                r"model\.layers\.[0-9]+\.(self_attn|mlp)\.o_proj",
                Targets::InLanguageModel(names(&["o_proj"])),
            ),
        ] {
            assert_eq!(targets(&json!(pattern)), Ok(wanted), "{pattern}");
        }
        // Of some layers, of the tower, or of names that are no words.
        for pattern in [
            r"model\.layers\.(20|21)\.self_attn\.(q_proj|k_proj)",
            r"visual\.blocks\.\d+\.attn\.(qkv|proj)",
            r"^(?!.*lm_head).*(q_proj|k_proj)",
            r".*\.(q_.*|v_proj)",
        ] {
            assert!(targets(&json!(pattern)).is_err(), "{pattern}");
        }
        assert_eq!(
            targets(&json!("q_proj, v_proj")),
            Ok(Targets::Named(names(&["q_proj", "v_proj"])))
        );
    }
}
