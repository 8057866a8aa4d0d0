//! Configuration of Granite 4 Vision.

use serde_json::Value;

use crate::model::ModelError;
use crate::model::config::section::Section;
use crate::model::config::{Activation, EncoderShape, limits};
use crate::model::decoder::DecoderConfig;
use crate::model::families::blip2::QFormerConfig;
use crate::model::families::decoders::granite;
use crate::model::families::llava_next::{AnyRes, pinpoints};
use crate::model::parts::llava_vision::{FeatureSelect, TowerConfig};
use crate::setup::Setup;

/// Granite 4 Vision: LLaVA-NeXT's tiles, several hidden states of the tower through querying transformers over windows, and
/// Granite, to whose inner layers their features are added.
///
/// Source: `transformers/models/granite4_vision/configuration_granite4_vision.py`.
#[derive(Debug, Clone, PartialEq)]
pub struct Granite4VisionConfig {
    /// The vision tower, run on each tile and on the whole image.
    pub vision: TowerConfig,
    /// The language model.
    pub text: DecoderConfig,
    /// The querying transformer of each projector.
    pub qformer: QFormerConfig,
    /// Dropout in the projectors.
    pub projector_dropout: f64,
    /// Queries along a side of a window, and patches along it.
    pub window: [u64; 2],
    /// Positions of the hidden states that become features.
    pub feature_select: FeatureSelect,
    /// Hidden state of the tower and layer of the language model that each interpolating projector joins.
    pub layerwise: Vec<[u64; 2]>,
    /// Hidden state that the projectors of corners read.
    pub spatial_layer: u64,
    /// Layer of the language model to which each projector of corners adds.
    pub spatial: Vec<u64>,
    /// Resolutions `[height, width]` in pixels to which an image may be fitted.
    pub pinpoints: Vec<[u64; 2]>,
    /// Token id that image features replace.
    pub image_token: u64,
}

/// Projectors of corners: one for each of a square of four patches.
pub const CORNERS: u64 = 4;

impl Granite4VisionConfig {
    pub(crate) fn read(s: &Section) -> Result<Self, ModelError> {
        let vision = match s.optional_nested("vision_config", "Granite 4 vision tower")? {
            Some(tower) => TowerConfig::clip_or_other(&tower)?,
            None => TowerConfig::siglip_or_other(&s.nested_or_empty("vision_config", "SigLIP vision")?)?,
        };
        let section = s.nested("text_config", "Granite language")?;
        section.expect_model_type(&["granite4_vision_text", "granite"])?;
        let mut text = DecoderConfig::read(&section, &granite::FAMILY)?;
        text.tie_word_embeddings = s.flag("tie_word_embeddings", false)?;
        let layers = vision.shape().layers;
        let window = window(s, vision.grid().side())?;
        Ok(Self {
            qformer: read_qformer(s, &vision)?,
            projector_dropout: s.probability("projector_dropout", 0.1)?,
            window,
            feature_select: vision.one_of_each_patch(s, FeatureSelect::Default)?,
            layerwise: layerwise(s, layers)?,
            spatial_layer: hidden_state(s, "spatial_vision_layer", layers)?,
            spatial: match s.optional_indices("spatial_target_layers", limits::LAYERS)? {
                Some(list) if list.len() as u64 > CORNERS => {
                    return Err(s.wrong("spatial_target_layers", &list.into(), "at most four layers"));
                }
                given => given.unwrap_or_else(|| vec![12, 15, 18, 21]),
            },
            pinpoints: pinpoints(s, vision.grid().image)?,
            vision,
            text,
            image_token: s.index_of_either(["image_token_index", "image_token_id"], 32_000)?,
        })
    }

    /// Features along a side of a tile.
    pub fn side(&self) -> u64 {
        self.vision.grid().side() / self.window[1] * self.window[0]
    }

    /// Images of a sample, fitted into tiles as LLaVA-NeXT fits them.
    pub fn fitted(&self, setup: &Setup) -> Vec<AnyRes> {
        let image = self.vision.grid().image;
        let fit = |size| AnyRes::fit_features(size, &self.pinpoints, image, self.side());
        if !setup.image_sizes.is_empty() {
            return setup.image_sizes.iter().copied().map(fit).collect();
        }
        let largest = self.pinpoints.iter().copied().max_by_key(|[h, w]| h * w);
        let size = setup.image.map(|n| [n.max(1); 2]).or(largest);
        vec![fit(size.unwrap_or([image; 2])); setup.given_images() as usize]
    }

    /// Image tokens of a sample.
    pub fn image_tokens(&self, setup: &Setup) -> u64 {
        let of = |image: &AnyRes| self.side() * self.side() + image.tile_tokens();
        self.fitted(setup).iter().map(of).sum()
    }
}

/// Reads the queries and the patches along a side of a window, in a tower of `side` patches a side.
fn window(s: &Section, side: u64) -> Result<[u64; 2], ModelError> {
    let key = "downsample_rate";
    let given = s.optional_text(key)?.unwrap_or_default();
    let parts = given
        .split_once('/')
        .and_then(|(queries, patches)| Some([queries.parse().ok()?, patches.parse::<u64>().ok()?]));
    let fits = |[queries, patches]: &[u64; 2]| {
        // Projectors of corners halve the sides; an average of one feature is another operation.
        *queries > 0 && *patches == 2 * queries && side.is_multiple_of(*patches) && side / patches * queries > 1
    };
    parts.filter(fits).ok_or_else(|| {
        let allowed = format!(
            "\"N/M\" with M twice N and a part of the tower's {side} patches a side, for two features a side or more"
        );
        s.wrong(key, &given.into(), &allowed)
    })
}

/// Reads a hidden state of a tower of `layers` blocks, the last by default.
fn hidden_state(s: &Section, key: &str, layers: u64) -> Result<u64, ModelError> {
    let Some(given) = s.value(key) else { return Ok(layers) };
    resolved(given, layers).ok_or_else(|| {
        s.wrong(
            key,
            given,
            &format!("a hidden state from {} to {layers}", -(layers as i64) - 1),
        )
    })
}

/// Index of a hidden state, which may count from the last.
fn resolved(given: &Value, layers: u64) -> Option<u64> {
    let states = layers as i64 + 1;
    let index = given.as_i64()?;
    let index = if index < 0 { index + states } else { index };
    (0..states).contains(&index).then_some(index as u64)
}

/// Reads the pairs of a hidden state of the tower and a layer of the language model.
fn layerwise(s: &Section, layers: u64) -> Result<Vec<[u64; 2]>, ModelError> {
    let key = "deepstack_layer_map";
    let allowed = "pairs of a hidden state of the tower and a layer of the language model";
    s.required(key, allowed)?;
    let given = s.value(key).cloned().unwrap_or_default();
    let pair = |pair: &Value| match pair.as_array()?.as_slice() {
        [state, layer] => Some([resolved(state, layers)?, layer.as_u64()?]),
        _ => None,
    };
    let list: Option<Vec<_>> = given.as_array().and_then(|list| list.iter().map(pair).collect());
    list.ok_or_else(|| s.wrong(key, &given, allowed))
}

/// Reads the querying transformer; by default it is as wide as the tower.
fn read_qformer(s: &Section, vision: &TowerConfig) -> Result<QFormerConfig, ModelError> {
    let hidden = vision.shape().hidden;
    let Some(given) = s.optional_nested("qformer_config", "Q-Former")? else {
        s.divide(
            ("vision_config.hidden_size", hidden),
            ("vision_config.hidden_size ÷ 64", hidden / 64),
        )?;
        let heads = hidden / 64;
        return Ok(QFormerConfig {
            shape: EncoderShape {
                hidden,
                intermediate: 3072,
                layers: 1,
                heads,
            },
            cross_attention_frequency: 1,
            encoder_hidden: hidden,
            activation: Activation::Gelu,
            hidden_dropout: 0.1,
            attention_dropout: 0.1,
            text_input: false,
        });
    };
    given.expect_model_type(&["blip_2_qformer"])?;
    let encoder = given.size_or("encoder_hidden_size", 1408, limits::WIDTH)?;
    let qformer = QFormerConfig::read(&given, encoder)?;
    for (name, width) in [("hidden_size", qformer.shape.hidden), ("encoder_hidden_size", encoder)] {
        given.equal((name, width), ("vision_config.hidden_size", hidden))?;
    }
    Ok(qformer)
}
