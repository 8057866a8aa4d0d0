//! Configuration of VipLLaVA.

use crate::model::ModelError;
use crate::model::config::Activation;
use crate::model::config::section::Section;
use crate::model::decoder::DecoderConfig;
use crate::model::families::decoders;
use crate::model::parts::clip_vision::ClipVisionConfig;
use crate::model::parts::llava_vision::FeatureLayers;

/// VipLLaVA: a CLIP tower, several of whose hidden states pass a layer norm and a two-layer projector, any decoder.
///
/// Source: `transformers/models/vipllava/configuration_vipllava.py`.
#[derive(Debug, Clone, PartialEq)]
pub struct VipLlavaConfig {
    /// The vision tower.
    pub vision: ClipVisionConfig,
    /// The language model.
    pub text: DecoderConfig,
    /// Token id that image features replace.
    pub image_token: u64,
    /// Activation between the projector's two linear layers.
    pub projector_activation: Activation,
    /// Hidden states that feed the projector, concatenated along the width.
    pub feature_layers: FeatureLayers,
}

impl VipLlavaConfig {
    pub(crate) fn read(s: &Section) -> Result<Self, ModelError> {
        let tower = s.nested("vision_config", "CLIP vision")?;
        tower.expect_model_type(&["clip_vision_model"])?;
        let vision = ClipVisionConfig::read(&tower)?;
        let mut text = decoders::read_text(&s.nested("text_config", "language")?, "llama")?;
        text.tie_word_embeddings = s.flag("tie_word_embeddings", false)?;
        Ok(Self {
            feature_layers: feature_layers(s, vision.layers)?,
            vision,
            image_token: s.index_of_either(["image_token_index", "image_token_id"], 32_000)?,
            text,
            projector_activation: s.activation("projector_hidden_act", Activation::Gelu)?,
        })
    }
}

/// Reads `vision_feature_layers`, by default the states -2, -5, -8, -11 and 6.
fn feature_layers(s: &Section, layers: u64) -> Result<FeatureLayers, ModelError> {
    let key = "vision_feature_layers";
    if layers < 10 {
        s.required(key, "layers that its tower has: the usual ones are too many")?;
    }
    let indices = [2, 5, 8, 11].map(|n| (layers + 1).saturating_sub(n));
    let usual = FeatureLayers {
        indices: [&indices[..], &[6]].concat(),
        is_list: true,
    };
    FeatureLayers::read_key(s, key, layers, usual)
}
