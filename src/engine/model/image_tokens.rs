//! Number of image tokens in a sample.

use super::{Model, ModelConfig};
use crate::Setup;

impl Model {
    /// Positions of a sample's sequence that its images take; 0 for text models and pure vision models.
    pub fn image_tokens(&self, setup: &Setup) -> u64 {
        use ModelConfig as M;
        let setup = &self.prepared(setup);
        match &self.config {
            M::Llava(c) => setup.images * c.image_tokens(),
            M::PaliGemma(c) => setup.images * c.vision.grid.patches(),
            M::Idefics3(c) => setup.images * c.tile_tokens(),
            M::LlavaNext(c) => c.image_tokens(setup),
            M::InternVl(c) => setup.images * c.tile_tokens(),
            M::Gemma3(c) => setup.images * c.image_tokens,
            M::Blip2(c) => c.queries,
            M::Qwen2Vl(c) => c.vision.patches.positions(setup),
            M::Qwen25Vl(c) => c.vision.patches.positions(setup),
            M::Qwen3Vl(c) => c.vision.patches.positions(setup),
            _ => 0,
        }
    }
}
