//! Lazily loaded families: all but LLaVA and decoders like Llama's. A frontend that is split into parts, as the page
//! is, can load them on demand: with the feature `lazy-models` only [`LazyModels`] refers to their code.

use super::decoder::Decoder;
use super::gemma_text::GemmaText;
use super::*;

/// Function that makes the parameters of a model of these families.
pub(super) type Make = fn(&Model, &Builder) -> Box<dyn Forward>;

#[cfg(feature = "lazy-models")]
static PROVIDED: std::sync::OnceLock<Make> = std::sync::OnceLock::new();

/// Returns the function that makes them, which is linked in.
#[cfg(not(feature = "lazy-models"))]
pub(super) fn make() -> Make {
    lazy
}

/// Returns the function that makes them, which must have been provided.
///
/// # Panics
/// If they were not provided: the frontend must check [`Model::is_lazy`] first.
#[cfg(feature = "lazy-models")]
pub(super) fn make() -> Make {
    *PROVIDED
        .get()
        .expect("the face provides lazy models before it runs one")
}

/// Handle to the forwards of these families.
#[derive(Debug, Clone, Copy)]
pub struct LazyModels(#[cfg_attr(not(feature = "lazy-models"), expect(dead_code))] Make);

impl LazyModels {
    /// Returns all of them. The caller's part of the program contains their code.
    pub fn all() -> Self {
        Self(lazy)
    }

    /// Makes these families available from now on.
    pub fn provide(self) {
        #[cfg(feature = "lazy-models")]
        // A second call provides the same function, so its error is ignored.
        PROVIDED.set(self.0).ok();
    }
}

impl Model {
    /// Returns true if the model is of one of the families that [`LazyModels`] provides.
    pub fn is_lazy(&self) -> bool {
        match &self.config {
            ModelConfig::Decoder(c) => gemma_text::is_gemma(c),
            ModelConfig::Llava(c) => gemma_text::is_gemma(&c.text),
            _ => true,
        }
    }
}

fn lazy(model: &Model, b: &Builder) -> Box<dyn Forward> {
    match &model.config {
        ModelConfig::Gpt2(c) => Box::new(gpt2::Gpt2::new(b, c)),
        ModelConfig::Decoder(c) if gemma_text::is_gemma(c) => Box::new(gemma_text::GemmaLm::new(b, c)),
        ModelConfig::Decoder(c) => Box::new(decoder::CausalLm::new(b, c)),
        ModelConfig::Mllama(c) => Box::new(mllama::Mllama::new(b, c)),
        ModelConfig::Phi(c) => Box::new(phi::Phi::new(b, c)),
        ModelConfig::Opt(c) => Box::new(opt::Opt::new(b, c, "")),
        ModelConfig::Llava(c) if gemma_text::is_gemma(&c.text) => Box::new(llava::Llava::<GemmaText>::new(b, c)),
        ModelConfig::Llava(c) => Box::new(llava::Llava::<Decoder>::new(b, c)),
        ModelConfig::PaliGemma(c) => Box::new(paligemma::PaliGemma::new(b, c)),
        ModelConfig::Gemma3(c) => Box::new(gemma3::Gemma3::new(b, c)),
        ModelConfig::Idefics3(c) => Box::new(idefics3::Idefics3::new(b, c)),
        ModelConfig::InternVl(c) => Box::new(internvl::InternVl::new(b, c)),
        ModelConfig::LlavaNext(c) if gemma_text::is_gemma(&c.text) => {
            Box::new(llava_next::LlavaNext::<GemmaText>::new(b, c))
        }
        ModelConfig::LlavaNext(c) => Box::new(llava_next::LlavaNext::<Decoder>::new(b, c)),
        ModelConfig::Siglip(c) => Box::new(siglip::Siglip::new(b, c)),
        ModelConfig::Clip(c) => Box::new(clip::Clip::new(b, c)),
        ModelConfig::Vit(c) => Box::new(vit::Vit::new(b, c)),
        ModelConfig::VideoMae(c) => Box::new(videomae::VideoMae::new(b, c)),
        ModelConfig::Blip2(c) => Box::new(blip2::Blip2::new(b, c)),
        ModelConfig::Qwen2Vl(c) => Box::new(qwen2_vl::model(b, c)),
        ModelConfig::Qwen25Vl(c) => Box::new(qwen2_5_vl::model(b, c)),
        ModelConfig::Qwen3Vl(c) => Box::new(qwen3_vl::model(b, c)),
    }
}
