//! What may be changed of a setup, and how far a change is from what was asked.

use crate::model::Takes;
use crate::setup::{Checkpointing, Freeze, Loss, Optimizer, Precision};
use crate::{Model, Setup};

/// Entries of a setup that a search may change, by their names in a case.
pub const OPEN: [&str; 5] = ["precision", "optim", "ckpt", "freeze", "loss"];

/// The values of each entry that a search goes through; the first is the one that was asked.
#[derive(Debug, Clone)]
pub struct Space {
    pub(super) precisions: Vec<Precision>,
    pub(super) optims: Vec<Optimizer>,
    pub(super) ckpts: Vec<Checkpointing>,
    pub(super) freezes: Vec<Freeze>,
    pub(super) losses: Vec<Loss>,
    /// Micro-batches, rising: each divides the samples of a step.
    pub(super) batches: Vec<u64>,
    /// Samples of a step.
    pub(super) effective: u64,
}

/// Most micro-batches of a step.
const MOST_ACCUMULATED: u64 = 64;

impl Space {
    /// Everything that means something for a model, but for entries that have to stay as they are.
    ///
    /// A step has `effective` samples, in micro-batches of one size.
    pub fn around(model: &Model, asked: &Setup, effective: u64, kept: &[String]) -> Self {
        let open = |key: &str| !kept.iter().any(|kept| kept == key);
        let takes = model.takes();
        let of = |key: &str| open(key);
        let batches = (1..=effective)
            .filter(|batch| effective.is_multiple_of(*batch) && effective / batch <= MOST_ACCUMULATED)
            .collect();
        Self {
            precisions: choices(asked.precision, &precisions(asked.precision), of("precision")),
            optims: choices(asked.optim, &optims(asked.optim), of("optim")),
            ckpts: choices(asked.ckpt, &ckpts(takes), of("ckpt")),
            freezes: choices(asked.freeze, &freezes(takes, asked.freeze), of("freeze")),
            losses: choices(asked.loss, &[Loss::Full, Loss::FusedLinear], of("loss") && takes.text),
            batches,
            effective,
        }
    }

    /// How many setups there are.
    pub fn len(&self) -> usize {
        self.passes() * self.optims.len() * self.batches.len()
    }

    /// Whether there is none: more samples than the largest number of micro-batches holds.
    pub fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    /// How many forwards and backwards are told apart, whatever the micro-batch.
    pub(super) fn passes(&self) -> usize {
        self.precisions.len() * self.ckpts.len() * self.freezes.len() * self.losses.len()
    }
}

fn choices<T: Copy + PartialEq>(asked: T, all: &[T], open: bool) -> Vec<T> {
    let others = all.iter().copied().filter(|choice| open && *choice != asked);
    std::iter::once(asked).chain(others).collect()
}

/// More precise than asked costs memory and is no gain to who did not ask for it.
fn precisions(asked: Precision) -> Vec<Precision> {
    match asked {
        Precision::Fp32 => vec![Precision::AmpBf16, Precision::Bf16],
        Precision::AmpBf16 | Precision::AmpFp16 => vec![Precision::Bf16],
        Precision::Bf16 => Vec::new(),
    }
}

fn optims(asked: Optimizer) -> Vec<Optimizer> {
    let mut all = vec![Optimizer::Adafactor, Optimizer::Sgd];
    if is_adam(asked) {
        all.splice(
            0..0,
            [Optimizer::AdamwFused, Optimizer::Adamw8bit, Optimizer::PagedAdamw8bit],
        );
    }
    all
}

/// The vision tower of a text model is not checkpointed by itself.
fn ckpts(takes: Takes) -> Vec<Checkpointing> {
    use Checkpointing as C;
    if takes.parts {
        vec![C::None, C::Vision, C::Language, C::Full]
    } else {
        vec![C::None, C::Full]
    }
}

/// Less is trained than was asked, never more.
fn freezes(takes: Takes, asked: Freeze) -> Vec<Freeze> {
    let mut all = vec![Freeze::None];
    if takes.parts {
        all.push(Freeze::Vision);
    }
    if takes.text {
        all.extend([Freeze::Lora, Freeze::Qlora]);
    }
    if takes.parts {
        all.push(Freeze::AllButConnector);
    }
    let from = all.iter().position(|freeze| *freeze == asked).unwrap_or_default();
    all.split_off(from)
}

const fn is_adam(optim: Optimizer) -> bool {
    !matches!(
        optim,
        Optimizer::Sgd | Optimizer::Sgdm | Optimizer::Adafactor | Optimizer::AdafactorTorch
    )
}

/// How far a setup is from what was asked: 0 where it computes the same update but for rounding.
///
/// An order, not a measurement: each entry counts by how much of what is learned it touches.
pub fn distance(asked: &Setup, setup: &Setup) -> u32 {
    let precision = match (asked.precision, setup.precision) {
        (asked, now) if asked == now => 0,
        (_, Precision::AmpBf16 | Precision::AmpFp16) => 1,
        _ => 2,
    };
    let optim = match (asked.optim, setup.optim) {
        (asked, now) if asked == now => 0,
        (_, Optimizer::Adamw | Optimizer::AdamwFused | Optimizer::AdamwLoop | Optimizer::PagedAdamw) => 0,
        (_, Optimizer::Adamw8bit | Optimizer::PagedAdamw8bit) => 1,
        (_, Optimizer::Adafactor | Optimizer::AdafactorTorch) => 2,
        (_, Optimizer::Sgd | Optimizer::Sgdm) => 6,
    };
    optim + precision + learned_less(setup.freeze).saturating_sub(learned_less(asked.freeze))
}

const fn learned_less(freeze: Freeze) -> u32 {
    match freeze {
        Freeze::None => 0,
        Freeze::Vision => 2,
        Freeze::Lora => 4,
        Freeze::Qlora => 5,
        Freeze::AllButConnector => 8,
    }
}
