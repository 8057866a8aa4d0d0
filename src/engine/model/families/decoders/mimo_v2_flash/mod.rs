//! MiMo-V2-Flash: sliding layers with sinks and twice the keys, narrow values, and experts chosen among groups
//! (`transformers/models/mimo_v2_flash`). The model goes through the kinds of layers as a Python set, so that the hash seed
//! of the process decides which kind's mask is made first; here it is that of layers that see all.

mod attention;

use crate::model::ModelError;
use crate::model::config::limits;
use crate::model::config::section::Section;
use crate::model::decoder::layer::Layer as DecoderLayer;
use crate::model::decoder::mlp::Mlp;
use crate::model::decoder::sparse::SparseMlp;
use crate::model::decoder::{
    Biases, CHOSEN, ChosenWeights, DecoderConfig, DecoderDefaults, DecoderFamily, DenseLayers, ExpertKeys, GroupKeys,
    GroupScores, KindShares, LlamaModules, Modules, OfDense, OwnSizes, SharedKeys, WindowLength, Windows,
    each_layer_has_a_kind, not_null, rope_tables, slides_with_a_number,
};
use crate::model::facts::ModelType;
use crate::nn::Builder;
use attention::Attention;

/// `mimo_v2_flash`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType::new("mimo_v2_flash", &["MiMoV2FlashForCausalLM"]),
    defaults: DecoderDefaults {
        vocab: 152_576,
        intermediate: 16_384,
        layers: 48,
        heads: 64,
        kv_heads: Some(4),
        head_dim: Some(192),
        max_positions: 131_072,
        theta: 5_000_000.0,
        ..DecoderDefaults::LLAMA
    },
    biases: |s| {
        check(s)?;
        Ok(Biases {
            qkv: s.flag("attention_bias", false)?,
            ..Biases::NONE
        })
    },
    windows: Windows {
        switch: None,
        length: WindowLength::Or(128),
        slides: |_, _, layer| Ok(layer != 0 && (layer + 1) % 6 != 0),
    },
    modules: Modules::Llama(LlamaModules {
        is_eager: true,
        rotary_by_kind: true,
        kind_shares: Some(KindShares {
            without_tables: [0.334; 2],
            of_table: 0.334,
        }),
        experts: Some(&ExpertKeys {
            experts: (["n_routed_experts", "num_local_experts"], 256),
            chosen: (CHOSEN, 8),
            intermediate: ("moe_intermediate_size", 2048),
            weights: ChosenWeights::Grouped(GroupKeys {
                groups: 1,
                kept: 1,
                is_normalised: true,
                scores: GroupScores::Sigmoids,
            }),
            gate_first: false,
            dense: DenseLayers::KindsOr(1),
            shared: SharedKeys::Never,
            of_dense: OfDense::Usual,
        }),
        ..LlamaModules::LLAMA
    }),
    own: |s, c| {
        if c.windows.iter().any(Option::is_some) {
            s.divide(
                ("num_attention_heads", c.heads),
                ("2 × num_key_value_heads", 2 * c.kv_heads),
            )?;
        }
        Ok(OwnSizes::ValueHeads(s.size_of_class(
            "v_head_dim",
            128,
            limits::HEAD_DIM,
        )?))
    },
    ..DecoderFamily::USUAL
};

/// Makes a block: Llama's, with another attention, and with experts or an MLP.
pub(crate) struct Layer;

impl Layer {
    #[expect(clippy::new_ret_no_self, reason = "the registry makes every block by `new`")]
    pub fn new(b: &Builder, c: &DecoderConfig, index: usize) -> DecoderLayer {
        let experts = c.experts.as_ref().filter(|experts| experts.sparse[index]);
        let attention = || Box::new(Attention::new(b, c, index)) as _;
        DecoderLayer::with_parts(b, c, &attention, &|| match experts {
            Some(experts) => Box::new(SparseMlp::new(b, (c.activation, false), experts)),
            None => Box::new(Mlp::new(b, c)),
        })
    }
}

/// Refuses what is not simulated.
fn check(s: &Section) -> Result<(), ModelError> {
    slides_with_a_number(s)?;
    not_null(
        s,
        &[
            "num_key_value_heads",
            "num_experts_per_tok",
            "n_routed_experts",
            "norm_topk_prob",
            "n_group",
            "topk_group",
        ],
    )?;
    each_layer_has_a_kind(s)?;
    rope_tables::are_of_kinds(s, 192)
}
