//! Biases of a decoder's projections.

use super::DecoderFamily;
use crate::model::ModelError;
use crate::model::config::section::Section;

/// Projections of a block that have biases.
pub(super) struct Biases {
    pub qkv: bool,
    pub output: bool,
    pub mlp: bool,
}

impl Biases {
    /// Reads the biases as the `nn.Linear` calls of a family's `modeling_*.py` use them: a key that they do not read is
    /// ignored.
    pub(super) fn read(s: &Section, family: DecoderFamily) -> Result<Self, ModelError> {
        use DecoderFamily as F;
        let flag = |key| s.flag(key, false);
        let (qkv, output, mlp) = match family {
            F::Llama | F::Granite | F::SmolLm3 => {
                let attention = flag("attention_bias")?;
                (attention, attention, flag("mlp_bias")?)
            }
            F::Helium => (flag("attention_bias")?, false, flag("mlp_bias")?),
            F::Cwm => (false, false, flag("mlp_bias")?),
            F::SeedOss => (
                s.flag("attention_bias", true)?,
                flag("attention_out_bias")?,
                flag("mlp_bias")?,
            ),
            F::Ernie45 => {
                let all = flag("use_bias")?;
                (all, all, all)
            }
            F::Qwen2 => (true, false, false),
            F::Qwen3 | F::Gemma | F::Gemma2 | F::Gemma3 | F::VaultGemma => {
                let attention = flag("attention_bias")?;
                (attention, attention, false)
            }
            F::Mistral | F::Ministral3 | F::Phi3 => (false, false, false),
        };
        Ok(Self { qkv, output, mlp })
    }
}
