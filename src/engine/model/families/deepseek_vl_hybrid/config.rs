//! Configuration of DeepSeek-VL with two towers.

use crate::model::ModelError;
use crate::model::config::section::Section;
use crate::model::decoder::DecoderConfig;
use crate::model::families::decoders;
use crate::model::parts::sam_vision::SamVisionConfig;
use crate::model::parts::siglip_vision::SiglipVisionConfig;

/// DeepSeek-VL with SAM's tower beside SigLIP's, for images in a higher resolution.
///
/// Source: `transformers/models/deepseek_vl_hybrid/configuration_deepseek_vl_hybrid.py`.
#[derive(Debug, Clone, PartialEq)]
pub struct DeepseekVlHybridConfig {
    /// SigLIP's tower.
    pub vision: SiglipVisionConfig,
    /// SAM's tower.
    pub high_res: SamVisionConfig,
    /// Block of SAM's tower whose output is added to that of the tower.
    pub global_attn_index: usize,
    /// The language model.
    pub text: DecoderConfig,
    /// Token id that image features replace.
    pub image_token: u64,
}

impl DeepseekVlHybridConfig {
    pub(crate) fn read(s: &Section) -> Result<Self, ModelError> {
        let language = s.nested("text_config", "language")?;
        let mut text = decoders::read_text(&language, "llama")?;
        text.tie_word_embeddings = s.flag("tie_word_embeddings", true)?;
        if !text.hidden.is_multiple_of(2) {
            let allowed = "an even width, of which each tower's features take a half";
            return Err(language.wrong("hidden_size", &text.hidden.into(), allowed));
        }
        let section = s.nested_or_empty("high_res_vision_config", "SAM vision")?;
        section.expect_model_type(&["sam_vision_model"])?;
        let high_res = SamVisionConfig::read(&section, Some(4.0))?;
        let Some(index) = high_res.global.first().filter(|&&first| first < high_res.layers) else {
            let key = "global_attn_indexes";
            let given = section.value(key).cloned().unwrap_or_default();
            let allowed = "a list that begins with the index of one of its blocks";
            return Err(section.wrong(key, &given, allowed));
        };
        let low_res = s.nested("vision_config", "SigLIP vision")?;
        let vision = SiglipVisionConfig::read(&low_res)?;
        if vision.grid.side() < 2 {
            let allowed = "an image of at least two patches a side: layouts of single patches were not compared";
            return Err(low_res.wrong("image_size", &vision.grid.image.into(), allowed));
        }
        Ok(Self {
            vision,
            global_attn_index: *index as usize,
            high_res,
            image_token: s.index_of_either(["image_token_id", "image_token_index"], 100_015)?,
            text,
        })
    }
}
