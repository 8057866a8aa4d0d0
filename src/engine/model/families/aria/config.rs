//! Configuration of Aria.

use std::collections::BTreeMap;

use crate::model::ModelError;
use crate::model::config::limits;
use crate::model::config::section::Section;
use crate::model::decoder::DecoderConfig;
use crate::model::families::decoders;
use crate::model::parts::idefics_vision::IdeficsVisionConfig;
use crate::model::parts::llava_vision::FeatureLayers;

/// Aria: Idefics3's tower, queries that attend to its features, a decoder with experts.
///
/// Source: `transformers/models/aria/configuration_aria.py`.
#[derive(Debug, Clone, PartialEq)]
pub struct AriaConfig {
    /// The vision tower.
    pub vision: IdeficsVisionConfig,
    /// The language model.
    pub text: DecoderConfig,
    /// Hidden state of the tower that the queries attend to: 0 is its embedding.
    pub feature_layer: u64,
    /// Number of queries for an image, by its number of patches.
    pub queries: BTreeMap<u64, u64>,
}

impl AriaConfig {
    /// Image tokens of an image; `None` if the configuration has no number of queries for the tower's number of patches.
    pub fn image_tokens(&self) -> Option<u64> {
        self.queries.get(&self.vision.grid.patches()).copied()
    }

    /// Rows of the learned queries: as many as the most that an image may have.
    pub fn most_queries(&self) -> u64 {
        self.queries.values().copied().max().unwrap_or(0)
    }

    pub(crate) fn read(s: &Section) -> Result<Self, ModelError> {
        let text = s.nested_or_empty("text_config", "Aria's language")?;
        text.expect_model_type(&["aria_text"])?;
        let mut text = decoders::read_text(&text, "aria_text")?;
        text.tie_word_embeddings = s.flag("tie_word_embeddings", false)?;
        let vision = IdeficsVisionConfig::idefics3(&s.nested_or_empty("vision_config", "Aria's vision")?)?;
        let key = "vision_feature_layer";
        s.only(key, "one layer: a list fails", |layer| layer.is_i64())?;
        let last = FeatureLayers::single(vision.shape.layers, 1);
        let layers = FeatureLayers::read_key(s, key, vision.shape.layers, last)?;
        s.index_of_either(["image_token_index", "image_token_id"], 9)?;
        Ok(Self {
            feature_layer: layers.indices[0],
            queries: queries(s)?,
            vision,
            text,
        })
    }
}

/// Reads the number of queries for each number of patches.
fn queries(s: &Section) -> Result<BTreeMap<u64, u64>, ModelError> {
    let key = "projector_patch_to_query_dict";
    let Some(given) = s.value(key) else {
        return Ok(BTreeMap::from([(1225, 128), (4900, 256)]));
    };
    let wrong = || s.wrong(key, given, "an object of numbers of patches and of queries, from 1 on");
    let pairs = given.as_object().filter(|pairs| !pairs.is_empty()).ok_or_else(wrong)?;
    pairs
        .iter()
        .map(|(patches, queries)| {
            let queries = queries.as_u64().filter(|n| (1..=limits::POSITIONS).contains(n));
            patches.parse().ok().zip(queries).ok_or_else(wrong)
        })
        .collect()
}
