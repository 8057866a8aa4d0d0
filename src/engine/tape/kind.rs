//! Kinds of memory and parts of a model.

use serde::{Deserialize, Serialize};

/// Purpose of a tensor's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Kind {
    /// A parameter or buffer of the model.
    Weight,
    /// A parameter's gradient, from backward to `zero_grad`.
    Gradient,
    /// State that the optimizer keeps between steps.
    OptimizerState,
    /// Kept by forward because backward needs it.
    Activation,
    /// Lives within one operation or between two.
    Temporary,
    /// A library's scratch memory (cuBLAS, cuBLASLt).
    Workspace,
    /// The batch: token ids, labels, masks, pixels.
    Input,
}

impl Kind {
    /// Number of kinds.
    pub const COUNT: usize = 7;

    /// All kinds, in stacking order; the index is the discriminant.
    pub const ALL: [Self; Self::COUNT] = [
        Self::Weight,
        Self::Gradient,
        Self::OptimizerState,
        Self::Activation,
        Self::Temporary,
        Self::Workspace,
        Self::Input,
    ];

    /// English name.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Weight => "weights",
            Self::Gradient => "gradients",
            Self::OptimizerState => "optimizer states",
            Self::Activation => "activations",
            Self::Temporary => "temporaries",
            Self::Workspace => "workspaces",
            Self::Input => "inputs",
        }
    }
}

/// A part of the model that a person would name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Component {
    /// The image or video encoder.
    VisionTower,
    /// The module that maps image features into the language model's width.
    Connector,
    /// The decoder.
    LanguageModel,
    /// Output projection and loss.
    Head,
    /// Everything that belongs to no part of the model: inputs, workspaces.
    Run,
}

impl Component {
    /// All components, in the order in which data flows through them.
    pub const ALL: [Self; 5] = [
        Self::VisionTower,
        Self::Connector,
        Self::LanguageModel,
        Self::Head,
        Self::Run,
    ];

    /// English name.
    pub const fn label(self) -> &'static str {
        match self {
            Self::VisionTower => "vision tower",
            Self::Connector => "connector",
            Self::LanguageModel => "language model",
            Self::Head => "head and loss",
            Self::Run => "run",
        }
    }
}
