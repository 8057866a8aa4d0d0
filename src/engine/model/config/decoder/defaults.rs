use super::DecoderFamily;
use crate::model::ModelError;
use crate::model::config::Activation;
use crate::model::config::section::Section;

/// What transformers' configuration class of a family takes for absent keys.
pub(super) struct Defaults {
    family: DecoderFamily,
    pub vocab: u64,
    pub hidden: u64,
    pub intermediate: u64,
    pub layers: u64,
    pub heads: u64,
    /// `None`: as many as query heads.
    pub kv_heads: Option<u64>,
    /// `None`: hidden ÷ heads.
    pub head_dim: Option<u64>,
    pub max_positions: u64,
    pub tie: bool,
    pub activation: Activation,
}

/// `LlamaConfig`.
const LLAMA: Defaults = Defaults {
    family: DecoderFamily::Llama,
    vocab: 32_000,
    hidden: 4096,
    intermediate: 11_008,
    layers: 32,
    heads: 32,
    kv_heads: None,
    head_dim: None,
    max_positions: 2048,
    tie: false,
    activation: Activation::Silu,
};

/// `GemmaConfig`.
const GEMMA: Defaults = Defaults {
    family: DecoderFamily::Gemma,
    vocab: 256_000,
    hidden: 3072,
    intermediate: 24_576,
    layers: 28,
    heads: 16,
    kv_heads: Some(16),
    head_dim: Some(256),
    max_positions: 8192,
    tie: true,
    activation: Activation::GeluTanh,
};

/// `Gemma2Config`.
const GEMMA2: Defaults = Defaults {
    family: DecoderFamily::Gemma2,
    hidden: 2304,
    intermediate: 9216,
    layers: 26,
    heads: 8,
    kv_heads: Some(4),
    ..GEMMA
};

/// `Qwen2Config`.
const QWEN2: Defaults = Defaults {
    family: DecoderFamily::Qwen2,
    vocab: 151_936,
    intermediate: 22_016,
    kv_heads: Some(32),
    max_positions: 32_768,
    ..LLAMA
};

impl Defaults {
    pub(super) const fn of(family: DecoderFamily) -> Self {
        match family {
            DecoderFamily::Llama => LLAMA,
            DecoderFamily::Generic => Self { family, ..LLAMA },
            DecoderFamily::Mistral => Self {
                family,
                intermediate: 14_336,
                kv_heads: Some(8),
                max_positions: 131_072,
                ..LLAMA
            },
            DecoderFamily::Qwen2 => QWEN2,
            DecoderFamily::Qwen3 => Self {
                family,
                head_dim: Some(128),
                ..QWEN2
            },
            DecoderFamily::Gemma => GEMMA,
            DecoderFamily::Gemma2 => GEMMA2,
            DecoderFamily::Gemma3 => Self {
                family,
                vocab: 262_208,
                max_positions: 131_072,
                ..GEMMA2
            },
            DecoderFamily::Phi3 => Self {
                family,
                vocab: 32_064,
                hidden: 3072,
                intermediate: 8192,
                max_positions: 4096,
                ..LLAMA
            },
        }
    }

    /// Gemma 2 and 3 read `hidden_activation`; older files of all families say `hidden_act`.
    pub(super) fn activation_key(&self, s: &Section) -> &'static str {
        let newer = matches!(self.family, DecoderFamily::Gemma2 | DecoderFamily::Gemma3);
        if newer && s.value("hidden_activation").is_some() {
            "hidden_activation"
        } else {
            "hidden_act"
        }
    }

    /// A soft cap: Gemma 2 has `default` where the key is absent and none where it is null.
    pub(super) fn softcap(&self, s: &Section, key: &str, default: f64) -> Result<Option<f64>, ModelError> {
        match self.family {
            DecoderFamily::Gemma2 if !s.has(key) => Ok(Some(default)),
            DecoderFamily::Gemma2 | DecoderFamily::Gemma3 => s.optional_number(key),
            _ => Ok(None),
        }
    }
}
