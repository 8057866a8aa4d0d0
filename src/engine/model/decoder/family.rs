//! Differences between families of decoders like Llama's.

use std::fmt;

use super::biases::Biases;
use super::config::DecoderConfig;
use super::defaults::DecoderDefaults;
use super::expert_keys::ExpertKeys;
use super::forms::{LateScale, LlamaBlock, MlpKind, NormPlacement, QueryNorms, Rotation};
use super::latent_config::LatentKeys;
use super::own_sizes::OwnSizes;
use super::rope_tables::KindShares;
use super::windows::Windows;
use crate::model::ModelError;
use crate::model::config::section::Section;
use crate::model::facts::{Entry, ModelType};
use crate::model::libraries::Liger;
use crate::nn::{NormKind, RmsScale};

/// A family of decoders: a value of `model_type`, and what its configuration and forward have of their own. Each stands
/// in a folder of its own as a constant `FAMILY`, and the registry of decoders (`families/decoders/mod.rs`) has one row for
/// it.
///
/// Sources: `configuration_*.py` and `modeling_*.py` of each family in `transformers/models/`.
pub struct DecoderFamily {
    /// The value of `model_type`, and the classes that are simulated.
    pub(crate) model_type: ModelType,
    /// Models known by name.
    pub(crate) catalogue: &'static [Entry],
    /// Values for absent keys.
    pub(crate) defaults: DecoderDefaults,
    /// Relation of the heads to the width.
    pub(crate) heads: HeadRule,
    /// Reads which projections have biases, as the `nn.Linear` calls of the family use the keys: a key that they do not
    /// read is ignored.
    pub(crate) biases: fn(&Section) -> Result<Biases, ModelError>,
    /// Sliding windows.
    pub(crate) windows: Windows,
    /// True if queries and keys pass an RMS norm of one head's elements.
    pub(crate) qk_norm: bool,
    /// Key of the activation that is read in place of `hidden_act` where a file has it.
    pub(crate) newer_activation_key: Option<&'static str>,
    /// Key of the dropout after each projection into the residual stream, and its default; `None` if there is none.
    pub(crate) residual_dropout: Option<(&'static str, f64)>,
    /// Soft caps of attention scores and logits.
    pub(crate) soft_caps: SoftCaps,
    /// Modules that run it.
    pub(crate) modules: Modules,
    /// Reads what its own blocks have beside the sizes of all decoders.
    pub(crate) own: fn(&Section, &DecoderConfig) -> Result<OwnSizes, ModelError>,
    /// True if `modules` make a few small tensors less than the family's own forward; parameters are exact.
    pub(crate) stands_in: bool,
    /// True if transformers' plan of tensor parallelism for it is simulated.
    pub(crate) tensor_parallel: bool,
    /// True if pipelines are simulated for it.
    pub(crate) pipeline: bool,
    /// Liger's replacement of its forward.
    pub(crate) liger: Liger,
}

/// Relation of a decoder's heads to its width that a configuration must keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeadRule {
    /// The width is a multiple of the heads, unless `head_dim` is given.
    Free,
    /// The width is a multiple of the heads, even if `head_dim` is given (`validate_architecture`).
    Divides,
    /// The heads together are as wide as the model.
    Fills,
    /// A head is as wide as the width divided by the heads, rounded down, unless `head_dim` is given.
    Floors,
}

/// Soft caps that a family reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SoftCaps {
    /// None, regardless of the file.
    None,
    /// Those of the file.
    Given,
    /// Those of the file; an absent key is a cap, and null is none.
    Default,
}

/// Modules that run a family of decoders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(
    clippy::large_enum_variant,
    reason = "there is one for each family, and it stays where it is"
)]
pub(crate) enum Modules {
    /// Llama's ([`super::stack`]), with its own blocks if the registry names some.
    Llama(LlamaModules),
    /// Gemma's ([`super::gemma`]).
    Gemma(GemmaModules),
}

/// Differences between families that run on Llama's modules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LlamaModules {
    /// True if all blocks get one mask (`MistralModel.forward`, `Phi3Model.forward`).
    pub one_mask: bool,
    /// True if the mask of sliding blocks is made even if none slides, with a window of 0 (`Qwen2MoeModel.forward`).
    pub both_masks: bool,
    /// True if only a part of each head may be rotated (`partial_rotary_factor`).
    pub partial_rotary: bool,
    /// True if each forward computes the rotary frequencies again on the host (PhiMoE).
    pub recomputes_rotary: bool,
    /// True if full and sliding blocks have a rotary embedding each (`Olmo3RotaryEmbedding`).
    pub rotary_by_kind: bool,
    /// Shares of each head that both rotary embeddings rotate, in a family that has one for each kind of block and
    /// rotates parts of heads.
    pub kind_shares: Option<KindShares>,
    /// Key that switches the norms of queries and keys on, in a family that has them only with it.
    pub query_norms_key: Option<&'static str>,
    /// Key that gives the head a bias, if there is one.
    pub head_bias_key: Option<&'static str>,
    /// Key of the number that the token embedding multiplies by and keeps as a buffer, and true if its default is a whole
    /// number (MiniCPM3).
    pub embed_scale_key: Option<(&'static str, bool)>,
    /// True if the MLP's activation is that of its code, whatever the file says (MiniMax-M3).
    pub has_own_activation: bool,
    /// Key of the number of blocks.
    pub layers_key: &'static str,
    /// Key of the elements inside the MLP.
    pub intermediate_key: &'static str,
    /// True if transformers refuses FlashAttention for it.
    pub refuses_flash: bool,
    /// True if the mask is made even where SDPA's own causal one suffices (`allow_is_causal_skip=False`).
    pub always_masks: bool,
    /// True if transformers has no SDPA for it, beside those whose rotation says so.
    pub is_eager: bool,
    /// True if the model makes a rotary embedding that it never calls (Granite with sliding windows).
    pub has_spare_rotary: bool,
    /// Key that makes all norms Llama's RMS norms where a file has it.
    pub rms_key: Option<&'static str>,
    /// Experts in place of the MLP.
    pub experts: Option<&'static ExpertKeys>,
    /// Latent attention in place of Llama's.
    pub latent: Option<&'static LatentKeys>,
    /// Multiplication of the embeddings after the masks are made, if there is one.
    pub late_scale: LateScale,
    /// True if the last norm also comes before the blocks (nanochat).
    pub norm_first: bool,
    /// Kind of the last norm, if it is not that of the blocks (Muse Glimmer).
    pub last_norm: Option<NormKind>,
    /// True if blocks that see all positions are handed no cosines and sines (Muse Glimmer).
    pub tables_for_sliding: bool,
    /// True if an RMS norm without a weight follows the token embedding, as a part of it (Muse Glimmer).
    pub norms_embeddings: bool,
    /// Form of the block.
    pub block: LlamaBlock,
}

impl LlamaModules {
    /// Those of Llama itself.
    pub const LLAMA: Self = Self {
        one_mask: false,
        both_masks: false,
        partial_rotary: false,
        recomputes_rotary: false,
        rotary_by_kind: false,
        kind_shares: None,
        query_norms_key: None,
        head_bias_key: None,
        embed_scale_key: None,
        has_own_activation: false,
        layers_key: "num_hidden_layers",
        intermediate_key: "intermediate_size",
        refuses_flash: false,
        always_masks: false,
        is_eager: false,
        has_spare_rotary: false,
        rms_key: None,
        experts: None,
        latent: None,
        late_scale: LateScale::Never,
        norm_first: false,
        last_norm: None,
        tables_for_sliding: false,
        norms_embeddings: false,
        block: LlamaBlock {
            norm: NormKind::Rms(RmsScale::Weight),
            placement: NormPlacement::Before,
            query_norms: QueryNorms::Heads,
            mlp: MlpKind::Gated,
            rotation: Rotation::Whole,
            scales_queries: false,
            scales_keys: false,
            rotates_only_sliding: false,
            scales_stream: false,
            scales_logits: false,
            scales_last: false,
            keeps_undropped: false,
            sub_norms: false,
            gates: false,
        },
    };
}

/// Differences between families that run on Gemma's modules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GemmaModules {
    /// Name of the norm after attention; in families without one, of the norm before the MLP.
    pub second_norm: &'static str,
    /// True if both attention and MLP have norms before and after them.
    pub sandwich_norms: bool,
    /// True if full and sliding blocks have a rotary embedding each.
    pub rotary_by_kind: bool,
    /// True if attention applies its soft cap.
    pub caps_scores: bool,
}

impl DecoderFamily {
    /// What most families have, for a row to be a difference to. A row states its `model_type`, `defaults` and `biases`.
    pub(crate) const USUAL: Self = Self {
        model_type: ModelType { name: "", classes: &[] },
        catalogue: &[],
        defaults: DecoderDefaults::LLAMA,
        heads: HeadRule::Free,
        biases: Biases::of_attention,
        windows: Windows::NEVER,
        qk_norm: false,
        newer_activation_key: None,
        residual_dropout: None,
        soft_caps: SoftCaps::None,
        modules: Modules::Llama(LlamaModules::LLAMA),
        own: |_, _| Ok(OwnSizes::Usual),
        stands_in: false,
        tensor_parallel: false,
        pipeline: false,
        liger: Liger::Unknown,
    };

    /// Value of `model_type`.
    pub const fn name(&self) -> &'static str {
        self.model_type.name
    }

    /// Form of the block, if it is like Llama's; Llama's own for others.
    pub(crate) const fn block(&self) -> LlamaBlock {
        match &self.modules {
            Modules::Llama(modules) => modules.block,
            Modules::Gemma(_) => LlamaModules::LLAMA.block,
        }
    }

    /// Returns true if Gemma's modules run it.
    pub(crate) const fn is_gemma(&self) -> bool {
        matches!(self.modules, Modules::Gemma(_))
    }

    /// Keys of the experts, if it has some.
    pub(crate) const fn experts(&self) -> Option<&'static ExpertKeys> {
        match &self.modules {
            Modules::Llama(modules) => modules.experts,
            Modules::Gemma(_) => None,
        }
    }

    /// Keys of latent attention, if it has that.
    pub(crate) const fn latent(&self) -> Option<&'static LatentKeys> {
        match &self.modules {
            Modules::Llama(modules) => modules.latent,
            Modules::Gemma(_) => None,
        }
    }

    /// Shares of each head that both rotary embeddings rotate, if they have their own.
    pub(crate) const fn kind_shares(&self) -> Option<KindShares> {
        match &self.modules {
            Modules::Llama(modules) => modules.kind_shares,
            Modules::Gemma(_) => None,
        }
    }

    /// Multiplication of the embeddings after the masks are made.
    pub(crate) const fn late_scale(&self) -> LateScale {
        match &self.modules {
            Modules::Llama(modules) => modules.late_scale,
            Modules::Gemma(_) => LateScale::Never,
        }
    }

    /// Key that gives the head a bias, if there is one.
    pub(crate) const fn head_bias_key(&self) -> Option<&'static str> {
        match &self.modules {
            Modules::Llama(modules) => modules.head_bias_key,
            Modules::Gemma(_) => None,
        }
    }

    /// Returns true if the MLP's activation is that of its code, whatever the file says.
    pub(crate) const fn has_own_activation(&self) -> bool {
        matches!(
            self.modules,
            Modules::Llama(LlamaModules {
                has_own_activation: true,
                ..
            })
        )
    }

    /// Returns true if transformers refuses FlashAttention for it.
    pub(crate) const fn refuses_flash(&self) -> bool {
        self.is_eager()
            || matches!(
                self.modules,
                Modules::Llama(LlamaModules {
                    refuses_flash: true,
                    ..
                })
            )
    }

    /// Key of the number of blocks.
    pub(crate) const fn layers_key(&self) -> &'static str {
        match &self.modules {
            Modules::Llama(modules) => modules.layers_key,
            Modules::Gemma(_) => LlamaModules::LLAMA.layers_key,
        }
    }

    /// Key of the elements inside the MLP.
    pub(crate) const fn intermediate_key(&self) -> &'static str {
        match &self.modules {
            Modules::Llama(modules) => modules.intermediate_key,
            Modules::Gemma(_) => LlamaModules::LLAMA.intermediate_key,
        }
    }

    /// Returns true if transformers has no SDPA for it, and takes eager attention unless told otherwise.
    pub(crate) const fn is_eager(&self) -> bool {
        matches!(self.block().rotation, Rotation::Halves)
            || matches!(self.modules, Modules::Llama(LlamaModules { is_eager: true, .. }))
    }

    /// Key that switches the norms of queries and keys on, if there is one.
    pub(crate) const fn query_norms_key(&self) -> Option<&'static str> {
        match &self.modules {
            Modules::Llama(modules) => modules.query_norms_key,
            Modules::Gemma(_) => None,
        }
    }

    /// Key of the factor of the token embedding, if that keeps it as a buffer, and true if its default is a whole number.
    pub(crate) const fn embed_scale_key(&self) -> Option<(&'static str, bool)> {
        match &self.modules {
            Modules::Llama(modules) => modules.embed_scale_key,
            Modules::Gemma(_) => None,
        }
    }

    /// Returns true if the mask of sliding blocks is made even if none slides.
    pub(crate) const fn has_both_masks(&self) -> bool {
        matches!(self.modules, Modules::Llama(LlamaModules { both_masks: true, .. }))
    }

    /// Returns true if all blocks get one mask.
    pub(crate) const fn has_one_mask(&self) -> bool {
        matches!(self.modules, Modules::Llama(LlamaModules { one_mask: true, .. }))
    }
}

impl PartialEq for DecoderFamily {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for DecoderFamily {}

impl fmt::Debug for DecoderFamily {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
