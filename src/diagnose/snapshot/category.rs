//! Classifies allocations by their stack and their lifetime.

use serde::{Deserialize, Serialize};

use super::stacks::Frame;

/// Purpose of an allocation. PyTorch does not record it; it is inferred from the stack that made it and from the events
/// before it was freed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Category {
    /// Made while the model was made or loaded, and kept.
    Weight,
    /// Made in backward and kept beyond it.
    Gradient,
    /// Made by the optimizer and kept.
    OptimizerState,
    /// Made in forward and kept for backward.
    Activation,
    /// Freed before its phase ended.
    Temporary,
    /// Made elsewhere: inputs, evaluation, the program's own tensors.
    Other,
    /// Made before the recording began.
    Before,
}

impl Category {
    /// All categories, in stacking order.
    pub const ALL: [Self; 7] = [
        Self::Before,
        Self::Weight,
        Self::OptimizerState,
        Self::Gradient,
        Self::Activation,
        Self::Temporary,
        Self::Other,
    ];

    /// Index in [`Self::ALL`].
    pub(super) const fn place(self) -> usize {
        match self {
            Self::Before => 0,
            Self::Weight => 1,
            Self::OptimizerState => 2,
            Self::Gradient => 3,
            Self::Activation => 4,
            Self::Temporary => 5,
            Self::Other => 6,
        }
    }

    /// English name of the category.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Weight => "weights",
            Self::Gradient => "gradients",
            Self::OptimizerState => "optimizer states",
            Self::Activation => "activations",
            Self::Temporary => "temporaries",
            Self::Other => "other",
            Self::Before => "before the recording",
        }
    }
}

/// The part of a step that a stack belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// The model is constructed, loaded or moved.
    Load,
    Forward,
    /// Backward; autograd's threads have no Python stack.
    Backward,
    Optimizer,
    Other,
}

/// Infers the part of the step from the frames, innermost first.
pub(super) fn part<'a>(frames: impl Iterator<Item = &'a Frame>) -> Part {
    let (mut is_any, mut is_forward, mut is_load, mut is_backward) = (false, false, false, false);
    for frame in frames {
        is_any = true;
        let (name, file) = (frame.name.as_str(), frame.file.as_str());
        if file.contains("/optim/") || file.contains("\\optim\\") || file.contains("/optimizers/") {
            return Part::Optimizer;
        }
        // Checkpointing recomputes forward functions inside backward.
        is_backward |= matches!(
            name,
            "backward" | "_engine_run_backward" | "unpack_hook" | "recompute_fn"
        );
        is_forward |= name == "forward" || name == "_call_impl";
        is_load |= matches!(
            name,
            "__init__" | "_apply" | "from_pretrained" | "load_state_dict" | "_load_from_state_dict"
        );
    }
    match (is_any, is_backward, is_forward, is_load) {
        (false, ..) | (_, true, ..) => Part::Backward,
        (_, _, true, _) => Part::Forward,
        (_, _, _, true) => Part::Load,
        _ => Part::Other,
    }
}
