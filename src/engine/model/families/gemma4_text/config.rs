//! Configuration of Gemma 4's language models.

use serde_json::Value;

use crate::model::ModelError;
use crate::model::config::section::Section;
use crate::model::config::{Activation, limits};
use crate::nn::Frequencies;

/// Gemma 4's language model: full and sliding layers with heads of their own, values that are normalised like keys, last
/// layers that take keys and values from earlier ones, and inputs of every layer beside the hidden states.
///
/// Source: `transformers/models/{gemma4,gemma4_unified}/configuration_*.py`.
#[derive(Debug, Clone, PartialEq)]
pub struct Gemma4TextConfig {
    /// Entries of the vocabulary.
    pub vocab: u64,
    /// Width of the residual stream.
    pub hidden: u64,
    /// Width inside the gated MLP.
    pub intermediate: u64,
    /// Query heads.
    pub heads: u64,
    /// Layers, true for those that see a window.
    pub slides: Vec<bool>,
    /// Positions that sliding layers see.
    pub window: u64,
    /// Heads of full, then of sliding layers.
    pub kinds: [LayerHeads; 2],
    /// Last layers, which take the keys and values of the last layer of their kind before them.
    pub shared_layers: u64,
    /// True if the MLPs of these layers are twice as wide.
    pub double_wide: bool,
    /// True if full layers have no projection of values, and take keys for them.
    pub keys_are_values: bool,
    /// Experts beside the MLP of each layer.
    pub experts: Option<ChosenExperts>,
    /// Embedding that gives each layer an input of its own.
    pub per_layer: Option<PerLayerInputs>,
    /// True if the projections of attention have biases.
    pub attention_bias: bool,
    /// Dropout of attention probabilities.
    pub attention_dropout: f64,
    /// Activation of gates.
    pub activation: Activation,
    /// True if logits are soft-capped.
    pub caps_logits: bool,
    /// True if the head shares the token embedding's weight.
    pub tie_word_embeddings: bool,
    /// True if the tokens of an image see each other both ways, in models that take images.
    pub joins_images: bool,
    /// Longest sequence that the model was made for.
    pub max_positions: u64,
}

/// Experts of each layer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChosenExperts {
    /// Experts.
    pub count: u64,
    /// Experts that a token is given to.
    pub chosen: u64,
    /// Width inside each.
    pub intermediate: u64,
}

/// Heads of the layers of one kind.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LayerHeads {
    /// Key and value heads, a divisor of the query heads.
    pub kv_heads: u64,
    /// Elements of one head.
    pub width: u64,
    /// Frequencies of the rotary embedding.
    pub frequencies: Frequencies,
}

/// Inputs of single layers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PerLayerInputs {
    /// Entries of their table.
    pub vocab: u64,
    /// Elements of one layer's input.
    pub width: u64,
}

const KINDS: [&str; 2] = ["full_attention", "sliding_attention"];

impl Gemma4TextConfig {
    /// Layers, from the first, that make keys and values.
    pub fn own_layers(&self) -> usize {
        self.slides.len() - self.shared_layers as usize
    }

    /// Reads `gemma4_text`, or `gemma4_unified_text`, which has no inputs of single layers.
    pub(crate) fn read(s: &Section, unified: bool) -> Result<Self, ModelError> {
        let both_ways = match s.has("use_bidirectional_attention") {
            true => s.optional_text("use_bidirectional_attention")?,
            false => unified.then_some("vision"),
        };
        if both_ways == Some("all") {
            return Err(s.wrong(
                "use_bidirectional_attention",
                &"all".into(),
                "null or \"vision\": attention of all tokens both ways is not simulated",
            ));
        }
        let layers = s.size("num_hidden_layers", 30, limits::LAYERS)?;
        let vocab = s.size("vocab_size", 262_144, limits::VOCAB)?;
        s.padding(vocab)?;
        let slides = slides(s, layers)?;
        let keys_are_values = s.flag("attention_k_eq_v", false)?;
        let heads = s.size("num_attention_heads", 8, limits::HEADS)?;
        let config = Self {
            vocab,
            hidden: s.size("hidden_size", 2304, limits::WIDTH)?,
            intermediate: s.size("intermediate_size", 9216, limits::WIDTH * 4)?,
            heads,
            window: s.size_or("sliding_window", if unified { 1024 } else { 512 }, limits::POSITIONS)?,
            kinds: kinds(s, heads, &slides, keys_are_values)?,
            shared_layers: shared_layers(s, &slides)?,
            double_wide: s.flag("use_double_wide_mlp", false)?,
            keys_are_values,
            experts: if unified { None } else { experts(s)? },
            per_layer: if unified { None } else { per_layer(s)? },
            attention_bias: s.flag("attention_bias", false)?,
            attention_dropout: s.probability("attention_dropout", 0.0)?,
            activation: s.activation("hidden_activation", Activation::GeluTanh)?,
            caps_logits: s.optional_number("final_logit_softcapping")?.is_some(),
            tie_word_embeddings: s.flag("tie_word_embeddings", true)?,
            joins_images: both_ways.is_some(),
            max_positions: s.size_or(
                "max_position_embeddings",
                if unified { 262_144 } else { 131_072 },
                limits::POSITIONS,
            )?,
            slides,
        };
        Ok(config)
    }
}

/// Reads which layers slide; the last never does.
fn slides(s: &Section, layers: u64) -> Result<Vec<bool>, ModelError> {
    let mut slides: Vec<bool> = match s.value("layer_types") {
        None => (1..=layers).map(|place| !place.is_multiple_of(6)).collect(),
        Some(value) => {
            let wrong = || {
                let allowed = format!("a list of {layers} times {} or {}", KINDS[0], KINDS[1]);
                s.wrong("layer_types", value, &allowed)
            };
            let kinds = value
                .as_array()
                .filter(|list| list.len() as u64 == layers)
                .ok_or_else(wrong)?;
            let slides = |kind: &Value| match kind.as_str() {
                Some(kind) if kind == KINDS[0] => Ok(false),
                Some(kind) if kind == KINDS[1] => Ok(true),
                _ => Err(wrong()),
            };
            kinds.iter().map(slides).collect::<Result<_, _>>()?
        }
    };
    if let Some(last) = slides.last_mut() {
        *last = false;
    }
    Ok(slides)
}

/// Reads the number of last layers that make no keys and values: each needs a layer of its kind before them.
fn shared_layers(s: &Section, slides: &[bool]) -> Result<u64, ModelError> {
    let key = "num_kv_shared_layers";
    let shared = s.optional_count(key, limits::LAYERS)?.unwrap_or(0);
    let own = slides.len().saturating_sub(shared as usize);
    if slides[own..].iter().all(|kind| slides[..own].contains(kind)) {
        return Ok(shared);
    }
    Err(s.wrong(
        key,
        &shared.into(),
        "layers of each kind before those that share their keys and values",
    ))
}

/// Reads the experts; all their sizes have to be given, since the class has none.
fn experts(s: &Section) -> Result<Option<ChosenExperts>, ModelError> {
    if !s.flag("enable_moe_block", false)? {
        return Ok(None);
    }
    let size = |key: &str, limit: u64, allowed: &str| {
        let missing = || s.wrong(key, s.value(key).unwrap_or(&Value::Null), allowed);
        s.optional_size(key, limit)?.ok_or_else(missing)
    };
    let count = size(
        "num_experts",
        limits::COUNT,
        "the number of experts, which `enable_moe_block` asks for",
    )?;
    let key = "top_k_experts";
    let chosen = size(key, limits::COUNT, "the number of experts that a token is given to")?;
    if chosen > count {
        return Err(s.wrong(key, &chosen.into(), "at most `num_experts`"));
    }
    Ok(Some(ChosenExperts {
        count,
        chosen,
        intermediate: size("moe_intermediate_size", limits::WIDTH * 4, "the width inside an expert")?,
    }))
}

/// Reads the table of inputs of single layers.
fn per_layer(s: &Section) -> Result<Option<PerLayerInputs>, ModelError> {
    let width = s
        .optional_count("hidden_size_per_layer_input", limits::WIDTH)?
        .unwrap_or(256);
    let vocab = s.size_or("vocab_size_per_layer_input", 262_144, limits::VOCAB)?;
    Ok((width > 0).then_some(PerLayerInputs { vocab, width }))
}

/// Reads the heads of full and of sliding layers: those of all layers, and what `per_layer_config` or the keys of global
/// layers change.
fn kinds(s: &Section, heads: u64, slides: &[bool], keys_are_values: bool) -> Result<[LayerHeads; 2], ModelError> {
    let kv_heads = s.size("num_key_value_heads", 4, limits::HEADS)?;
    let width = s.size("head_dim", 256, limits::HEAD_DIM)?;
    let mut sizes = [[kv_heads, width]; 2];
    if s.has("per_layer_config") {
        for (slides_here, size) in [false, true].into_iter().zip(&mut sizes) {
            *size = overridden(s, slides, slides_here, *size)?;
        }
    } else {
        sizes[0][1] = s.size_or("global_head_dim", 512, limits::HEAD_DIM)?;
        let global = s.optional_size("num_global_key_value_heads", limits::HEADS)?;
        sizes[0][0] = global.filter(|_| keys_are_values).unwrap_or(kv_heads);
    }
    let mut made = Vec::with_capacity(2);
    for (kind, [kv_heads, width]) in [0, 1].into_iter().zip(sizes) {
        let used = slides.contains(&(kind == 1));
        if used {
            s.divide(("num_attention_heads", heads), ("num_key_value_heads", kv_heads))?;
            s.divide(("head_dim", width), ("2", 2))?;
        }
        let frequencies = match used {
            true => frequencies(s, kind, width)?,
            false => Frequencies::Default,
        };
        made.push(LayerHeads {
            kv_heads,
            width,
            frequencies,
        });
    }
    Ok([made[0], made[1]])
}

/// Sizes of the layers of one kind with what `per_layer_config` changes: key and value heads, and elements of a head.
fn overridden(s: &Section, slides: &[bool], kind: bool, usual: [u64; 2]) -> Result<[u64; 2], ModelError> {
    let key = "per_layer_config";
    let Some(value) = s.value(key) else {
        return Ok(usual);
    };
    let wrong = || {
        s.wrong(
            key,
            value,
            "an object that gives `head_dim` and `num_key_value_heads` by the index of a layer, alike for all layers of a kind",
        )
    };
    let mut sizes = vec![usual; slides.len()];
    for (layer, changes) in value.as_object().ok_or_else(wrong)? {
        let size = layer.parse().ok().and_then(|layer: usize| sizes.get_mut(layer));
        let size = size.ok_or_else(wrong)?;
        for (name, value) in changes.as_object().ok_or_else(wrong)? {
            let (place, limit) = match name.as_str() {
                "num_key_value_heads" => (0, limits::HEADS),
                "head_dim" => (1, limits::HEAD_DIM),
                _ => return Err(wrong()),
            };
            let given = value.as_u64().filter(|n| (1..=limit).contains(n));
            size[place] = given.ok_or_else(wrong)?;
        }
    }
    let mut of_kind = sizes
        .iter()
        .zip(slides)
        .filter(|(_, slides)| **slides == kind)
        .map(|(size, _)| *size);
    let first = of_kind.next().unwrap_or(usual);
    match of_kind.all(|size| size == first) {
        true => Ok(first),
        false => Err(wrong()),
    }
}

/// Reads how the frequencies of layers of one kind are made, for heads of `width` elements.
fn frequencies(s: &Section, kind: usize, width: u64) -> Result<Frequencies, ModelError> {
    let proportional = |share: f64| Frequencies::Proportional(((share * width as f64) / 2.0).floor() as u64);
    let Some(tables) = s.optional_nested("rope_parameters", "Gemma 4 rotary embedding")? else {
        return Ok(match kind {
            0 => proportional(0.25),
            _ => Frequencies::Default,
        });
    };
    let table = tables.nested(KINDS[kind], "Gemma 4 rotary embedding")?;
    match table.optional_text("rope_type")? {
        None | Some("default") => Ok(Frequencies::Default),
        Some("proportional") => {
            let share = table.optional_number("partial_rotary_factor")?.unwrap_or(1.0);
            if (0.0..=1.0).contains(&share) {
                return Ok(proportional(share));
            }
            Err(table.wrong("partial_rotary_factor", &share.into(), "a share from 0 to 1"))
        }
        Some(other) => Err(table.wrong(
            "rope_type",
            &other.into(),
            "\"default\" or \"proportional\": other kinds are not simulated",
        )),
    }
}
