//! Laguna: gated attention with other heads in each layer, kinds of layers with rotary embeddings of their own, and experts
//! chosen by sigmoids (`transformers/models/laguna`). The model goes through the kinds of layers as a Python set, so that the
//! hash seed of the process decides which kind's mask is made first; here it is that of layers that see all.

mod attention;
mod moe;

use serde_json::Value;

use crate::model::ModelError;
use crate::model::config::limits;
use crate::model::config::section::Section;
use crate::model::decoder::layer::Layer as DecoderLayer;
use crate::model::decoder::mlp::Mlp;
use crate::model::decoder::{
    Biases, CHOSEN, ChosenWeights, DecoderConfig, DecoderDefaults, DecoderFamily, DenseLayers, ExpertKeys, KindShares,
    LlamaModules, Modules, OfDense, OwnSizes, SharedKeys, WindowLength, Windows, each_layer_has_a_kind, not_null,
    rope_tables, slides_with_a_number,
};
use crate::model::facts::ModelType;
use crate::nn::Builder;
use attention::GatedAttention;
use moe::SparseMlp;

/// `laguna`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType::new("laguna", &["LagunaForCausalLM"]),
    defaults: DecoderDefaults {
        vocab: 100_352,
        hidden: 2048,
        intermediate: 8192,
        layers: 40,
        heads: 48,
        kv_heads: Some(8),
        head_dim: Some(128),
        max_positions: 131_072,
        theta: 500_000.0,
        ..DecoderDefaults::LLAMA
    },
    biases: |s| {
        check(s)?;
        Biases::of_attention(s)
    },
    windows: Windows {
        switch: None,
        length: WindowLength::Or(512),
        slides: |_, _, _| Ok(false),
    },
    modules: Modules::Llama(LlamaModules {
        rotary_by_kind: true,
        kind_shares: Some(KindShares {
            without_tables: [0.5, 1.0],
            of_table: 1.0,
        }),
        experts: Some(&ExpertKeys {
            experts: (["num_experts"; 2], 256),
            chosen: (CHOSEN, 8),
            intermediate: ("moe_intermediate_size", 512),
            weights: ChosenWeights::OfBlock,
            gate_first: false,
            dense: DenseLayers::KindsOr(1),
            shared: SharedKeys::OfWidth("shared_expert_intermediate_size", 512),
            of_dense: OfDense::Usual,
        }),
        ..LlamaModules::LLAMA
    }),
    own: |s, c| {
        let cap = s.optional_number("moe_router_logit_softcapping")?;
        Ok(OwnSizes::Laguna {
            heads: heads(s, c)?,
            gates_heads: gates_heads(s)?,
            caps_logits: cap.is_some_and(|cap| cap > 0.0),
        })
    },
    ..DecoderFamily::USUAL
};

/// Makes a block: Llama's, with another attention, and with experts or an MLP.
pub(crate) struct Layer;

impl Layer {
    #[expect(clippy::new_ret_no_self, reason = "the registry makes every block by `new`")]
    pub fn new(b: &Builder, c: &DecoderConfig, index: usize) -> DecoderLayer {
        let experts = c.experts.as_ref().filter(|experts| experts.sparse[index]);
        let attention = || Box::new(GatedAttention::new(b, c, index)) as _;
        DecoderLayer::with_parts(b, c, &attention, &|| match experts {
            Some(experts) => Box::new(SparseMlp::new(b, c, experts)),
            None => Box::new(Mlp::new(b, c)),
        })
    }
}

/// Reads the query heads of each layer.
fn heads(s: &Section, c: &DecoderConfig) -> Result<Vec<u64>, ModelError> {
    let key = "num_attention_heads_per_layer";
    let Some(heads) = s.optional_indices(key, limits::HEADS)? else {
        return Ok(vec![c.heads; c.layers as usize]);
    };
    let fit = |heads: &Vec<u64>| {
        heads.len() as u64 == c.layers && heads.iter().all(|n| *n > 0 && n.is_multiple_of(c.kv_heads))
    };
    if fit(&heads) {
        return Ok(heads);
    }
    let allowed = format!(
        "{} numbers of heads, multiples of num_key_value_heads, {}",
        c.layers, c.kv_heads
    );
    Err(s.wrong(key, s.value(key).unwrap_or(&Value::Null), &allowed))
}

/// Reads if a gate multiplies a whole head. Whatever else is given, `false` too, gates elements.
fn gates_heads(s: &Section) -> Result<bool, ModelError> {
    let key = "gating";
    s.only(key, "a flag or a text", |v| v.is_boolean() || v.is_string())?;
    Ok(s.value(key).is_none_or(|v| v == true || v == "per-head"))
}

/// Refuses what is not simulated.
fn check(s: &Section) -> Result<(), ModelError> {
    slides_with_a_number(s)?;
    let numbers = [
        "num_attention_heads",
        "num_key_value_heads",
        "num_experts",
        "num_experts_per_tok",
        "shared_expert_intermediate_size",
        "moe_routed_scaling_factor",
        "moe_router_logit_softcapping",
    ];
    not_null(s, &numbers)?;
    s.only("moe_apply_router_weight_on_input", "false", |v| v == false)?;
    each_layer_has_a_kind(s)?;
    rope_tables::are_of_kinds(s, 128)
}
