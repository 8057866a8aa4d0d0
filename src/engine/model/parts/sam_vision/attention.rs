//! `SamVisionAttention`: attention with relative positions, which are decomposed into those of rows and of columns.

use super::config::SamVisionConfig;
use crate::dtype::DType;
use crate::nn::{Builder, Linear};
use crate::setup::Attention;
use crate::tape::{Mask, Module, SdpaInputs, Tape, Tensor};

/// Attention over windows, or over whole images.
pub(super) struct SelfAttention {
    module: Module,
    qkv: Linear,
    proj: Linear,
    /// Relative positions of rows and of columns, [2 × side − 1, width of a head].
    relative: Option<[Tensor; 2]>,
    heads: u64,
    dropout: f64,
}

/// Locals of an attention's forward, which live until it returns.
struct Held {
    /// Weights that the forward returns.
    weights: Option<Tensor>,
    others: [Option<Tensor>; 2],
}

impl SelfAttention {
    pub fn new(b: &Builder, c: &SamVisionConfig, window: u64) -> Self {
        let side = if window == 0 { c.grid.side() } else { window };
        let qkv = Linear::new(b, "qkv", c.hidden, 3 * c.hidden, c.qkv_bias);
        let proj = Linear::new(b, "proj", c.hidden, c.hidden, true);
        let table = |name| b.weight(name, [2 * side - 1, c.hidden / c.heads]);
        Self {
            module: b.module(),
            qkv,
            proj,
            relative: c.has_relative_positions.then(|| ["rel_pos_h", "rel_pos_w"].map(table)),
            heads: c.heads,
            dropout: c.attention_dropout,
        }
    }

    /// Output and weights of attention over `x`, [windows, side, side, width].
    pub fn call(&self, t: &Tape, implementation: Attention, x: &Tensor) -> (Tensor, Option<Tensor>) {
        self.module.call(t, move || {
            let [windows, side, width] = [x.size(0), x.size(1), x.last()];
            let (positions, head) = (side * side, width / self.heads);
            let flat = self.qkv.call(t, x);
            let split = t.reshape(&flat, [windows, positions, 3, self.heads, head]);
            drop(flat);
            let permuted = t.permute(&split, &[2, 0, 3, 1, 4]);
            drop(split);
            let stacked = t.reshape(&permuted, [3, windows * self.heads, positions, head]);
            let qkv = t.unbind(&stacked);
            drop(stacked);
            let [q, k, v] = [0, 1, 2].map(|i| &qkv[i]);
            let (mut out, held) = match implementation {
                Attention::Eager => self.eager(t, [q, k, v], side),
                _ => self.sdpa(t, [q, k, v], [windows, side]),
            };
            out = t.view(&out, [windows, self.heads, side, side, head]);
            out = t.reshape(&t.permute(&out, &[0, 2, 3, 1, 4]), [windows, side, side, width]);
            out = self.proj.call(t, &out);
            drop((qkv, permuted));
            let Held { weights, others } = held;
            drop(others);
            (out, weights)
        })
    }

    /// Output [windows × heads, positions, width of a head].
    fn eager(&self, t: &Tape, [q, k, v]: [&Tensor; 3], side: u64) -> (Tensor, Held) {
        let mut weights = t.matmul(&t.scale(q), &t.transpose(k, 1, 2));
        let bias = self.relative.as_ref().map(|tables| {
            let bias = relative_positions(t, q, tables, side);
            t.reshape(&bias, *weights.shape())
        });
        if let Some(bias) = &bias {
            weights = t.add(&weights, bias);
        }
        weights = t.to_dtype(&t.softmax(&weights, Some(DType::F32)), q.dtype());
        let dropped = t.dropout(&weights, self.dropout);
        let out = t.matmul(&dropped, v);
        let held = Held {
            weights: Some(weights),
            others: [bias, Some(dropped)],
        };
        (out, held)
    }

    /// Output [windows, heads, positions, width of a head].
    fn sdpa(&self, t: &Tape, qkv: [&Tensor; 3], [windows, side]: [u64; 2]) -> (Tensor, Held) {
        let positions = side * side;
        let bias = self.relative.as_ref().map(|tables| {
            let bias = relative_positions(t, qkv[0], tables, side);
            t.reshape(&bias, [windows, self.heads, positions, positions])
        });
        let [q, k, v] = qkv.map(|x| t.view(x, [windows, self.heads, positions, x.last()]));
        let mask = bias.clone().map(Mask::Bias);
        let out = t.sdpa(&SdpaInputs {
            q: &q,
            k: &k,
            v: &v,
            mask: mask.as_ref(),
            dropout: 0.0,
            enable_gqa: false,
        });
        let held = Held {
            weights: None,
            others: [bias, None],
        };
        (out, held)
    }
}

/// `get_decomposed_rel_pos` for queries [n, side × side, width] → [n, side, side, side, side].
fn relative_positions(t: &Tape, q: &Tensor, tables: &[Tensor; 2], side: u64) -> Tensor {
    let [of_rows, of_columns] = [0, 1].map(|i| between(t, &tables[i], side));
    let (n, width) = (q.size(0), q.last());
    let q = t.reshape(q, [n, side, side, width]);
    let rows = products(t, &q, &of_rows, 1);
    let columns = products(t, &q, &of_columns, 2);
    t.add(&t.unsqueeze(&rows, 4), &t.unsqueeze(&columns, 3))
}

/// `get_rel_pos`: a table [2 × side − 1, width] → positions between any two of a side, [side, side, width]. The table is
/// resized even to its own length, and indices come from the host.
fn between(t: &Tape, table: &Tensor, side: u64) -> Tensor {
    let (length, width) = (2 * side - 1, table.last());
    let resized = {
        let x = t.transpose(&t.view(table, [1, table.size(0), width]), 1, 2);
        t.interpolate_linear(&x, length)
    };
    let resized = t.permute(&t.view(&resized, [width, length]), &[1, 0]);
    t.index_from_host(&resized, [side, side])
}

/// `torch.einsum("bhwc,hkc->bhwk", q, table)`, or with `w` for the `h` of the table: batched products over dimension `along`.
fn products(t: &Tape, q: &Tensor, table: &Tensor, along: usize) -> Tensor {
    let [n, side, width] = [q.size(0), q.size(1), q.last()];
    let table = t.cast_low(table);
    let [order, back] = match along {
        1 => [[1, 0, 2, 3]; 2],
        _ => [[2, 0, 1, 3], [1, 2, 0, 3]],
    };
    let left = t.reshape(&t.permute(q, &order), [side, n * side, width]);
    let product = t.matmul(&left, &t.transpose(&table, 1, 2));
    t.permute(&t.view(&product, [side, n, side, side]), &back)
}
