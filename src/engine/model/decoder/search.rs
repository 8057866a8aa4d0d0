//! Changes of a decoder's row, one flag at a time: by trying them against a recording, a program finds the row of a family
//! that is not known (`examples/find_row.rs`).

use std::fmt;

use serde_json::Value;

use super::config::DecoderConfig;
use super::experts::{Combination, RouterKind, SharedKind};
use super::family::{DecoderFamily, LlamaModules, Modules};
use super::forms::{LateScale, LlamaBlock, MlpKind, NormPlacement, QueryNorms, Rotation};
use crate::model::families::{ModelConfig, decoders};
use crate::model::{Model, ModelError};
use crate::nn::{NormKind, RmsScale};

/// A change of a row, and of what a configuration was read into with it.
struct Change {
    /// The change as a row states it.
    name: &'static str,
    apply: fn(&mut LlamaModules, &mut DecoderConfig),
}

/// Makes a change of one field of the block.
macro_rules! block {
    ($field:ident: $value:expr) => {
        Change {
            name: concat!("block.", stringify!($field), ": ", stringify!($value)),
            apply: |modules, _| {
                modules.block = LlamaBlock {
                    $field: $value,
                    ..modules.block
                }
            },
        }
    };
}

/// Makes a change of one field of the modules.
macro_rules! modules {
    ($field:ident: $value:expr) => {
        Change {
            name: concat!(stringify!($field), ": ", stringify!($value)),
            apply: |modules, _| modules.$field = $value,
        }
    };
}

/// Makes a change of one field of the configuration, which the row's functions read.
macro_rules! config {
    ($field:ident: $value:expr) => {
        Change {
            name: concat!("(read) ", stringify!($field), ": ", stringify!($value)),
            apply: |_, c| c.$field = $value,
        }
    };
}

/// Makes a change of the experts, if there are some.
macro_rules! experts {
    ($field:ident: $value:expr) => {
        Change {
            name: concat!("experts.", stringify!($field), ": ", stringify!($value)),
            apply: |_, c| {
                if let Some(experts) = &mut c.experts {
                    experts.$field = $value;
                }
            },
        }
    };
}

/// Makes a change of the norms' kind, and of that of queries and keys.
macro_rules! norm {
    ($value:expr) => {
        Change {
            name: concat!("block.norm: ", stringify!($value)),
            apply: |modules, c| {
                modules.block.norm = $value;
                c.norm = $value;
            },
        }
    };
}

static CHANGES: &[Change] = &[
    config!(qkv_bias: true),
    config!(qkv_bias: false),
    config!(o_bias: true),
    config!(o_bias: false),
    config!(mlp_bias: true),
    config!(mlp_bias: false),
    config!(head_bias: true),
    config!(qk_norm: true),
    config!(qk_norm: false),
    config!(scales_late: true),
    config!(norms_around: true),
    norm!(NormKind::Rms(RmsScale::Weight)),
    norm!(NormKind::Rms(RmsScale::WeightFirst)),
    norm!(NormKind::Rms(RmsScale::OnePlusWeight)),
    norm!(NormKind::Layer),
    norm!(NormKind::PlainLayer),
    norm!(NormKind::ShiftedLayer),
    norm!(NormKind::WideLayer),
    norm!(NormKind::WideRms),
    block!(placement: NormPlacement::Before),
    block!(placement: NormPlacement::After),
    block!(placement: NormPlacement::Shared),
    block!(placement: NormPlacement::Around(["post_self_attn_layernorm", "post_mlp_layernorm"], None)),
    block!(query_norms: QueryNorms::Heads),
    block!(query_norms: QueryNorms::SplitHeads),
    block!(query_norms: QueryNorms::TurnedHeads(["query_layernorm", "key_layernorm"])),
    block!(query_norms: QueryNorms::Whole),
    block!(mlp: MlpKind::Gated),
    block!(mlp: MlpKind::Fused),
    block!(mlp: MlpKind::Plain(["up_proj", "down_proj"])),
    block!(rotation: Rotation::Whole),
    block!(rotation: Rotation::Back),
    block!(rotation: Rotation::ByF32),
    block!(rotation: Rotation::InF32),
    block!(rotation: Rotation::Part),
    block!(rotation: Rotation::FreedPart),
    block!(rotation: Rotation::AlternatingPart),
    block!(rotation: Rotation::PairedPart),
    block!(rotation: Rotation::Halves),
    block!(rotation: Rotation::AlternatingInF32),
    block!(rotation: Rotation::PairedInF32),
    block!(scales_queries: true),
    block!(scales_keys: true),
    block!(rotates_only_sliding: true),
    block!(rotates_only_sliding: false),
    block!(scales_stream: true),
    block!(scales_stream: false),
    block!(scales_logits: true),
    block!(scales_logits: false),
    block!(scales_last: true),
    block!(keeps_undropped: true),
    block!(sub_norms: true),
    modules!(one_mask: true),
    modules!(one_mask: false),
    modules!(both_masks: true),
    modules!(both_masks: false),
    modules!(partial_rotary: true),
    modules!(partial_rotary: false),
    modules!(recomputes_rotary: true),
    modules!(rotary_by_kind: true),
    modules!(rotary_by_kind: false),
    modules!(late_scale: LateScale::Replaces),
    modules!(late_scale: LateScale::Beside("mup_enabled")),
    modules!(norm_first: true),
    experts!(gate_first: true),
    experts!(gate_first: false),
    experts!(weights: RouterKind::OfChosen),
    experts!(weights: RouterKind::OfChosenInF32),
    experts!(weights: RouterKind::SoftmaxOfChosen),
    experts!(weights: RouterKind::SigmoidsOfChosen { is_normalised: true }),
    experts!(weights: RouterKind::Softmax { is_normalised: true, narrows: true }),
    experts!(weights: RouterKind::Softmax { is_normalised: false, narrows: true }),
    experts!(weights: RouterKind::Softmax { is_normalised: true, narrows: false }),
    experts!(weights: RouterKind::Corrected),
    experts!(weights: RouterKind::NormalisedProduct),
    experts!(shared: None),
    Change {
        name: "experts.shared: added after the others",
        apply: |_, c| share(c, SharedKind::Added),
    },
    Change {
        name: "experts.shared: run before the router",
        apply: |_, c| share(c, SharedKind::AddedFirst),
    },
    Change {
        name: "experts.shared: run last",
        apply: |_, c| share(c, SharedKind::Last(Combination::Sum)),
    },
    Change {
        name: "experts.shared: run first, added last",
        apply: |_, c| share(c, SharedKind::Beside),
    },
];

/// Gives the expert that all tokens pass another place, if there is one.
fn share(c: &mut DecoderConfig, kind: SharedKind) {
    let Some(experts) = &mut c.experts else { return };
    experts.shared = experts.shared.map(|(_, width)| (kind, width));
}

/// A row with changes.
#[derive(Debug, Clone)]
pub struct Candidate {
    row: &'static str,
    changes: Vec<usize>,
}

/// Names of the rows of decoders that run on Llama's modules.
pub fn rows() -> impl Iterator<Item = &'static str> {
    decoders::loaded()
        .filter(|family| !family.is_gemma())
        .map(DecoderFamily::name)
}

impl Candidate {
    /// A row as it stands.
    pub fn of(row: &'static str) -> Self {
        Self {
            row,
            changes: Vec::new(),
        }
    }

    /// Indices of its changes.
    pub fn changes(&self) -> &[usize] {
        &self.changes
    }

    /// The same with one change more.
    pub fn changed(&self) -> impl Iterator<Item = Self> {
        let others = (0..CHANGES.len()).filter(|change| !self.changes.contains(change));
        others.map(|change| Self {
            changes: self.changes.iter().copied().chain([change]).collect(),
            ..self.clone()
        })
    }

    /// Reads a `config.json` of any type as one of the row's, and makes the changes.
    ///
    /// # Errors
    /// If the row does not read it.
    pub fn model(&self, config: &str) -> Result<Model, ModelError> {
        let mut given: Value = serde_json::from_str(config).unwrap_or_default();
        if let Some(object) = given.as_object_mut() {
            object.insert("model_type".to_owned(), self.row.into());
            object.remove("architectures");
        }
        let model = Model::from_config(&given.to_string())?;
        let Some(read) = model.config.downcast::<DecoderConfig>() else {
            return Ok(model);
        };
        let mut decoder = read.clone();
        if let (Modules::Llama(mut modules), false) = (decoder.family.modules, self.changes.is_empty()) {
            for &change in &self.changes {
                (CHANGES[change].apply)(&mut modules, &mut decoder);
            }
            // Rows live as long as the program, as those of the registry do.
            decoder.family = Box::leak(Box::new(DecoderFamily {
                modules: Modules::Llama(modules),
                ..*decoder.family
            }));
        }
        Ok(Model {
            config: ModelConfig::of_decoder(decoder),
            ..model
        })
    }
}

impl fmt::Display for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.row)?;
        for (place, &change) in self.changes.iter().enumerate() {
            let before = if place == 0 { " with " } else { ", " };
            write!(f, "{before}{}", CHANGES[change].name)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Setup;
    use crate::simulate::record;
    use crate::tape::Gpu;

    const CONFIG: &str = r#"{"model_type": "unknown", "architectures": ["UnknownForCausalLM"], "vocab_size": 500,
        "hidden_size": 64, "intermediate_size": 160, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "max_position_embeddings": 128}"#;

    fn with(candidate: &Candidate, change: &str) -> Candidate {
        let found = candidate
            .changed()
            .find(|changed| changed.to_string().ends_with(change));
        found.expect("a change of this name")
    }

    /// Bytes that a step allocates and frees, in order.
    fn events(candidate: &Candidate) -> Vec<u64> {
        let setup = Setup {
            seq: 64,
            ..Setup::default()
        };
        let simulated = record(&candidate.model(CONFIG).expect("it is read"), &setup, Gpu::H200);
        let bytes = |storage: u32| simulated.log.allocations[storage as usize].bytes;
        simulated
            .steady
            .events
            .iter()
            .map(|event| bytes(event.storage()))
            .collect()
    }

    #[test]
    fn two_changes_of_llama_make_granite() {
        let llama = Candidate::of("llama");
        let changed = with(&with(&llama, "block.scales_stream: true"), "block.scales_logits: true");
        assert_eq!(events(&changed), events(&Candidate::of("granite")));
        assert_ne!(events(&changed), events(&llama));
    }

    #[test]
    fn a_candidate_says_its_row_and_changes() {
        let changed = with(&Candidate::of("qwen2"), "block.query_norms: QueryNorms::Whole");
        assert_eq!(changed.to_string(), "`qwen2` with block.query_norms: QueryNorms::Whole");
    }
}
