//! Configuration of Ovis2.5.

use crate::model::ModelError;
use crate::model::config::section::Section;
use crate::model::config::{EncoderShape, limits};
use crate::model::decoder::DecoderConfig;
use crate::model::families::decoders;
use crate::model::parts::packed_vision::PackedVisionConfig;
use crate::model::parts::qwen_vl::{Resize, Widening};

/// Ovis2.5: SigLIP 2's tower over images of any size, whose features become probabilities of visual words, a table of
/// these words' embeddings, Qwen3.
///
/// Source: `configuration_ovis2_5.py` of the checkpoints' repositories, and `ovis/model` of AIDC-AI/Ovis.
#[derive(Debug, Clone, PartialEq)]
pub struct Ovis25Config {
    /// The vision tower.
    pub vision: PackedVisionConfig,
    /// Learned positions along one side of their square grid.
    pub positions_side: u64,
    /// Tokens along one side of a window, by which the tower orders its patches.
    pub window: u64,
    /// Visual words, with the indicators.
    pub words: u64,
    /// The language model.
    pub text: DecoderConfig,
}

/// Visual words that indicate where images and videos begin and end (`INDICATOR_IDS`).
pub(super) const INDICATORS: u64 = 4;

/// `Siglip2NavitConfig`.
const SHAPE: EncoderShape = EncoderShape {
    hidden: 1024,
    intermediate: 4096,
    layers: 24,
    heads: 16,
};

/// `smart_resize` of `VisualTokenizer`, with the limits of `preprocess_inputs`.
const RESIZE: Resize = Resize {
    pixels: [448 * 448, 1344 * 1792],
    widening: Widening::Shorter,
};

impl Ovis25Config {
    pub(crate) fn read(s: &Section) -> Result<Self, ModelError> {
        let llm = s.nested("llm_config", "language")?;
        llm.expect_model_type(&["qwen3"])?;
        let text = decoders::read_text(&llm, "qwen3")?;
        s.equal(
            ("hidden_size", s.size_or("hidden_size", text.hidden, limits::WIDTH)?),
            ("llm_config.hidden_size", text.hidden),
        )?;
        let words = s.size_or("visual_vocab_size", 65_536, limits::VOCAB)?;
        if words <= INDICATORS {
            return Err(s.wrong("visual_vocab_size", &words.into(), "more visual words than indicators"));
        }
        let vit = s.nested("vit_config", "SigLIP 2 NaViT")?;
        vit.expect_model_type(&["siglip2_navit"])?;
        vit.only(
            "num_patches",
            "-1: other embeddings of patches are not simulated",
            |n| n.as_i64() == Some(-1),
        )?;
        vit.only("temporal_patch_size", "1", |n| n.as_u64() == Some(1))?;
        for key in ["preserve_original_pe", "use_rope"] {
            vit.only(key, "true: other positions are not simulated", |given| given == true)?;
        }
        // Null means that all blocks see whole images. With anything else, blocks that it does not name see windows.
        vit.only(
            "fullatt_block_indexes",
            "null: attention within windows is not simulated",
            |_| false,
        )?;
        let stride = vit.size_or("hidden_stride", 2, limits::COUNT)?;
        let vision = PackedVisionConfig::read(&vit, SHAPE, 16, (stride, RESIZE))?;
        let token = vision.patches.patch * stride;
        let image = vit.size_or("image_size", 512, limits::PIXELS)?;
        let window = vit.size_or("window_size", 112, limits::PIXELS)? / token;
        if window == 0 || image < vision.patches.patch {
            return Err(vit.wrong("window_size", &window.into(), "windows of one token or more"));
        }
        Ok(Self {
            positions_side: image / vision.patches.patch,
            window,
            vision,
            words,
            text,
        })
    }
}
