//! Defaults of the decoders' configuration classes.

use super::DecoderFamily;
use crate::model::ModelError;
use crate::model::config::Activation;
use crate::model::config::section::Section;

/// Values that transformers' configuration class of a family takes for absent keys.
pub(crate) struct DecoderDefaults {
    pub vocab: u64,
    pub hidden: u64,
    pub intermediate: u64,
    pub layers: u64,
    pub heads: u64,
    /// `None` for as many as query heads.
    pub kv_heads: Option<u64>,
    /// `None` for hidden ÷ heads.
    pub head_dim: Option<u64>,
    pub max_positions: u64,
    pub tie: bool,
    pub activation: Activation,
    /// Base wavelength of the rotary embedding.
    pub theta: f64,
    /// Layers that see all positions, before the first sliding one (Qwen).
    pub max_window_layers: u64,
    pub attention_dropout: f64,
}

/// `LlamaConfig`.
const LLAMA: DecoderDefaults = DecoderDefaults {
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
    theta: 10_000.0,
    max_window_layers: 28,
    attention_dropout: 0.0,
};

/// `GemmaConfig`.
const GEMMA: DecoderDefaults = DecoderDefaults {
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
    theta: 10_000.0,
    max_window_layers: 28,
    attention_dropout: 0.0,
};

/// `Gemma2Config`.
const GEMMA2: DecoderDefaults = DecoderDefaults {
    hidden: 2304,
    intermediate: 9216,
    layers: 26,
    heads: 8,
    kv_heads: Some(4),
    ..GEMMA
};

/// `Qwen2Config`.
const QWEN2: DecoderDefaults = DecoderDefaults {
    vocab: 151_936,
    intermediate: 22_016,
    kv_heads: Some(32),
    max_positions: 32_768,
    ..LLAMA
};

/// `CwmConfig`.
const CWM: DecoderDefaults = DecoderDefaults {
    vocab: 128_256,
    hidden: 6144,
    intermediate: 21_504,
    layers: 64,
    heads: 48,
    kv_heads: Some(8),
    head_dim: Some(128),
    max_positions: 131_072,
    theta: 1e6,
    ..LLAMA
};

/// `Ernie4_5Config`.
const ERNIE45: DecoderDefaults = DecoderDefaults {
    vocab: 103_424,
    hidden: 1024,
    intermediate: 3072,
    layers: 18,
    heads: 16,
    kv_heads: Some(2),
    head_dim: Some(128),
    max_positions: 131_072,
    tie: true,
    theta: 5e5,
    ..LLAMA
};

/// `HeliumConfig`.
const HELIUM: DecoderDefaults = DecoderDefaults {
    vocab: 48_000,
    hidden: 2560,
    intermediate: 7040,
    layers: 24,
    heads: 20,
    kv_heads: Some(20),
    head_dim: Some(128),
    max_positions: 4096,
    theta: 1e5,
    ..LLAMA
};

/// `Ministral3Config`.
const MINISTRAL3: DecoderDefaults = DecoderDefaults {
    vocab: 131_072,
    intermediate: 14_336,
    layers: 34,
    kv_heads: Some(8),
    head_dim: Some(128),
    max_positions: 262_144,
    theta: 1e6,
    ..LLAMA
};

/// `SeedOssConfig`.
const SEED_OSS: DecoderDefaults = DecoderDefaults {
    vocab: 155_136,
    intermediate: 27_648,
    layers: 64,
    heads: 80,
    kv_heads: Some(8),
    head_dim: Some(128),
    max_positions: 524_288,
    attention_dropout: 0.1,
    ..LLAMA
};

/// `SmolLM3Config`.
const SMOLLM3: DecoderDefaults = DecoderDefaults {
    vocab: 128_256,
    hidden: 2048,
    layers: 36,
    heads: 16,
    kv_heads: Some(4),
    max_positions: 32_768,
    tie: true,
    theta: 2e6,
    ..LLAMA
};

impl DecoderDefaults {
    /// `Qwen2VLTextConfig` and `Qwen2_5_VLTextConfig`.
    pub(crate) const QWEN2_VL: Self = Self {
        vocab: 152_064,
        hidden: 8192,
        intermediate: 29_568,
        layers: 80,
        heads: 64,
        kv_heads: Some(8),
        theta: 1e6,
        max_window_layers: 80,
        ..QWEN2
    };

    /// `Qwen3VLTextConfig`.
    pub(crate) const QWEN3_VL: Self = Self {
        head_dim: Some(128),
        max_positions: 128_000,
        theta: 5e5,
        ..QWEN2
    };

    /// `MllamaTextConfig`.
    pub(crate) const MLLAMA: Self = Self {
        vocab: 128_256,
        intermediate: 14_336,
        layers: 40,
        kv_heads: Some(8),
        max_positions: 131_072,
        theta: 5e5,
        ..LLAMA
    };

    pub(crate) const fn of(family: DecoderFamily) -> Self {
        match family {
            DecoderFamily::Llama | DecoderFamily::Granite => LLAMA,
            DecoderFamily::Cwm => CWM,
            DecoderFamily::Ernie45 => ERNIE45,
            DecoderFamily::Helium => HELIUM,
            DecoderFamily::Ministral3 => MINISTRAL3,
            DecoderFamily::SeedOss => SEED_OSS,
            DecoderFamily::SmolLm3 => SMOLLM3,
            DecoderFamily::VaultGemma => GEMMA2,
            DecoderFamily::Mistral => Self {
                intermediate: 14_336,
                kv_heads: Some(8),
                max_positions: 131_072,
                ..LLAMA
            },
            DecoderFamily::Qwen2 => QWEN2,
            DecoderFamily::Qwen3 => Self {
                head_dim: Some(128),
                ..QWEN2
            },
            DecoderFamily::Gemma => GEMMA,
            DecoderFamily::Gemma2 => GEMMA2,
            DecoderFamily::Gemma3 => Self {
                vocab: 262_208,
                max_positions: 131_072,
                theta: 1e6,
                ..GEMMA2
            },
            DecoderFamily::Phi3 => Self {
                vocab: 32_064,
                hidden: 3072,
                intermediate: 8192,
                max_positions: 4096,
                ..LLAMA
            },
        }
    }
}

/// Key of the activation: Gemma 2 and 3 read `hidden_activation`; older files of all families use `hidden_act`.
pub(super) fn activation_key(s: &Section, family: DecoderFamily) -> &'static str {
    let newer = matches!(
        family,
        DecoderFamily::Gemma2 | DecoderFamily::Gemma3 | DecoderFamily::VaultGemma
    );
    if newer && s.value("hidden_activation").is_some() {
        "hidden_activation"
    } else {
        "hidden_act"
    }
}

/// Reads a soft cap: for Gemma 2 and VaultGemma, `default` if the key is absent and none if it is null.
pub(super) fn softcap(s: &Section, family: DecoderFamily, key: &str, default: f64) -> Result<Option<f64>, ModelError> {
    match family {
        DecoderFamily::Gemma2 | DecoderFamily::VaultGemma if !s.has(key) => Ok(Some(default)),
        DecoderFamily::Gemma2 | DecoderFamily::Gemma3 | DecoderFamily::VaultGemma => s.optional_number(key),
        _ => Ok(None),
    }
}
