//! Configuration of Gemma 3n's language model.

use serde_json::Value;

use crate::model::ModelError;
use crate::model::config::section::Section;
use crate::model::config::{Activation, limits};
use crate::model::decoder::not_null;

/// Gemma 3n's language model: Gemma 4's layers of two kinds, inputs of every layer and shared keys and values, with
/// several hidden states of each token, of which a layer computes one and predicts the others (AltUp).
///
/// Source: `transformers/models/gemma3n/configuration_gemma3n.py`.
#[derive(Debug, Clone, PartialEq)]
pub struct Gemma3nTextConfig {
    /// Entries of the vocabulary.
    pub vocab: u64,
    /// Width of the residual stream.
    pub hidden: u64,
    /// MLPs of the layers.
    pub mlps: Vec<MlpForm>,
    /// Query heads.
    pub heads: u64,
    /// Key and value heads, a divisor.
    pub kv_heads: u64,
    /// Elements of one head.
    pub head_dim: u64,
    /// Layers, true for those that see a window.
    pub slides: Vec<bool>,
    /// Positions that sliding layers see.
    pub window: u64,
    /// Last layers, which take the keys and values of the last layer of their kind before them.
    pub shared_layers: u64,
    /// Entries of the table of the layers' inputs.
    pub input_vocab: u64,
    /// Elements of one layer's input.
    pub input_width: u64,
    /// Hidden states of each token.
    pub streams: u64,
    /// True if the state that a layer computed is scaled before the layer's input is added to the others.
    pub scales_corrected: bool,
    /// Rank of the learned residual layer (LAuReL).
    pub laurel_rank: u64,
    /// True if the projections of attention have biases.
    pub attention_bias: bool,
    /// Dropout of attention probabilities.
    pub attention_dropout: f64,
    /// Activation of gates.
    pub activation: Activation,
    /// True if the head shares the token embedding's weight.
    pub tie_word_embeddings: bool,
    /// Longest sequence that the model was made for.
    pub max_positions: u64,
}

/// MLP of one layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MlpForm {
    /// Width inside.
    pub width: u64,
    /// True if gates below a share of a normal distribution are cleared.
    pub is_sparse: bool,
}

const KINDS: [&str; 2] = ["full_attention", "sliding_attention"];

impl Gemma3nTextConfig {
    /// Layers, from the first, that make keys and values: all if as many layers as there are would share.
    pub fn own_layers(&self) -> usize {
        match self.slides.len().saturating_sub(self.shared_layers as usize) {
            0 => self.slides.len(),
            own => own,
        }
    }

    /// True if a layer keeps its keys and values for those that share them.
    pub fn stores(&self, place: usize) -> bool {
        let before = &self.slides[..layers_before(self.slides.len(), self.shared_layers)];
        before.iter().rposition(|slides| *slides == self.slides[place]) == Some(place)
    }

    pub(super) fn read(s: &Section) -> Result<Self, ModelError> {
        not_null(s, &["final_logit_softcapping", "altup_coef_clip", "sliding_window"])?;
        let layers = s.size("num_hidden_layers", 35, limits::LAYERS)?;
        let vocab = s.size("vocab_size", 262_400, limits::VOCAB)?;
        s.padding(vocab)?;
        let hidden = s.size("hidden_size", 2048, limits::WIDTH)?;
        let heads = s.size("num_attention_heads", 8, limits::HEADS)?;
        let kv_heads = s.size("num_key_value_heads", 2, limits::HEADS)?;
        let head_dim = s.size("head_dim", 256, limits::HEAD_DIM)?;
        s.divide(("hidden_size", hidden), ("num_attention_heads", heads))?;
        s.divide(("num_attention_heads", heads), ("num_key_value_heads", kv_heads))?;
        s.divide(("head_dim", head_dim), ("2", 2))?;
        let slides = slides(s, layers)?;
        default_frequencies(s, &slides)?;
        let streams = s.size("altup_num_inputs", 4, limits::COUNT)?;
        let active = s.optional_count("altup_active_idx", limits::COUNT)?.unwrap_or(0);
        if streams < 2 || active >= streams {
            let allowed = "at least 2, and more than `altup_active_idx`";
            return Err(s.wrong("altup_num_inputs", &streams.into(), allowed));
        }
        Ok(Self {
            vocab,
            hidden,
            mlps: mlps(s, layers)?,
            heads,
            kv_heads,
            head_dim,
            window: s.size_or("sliding_window", 512, limits::POSITIONS)?,
            shared_layers: shared_layers(s, &slides)?,
            slides,
            input_vocab: s.size("vocab_size_per_layer_input", 262_144, limits::VOCAB)?,
            input_width: s.size("hidden_size_per_layer_input", 256, limits::WIDTH)?,
            streams,
            scales_corrected: s.flag("altup_correct_scale", true)?,
            laurel_rank: s.size("laurel_rank", 64, limits::WIDTH)?,
            attention_bias: s.flag("attention_bias", false)?,
            attention_dropout: s.probability("attention_dropout", 0.0)?,
            activation: s.activation("hidden_activation", Activation::GeluTanh)?,
            tie_word_embeddings: s.flag("tie_word_embeddings", true)?,
            max_positions: s.size_or("max_position_embeddings", 32_768, limits::POSITIONS)?,
        })
    }
}

/// Reads a list with an entry for each layer.
fn of_layers<T>(
    s: &Section,
    key: &str,
    value: &Value,
    (layers, entry): (u64, &str),
    read: impl Fn(&Value) -> Option<T>,
) -> Result<Vec<T>, ModelError> {
    let list = value.as_array().filter(|list| list.len() as u64 == layers);
    let read = list.and_then(|list| list.iter().map(read).collect());
    read.ok_or_else(|| s.wrong(key, value, &format!("a list of {layers} times {entry}")))
}

/// Reads which layers slide.
fn slides(s: &Section, layers: u64) -> Result<Vec<bool>, ModelError> {
    let Some(value) = s.value("layer_types") else {
        return Ok((1..=layers).map(|place| !place.is_multiple_of(5)).collect());
    };
    let entry = format!("{} or {}", KINDS[0], KINDS[1]);
    of_layers(s, "layer_types", value, (layers, &entry), |kind| {
        KINDS.iter().position(|known| kind == known).map(|kind| kind == 1)
    })
}

/// Reads the width inside each layer's MLP, and which of them are sparse: the first ten of more than ten, unless the file
/// says otherwise.
fn mlps(s: &Section, layers: u64) -> Result<Vec<MlpForm>, ModelError> {
    let (key, limit) = ("intermediate_size", limits::WIDTH * 4);
    let widths = match s.value(key) {
        Some(value) if value.is_array() => of_layers(s, key, value, (layers, "a width"), |width| {
            width.as_u64().filter(|width| (1..=limit).contains(width))
        })?,
        _ => vec![s.size(key, 16_384, limit)?; layers as usize],
    };
    let key = "activation_sparsity_pattern";
    let sparse = match s.value(key) {
        Some(value) => of_layers(s, key, value, (layers, "a share"), |share| Some(share.as_f64()? > 0.0))?,
        None => (0..layers).map(|place| layers > 10 && place < 10).collect(),
    };
    let forms = widths.into_iter().zip(sparse);
    Ok(forms.map(|(width, is_sparse)| MlpForm { width, is_sparse }).collect())
}

/// Layers among which those are looked for that keep keys and values for others (`layer_types[:first]`, where `first` may be
/// negative).
const fn layers_before(layers: usize, shared: u64) -> usize {
    let shared = shared as usize;
    if shared < layers {
        layers - shared
    } else if shared == layers {
        0
    } else {
        (2 * layers).saturating_sub(shared)
    }
}

/// Reads the number of last layers that make no keys and values. Each kind of layer has to be among those before.
fn shared_layers(s: &Section, slides: &[bool]) -> Result<u64, ModelError> {
    let key = "num_kv_shared_layers";
    let shared = s.optional_count(key, limits::LAYERS)?.unwrap_or(15);
    let before = &slides[..layers_before(slides.len(), shared)];
    match slides.iter().find(|kind| !before.contains(kind)) {
        None => Ok(shared),
        Some(&kind) => {
            let name = KINDS[usize::from(kind)];
            let allowed =
                format!("layers of each kind before those: transformers 5.17 says \"'{name}' is not in list\"");
            Err(s.wrong(key, &shared.into(), &allowed))
        }
    }
}

/// Refuses frequencies of the rotary embedding other than the usual ones.
fn default_frequencies(s: &Section, slides: &[bool]) -> Result<(), ModelError> {
    let Some(tables) = s.optional_nested("rope_parameters", "Gemma 3n rotary embedding")? else {
        return Ok(());
    };
    for kind in [false, true].into_iter().filter(|kind| slides.contains(kind)) {
        let Some(table) = tables.optional_nested(KINDS[usize::from(kind)], "Gemma 3n rotary embedding")? else {
            continue;
        };
        table.only("rope_type", "\"default\": other kinds are not simulated", |given| {
            given == "default"
        })?;
    }
    Ok(())
}
