//! `torchao.optim.AdamW8bit`, `AdamW4bit` and `AdamWFp8` (`torchao/optim`, 0.18): one compiled update for each parameter.
//!
//! What the compiled update makes beside the states is Inductor's choice. It was recorded for 24 steps (PyTorch 2.11), by
//! one rule for all parameters: `tests/data/truth/optimizers.jsonl.gz`.

use super::work::{Form, in_place, note_parameter};
use super::{Optimizer, States};
use crate::dtype::DType;
use crate::setup;
use crate::tape::{Kind, Tape, Tensor, Why};

/// Parameters with fewer elements keep their moments in their own type (`_new_buffer`).
const LEAST: u64 = 4096;

/// Elements that share a scale where Trainer makes the optimizer (`_get_torchao_optimizer`).
const BLOCK_OF_TRAINER: u64 = 256;

/// Quantised moments, updated parameter by parameter.
pub(super) static ADAMW: Form = Form {
    name: "adamw_torchao",
    lists: None,
    update: Optimizer::torchao,
};

/// Form of a quantised moment.
#[derive(Clone, Copy)]
struct Quantised {
    /// Type of the tensor that holds the codes.
    codes: DType,
    /// Elements that share a byte.
    per_byte: u64,
    /// Elements that share a scale (`block_size`).
    block: u64,
    /// Values that a code stands for; none for a type that PyTorch converts.
    values: Option<u64>,
    /// Types of whole tensors that the compiled update makes for the codes of both moments, one after the other.
    made: &'static [DType],
}

impl Quantised {
    fn of(kind: setup::Optimizer, of_trainer: bool) -> Self {
        let block = |own| if of_trainer { BLOCK_OF_TRAINER } else { own };
        match kind {
            setup::Optimizer::AdamwTorchao4bit => Self {
                codes: DType::U8,
                per_byte: 2,
                block: block(128),
                values: Some(16),
                made: &[DType::I32, DType::I32, DType::I64, DType::I64],
            },
            setup::Optimizer::AdamwTorchaoFp8 => Self {
                codes: DType::F8e4m3,
                per_byte: 1,
                block: block(256),
                values: None,
                made: &[DType::F8e4m3, DType::F8e4m3],
            },
            _ => Self {
                codes: DType::U8,
                per_byte: 1,
                block: block(256),
                values: Some(256),
                made: &[DType::I32, DType::I32],
            },
        }
    }

    /// Returns true if the moments of a parameter are quantised.
    fn takes(self, p: &Tensor) -> bool {
        p.numel() >= LEAST && p.numel().is_multiple_of(self.block)
    }

    /// Runs the compiled update: new scales of both moments, and their codes before they are copied. Those of fp8 are written
    /// in place unless rows and blocks of a scale divide each other.
    fn update(self, t: &Tape, p: &Tensor) {
        if !self.takes(p) {
            return;
        }
        let elements = p.numel();
        let scales = ["new scales"; 2].map(|name| t.empty([elements / self.block], DType::F32, name));
        // Blocks are whole parts of rows, or rows whole parts of blocks.
        let is_even = p.last().is_multiple_of(self.block) || self.block.is_multiple_of(p.last());
        let is_in_place = self.values.is_none() && !is_even;
        let made = if is_in_place { &[] } else { self.made };
        let codes: Vec<Tensor> = made
            .iter()
            .map(|dtype| t.empty([elements], *dtype, "new codes"))
            .collect();
        drop((codes, scales));
    }

    /// One moment of a parameter: its codes, their scales, and the values that codes stand for, which every moment has for
    /// itself.
    fn moment(self, t: &Tape, p: &Tensor, states: &mut States) {
        let elements = p.numel();
        if !self.takes(p) {
            states
                .0
                .push(state(t, Why::State, || t.empty_like(p, p.dtype(), "moment")));
            return;
        }
        let codes = || match self.per_byte {
            1 => t.empty(*p.shape(), self.codes, "codes"),
            more => t.empty([elements / more], self.codes, "codes"),
        };
        states.0.push(state(t, Why::State, codes));
        states.0.push(state(t, Why::State, || {
            t.empty([elements / self.block], DType::F32, "scales")
        }));
        if let Some(values) = self.values {
            let map = || t.empty([values], DType::F32, "quantisation map");
            states.0.push(state(t, Why::QuantisationMap, map));
        }
    }
}

impl Optimizer {
    /// Makes a parameter's moments before its first update.
    fn torchao(&mut self, t: &Tape) {
        let form = Quantised::of(self.kind, self.is_trainers);
        for (p, states) in self.params.iter().zip(&mut self.states) {
            if p.grad().is_none() {
                continue;
            }
            note_parameter(t, ADAMW.name, p);
            if states.0.is_empty() {
                t.in_scope(t.scope_of(p), || {
                    form.moment(t, p, states);
                    form.moment(t, p, states);
                });
            }
            form.update(t, p);
            in_place(t, p, &[("single_param_adam", 2, 1)], p.dtype());
        }
    }
}

fn state(t: &Tape, why: Why, make: impl FnOnce() -> Tensor) -> Tensor {
    let state = t.as_kind(Kind::OptimizerState, make);
    state.storage().classify(Kind::OptimizerState, why);
    state
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tape::Gpu;

    /// Bytes that the first update of one parameter asks for beside those of later ones, and these.
    fn updates(kind: setup::Optimizer, shape: [u64; 2]) -> [Vec<u64>; 2] {
        let tape = Tape::new(Gpu::H200);
        let p = tape.parameter(shape, DType::Bf16, "weight");
        let input = tape.empty([1, shape[1]], DType::Bf16, "input");
        tape.backward(&tape.mean(&tape.mean(&tape.linear(&input, &p, None), 1), 0));
        let before = tape.mark();
        let mut optimizer = Optimizer::new(kind, &[p]);
        optimizer.step(&tape);
        let again = tape.mark();
        optimizer.step(&tape);
        let end = tape.mark();
        drop((optimizer, input));
        let log = tape.finish();
        let made = |range: std::ops::Range<usize>| -> Vec<u64> {
            let events = log.events[range].iter().filter(|event| event.is_alloc());
            events.map(|e| log.allocations[e.storage() as usize].bytes).collect()
        };
        let (mut first, later) = (made(before..again), made(again..end));
        assert_eq!(first.split_off(first.len() - later.len()), later);
        [first, later]
    }

    #[test]
    fn each_moment_has_codes_scales_and_its_own_map() {
        use setup::Optimizer as O;
        let states = |kind| updates(kind, [64, 256])[0].clone();
        assert_eq!(states(O::AdamwTorchao8bit), [16_384, 256, 1024].repeat(2));
        assert_eq!(states(O::AdamwTorchao4bit), [8_192, 512, 64].repeat(2));
        assert_eq!(states(O::AdamwTorchaoFp8), [16_384, 256].repeat(2));
    }

    #[test]
    fn small_and_uneven_parameters_keep_their_type() {
        use setup::Optimizer as O;
        assert_eq!(updates(O::AdamwTorchao8bit, [15, 256]), [vec![7_680; 2], vec![]]);
        assert_eq!(updates(O::AdamwTorchao4bit, [67, 65]), [vec![8_710; 2], vec![]]);
    }

    #[test]
    fn codes_of_a_whole_parameter_are_made_before_they_are_packed() {
        use setup::Optimizer as O;
        let made = |kind, shape| updates(kind, shape)[1].clone();
        assert_eq!(made(O::AdamwTorchao8bit, [64, 256]), [256, 256, 65_536, 65_536]);
        assert_eq!(
            made(O::AdamwTorchao4bit, [64, 256]),
            [512, 512, 65_536, 65_536, 131_072, 131_072]
        );
        assert_eq!(made(O::AdamwTorchaoFp8, [64, 256]), [256, 256, 16_384, 16_384]);
        assert_eq!(made(O::AdamwTorchaoFp8, [256, 64]), [256, 256, 16_384, 16_384]);
        assert_eq!(made(O::AdamwTorchaoFp8, [64, 192]), [192, 192]);
    }
}
