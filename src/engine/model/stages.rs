//! Which models a pipeline can cut.

use super::config::{DecoderConfig, DecoderFamily};
use super::{Model, ModelConfig};

impl Model {
    /// The language model whose blocks the stages of a pipeline share, where one tensor is all that goes from block to
    /// block: those that were measured.
    pub(crate) fn pipelined(&self) -> Option<&DecoderConfig> {
        use ModelConfig as M;
        let text = match &self.config {
            M::Decoder(text) => text,
            M::Llava(c) => &c.text,
            M::Idefics3(c) => &c.text,
            _ => return None,
        };
        matches!(text.family, DecoderFamily::Llama | DecoderFamily::Qwen2).then_some(text)
    }
}
