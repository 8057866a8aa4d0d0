//! Models that pipeline parallelism can split.

use super::config::{DecoderConfig, DecoderFamily};
use super::{Model, ModelConfig};

impl Model {
    /// Returns the language model whose blocks the stages of a pipeline share, for the models that were measured, in
    /// which one tensor is all that passes from block to block.
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
