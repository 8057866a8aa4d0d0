//! Modules whose forward Liger replaces.

use crate::setup::LigerKernels;
use crate::tape::Component;

/// Norms of a part of a model, by their names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Norms {
    /// These.
    Named(&'static [&'static str]),
    /// All.
    All,
}

impl Norms {
    /// None.
    pub const NONE: Self = Self::Named(&[]);

    fn has(self, name: &str) -> bool {
        match self {
            Self::Named(names) => names.contains(&name),
            Self::All => true,
        }
    }
}

/// What Liger replaces in one part of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Replaced {
    /// The function that rotates queries and keys (RoPE).
    pub rope: bool,
    /// Norms.
    pub norms: Norms,
    /// MLPs.
    pub mlps: bool,
}

impl Replaced {
    /// Nothing.
    pub const NOTHING: Self = Self {
        rope: false,
        norms: Norms::NONE,
        mlps: false,
    };
}

/// What Liger replaces in a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LigerPatches {
    /// In the language model.
    pub language: Replaced,
    /// In the vision tower.
    pub tower: Replaced,
    /// In the connector.
    pub connector: Replaced,
    /// True if backward of an RMS norm writes the gradient of its input over that of its result.
    pub in_place: bool,
}

impl LigerPatches {
    /// Nothing.
    pub const NOTHING: Self = Self {
        language: Replaced::NOTHING,
        tower: Replaced::NOTHING,
        connector: Replaced::NOTHING,
        in_place: false,
    };

    /// Those of these kernels alone.
    #[must_use]
    pub fn of(self, kernels: LigerKernels) -> Self {
        let part = |part: Replaced| Replaced {
            rope: part.rope && kernels.rope,
            norms: if kernels.norms { part.norms } else { Norms::NONE },
            mlps: part.mlps && kernels.mlps,
        };
        Self {
            language: part(self.language),
            tower: part(self.tower),
            connector: part(self.connector),
            ..self
        }
    }

    const fn part(&self, part: Component) -> &Replaced {
        match part {
            Component::VisionTower => &self.tower,
            Component::Connector => &self.connector,
            Component::LanguageModel | Component::Head | Component::Run => &self.language,
        }
    }

    /// Returns true if RoPE rotates queries and keys in place.
    pub(super) const fn rope(&self, part: Component) -> bool {
        self.part(part).rope
    }

    /// Returns true if a gated MLP is one kernel between its linear layers.
    pub(super) const fn mlp(&self, part: Component) -> bool {
        self.part(part).mlps
    }

    /// Returns true if a norm of this name is one kernel.
    pub(super) fn norm(&self, part: Component, name: &str) -> bool {
        self.part(part).norms.has(name)
    }
}
