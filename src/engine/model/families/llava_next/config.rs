//! Configuration of LLaVA-NeXT, LLaVA-NeXT-Video and LLaVA-OneVision.

use serde_json::Value;

use super::anyres::AnyRes;
use crate::model::ModelError;
use crate::model::config::section::Section;
use crate::model::config::{Activation, limits};
use crate::model::decoder::DecoderConfig;
use crate::model::families::decoders;
use crate::model::parts::llava_vision::{FeatureLayers, FeatureSelect, TowerConfig};
use crate::setup::Setup;

/// LLaVA-NeXT (1.6), LLaVA-NeXT-Video and LLaVA-OneVision: LLaVA with any-resolution tiles. Videos are not simulated.
///
/// Source: `transformers/models/{llava_next,llava_next_video,llava_onevision}/configuration_*.py`.
#[derive(Debug, Clone, PartialEq)]
pub struct LlavaNextConfig {
    /// The model.
    pub kind: LlavaNextKind,
    /// The vision tower, run on each tile and on the whole image.
    pub vision: TowerConfig,
    /// The language model.
    pub text: DecoderConfig,
    /// Activation between the projector's two linear layers.
    pub projector_activation: Activation,
    /// True if the projector's linear layers have biases.
    pub projector_bias: bool,
    /// Hidden states that feed the projector, concatenated along the width.
    pub feature_layers: FeatureLayers,
    /// Positions of the hidden states that become image tokens.
    pub feature_select: FeatureSelect,
    /// Resolutions `[height, width]` in pixels to which an image may be fitted.
    pub pinpoints: Vec<[u64; 2]>,
    /// Token id that image features replace.
    pub image_token: u64,
}

/// Models of the family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LlavaNextKind {
    /// LLaVA-NeXT.
    Next,
    /// LLaVA-NeXT-Video; the stride of the convolution that pools the features of a video, if that is how it pools.
    Video(Option<u64>),
    /// LLaVA-OneVision, which interpolates what is more than this number of tiles, and does not cut several images into
    /// tiles.
    Onevision(u64),
}

impl LlavaNextConfig {
    /// Images of a sample, fitted into tiles: images of the sizes given, square ones of the side given, or else images
    /// that fill the largest of the allowed resolutions.
    pub fn fitted(&self, setup: &Setup) -> Vec<AnyRes> {
        let grid = self.vision.grid();
        if let (LlavaNextKind::Onevision(_), 2..) = (self.kind, setup.images) {
            return vec![AnyRes::whole(); setup.given_images() as usize];
        }
        let fit = |size| {
            let fitted = AnyRes::fit(size, &self.pinpoints, grid.image, grid.patch);
            match self.kind {
                LlavaNextKind::Onevision(most) => fitted.at_most(most, grid.side()),
                LlavaNextKind::Next | LlavaNextKind::Video(_) => fitted,
            }
        };
        if !setup.image_sizes.is_empty() {
            return setup.image_sizes.iter().copied().map(fit).collect();
        }
        let largest = self.pinpoints.iter().copied().max_by_key(|[h, w]| h * w);
        let size = setup.image.map(|n| [n.max(1); 2]).or(largest);
        vec![fit(size.unwrap_or([grid.image; 2])); setup.given_images() as usize]
    }

    /// Image tokens of a sample.
    pub fn image_tokens(&self, setup: &Setup) -> u64 {
        let fitted = self.fitted(setup);
        let of = |image: &AnyRes| self.vision.grid().patches() + image.tile_tokens();
        fitted.iter().map(of).sum()
    }

    const PINPOINTS: [[u64; 2]; 5] = [[336, 672], [672, 336], [672, 672], [1008, 336], [336, 1008]];

    /// Reads LLaVA-NeXT.
    pub(crate) fn read(s: &Section) -> Result<Self, ModelError> {
        Self::read_with_clip(s, LlavaNextKind::Next, 32_000)
    }

    /// Reads LLaVA-NeXT-Video.
    pub(crate) fn read_video(s: &Section) -> Result<Self, ModelError> {
        let mode = s.optional_text("spatial_pool_mode")?.unwrap_or("average");
        let stride = s.size_or("spatial_pool_stride", 2, limits::COUNT)?;
        if !["average", "max", "conv"].contains(&mode) {
            return Err(s.wrong("spatial_pool_mode", &mode.into(), "average, max or conv"));
        }
        s.only(
            "spatial_pool_out_channels",
            "no number of channels: only convolutions that keep the tower's are simulated",
            |_| false,
        )?;
        let pooled = (mode == "conv").then_some(stride);
        Self::read_with_clip(s, LlavaNextKind::Video(pooled), 32_001)
    }

    /// Reads LLaVA-OneVision.
    pub(crate) fn read_onevision(s: &Section) -> Result<Self, ModelError> {
        let vision = TowerConfig::siglip_or_other(&s.nested("vision_config", "SigLIP vision")?)?;
        let text = decoders::read_text(&s.nested("text_config", "language")?, "qwen2")?;
        let feature_select = vision.one_of_each_patch(s, FeatureSelect::Full)?;
        let kind = LlavaNextKind::Onevision(most_tiles(s)?);
        let mut config = Self::read_around(s, kind, (vision, text), feature_select, 1)?;
        config.pinpoints = match s.value("image_grid_pinpoints") {
            Some(_) => config.pinpoints,
            None => (1..=6).flat_map(|h| (1..=6).map(move |w| [h * 384, w * 384])).collect(),
        };
        config.image_token = s.index_of_either(["image_token_index", "image_token_id"], 151_646)?;
        Ok(config)
    }

    fn read_with_clip(s: &Section, kind: LlavaNextKind, image_token: u64) -> Result<Self, ModelError> {
        let tower = s.nested("vision_config", "CLIP vision")?;
        tower.expect_model_type(&["clip_vision_model"])?;
        let vision = TowerConfig::clip_or_other(&tower)?;
        let text = decoders::read_text(&s.nested("text_config", "language")?, "llama")?;
        let mut config = Self::read_around(s, kind, (vision, text), FeatureSelect::read(s)?, 2)?;
        config.image_token = s.index_of_either(["image_token_index", "image_token_id"], image_token)?;
        Ok(config)
    }

    /// Reads what stands around the tower and the language model; the hidden state `from_last` feeds the projector if
    /// the file names none.
    fn read_around(
        s: &Section,
        kind: LlavaNextKind,
        (vision, mut text): (TowerConfig, DecoderConfig),
        feature_select: FeatureSelect,
        from_last: u64,
    ) -> Result<Self, ModelError> {
        let outer = s.flag("tie_word_embeddings", false)?;
        text.tie_word_embeddings = match kind {
            LlavaNextKind::Next => outer,
            LlavaNextKind::Video(_) | LlavaNextKind::Onevision(_) => outer || text.tie_word_embeddings,
        };
        Ok(Self {
            kind,
            feature_layers: FeatureLayers::read(s, vision.shape().layers, from_last)?,
            pinpoints: pinpoints(s, vision.grid().image)?,
            vision,
            text,
            projector_activation: s.activation("projector_hidden_act", Activation::Gelu)?,
            projector_bias: s.flag("multimodal_projector_bias", true)?,
            feature_select,
            image_token: 0,
        })
    }
}

/// Reads the number of tiles past which LLaVA-OneVision interpolates, of `anyres_max_9` for instance.
fn most_tiles(s: &Section) -> Result<u64, ModelError> {
    let key = "vision_aspect_ratio";
    let given = s.optional_text(key)?.unwrap_or("anyres_max_9");
    let number = given.strip_prefix("anyres_max_").and_then(|n| n.parse().ok());
    number
        .filter(|n| (1..=limits::POSITIONS).contains(n))
        .ok_or_else(|| s.wrong(key, &given.into(), "anyres_max_N with a number of tiles N"))
}

/// Reads the resolutions in pixels to which an image may be fitted, multiples of a `tile`.
pub(crate) fn pinpoints(s: &Section, tile: u64) -> Result<Vec<[u64; 2]>, ModelError> {
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
