//! Forms of BERT's kin, and the sizes that their configuration classes state.

use super::config::{AttentionForm, BertForm, HeadModule, NormPlace, PositionForm, Projection, TypeForm};
use crate::model::config::Activation;

/// Form of a model type, and sizes that its configuration class states.
#[derive(Debug, Clone, Copy)]
pub(super) struct Defaults {
    pub form: &'static BertForm,
    pub vocab: u64,
    /// Width of the embeddings, for a type that has one of its own.
    pub embedding: Option<u64>,
    pub hidden: u64,
    pub intermediate: u64,
    pub layers: u64,
    pub heads: u64,
    /// Entries of the position embedding.
    pub positions: u64,
    /// Token types.
    pub types: u64,
    /// Dropout.
    pub dropout: f64,
    /// Activation of the MLP.
    pub activation: Activation,
}

static BERT: BertForm = BertForm {
    path: "bert",
    positions: PositionForm::Table,
    types: Some(TypeForm::Gathered),
    norms: NormPlace::After,
    attention: AttentionForm::Chosen,
    positions_in_place: false,
    dropout_first: false,
    projection: Projection::IfNeeded,
    head: HeadModule::Predictions,
    head_first: false,
    pools: false,
};

static ERNIE: BertForm = BertForm { path: "ernie", ..BERT };

static MEGATRON: BertForm = BertForm {
    types: Some(TypeForm::Zeros),
    norms: NormPlace::Megatron,
    attention: AttentionForm::EagerWithWeights,
    positions_in_place: true,
    ..BERT
};

static REMBERT: BertForm = BertForm {
    path: "rembert",
    types: Some(TypeForm::Zeros),
    attention: AttentionForm::EagerWithWeights,
    positions_in_place: true,
    projection: Projection::InEncoder,
    head: HeadModule::Widened,
    ..BERT
};

static GENERATION: BertForm = BertForm {
    types: None,
    head: HeadModule::Projection,
    ..BERT
};

static ELECTRA: BertForm = BertForm {
    path: "electra",
    head: HeadModule::Generator,
    ..BERT
};

static ROBERTA: BertForm = BertForm {
    path: "roberta",
    positions: PositionForm::Counted,
    head: HeadModule::LmHead,
    ..BERT
};

static CAMEMBERT: BertForm = BertForm {
    head_first: true,
    ..ROBERTA
};

/// X-MOD's with its norms before its parts.
pub(super) static XMOD_BEFORE: BertForm = BertForm {
    norms: NormPlace::OfOutputs,
    ..ROBERTA
};

static XL: BertForm = BertForm {
    norms: NormPlace::Xl,
    ..ROBERTA
};

static DATA2VEC: BertForm = BertForm {
    path: "data2vec_text",
    ..ROBERTA
};

static ROC_BERT: BertForm = BertForm {
    path: "roc_bert",
    ..BERT
};

static ROFORMER: BertForm = BertForm {
    path: "roformer",
    positions: PositionForm::Rotary,
    types: Some(TypeForm::Zeros),
    attention: AttentionForm::EagerWithWeights,
    ..BERT
};

static BIG_BIRD: BertForm = BertForm {
    types: Some(TypeForm::Sliced),
    attention: AttentionForm::Eager,
    positions_in_place: true,
    dropout_first: true,
    pools: true,
    ..BERT
};

static BEFORE: BertForm = BertForm {
    path: "roberta_prelayernorm",
    norms: NormPlace::Before,
    ..ROBERTA
};

/// Sizes of the smaller classes.
const BASE: Defaults = Defaults {
    form: &BERT,
    vocab: 30_522,
    embedding: None,
    hidden: 768,
    intermediate: 3072,
    layers: 12,
    heads: 12,
    positions: 512,
    types: 2,
    dropout: 0.1,
    activation: Activation::Gelu,
};

/// Sizes of the larger ones.
const LARGE: Defaults = Defaults {
    hidden: 1024,
    intermediate: 4096,
    layers: 24,
    heads: 16,
    ..BASE
};

/// Form and sizes of a model type of the family.
pub(super) fn defaults(model_type: &str) -> Defaults {
    let base = BASE;
    let of = |form| Defaults { form, ..base };
    match model_type {
        "roberta" => Defaults {
            vocab: 50_265,
            ..of(&ROBERTA)
        },
        "roberta-prelayernorm" => Defaults {
            vocab: 50_265,
            ..of(&BEFORE)
        },
        "camembert" | "xlm-roberta" => of(&CAMEMBERT),
        "xmod" => of(&ROBERTA),
        "data2vec-text" => of(&DATA2VEC),
        "ernie" => of(&ERNIE),
        "electra" => Defaults {
            embedding: Some(128),
            hidden: 256,
            intermediate: 1024,
            heads: 4,
            ..of(&ELECTRA)
        },
        "roc_bert" => of(&ROC_BERT),
        "roformer" => Defaults {
            vocab: 50_000,
            positions: 1536,
            ..of(&ROFORMER)
        },
        "big_bird" => Defaults {
            vocab: 50_358,
            positions: 4096,
            activation: Activation::GeluNew,
            ..of(&BIG_BIRD)
        },
        "rembert" | "xlm-roberta-xl" | "megatron-bert" | "bert-generation" => larger(model_type),
        _ => base,
    }
}

/// Form and sizes of a model type with larger sizes than BERT's.
fn larger(model_type: &str) -> Defaults {
    let base = BASE;
    let large = LARGE;
    match model_type {
        "rembert" => Defaults {
            form: &REMBERT,
            vocab: 250_300,
            embedding: Some(256),
            hidden: 1152,
            intermediate: 4608,
            layers: 32,
            heads: 18,
            dropout: 0.0,
            ..base
        },
        "xlm-roberta-xl" => Defaults {
            form: &XL,
            vocab: 250_880,
            hidden: 2560,
            intermediate: 10_240,
            layers: 36,
            heads: 32,
            positions: 514,
            types: 1,
            ..base
        },
        "megatron-bert" => Defaults {
            form: &MEGATRON,
            vocab: 29_056,
            ..large
        },
        _ => Defaults {
            form: &GENERATION,
            vocab: 50_358,
            ..large
        },
    }
}
