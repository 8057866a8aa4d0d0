//! Kernels of Liger beside its loss.

use super::value::of_words;
use super::{Choices, Needs};

/// Kernels of the package liger-kernel (0.8.5) that take the place of a model's own functions, as the arguments of its
/// `apply_liger_kernel_to_*` name them. Its loss is a setting of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct LigerKernels {
    /// Rotary embeddings (`rope`).
    pub rope: bool,
    /// Norms (`rms_norm`, `layer_norm`).
    pub norms: bool,
    /// MLPs (`swiglu`, `geglu`).
    pub mlps: bool,
    /// True if classes are patched before the model is made (`_apply_liger_kernel`: LLaMA-Factory, axolotl), false if
    /// modules of the model are (`_apply_liger_kernel_to_instance`: transformers' `Trainer` and those derived from it).
    pub before: bool,
}

/// Number of sets of kernels that are not empty.
const SETS: usize = 7;

impl LigerKernels {
    /// None.
    pub const NONE: Self = Self::of(0, false);
    /// All that a model has.
    pub const ALL_KERNELS: Self = Self::of(SETS, false);

    /// All values, in the order of menus: none, every set in a model, and every set before it is made.
    pub const ALL: &'static [Self] = &{
        let mut all = [Self::NONE; 2 * SETS + 1];
        let mut at = 1;
        while at <= SETS {
            all[at] = Self::of(at, false);
            all[at + SETS] = Self::of(at, true);
            at += 1;
        }
        all
    };

    /// Words and where they apply.
    pub const CHOICES: &'static Choices = &Choices {
        names: &[
            "none",
            "rope",
            "norms",
            "rope-norms",
            "mlps",
            "rope-mlps",
            "norms-mlps",
            "all",
            "before-rope",
            "before-norms",
            "before-rope-norms",
            "before-mlps",
            "before-rope-mlps",
            "before-norms-mlps",
            "before-all",
        ],
        titles: &[
            "",
            "to_instance(rope)",
            "to_instance(rms_norm)",
            "to_instance(rope, rms_norm)",
            "to_instance(swiglu)",
            "to_instance(rope, swiglu)",
            "to_instance(rms_norm, swiglu)",
            "to_instance(rope, rms_norm, swiglu)",
            "_apply_liger_kernel(rope)",
            "_apply_liger_kernel(rms_norm)",
            "_apply_liger_kernel(rope, rms_norm)",
            "_apply_liger_kernel(swiglu)",
            "_apply_liger_kernel(rope, swiglu)",
            "_apply_liger_kernel(rms_norm, swiglu)",
            "_apply_liger_kernel(rope, rms_norm, swiglu)",
        ],
        needs: &[Needs::Text; 2 * SETS + 1],
    };

    /// The set of this number: a bit for each kernel.
    const fn of(set: usize, before: bool) -> Self {
        Self {
            rope: set & 1 > 0,
            norms: set & 2 > 0,
            mlps: set & 4 > 0,
            before,
        }
    }

    /// Returns true if no kernel is in the set.
    pub const fn is_empty(self) -> bool {
        !(self.rope || self.norms || self.mlps)
    }

    /// Word in cases, URLs and flags.
    pub fn name(self) -> &'static str {
        let at = Self::ALL.iter().position(|known| *known == self);
        // The empty set is one, whenever it is applied.
        Self::CHOICES.names[at.unwrap_or_default()]
    }

    /// Finds a value by its word.
    pub fn named(name: &str) -> Option<Self> {
        let at = Self::CHOICES.names.iter().position(|known| *known == name)?;
        Some(Self::ALL[at])
    }
}

of_words!(LigerKernels);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_set_has_a_word() {
        assert_eq!(LigerKernels::ALL.len(), LigerKernels::CHOICES.names.len());
        for (kernels, name) in LigerKernels::ALL.iter().zip(LigerKernels::CHOICES.names) {
            assert_eq!(LigerKernels::named(name), Some(*kernels), "{name}");
            assert_eq!(kernels.name(), *name);
            let mut words = name.split('-');
            let has = |word: &str, is_in: bool| name.split('-').any(|given| given == word || given == "all") == is_in;
            assert!(
                has("rope", kernels.rope) && has("norms", kernels.norms) && has("mlps", kernels.mlps),
                "{name}"
            );
            assert_eq!(words.next() == Some("before"), kernels.before, "{name}");
        }
        assert_eq!(LigerKernels::ALL_KERNELS.name(), "all");
        assert_eq!(LigerKernels::default(), LigerKernels::NONE);
    }
}
