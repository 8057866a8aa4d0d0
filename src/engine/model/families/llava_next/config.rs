//! Configuration of LLaVA-NeXT.

use serde_json::Value;

use super::anyres::AnyRes;
use crate::model::ModelError;
use crate::model::config::section::Section;
use crate::model::config::{Activation, limits};
use crate::model::decoder::DecoderConfig;
use crate::model::families::decoders;
use crate::model::parts::clip_vision::ClipVisionConfig;
use crate::model::parts::llava_vision::{FeatureSelect, feature_layers};
use crate::setup::Setup;

/// LLaVA-NeXT (1.6): LLaVA with any-resolution tiles.
///
/// Source: `transformers/models/llava_next/configuration_llava_next.py`.
#[derive(Debug, Clone, PartialEq)]
pub struct LlavaNextConfig {
    /// The vision tower, run on each tile and on the whole image.
    pub vision: ClipVisionConfig,
    /// The language model.
    pub text: DecoderConfig,
    /// Activation between the projector's two linear layers.
    pub projector_activation: Activation,
    /// True if the projector's linear layers have biases.
    pub projector_bias: bool,
    /// Hidden states that feed the projector, counted from the front.
    pub feature_layers: Vec<u64>,
    /// Positions of the hidden states that become image tokens.
    pub feature_select: FeatureSelect,
    /// Resolutions `[height, width]` in pixels to which an image may be fitted.
    pub pinpoints: Vec<[u64; 2]>,
    /// Token id that image features replace.
    pub image_token: u64,
}

impl LlavaNextConfig {
    /// Images of a sample, fitted into tiles: images of the sizes given, square ones of the side given, or else images
    /// that fill the largest of the allowed resolutions.
    pub fn fitted(&self, setup: &Setup) -> Vec<AnyRes> {
        let fit = |size| AnyRes::fit(size, &self.pinpoints, self.vision.image, self.vision.patch);
        if !setup.image_sizes.is_empty() {
            return setup.image_sizes.iter().copied().map(fit).collect();
        }
        let largest = self.pinpoints.iter().copied().max_by_key(|[h, w]| h * w);
        let size = setup.image.map(|n| [n.max(1); 2]).or(largest);
        vec![fit(size.unwrap_or([self.vision.image; 2])); setup.images as usize]
    }

    /// Image tokens of a sample.
    pub fn image_tokens(&self, setup: &Setup) -> u64 {
        let fitted = self.fitted(setup);
        let of = |image: &AnyRes| self.vision.patches() + image.tile_tokens();
        fitted.iter().map(of).sum()
    }

    const PINPOINTS: [[u64; 2]; 5] = [[336, 672], [672, 336], [672, 672], [1008, 336], [336, 1008]];

    pub(crate) fn read(s: &Section) -> Result<Self, ModelError> {
        let tower = s.nested("vision_config", "CLIP vision")?;
        tower.expect_model_type(&["clip_vision_model"])?;
        let vision = ClipVisionConfig::read(&tower)?;
        let mut text = decoders::read_text(&s.nested("text_config", "language")?, "llama")?;
        text.tie_word_embeddings = s.flag("tie_word_embeddings", false)?;
        Ok(Self {
            feature_layers: feature_layers(s, vision.layers)?,
            pinpoints: pinpoints(s, vision.image)?,
            vision,
            text,
            projector_activation: s.activation("projector_hidden_act", Activation::Gelu)?,
            projector_bias: s.flag("multimodal_projector_bias", true)?,
            feature_select: FeatureSelect::read(s)?,
            image_token: s.index_of_either(["image_token_index", "image_token_id"], 32_000)?,
        })
    }
}

fn pinpoints(s: &Section, tile: u64) -> Result<Vec<[u64; 2]>, ModelError> {
    let key = "image_grid_pinpoints";
    let Some(value) = s.value(key) else {
        return Ok(LlavaNextConfig::PINPOINTS.to_vec());
    };
    let whole = |p: &[u64; 2]| p.iter().all(|n| n.is_multiple_of(tile));
    let list: Option<Vec<_>> = value.as_array().and_then(|list| list.iter().map(pair).collect());
    list.filter(|list| !list.is_empty() && list.iter().all(whole))
        .ok_or_else(|| {
            let wanted = format!(
                "a list of [height, width] in multiples of the tower's {tile} pixels, such as [[{tile}, {}]]",
                2 * tile
            );
            s.wrong(key, value, &wanted)
        })
}

fn pair(value: &Value) -> Option<[u64; 2]> {
    let [a, b] = value.as_array()?.as_slice() else {
        return None;
    };
    let side = |v: &Value| v.as_u64().filter(|n| (1..=limits::PIXELS).contains(n));
    Some([side(a)?, side(b)?])
}
