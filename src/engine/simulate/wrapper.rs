//! The library that wraps a model for several GPUs (DDP, FSDP, DeepSpeed), as the loop of a step calls it.

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

    /// The tensors of the model's output object, beside its loss, as the wrapper's forward returns them: FSDP casts them to
    /// `output_dtype`, DDP passes them through a node of its own.
    fn wrapped_outputs(&self, _: &Tape, _loss: Option<&Tensor>, held: Vec<Tensor>) -> Vec<Tensor> {
        held
    }

    /// The logits as the wrapper's forward returns them, for a trainer that computes the loss itself.
    fn wrapped_logits(&self, _: &Tape, logits: Tensor) -> Tensor {
        logits
    }

    /// What a fused head returns for each token (log-probabilities, entropies), as the wrapper's forward returns it.
    fn wrapped_figures(&self, _: &Tape, figures: FusedOutput) -> FusedOutput {
        figures
    }

    /// The backward of a micro-batch is over.
    fn after_backward(&self, _: &Tape) {}

    /// The first step is over; called where every step is recorded by itself.
    fn after_first_step(&self, _: &Tape) {}

    /// Tensors that the wrapper moved the parameters into, such as shards or flat buffers, each with true if trained.
    fn weights(&self) -> Vec<(Tensor, bool)> {
        Vec::new()
    }

    /// How `clip_grad_norm_` takes the norms of gradients.
    fn norms(&self) -> Norms {
        Norms::default()
    }

    /// Called for each update: notes the part of it that runs on the host, under CPU offload.
    fn update_on_host(&self, _: &Tape, _: &Optimizer) {}

    /// True if optimizer and gradients hold shards only. The first two steps are then recorded separately, instead of
    /// deriving the second from the first.
    fn shards_states(&self) -> bool {
        false
    }

    /// Storages allocated on another stream than the model's. The allocator caches by stream, so their memory
    /// serves tensors of that stream only.
    fn streams(&self) -> Vec<(StorageId, u32)> {
        Vec::new()
    }

    /// DeepSpeed's engine, which scales losses and steps by itself.
    fn engine(&self) -> Option<&Engine> {
        None
    }
}

/// Runs a model's forward between the wrapper's hooks, if there is a wrapper.
pub(super) fn wrapped_by<R>(t: &Tape, wrapper: Option<&Rc<dyn Wrapper>>, forward: impl FnOnce() -> R) -> R {
    wrapper.iter().for_each(|wrapper| wrapper.before_forward(t));
    let output = forward();
    wrapper.iter().for_each(|wrapper| wrapper.after_forward(t));
    output
}
