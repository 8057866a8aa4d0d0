//! What wraps a model for several GPUs, as the loop of a step calls it.

use std::rc::Rc;

use super::engine::Engine;
use crate::nn::FusedOutput;
use crate::optim::{Norms, Optimizer};
use crate::tape::log::StorageId;
use crate::tape::{Tape, Tensor};

/// Hooks around a model's forward and backward. Those on gradients are the tape's ([`Tape::on_gradient`]).
pub(super) trait Wrapper {
    /// A micro-batch begins; `is_last` is true for the last of a step.
    fn begin(&self, is_last: bool);

    /// The forward of the model begins.
    fn before_forward(&self, _: &Tape) {}

    /// The forward of the model is over.
    fn after_forward(&self, _: &Tape) {}

    /// The model begins to generate, or has done so.
    fn generates(&self, _: &Tape, _begins: bool) {}

    /// Returns what is handed out in the place of what the model's output object holds, beside its loss, if it has one.
    fn handed_out(&self, _: &Tape, _loss: Option<&Tensor>, held: Vec<Tensor>) -> Vec<Tensor> {
        held
    }

    /// Returns the logits that are handed out, of which the trainer computes the loss.
    fn handed_logits(&self, _: &Tape, logits: Tensor) -> Tensor {
        logits
    }

    /// Returns what is handed out in the place of figures of each token.
    fn returned(&self, _: &Tape, figures: FusedOutput) -> FusedOutput {
        figures
    }

    /// The backward of a micro-batch is over.
    fn after_backward(&self, _: &Tape) {}

    /// The first step is over; called where every step is recorded by itself.
    fn after_first_step(&self, _: &Tape) {}

    /// Memory that parameters moved into, and true if it is of trained ones.
    fn weights(&self) -> Vec<(Tensor, bool)> {
        Vec::new()
    }

    /// How `clip_grad_norm_` takes the norms of gradients.
    fn norms(&self) -> Norms {
        Norms::default()
    }

    /// An optimizer like this updates: notes what the host does of it.
    fn updates(&self, _: &Tape, _: &Optimizer) {}

    /// True if optimizer and gradients have parts of parameters alone, so that each step is recorded by itself.
    fn is_in_parts(&self) -> bool {
        false
    }

    /// Storages made on another stream than the model's.
    fn streams(&self) -> Vec<(StorageId, u32)> {
        Vec::new()
    }

    /// DeepSpeed's engine, which scales losses and steps by itself.
    fn engine(&self) -> Option<&Engine> {
        None
    }
}

/// Runs a model's forward as what wraps it does, if anything does.
pub(super) fn wrapped_by<R>(t: &Tape, wrapper: Option<&Rc<dyn Wrapper>>, forward: impl FnOnce() -> R) -> R {
    wrapper.iter().for_each(|wrapper| wrapper.before_forward(t));
    let output = forward();
    wrapper.iter().for_each(|wrapper| wrapper.after_forward(t));
    output
}
