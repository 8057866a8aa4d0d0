//! OLMo 3: OLMo 2 with sliding blocks, whose rotary embedding is their own (`transformers/models/olmo3`).

use crate::model::ModelError;
use crate::model::config::section::Section;
use crate::model::decoder::{
    Biases, DecoderDefaults, DecoderFamily, HeadRule, LlamaBlock, LlamaModules, Modules, NormPlacement, QueryNorms,
    Rotation, SoftCaps, WindowLength, Windows, slides_with_a_number, some_slide,
};
use crate::model::facts::ModelType;
use crate::model::libraries::Liger;
use crate::nn::{NormKind, RmsScale};

/// `olmo3`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType {
        name: "olmo3",
        classes: &["Olmo3ForCausalLM"],
    },
    catalogue: &[],
    defaults: DecoderDefaults {
        vocab: 50_304,
        theta: 500_000.0,
        ..DecoderDefaults::LLAMA
    },
    heads: HeadRule::Free,
    biases: |s| {
        some_slide(s)?;
        slides_with_a_number(s)?;
        // Each kind of block has a table of its own; one whose frequencies depend on the length is not simulated.
        for table in ["rope_scaling", "rope_parameters"] {
            let Some(table) = s.optional_nested(table, "rotary embedding")? else {
                continue;
            };
            static_kind(&table)?;
            for kind in ["full_attention", "sliding_attention"] {
                if let Some(of_kind) = table.optional_nested(kind, "rotary embedding")? {
                    static_kind(&of_kind)?;
                }
            }
        }
        Biases::of_attention(s)
    },
    windows: Windows {
        switch: None,
        length: WindowLength::Or(4096),
        slides: |_, _, layer| Ok((layer + 1) % 4 != 0),
    },
    qk_norm: true,
    newer_activation_key: None,
    residual_dropout: None,
    soft_caps: SoftCaps::None,
    modules: Modules::Llama(LlamaModules {
        rotary_by_kind: true,
        block: LlamaBlock {
            norm: NormKind::Rms(RmsScale::WeightFirst),
            placement: NormPlacement::After,
            query_norms: QueryNorms::Whole,
            rotation: Rotation::ByF32,
            ..LlamaModules::LLAMA.block
        },
        ..LlamaModules::LLAMA
    }),
    stands_in: false,
    tensor_parallel: false,
    pipeline: false,
    liger: Liger::Unknown,
};

/// Checks that a table's frequencies do not depend on the length.
fn static_kind(table: &Section) -> Result<(), ModelError> {
    let allowed = "a kind other than dynamic, which is not simulated for each kind of layer";
    for key in ["rope_type", "type"] {
        table.only(key, allowed, |kind| kind != "dynamic")?;
    }
    Ok(())
}
