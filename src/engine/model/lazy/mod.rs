//! Code of models that is loaded on demand, in groups. A frontend that is split into parts, as the page is, loads a group
//! when a model needs it: with the feature `lazy-models` only [`LazyModels`] refers to the code of these groups. Without
//! the feature all are linked in.

use super::catalogue;
use super::decoder::{DecoderConfig, DecoderFamily};
use super::families::llava::LlavaConfig;
use super::families::{self, Code, decoders};
use super::forward::Forward;
use super::{Model, parse};
use crate::model::decoder::block::Block;
use crate::model::decoder::gemma::{GemmaLm, GemmaText};
use crate::model::families::llava::forward::Llava;
use crate::nn::Builder;
use crate::tape::Unroller;
use std::rc::Rc;

/// Group of models whose code is loaded together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LazyGroup {
    /// Models of images and videos but LLaVA.
    Images,
    /// Language models whose modules are not Llama's.
    Text,
    /// Most decoders like Llama's, alone or inside other models, and the blocks of those that have some of their own.
    Blocks,
}

impl LazyGroup {
    /// Every group.
    pub const ALL: [Self; 3] = [Self::Images, Self::Text, Self::Blocks];

    /// Group that reading a model of the catalogue needs; `None` if it needs none, or if no model has this name.
    pub fn of_name(name: &str) -> Option<Self> {
        catalogue::known(name)?.0
    }

    /// Group that reading a `config.json` needs; `None` if it needs none, or if it cannot be read.
    pub fn of_config(text: &str) -> Option<Self> {
        let config = parse(text).ok()?;
        let of_text = families::known_text(&config);
        let known = of_text.or_else(|| families::known(config.get("model_type")?.as_str()?))?;
        let of_decoder = || {
            let inside = config.get("text_config").and_then(|text| text.get("model_type"));
            let own = decoders::group(known.model_type.name);
            own.or_else(|| decoders::group(inside?.as_str()?))
        };
        known.group.or_else(of_decoder)
    }

    /// Code of the group's families, which is linked in.
    #[cfg(not(feature = "lazy-models"))]
    pub(super) fn codes(self) -> Option<&'static [Code]> {
        match self {
            Self::Images => Some(families::IMAGES),
            Self::Text => Some(families::TEXT),
            Self::Blocks => None,
        }
    }

    /// Code of the group's families, if it was provided.
    #[cfg(feature = "lazy-models")]
    pub(super) fn codes(self) -> Option<&'static [Code]> {
        match self {
            Self::Images => IMAGES.get().copied(),
            Self::Text => TEXT.get().copied(),
            Self::Blocks => None,
        }
    }
}

/// Decoders that are not always there, which are linked in.
#[cfg(not(feature = "lazy-models"))]
pub(super) fn decoders() -> Option<&'static [DecoderFamily]> {
    Some(decoders::LATER)
}

/// Decoders that are not always there, if a group that has them was provided.
#[cfg(feature = "lazy-models")]
pub(super) fn decoders() -> Option<&'static [DecoderFamily]> {
    DECODERS.get().copied()
}

#[cfg(feature = "lazy-models")]
static DECODERS: std::sync::OnceLock<&[DecoderFamily]> = std::sync::OnceLock::new();
#[cfg(feature = "lazy-models")]
static IMAGES: std::sync::OnceLock<&[Code]> = std::sync::OnceLock::new();
#[cfg(feature = "lazy-models")]
static TEXT: std::sync::OnceLock<&[Code]> = std::sync::OnceLock::new();

/// Handle to the code of a group, and to the code that unrolls the layers of models.
#[cfg_attr(not(feature = "lazy-models"), expect(dead_code))]
pub struct LazyModels(Handle, Unroller);

#[cfg_attr(not(feature = "lazy-models"), expect(dead_code))]
enum Handle {
    Images(&'static [Code], &'static [DecoderFamily]),
    Text(&'static [Code]),
    Blocks(Blocks, &'static [DecoderFamily]),
}

impl LazyModels {
    /// Returns the code of [`LazyGroup::Images`]. The caller's part of the program contains it.
    pub const fn images() -> Self {
        Self(Handle::Images(families::IMAGES, decoders::LATER), Unroller::OWN)
    }

    /// Returns the code of [`LazyGroup::Text`]. The caller's part of the program contains it.
    pub const fn text() -> Self {
        Self(Handle::Text(families::TEXT), Unroller::OWN)
    }

    /// Returns the code of [`LazyGroup::Blocks`]. The caller's part of the program contains it.
    pub const fn blocks() -> Self {
        Self(Handle::Blocks(Blocks::OWN, decoders::LATER), Unroller::OWN)
    }

    /// Makes the group available from now on.
    pub fn provide(self) {
        #[cfg(feature = "lazy-models")]
        self.1.provide();
        // A second call provides the same code, so its error is ignored.
        #[cfg(feature = "lazy-models")]
        match self.0 {
            Handle::Images(codes, decoders) => {
                IMAGES.set(codes).ok();
                DECODERS.set(decoders).ok();
            }
            Handle::Text(codes) => drop(TEXT.set(codes)),
            Handle::Blocks(blocks, decoders) => {
                provide(blocks);
                DECODERS.set(decoders).ok();
            }
        }
    }
}

impl Model {
    /// Group that running the model needs, beside the group that reading it needed; `None` if it needs no other.
    pub fn lazy_group(&self) -> Option<LazyGroup> {
        let needs_it = if let Some(decoder) = self.config.downcast() {
            needs_blocks(decoder)
        } else if let Some(llava) = self.config.downcast::<LlavaConfig>() {
            needs_blocks(&llava.text)
        } else {
            // Any decoder can be the language model of most others with images.
            self.takes().parts
        };
        needs_it.then_some(LazyGroup::Blocks)
    }
}

/// Returns true if a decoder has modules that are loaded with [`LazyGroup::Blocks`].
fn needs_blocks(c: &DecoderConfig) -> bool {
    c.is_gemma() || decoders::has_own_blocks(c.family)
}

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
fn provide(blocks: Blocks) {
    // A second call provides the same functions, so its error is ignored.
    PROVIDED.set(blocks).ok();
}
