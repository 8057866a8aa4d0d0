//! MiniMax-Text (`transformers/models/minimax`).

mod config;
mod forward;
mod lightning;

pub use config::MiniMaxConfig;

use crate::model::ModelError;
use crate::model::answers::{Heads, Positions};
use crate::model::config::section::Section;
use crate::model::facts::{Facts, UseCache};
use crate::model::forward::Forward;
use crate::model::libraries::{AdapterMaps, Liger};
use crate::model::parts::text::{TextFamily, TextSupport};
use crate::nn::Builder;

static FACTS: Facts = Facts {
    model_types: &[config::ROW.model_type],
    catalogue: &[],
    overrides: &[],
    use_cache: UseCache::OfText,
};

impl TextFamily for MiniMaxConfig {
    const FACTS: &'static Facts = &FACTS;

    fn read(_: &str, s: &Section) -> Result<Self, ModelError> {
        Self::read(s)
    }

    fn build(&self, b: &Builder) -> Box<dyn Forward> {
        Box::new(forward::model(b, self))
    }

    fn positions(&self) -> Positions {
        Positions::Rotary(self.text.max_positions)
    }

    fn heads(&self) -> Heads {
        Heads::of_decoder(&self.text)
    }

    fn libraries(&self) -> TextSupport {
        TextSupport {
            adapters: AdapterMaps::BesideExperts,
            liger: Liger::Unknown,
            no_flash: None,
        }
    }

    fn batches_ragged(&self) -> bool {
        false
    }
}
