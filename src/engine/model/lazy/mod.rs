//! Lazily loaded families: all but LLaVA and decoders with Llama's blocks. A frontend that is split into parts, as the
//! page is, can load them on demand: with the feature `lazy-models` only [`LazyModels`] refers to their code.

pub(crate) mod blocks;

use super::Model;
use super::decoder::DecoderConfig;
use super::decoder::causal_lm::CausalLm;
use super::decoder::stack::Decoder;
use super::families::llava::forward::Llava;
use super::families::{ModelConfig, decoders};
use super::forward::Forward;
use crate::nn::Builder;

/// Function that makes the parameters of a model of these families.
type Make = fn(&ModelConfig, &Builder) -> Box<dyn Forward>;

#[cfg(feature = "lazy-models")]
static PROVIDED: std::sync::OnceLock<Make> = std::sync::OnceLock::new();

/// Returns the function that makes them, which is linked in.
#[cfg(not(feature = "lazy-models"))]
fn make() -> Make {
    ModelConfig::build
}

/// Returns the function that makes them, which must have been provided.
///
/// # Panics
/// If they were not provided: the frontend must check [`Model::is_lazy`] first.
#[cfg(feature = "lazy-models")]
fn make() -> Make {
    *PROVIDED
        .get()
        .expect("the frontend provides lazy models before it runs one")
}

/// Handle to the forwards of these families.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(not(feature = "lazy-models"), expect(dead_code))]
pub struct LazyModels {
    make: Make,
    make_block: blocks::Make,
}

impl LazyModels {
    /// Returns all of them. The caller's part of the program contains their code.
    pub fn all() -> Self {
        Self {
            make: ModelConfig::build,
            make_block: blocks::own,
        }
    }

    /// Makes these families available from now on.
    pub fn provide(self) {
        #[cfg(feature = "lazy-models")]
        {
            // A second call provides the same function, so its error is ignored.
            PROVIDED.set(self.make).ok();
            blocks::provide(self.make_block);
        }
    }
}

/// Returns true if the modules of a decoder are among those that are loaded lazily.
fn is_lazy(c: &DecoderConfig) -> bool {
    c.is_gemma() || decoders::has_own_blocks(c.family)
}

impl Model {
    /// Returns true if the model is of one of the families that [`LazyModels`] provides.
    pub fn is_lazy(&self) -> bool {
        match &self.config {
            ModelConfig::Decoder(c) => is_lazy(c),
            ModelConfig::Llava(c) => is_lazy(&c.text),
            _ => true,
        }
    }

    /// Makes the parameters.
    pub(crate) fn build(&self, b: &Builder) -> Box<dyn Forward> {
        // A pipeline stage after the first has blocks of the language model only, and receives the merged embeddings.
        if let (false, Some(text)) = (b.tape().stage().is_first(), self.config.family().support().pipeline) {
            return Box::new(CausalLm::new(b, text));
        }
        match &self.config {
            ModelConfig::Decoder(c) if !is_lazy(c) => Box::new(CausalLm::new(b, c)),
            ModelConfig::Llava(c) if !is_lazy(&c.text) => Box::new(Llava::<Decoder>::new(b, c)),
            config => make()(config, b),
        }
    }
}
