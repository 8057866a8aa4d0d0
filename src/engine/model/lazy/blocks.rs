//! Blocks of decoders that have some of their own, and models that Gemma's make different: [`super::LazyGroup::Blocks`].

use std::rc::Rc;

use crate::model::decoder::DecoderConfig;
use crate::model::decoder::block::Block;
use crate::model::decoder::gemma::{GemmaLm, GemmaText};
use crate::model::families::decoders;
use crate::model::families::llava::LlavaConfig;
use crate::model::families::llava::forward::Llava;
use crate::model::forward::Forward;
use crate::nn::Builder;

/// Constructors of modules that are not Llama's.
#[derive(Clone, Copy)]
pub(crate) struct Blocks {
    /// Makes one block, by its index, of a decoder with blocks of its own.
    pub block: fn(&Builder, &DecoderConfig, usize) -> Rc<dyn Block>,
    /// Makes a language model of Gemma's.
    pub gemma: fn(&Builder, &DecoderConfig) -> Box<dyn Forward>,
    /// Makes a LLaVA with a language model of Gemma's.
    pub llava_gemma: fn(&Builder, &LlavaConfig) -> Box<dyn Forward>,
}

impl Blocks {
    /// All constructors: whatever refers to this constant contains the code of these modules.
    pub const OWN: Self = Self {
        block: |b, c, index| match decoders::own_block(b, c, index) {
            Some(block) => block,
            None => unreachable!("the registry names the blocks of {}", c.family.name()),
        },
        gemma: |b, c| Box::new(GemmaLm::new(b, c)),
        llava_gemma: |b, c| Box::new(Llava::<GemmaText>::new(b, c)),
    };

    /// Returns the constructors, which are linked in.
    #[cfg(not(feature = "lazy-models"))]
    pub const fn get() -> Self {
        Self::OWN
    }

    /// Returns the constructors that the frontend provided.
    ///
    /// # Panics
    /// When none were provided: the frontend must check [`crate::Model::lazy_group`] first.
    #[cfg(feature = "lazy-models")]
    pub fn get() -> Self {
        *PROVIDED
            .get()
            .expect("the frontend provides lazy models before it runs one")
    }
}

#[cfg(feature = "lazy-models")]
static PROVIDED: std::sync::OnceLock<Blocks> = std::sync::OnceLock::new();

/// Makes the constructors available from now on.
#[cfg(feature = "lazy-models")]
pub(super) fn provide(blocks: Blocks) {
    // A second call provides the same functions, so its error is ignored.
    PROVIDED.set(blocks).ok();
}
