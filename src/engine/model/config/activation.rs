//! Pointwise activations and their names in transformers.

use super::section::Section;
use crate::model::ModelError;

/// A pointwise activation function; several of transformers' names mean the same one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Activation {
    /// Exact GELU, one kernel (`gelu`).
    Gelu,
    /// GELU by tanh, one kernel (`gelu_pytorch_tanh`).
    GeluTanh,
    /// GELU by tanh, written out in eight elementwise operations (`gelu_new`, `gelu_fast`'s sibling).
    GeluNew,
    /// x · sigmoid(1.702 x), written out (`quick_gelu`).
    QuickGelu,
    /// x · sigmoid(x), one kernel (`silu`, `swish`).
    Silu,
    /// max(x, 0) (`relu`).
    Relu,
}

impl Activation {
    const NAMES: [(&'static str, Self); 7] = [
        ("gelu", Self::Gelu),
        ("gelu_pytorch_tanh", Self::GeluTanh),
        ("gelu_new", Self::GeluNew),
        ("quick_gelu", Self::QuickGelu),
        ("silu", Self::Silu),
        ("swish", Self::Silu),
        ("relu", Self::Relu),
    ];

    /// transformers' name of the activation (`ACT2FN`).
    pub fn name(self) -> &'static str {
        Self::NAMES
            .iter()
            .find(|(_, a)| *a == self)
            .map_or("", |(name, _)| name)
    }

    /// Reads the activation named under `key`.
    pub(crate) fn read(section: &Section, key: &str, default: Self) -> Result<Self, ModelError> {
        let Some(given) = section.optional_text(key)? else {
            return Ok(default);
        };
        Self::NAMES
            .iter()
            .find(|(name, _)| *name == given)
            .map(|(_, a)| *a)
            .ok_or_else(|| {
                let allowed = Self::NAMES.map(|(name, _)| name).join(", ");
                section.wrong(key, &given.into(), &format!("one of {allowed}"))
            })
    }
}
