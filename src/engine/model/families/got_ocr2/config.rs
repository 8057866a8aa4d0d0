//! Configuration of GOT-OCR 2.

use crate::model::ModelError;
use crate::model::config::section::Section;
use crate::model::decoder::DecoderConfig;
use crate::model::families::decoders;
use crate::model::parts::sam_vision::SamVisionConfig;

/// GOT-OCR 2 and PP-Chart2Table: SAM's tower, two convolutions and a linear layer, any decoder.
///
/// Sources: `transformers/models/got_ocr2/configuration_got_ocr2.py`,
/// `transformers/models/pp_chart2table/configuration_pp_chart2table.py`.
#[derive(Debug, Clone, PartialEq)]
pub struct GotOcr2Config {
    /// The vision tower.
    pub vision: SamVisionConfig,
    /// The language model.
    pub text: DecoderConfig,
}

impl GotOcr2Config {
    /// Image tokens of one image, of which two convolutions of stride 2 leave a sixteenth.
    pub fn tokens(&self) -> u64 {
        self.vision.grid.side().div_ceil(4).pow(2)
    }

    pub(crate) fn read(s: &Section) -> Result<Self, ModelError> {
        let mut text = decoders::read_text(&s.nested("text_config", "language")?, "qwen2")?;
        text.tie_word_embeddings = s.flag("tie_word_embeddings", true)?;
        Ok(Self {
            vision: SamVisionConfig::read(&s.nested("vision_config", "SAM vision")?, None)?,
            text,
        })
    }
}
