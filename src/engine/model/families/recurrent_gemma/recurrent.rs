//! A block's linear recurrence (`RecurrentGemmaRecurrentBlock`).

use std::cell::RefCell;

use super::RecurrentGemmaConfig;
use super::block::Shared;
use crate::dtype::DType;
use crate::model::config::Activation;
use crate::nn::{self, Builder, Linear};
use crate::tape::{Module, Tape, Tensor};

/// `RecurrentGemmaRecurrentBlock`.
pub(super) struct RecurrentBlock {
    module: Module,
    linear_y: Linear,
    linear_x: Linear,
    linear_out: Linear,
    conv: Conv,
    rg_lru: Rglru,
    activation: Activation,
    /// Last inputs of the convolution, as wide as its kernel (`conv1d_state`), if there is a cache.
    seen: RefCell<Option<Tensor>>,
}

/// `conv_1d`, a module that sees each channel by itself.
struct Conv {
    module: Module,
    weight: Tensor,
    bias: Tensor,
}

/// `RecurrentGemmaRglru`.
struct Rglru {
    module: Module,
    recurrent_param: Tensor,
    /// Weight and bias of the gate of inputs, then of the gate of the recurrence.
    gates: [(Tensor, Tensor); 2],
    heads: u64,
    /// The state after the last position, kept until the next forward (`recurrent_states`).
    state: RefCell<Option<Tensor>>,
}

impl RecurrentBlock {
    pub fn new(b: &Builder, c: &RecurrentGemmaConfig) -> Self {
        let t = b.tape();
        let map = |name, input, output| Linear::new(b, name, input, output, true);
        Self {
            module: b.module(),
            linear_y: map("linear_y", c.hidden, c.lru),
            linear_x: map("linear_x", c.hidden, c.lru),
            linear_out: map("linear_out", c.lru, c.hidden),
            conv: t.scope("conv_1d", || Conv {
                module: b.module(),
                weight: b.weight("weight", [c.lru, 1, c.kernel]),
                bias: b.weight("bias", [c.lru]),
            }),
            rg_lru: t.scope("rg_lru", || Rglru::new(b, c)),
            activation: c.activation,
            seen: RefCell::default(),
        }
    }

    /// `_init_weights`, which draws the recurrence's parameter in a tensor of its own.
    pub fn initialise(&self, t: &Tape) {
        let like = &self.rg_lru.recurrent_param;
        drop(t.empty(*like.shape(), like.dtype(), "recurrent_param again"));
    }

    /// `_setup_cache`: a state of zeros of the recurrence, and one of the convolution.
    pub fn reset(&self, t: &Tape, x: &Tensor) {
        let state = t.empty([x.size(0), self.lru()], DType::F32, "recurrent_states");
        self.rg_lru.state.replace(Some(state));
        let shape = [x.size(0), x.last(), self.kernel() - 1];
        let before = t.empty(shape, x.dtype(), "conv1d_state");
        self.seen.replace(Some(before));
    }

    fn lru(&self) -> u64 {
        self.conv.weight.size(0)
    }

    fn kernel(&self) -> u64 {
        self.conv.weight.size(2)
    }

    /// [batch, seq, hidden] → the same.
    pub fn call(&self, t: &Tape, shared: &Shared, x: &Tensor) -> Tensor {
        self.module.call(t, || {
            let beside = nn::activate(t, self.activation, self.linear_y.call(t, x));
            let mut h = t.transpose(&self.linear_x.call(t, x), 1, 2);
            match shared.cache {
                Some(_) => {
                    let last = t.empty([x.size(0), self.lru(), self.kernel() - 1], h.dtype(), "conv1d_state");
                    self.seen.replace(Some(last));
                }
                None => drop(self.rg_lru.state.take()),
            }
            h = {
                let padded = self.conv.call(t, &h);
                t.slice(&padded, 2, x.size(1))
            };
            h = self.rg_lru.call(t, &t.transpose(&h, 1, 2));
            let product = t.mul(&h, &beside);
            let out = self.linear_out.call(t, &product);
            drop((product, h, beside));
            out
        })
    }
}

impl Conv {
    /// [batch, channels, seq] → [batch, channels, seq + kernel - 1].
    fn call(&self, t: &Tape, x: &Tensor) -> Tensor {
        let padding = self.weight.size(2) - 1;
        self.module
            .call(t, || t.conv1d_depthwise(x, &self.weight, Some(&self.bias), padding))
    }
}

impl Rglru {
    fn new(b: &Builder, c: &RecurrentGemmaConfig) -> Self {
        let width = c.lru / c.heads;
        let recurrent_param = b.weight("recurrent_param", [c.lru]);
        let gate = |names: [&'static str; 2]| {
            let weight = b.weight(names[0], [c.heads, width, width]);
            (weight, b.weight(names[1], [c.heads, width]))
        };
        Self {
            module: b.module(),
            recurrent_param,
            gates: [
                gate(["input_gate_weight", "input_gate_bias"]),
                gate(["recurrent_gate_weight", "recurrent_gate_bias"]),
            ],
            heads: c.heads,
            state: RefCell::default(),
        }
    }

    /// [batch, seq, lru] → the same.
    fn call(&self, t: &Tape, x: &Tensor) -> Tensor {
        self.module.call(t, || {
            let [batch, seq, width] = [x.size(0), x.size(1), x.size(2)];
            let reset = t.empty([1, seq, 1], DType::Bool, "reset");
            let blocks = {
                let rows = t.reshape(x, [batch * seq, self.heads, width / self.heads]);
                t.permute(&rows, &[1, 0, 2])
            };
            // The second gate's variable takes the place of the first one's product.
            let mut product = None;
            let [input_gate, mut gate] = self.gates.each_ref().map(|(weight, bias)| {
                let of_blocks = t.baddbmm(&t.unsqueeze(bias, 1), &blocks, weight);
                let of_blocks = product.insert(of_blocks);
                t.sigmoid(&t.reshape(&t.transpose(of_blocks, 0, 1), [batch, seq, width]))
            });
            let log_gate = {
                let scaled = t.scale(&gate);
                let rate = t.softplus(&self.recurrent_param);
                t.mul(&scaled, &rate)
            };
            gate = t.exp(&log_gate);
            let square = {
                let doubled = t.scale(&log_gate);
                t.exp(&doubled)
            };
            let gated = t.mul(x, &input_gate);
            let mut multiplier = {
                let rest = t.shift_negated(&square);
                t.sqrt_of_bound_slope(&rest)
            };
            multiplier = {
                let kept = {
                    let inverse = t.compute(&reset, DType::Bool, "~reset");
                    t.mul(&inverse, &multiplier)
                };
                t.add(&reset, &kept)
            };
            let normed = {
                let factor = t.to_dtype(&multiplier, x.dtype());
                t.mul(&gated, &factor)
            };
            let (out, state) = self.scan(t, [&normed, &gate], &reset);
            // With its graph, of which a checkpoint's second forward has all that it saved: backward takes none of it.
            self.state.replace(Some(state.clone()));
            drop((normed, multiplier, gated, square, gate, log_gate, input_gate));
            drop((product, blocks, reset, state));
            out
        })
    }

    /// `_rnn_scan` of inputs and gates [batch, seq, lru]: outputs [batch, seq, lru], and the last state.
    fn scan(&self, t: &Tape, [x, gate]: [&Tensor; 2], reset: &Tensor) -> (Tensor, Tensor) {
        let gate = {
            let inverse = t.compute(reset, DType::Bool, "~reset");
            t.mul(gate, &inverse)
        };
        let wide = |x: &Tensor| t.to_dtype(&t.select(x, 1), DType::F32);
        let first = self.state.borrow().clone();
        if x.size(1) == 1 {
            let Some(first) = first else {
                return (x.clone(), wide(x));
            };
            let mut state = {
                let gate = t.to_dtype(&gate, DType::F32);
                t.mul(&gate, &t.unsqueeze(&first, 1))
            };
            state = t.add_(state, &t.to_dtype(x, DType::F32));
            return (t.to_dtype(&state, x.dtype()), t.select(&state, 1));
        }
        let mut state = first.unwrap_or_else(|| t.empty([x.size(0), x.size(2)], DType::F32, "recurrent_states"));
        let mut out = t.empty_like(x, x.dtype(), "contextualized_states");
        for _position in 0..x.size(1) {
            state = {
                let gate = wide(&gate);
                t.mul(&gate, &state)
            };
            state = {
                let input = wide(x);
                t.add(&state, &input)
            };
            out = t.set_selected(out, 1, &t.to_dtype(&state, x.dtype()));
        }
        (out, state)
    }
}
