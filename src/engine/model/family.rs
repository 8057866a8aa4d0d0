//! Interface of a model family: what the engine asks of each beside its forward.
//!
//! A family is the configuration that its files are read into. Everything that differs between families is a method of
//! [`Family`] or a field of what a method returns, without defaults: a family that leaves one out does not compile. The
//! registry ([`super::families`]) has one row for each family.

use std::any::Any;

use super::ModelError;
use super::answers::{Fidelity, Heads, ImageForm, Positions, Sizes, Support};
use super::config::section::Section;
use super::facts::Facts;
use super::forward::Forward;
use super::takes::Takes;
use crate::nn::Builder;
use crate::setup::Setup;

/// A family as the registry knows it: what holds for all its models, and how a file is read.
pub(crate) trait Registered: Family + Sized {
    /// Facts that hold for all models of the family.
    const FACTS: &'static Facts;

    /// Reads a configuration of the given `model_type`, which is one of the family's.
    fn read_config(model_type: &str, s: &Section) -> Result<Self, ModelError>;
}

/// A family of models, implemented by its typed configuration.
pub(crate) trait Family: Config {
    /// Makes the parameters.
    fn build(&self, b: &Builder) -> Box<dyn Forward>;

    /// Closeness of this configuration's simulated forward to the measured one.
    fn fidelity(&self) -> Fidelity;

    /// Parts of a setup that apply.
    fn takes(&self) -> Takes;

    /// Number of text positions that the model has or was trained for.
    fn positions(&self) -> Positions;

    /// Heads of the language model, or of the tower if there is no text.
    fn heads(&self) -> Heads;

    /// Inputs of the vision tower that the processor makes of images of these sizes, `[height, width]` in pixels: the
    /// images themselves, or the tiles that it cuts them into.
    fn inputs(&self, sizes: &[[u64; 2]]) -> u64;

    /// Positions of a sample that its images take; `setup.images` counts the tower's inputs.
    fn image_tokens(&self, setup: &Setup) -> u64;

    /// Form in which the tower takes the images of a batch.
    fn image_form(&self) -> ImageForm<'_>;

    /// Sizes of images and videos that can be chosen.
    fn sizes(&self) -> Sizes;

    /// Support of the model by training libraries.
    fn support(&self) -> Support<'_>;

    /// Returns true if what the processor makes of images of any sizes is known.
    fn knows_image_sizes(&self) -> bool {
        true
    }

    /// `model_type` of a language model of any family within the model; empty if it is the model's own.
    fn text_type(&self) -> &'static str {
        ""
    }

    /// Returns true if batches of samples with other images each are simulated.
    fn batches_other_images(&self) -> bool {
        true
    }

    /// Returns true if checkpointed layers are within others, which is not simulated of reentrant checkpoints.
    fn nests_checkpoints(&self) -> bool {
        false
    }

    /// Returns true if transformers' `Trainer` counts the labels of a step for the loss; false for classes with
    /// `accepts_loss_kwargs = False`.
    fn takes_item_count(&self) -> bool {
        true
    }

    /// Returns true if batches of samples of different lengths are simulated, padded and packed, as far as they are for
    /// models of its kind.
    fn batches_ragged(&self) -> bool {
        true
    }
}

/// Common bounds of typed configurations: they can be compared, and told apart from those of other families. Not `Debug`,
/// whose code of all families the page would download.
pub(crate) trait Config: Any + Send + Sync {
    /// Returns true if the other is a configuration of the same family with the same values.
    fn is_equal(&self, other: &dyn Any) -> bool;
}

impl<C: Any + PartialEq + Send + Sync> Config for C {
    fn is_equal(&self, other: &dyn Any) -> bool {
        other.downcast_ref() == Some(self)
    }
}
