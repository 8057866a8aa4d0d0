//! `bitsandbytes.optim.AdamW8bit` and the paged forms (`bitsandbytes/optim/optimizer.py`, 0.50):
//! one fused kernel for each parameter, which needs nothing beside the states.

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
    /// The 256 values that a byte stands for, signed and unsigned.
    maps: Vec<Tensor>,
    /// Bytes in managed memory.
    pub paged: u64,
}

/// Moments in one byte or in fp32, paged or not.
pub(super) static ADAMW: Form = Form {
    name: "adamw_8bit",
    lists: Some((Class::Foreach, &[("optimizer_update_8bit", 3, 2)])),
    update: Optimizer::init_bitsandbytes,
};

impl Optimizer {
    /// Makes the states of parameters that have none; the update itself makes nothing.
    fn init_bitsandbytes(&mut self, t: &Tape) {
        for (p, states) in self.params.iter().zip(&mut self.states) {
            if states.0.is_empty() && p.grad().is_some() {
                t.in_scope(t.scope_of(p), || self.bitsandbytes.init(t, self.kind, p, states));
            }
        }
    }
}

impl SharedState {
    /// `Optimizer2State.init_state`.
    fn init(&mut self, t: &Tape, kind: setup::Optimizer, p: &Tensor, states: &mut States) {
        let bytes = kind != setup::Optimizer::PagedAdamw && p.numel() >= MIN_8BIT;
        let dtype = if bytes { DType::U8 } else { DType::F32 };
        if bytes && self.maps.is_empty() {
            self.maps = ["signed", "unsigned"].map(|_| table(t)).into();
        }
        let paged = kind != setup::Optimizer::Adamw8bit && p.numel() >= MIN_PAGED;
        for name in ["state1", "state2"] {
            if paged {
                self.paged += p.numel() * dtype.width();
            } else {
                states.0.push(state(t, || t.empty_like(p, dtype, name)));
            }
        }
        if bytes {
            let blocks = p.numel().div_ceil(BLOCK);
            for name in ["absmax1", "absmax2"] {
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
