//! Reasons for the lifetimes of memory.

use serde::{Deserialize, Serialize};

use crate::names::{self, Name};

/// Reason that memory lives as long as it does. Frontends have the words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// Until the operations that use it are done.
    #[default]
    InUse,
    /// The batch: on the GPU until the step is done.
    Batch,
    /// Kept from forward: this node, such as `MulBackward0`, needs it in backward.
    NeededBy(#[serde(deserialize_with = "names::read")] Name),
    /// The input of a checkpointed block, from which backward runs it again.
    BlockInput,
    /// A parameter of the model.
    Parameter,
    /// A buffer of the model.
    Buffer,
    /// A low-rank adapter.
    Adapter,
    /// An element of the moving average of the model.
    MovingAverage,
    /// Kept from backward until `zero_grad`.
    Gradient,
    /// Kept between steps by the optimizer.
    State,
    /// The parameter's size, kept between steps (transformers' Adafactor).
    ParameterSize,
    /// The fused kernel's count of steps.
    StepCount,
    /// The values that the bytes of 8-bit states stand for, shared by all of them.
    QuantisationMap,
    /// Autocast's low-precision copy of a weight, cached until forward's context ends.
    AutocastCopy,
    /// Kept by a library for each thread that calls it.
    Library,
    /// Held by a Python name, such as `outputs.logits`.
    HeldBy(#[serde(deserialize_with = "names::read")] Name),
}

impl Why {
    /// English words.
    pub fn words(self) -> String {
        let words = match self {
            Self::InUse => "lives until the operations that use it are done",
            Self::Batch => "the batch, on the GPU until the step is done",
            Self::HeldBy(name) => return format!("the Python name `{name}` holds it"),
            Self::NeededBy(node) => return format!("kept from forward because {node} needs it in backward"),
            Self::BlockInput => "input of a checkpointed block, from which backward runs it again",
            Self::Parameter => "a parameter of the model",
            Self::Buffer => "a buffer of the model",
            Self::Adapter => "a low-rank adapter",
            Self::MovingAverage => "a moving average of the model",
            Self::Gradient => "kept from backward until zero_grad",
            Self::State => "kept between steps by the optimizer",
            Self::ParameterSize => "the parameter's size, kept between steps",
            Self::StepCount => "the fused kernel's step count",
            Self::QuantisationMap => "the values that bytes stand for, shared by all states",
            Self::AutocastCopy => "autocast's low-precision copy of a weight, cached until forward's context ends",
            Self::Library => "the library keeps it for each thread that calls it",
        };
        words.into()
    }
}
