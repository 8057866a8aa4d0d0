//! Decoders of the encoder-decoder families, as data.

use crate::model::config::Activation;
use crate::model::parts::bart::AttentionForm;

/// Form of a family's decoder.
#[derive(Debug, PartialEq)]
pub struct Form {
    /// The value of `model_type`.
    pub model_type: &'static str,
    /// True if a block's norms come before each part, false if after.
    pub norm_before: bool,
    /// Norm `layernorm_embedding` before the blocks.
    pub embedding_norm: EmbeddingNorm,
    /// True if that norm is made before the blocks, which decides the order of parameters.
    pub norm_made_first: bool,
    /// Name of the norm after the blocks.
    pub final_norm: Option<&'static str>,
    /// Table of positions.
    pub positions: PositionTable,
    /// Module that multiplies token embeddings by their factor.
    pub scale: Scale,
    /// Attention.
    pub(crate) attention: AttentionForm,
    /// True if the mask is made after the embeddings.
    pub mask_last: bool,
    /// Name of the head.
    pub head: &'static str,
    /// True if position ids live until the decoder returns.
    pub keeps_ids: bool,
    /// True if transformers has no SDPA for it, and takes eager attention unless told otherwise.
    pub eager_only: bool,
    /// True if the head may share the token embedding's weight.
    pub ties: bool,
    /// Key of the biases of attention's projections, which are there without it.
    pub bias_key: Option<&'static str>,
    /// Values for absent keys.
    pub defaults: Defaults,
}

/// Norms of embeddings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EmbeddingNorm {
    /// None.
    None,
    /// Of tokens and positions together.
    OfSum,
    /// Of tokens, to which positions are added after.
    OfTokens,
}

/// Module that multiplies token embeddings by their factor, which may be 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// The embedding's own module.
    InModule,
    /// The decoder.
    After,
    /// Nothing: the factor is not used.
    Never,
}

/// Tables of positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PositionTable {
    /// A learned one with two more entries, which ids are shifted by.
    Shifted,
    /// A learned one.
    Plain,
    /// Sinusoids, which are never trained.
    Frozen,
    /// A learned one with two more entries, whose module makes ids for each sample.
    ShiftedEach,
    /// A learned one that ids of each sample index.
    Indexed,
}

/// Values that the configuration class takes for absent keys.
#[derive(Debug, PartialEq)]
pub struct Defaults {
    pub vocab: u64,
    pub hidden: u64,
    pub intermediate: u64,
    pub layers: u64,
    pub heads: u64,
    pub max_positions: u64,
    pub activation: Activation,
    pub dropout: f64,
    pub attention_dropout: f64,
    pub padding: u64,
    /// Key of the longest sequence.
    pub positions_key: &'static str,
}

const BART_DEFAULTS: Defaults = Defaults {
    vocab: 50_265,
    hidden: 1024,
    intermediate: 4096,
    layers: 12,
    heads: 16,
    max_positions: 1024,
    activation: Activation::Gelu,
    dropout: 0.1,
    attention_dropout: 0.0,
    padding: 1,
    positions_key: "max_position_embeddings",
};

const BART: Form = Form {
    model_type: "bart",
    norm_before: false,
    embedding_norm: EmbeddingNorm::OfSum,
    norm_made_first: false,
    final_norm: None,
    positions: PositionTable::Shifted,
    scale: Scale::InModule,
    attention: AttentionForm::Interface,
    mask_last: false,
    head: "lm_head",
    keeps_ids: true,
    eager_only: false,
    ties: true,
    bias_key: None,
    defaults: BART_DEFAULTS,
};

/// Every form.
pub(super) static FORMS: [Form; 11] = [
    BART,
    Form {
        model_type: "plbart",
        defaults: Defaults {
            vocab: 50_005,
            hidden: 768,
            intermediate: 3072,
            layers: 6,
            heads: 12,
            attention_dropout: 0.1,
            ..BART_DEFAULTS
        },
        ..BART
    },
    Form {
        model_type: "mbart",
        norm_before: true,
        final_norm: Some("layer_norm"),
        keeps_ids: false,
        ..BART
    },
    Form {
        model_type: "pegasus",
        norm_before: true,
        embedding_norm: EmbeddingNorm::None,
        final_norm: Some("layer_norm"),
        positions: PositionTable::Frozen,
        scale: Scale::After,
        ..BART
    },
    Form {
        model_type: "marian",
        embedding_norm: EmbeddingNorm::None,
        positions: PositionTable::Frozen,
        scale: Scale::After,
        keeps_ids: false,
        defaults: Defaults {
            vocab: 58_101,
            padding: 58_100,
            ..BART_DEFAULTS
        },
        ..BART
    },
    Form {
        model_type: "blenderbot",
        norm_before: true,
        embedding_norm: EmbeddingNorm::None,
        final_norm: Some("layer_norm"),
        positions: PositionTable::Plain,
        keeps_ids: false,
        defaults: Defaults {
            vocab: 8008,
            hidden: 2560,
            intermediate: 10_240,
            layers: 24,
            heads: 32,
            max_positions: 128,
            ..BART_DEFAULTS
        },
        ..BART
    },
    Form {
        model_type: "blenderbot-small",
        embedding_norm: EmbeddingNorm::OfTokens,
        positions: PositionTable::Plain,
        scale: Scale::Never,
        keeps_ids: false,
        defaults: Defaults {
            hidden: 512,
            intermediate: 2048,
            layers: 8,
            max_positions: 512,
            ..BART_DEFAULTS
        },
        ..BART
    },
    Form {
        model_type: "bigbird_pegasus",
        norm_before: true,
        embedding_norm: EmbeddingNorm::None,
        final_norm: Some("layernorm_embedding"),
        positions: PositionTable::Plain,
        eager_only: true,
        ties: false,
        bias_key: Some("use_bias"),
        defaults: Defaults {
            vocab: 96_103,
            layers: 16,
            max_positions: 4096,
            activation: Activation::GeluNew,
            ..BART_DEFAULTS
        },
        ..BART
    },
    Form {
        model_type: "mvp",
        positions: PositionTable::ShiftedEach,
        scale: Scale::After,
        attention: AttentionForm::WrittenOut,
        eager_only: true,
        defaults: Defaults {
            vocab: 50_267,
            ..BART_DEFAULTS
        },
        ..BART
    },
    Form {
        model_type: "trocr",
        norm_made_first: true,
        positions: PositionTable::ShiftedEach,
        attention: AttentionForm::WrittenOut,
        mask_last: true,
        head: "output_projection",
        eager_only: true,
        defaults: Defaults {
            max_positions: 512,
            ..BART_DEFAULTS
        },
        ..BART
    },
    Form {
        model_type: "whisper",
        norm_before: true,
        embedding_norm: EmbeddingNorm::None,
        final_norm: Some("layer_norm"),
        positions: PositionTable::Indexed,
        scale: Scale::Never,
        attention: AttentionForm::Contiguous,
        mask_last: true,
        head: "proj_out",
        defaults: Defaults {
            vocab: 51_865,
            hidden: 384,
            intermediate: 1536,
            layers: 4,
            heads: 6,
            max_positions: 448,
            dropout: 0.0,
            padding: 50_256,
            positions_key: "max_target_positions",
            ..BART_DEFAULTS
        },
        ..BART
    },
];
