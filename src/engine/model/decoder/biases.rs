//! Biases of a decoder's projections.

use crate::model::ModelError;
use crate::model::config::section::Section;

/// Projections of a block that have biases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Biases {
    /// Queries, keys and values.
    pub qkv: bool,
    /// The output projection of attention.
    pub output: bool,
    /// The MLP.
    pub mlp: bool,
}

impl Biases {
    /// No projection has a bias, regardless of the file.
    pub const NONE: Self = Self {
        qkv: false,
        output: false,
        mlp: false,
    };

    /// Reads one flag for all four projections of attention, and one for the MLP.
    pub fn of_attention_and_mlp(s: &Section) -> Result<Self, ModelError> {
        let attention = s.flag("attention_bias", false)?;
        Ok(Self {
            qkv: attention,
            output: attention,
            mlp: s.flag("mlp_bias", false)?,
        })
    }

    /// Reads one flag for all four projections of attention; the MLP has none.
    pub fn of_attention(s: &Section) -> Result<Self, ModelError> {
        let attention = s.flag("attention_bias", false)?;
        Ok(Self {
            qkv: attention,
            output: attention,
            mlp: false,
        })
    }
}
