//! Language models without images as families.

use crate::model::ModelError;
use crate::model::answers::{Fidelity, Heads, ImageForm, Positions, Sizes, Support};
use crate::model::config::section::Section;
use crate::model::facts::Facts;
use crate::model::family::{Config, Family, Registered};
use crate::model::forward::{Forward, MainInputs};
use crate::model::libraries::{AdapterMaps, Liger, NoFlash};
use crate::model::takes::Takes;
use crate::nn::Builder;
use crate::setup::Setup;

/// A family of language models without images, which takes nothing but text. Its forward is simulated tensor by tensor
/// on one GPU; Liger's loss, tensor parallelism and pipelines are not simulated for it.
pub(crate) trait TextFamily: Config + Sized {
    /// Facts that hold for all models of the family.
    const FACTS: &'static Facts;

    /// Reads a configuration of the given `model_type`, which is one of the family's.
    fn read(model_type: &str, s: &Section) -> Result<Self, ModelError>;

    /// Makes the parameters.
    fn build(&self, b: &Builder) -> Box<dyn Forward>;

    /// Number of text positions that the model has or was trained for.
    fn positions(&self) -> Positions;

    /// Attention heads.
    fn heads(&self) -> Heads;

    /// Support of the model by training libraries.
    fn libraries(&self) -> TextSupport;

    /// Returns true if batches of samples of different lengths are simulated, padded and packed.
    fn batches_ragged(&self) -> bool {
        true
    }

    /// Returns true if transformers' class can checkpoint its blocks.
    fn checkpoints(&self) -> bool {
        true
    }
}

/// Support of a language model by training libraries.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TextSupport {
    /// Linear layers that peft finds for adapters.
    pub adapters: AdapterMaps,
    /// Liger's replacement of the loss.
    pub liger: Liger,
    /// Reason that `flash_attention_2` is not simulated; `None` if it is.
    pub no_flash: Option<NoFlash>,
}

impl<C: TextFamily> Registered for C {
    const FACTS: &'static Facts = C::FACTS;

    fn read_config(model_type: &str, s: &Section) -> Result<Self, ModelError> {
        C::read(model_type, s)
    }
}

impl<C: TextFamily> Family for C {
    fn build(&self, b: &Builder) -> Box<dyn Forward> {
        C::build(self, b)
    }

    fn fidelity(&self) -> Fidelity {
        Fidelity::Exact
    }

    fn takes(&self) -> Takes {
        Takes {
            checkpointing: C::checkpoints(self),
            ..Takes::TEXT
        }
    }

    fn positions(&self) -> Positions {
        C::positions(self)
    }

    fn heads(&self) -> Heads {
        C::heads(self)
    }

    fn inputs(&self, sizes: &[[u64; 2]]) -> u64 {
        sizes.len() as u64
    }

    fn image_tokens(&self, _: &Setup) -> u64 {
        0
    }

    fn image_form(&self) -> ImageForm<'_> {
        ImageForm::Stacked
    }

    fn sizes(&self) -> Sizes {
        Sizes::FIXED
    }

    fn batches_ragged(&self) -> bool {
        C::batches_ragged(self)
    }

    fn support(&self) -> Support<'_> {
        let TextSupport {
            adapters,
            liger,
            no_flash,
        } = self.libraries();
        Support {
            main_inputs: MainInputs {
                model_takes_ids: true,
                tower_takes_ids: false,
            },
            adapters,
            liger,
            no_flash,
            tensor_parallel: None,
            pipeline: None,
        }
    }
}
