//! AdamW and Lion of bitsandbytes, in 8 bits, and in 32 with pages or without (`bitsandbytes/optim/optimizer.py`, 0.50): one
//! fused kernel for each parameter, which needs nothing beside the states.

use super::work::Form;
use super::{Optimizer, States};
use crate::dtype::DType;
use crate::setup;
use crate::tape::work::Class;
use crate::tape::{Kind, Tape, Tensor, Why};

/// Parameters with fewer elements keep their moments in fp32 (`min_8bit_size`).
const MIN_8BIT: u64 = 4096;

/// Fewest elements of moments that are paged (`get_state_buffer`).
const MIN_PAGED: u64 = 100_000;

/// Elements that share a scale (`blocksize`).
const BLOCK: u64 = 256;

/// State that the optimizer shares between all parameters.
#[derive(Default)]
pub(super) struct SharedState {
    /// The 256 values that a byte of each moment stands for: signed, and unsigned for the second.
    maps: Vec<Tensor>,
    /// Bytes in managed memory.
    pub paged: u64,
}

/// Two moments (`Optimizer2State`) in one byte or in fp32, paged or not.
pub(super) static ADAMW: Form = Form {
    name: "adamw_8bit",
    lists: Some((Class::Foreach, &[("optimizer_update_8bit", 3, 2)])),
    update: Optimizer::init_bitsandbytes,
};

/// One moment (`Optimizer1State`). The host calls the same functions as for AdamW, whose pace was measured.
pub(super) static LION: Form = Form {
    name: ADAMW.name,
    lists: Some((Class::Foreach, &[("optimizer_update_8bit", 2, 2)])),
    update: ADAMW.update,
};

/// How an optimizer of the package keeps its moments.
#[derive(Debug, Clone, Copy)]
struct Moments {
    /// Names of each moment and of its scales.
    names: &'static [[&'static str; 2]],
    /// True if the large ones have one byte.
    bytes: bool,
    /// True if the large ones are in managed memory.
    paged: bool,
}

impl Moments {
    /// Those of an optimizer; `None` if it is of another package.
    const fn of(kind: setup::Optimizer) -> Option<Self> {
        use setup::Optimizer as O;
        const ADAMW: &[[&str; 2]] = &[["state1", "absmax1"], ["state2", "absmax2"]];
        const LION: &[[&str; 2]] = &[["state1", "absmax1"]];
        let (names, bytes, paged) = match kind {
            O::Adamw8bit => (ADAMW, true, false),
            O::PagedAdamw8bit => (ADAMW, true, true),
            O::PagedAdamw => (ADAMW, false, true),
            O::Lion => (LION, false, false),
            O::Lion8bit => (LION, true, false),
            O::PagedLion8bit => (LION, true, true),
            O::PagedLion => (LION, false, true),
            _ => return None,
        };
        Some(Self { names, bytes, paged })
    }
}

/// Returns true for an optimizer of bitsandbytes.
pub(crate) const fn is_bitsandbytes(kind: setup::Optimizer) -> bool {
    Moments::of(kind).is_some()
}

impl Optimizer {
    /// Makes the states of parameters that have none; the update itself makes nothing.
    fn init_bitsandbytes(&mut self, t: &Tape) {
        let Some(moments) = Moments::of(self.kind) else { return };
        let is_trainers = self.is_trainers;
        for (p, states) in self.params.iter().zip(&mut self.states) {
            if states.0.is_empty() && p.grad().is_some() {
                t.in_scope(t.scope_of(p), || {
                    // `Trainer.create_optimizer` has every table updated in 32 bits (`GlobalOptimManager`). A library's flat
                    // parts are other parameters than the manager knows.
                    let bytes = moments.bytes && !(is_trainers && t.is_table(p));
                    self.bitsandbytes.init(t, Moments { bytes, ..moments }, p, states);
                });
            }
        }
    }
}

impl SharedState {
    /// `init_state` of `Optimizer1State` and `Optimizer2State`.
    fn init(&mut self, t: &Tape, moments: Moments, p: &Tensor, states: &mut States) {
        let bytes = moments.bytes && p.numel() >= MIN_8BIT;
        let dtype = if bytes { DType::U8 } else { DType::F32 };
        if bytes && self.maps.is_empty() {
            self.maps = moments.names.iter().map(|_| table(t)).collect();
        }
        let paged = moments.paged && p.numel() >= MIN_PAGED;
        for [name, _] in moments.names {
            if paged {
                self.paged += p.numel() * dtype.width();
            } else {
                states.0.push(state(t, || t.empty_like(p, dtype, name)));
            }
        }
        if bytes {
            let blocks = p.numel().div_ceil(BLOCK);
            for [_, name] in moments.names {
                states.0.push(state(t, || t.empty([blocks], DType::F32, name)));
            }
        }
        if states.0.is_empty() {
            // The moments are in managed memory; an empty tensor marks them as made.
            states.0.push(t.empty([0], dtype, "paged"));
        }
    }
}

fn table(t: &Tape) -> Tensor {
    let map = t.as_kind(Kind::OptimizerState, || t.empty([256], DType::F32, "quantisation map"));
    map.storage().classify(Kind::OptimizerState, Why::QuantisationMap);
    map
}

fn state(t: &Tape, make: impl FnOnce() -> Tensor) -> Tensor {
    let state = t.as_kind(Kind::OptimizerState, make);
    state.storage().classify(Kind::OptimizerState, Why::State);
    state
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tape::Gpu;

    /// Bytes asked for by the first update of one parameter, and bytes that were paged.
    fn first_update(kind: setup::Optimizer, shape: [u64; 2]) -> (Vec<u64>, u64) {
        let tape = Tape::new(Gpu::H200);
        let p = tape.parameter(shape, DType::Bf16, "weight");
        let input = tape.empty([1, shape[1]], DType::Bf16, "input");
        tape.backward(&tape.mean(&tape.mean(&tape.linear(&input, &p, None), 1), 0));
        let before = tape.mark();
        let mut optimizer = Optimizer::new(kind, &[p]);
        optimizer.step(&tape);
        let paged = optimizer.paged().get();
        let again = tape.mark();
        optimizer.step(&tape);
        assert_eq!(tape.mark(), again, "later updates make nothing");
        drop((optimizer, input));
        let log = tape.finish();
        let allocations = log.events[before..again].iter();
        (
            allocations
                .map(|e| log.allocations[e.storage() as usize].bytes)
                .collect(),
            paged,
        )
    }

    #[test]
    fn moments_take_a_byte_each_and_a_scale_for_256() {
        let (bytes, paged) = first_update(setup::Optimizer::Adamw8bit, [1000, 1001]);
        assert_eq!(bytes, [1024, 1024, 1_001_000, 1_001_000, 15_644, 15_644]);
        assert_eq!(paged, 0);
    }

    #[test]
    fn lion_has_one_moment() {
        let (bytes, _) = first_update(setup::Optimizer::Lion8bit, [1000, 1001]);
        assert_eq!(bytes, [1024, 1_001_000, 15_644]);
        let (bytes, _) = first_update(setup::Optimizer::Lion, [1000, 1001]);
        assert_eq!(bytes, [4_004_000]);
        let (bytes, paged) = first_update(setup::Optimizer::PagedLion, [1000, 1001]);
        assert_eq!((bytes.len(), paged), (0, 4_004_000));
        let (bytes, paged) = first_update(setup::Optimizer::PagedLion8bit, [1000, 1001]);
        assert_eq!((bytes, paged), (vec![1024, 15_644], 1_001_000));
    }

    #[test]
    fn small_parameters_keep_fp32() {
        let (bytes, _) = first_update(setup::Optimizer::Adamw8bit, [63, 65]);
        assert_eq!(bytes, [16_380, 16_380]);
    }

    #[test]
    fn large_moments_are_paged() {
        let (bytes, paged) = first_update(setup::Optimizer::PagedAdamw8bit, [1000, 1001]);
        assert_eq!(bytes, [1024, 1024, 15_644, 15_644]);
        assert_eq!(paged, 2_002_000);
        let (bytes, paged) = first_update(setup::Optimizer::PagedAdamw, [1000, 1001]);
        assert_eq!((bytes.len(), paged), (0, 8_008_000));
        let (bytes, paged) = first_update(setup::Optimizer::PagedAdamw, [300, 300]);
        assert_eq!((bytes, paged), (vec![360_000; 2], 0));
    }
}
