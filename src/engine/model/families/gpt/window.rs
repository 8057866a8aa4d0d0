//! GPT-Neo's attention, which masks by tables of its own.

use super::attention::{Attend, BlockContext};
use super::config::{Dropouts, GptConfig};
use crate::dtype::DType;
use crate::nn::{Builder, Linear};
use crate::tape::{Mask, Module, Tape, Tensor};

/// `torch.tril(torch.ones(n, n))` of booleans, [n, n]; if `windowed`, without what lies before a window.
pub(super) fn lower_triangle(b: &Builder, n: u64, windowed: bool) -> Tensor {
    triangle(b.tape(), n, windowed, || b.buffer("bias", [n, n], DType::Bool))
}

/// Makes the values of [`lower_triangle`] once more, which `_init_weights` copies.
pub(super) fn lower_triangle_again(t: &Tape, n: u64, windowed: bool) {
    drop(triangle(t, n, windowed, || t.empty([n, n], DType::Bool, "bias again")));
}

fn triangle(t: &Tape, n: u64, windowed: bool, last: impl FnOnce() -> Tensor) -> Tensor {
    let square = |name| t.empty([n, n], DType::Bool, name);
    let ones = square("ones");
    if !windowed {
        let triangle = last();
        drop(ones);
        return triangle;
    }
    let whole = square("tril");
    drop(ones);
    let before = square("tril before the window");
    let window = last();
    drop(before);
    drop(whole);
    window
}

/// `GPTNeoAttention`, and `GPTNeoSelfAttention` inside it.
pub(super) struct TableAttention {
    around: Module,
    module: Module,
    bias: Tensor,
    local: bool,
    qkv: [Linear; 3],
    out_proj: Linear,
    head_dim: u64,
    dropouts: Dropouts,
}

impl TableAttention {
    pub fn new(b: &Builder, c: &GptConfig, local: bool) -> Self {
        let around = b.module();
        b.tape().scope("attention", || {
            let bias = lower_triangle(b, c.positions, local);
            let map = |name| Linear::adapted(b, name, c.hidden, c.hidden, false);
            let (k, v, q) = (map("k_proj"), map("v_proj"), map("q_proj"));
            Self {
                around,
                module: b.module(),
                bias,
                local,
                qkv: [q, k, v],
                out_proj: Linear::new(b, "out_proj", c.hidden, c.hidden, true),
                head_dim: c.head_dim(),
                dropouts: c.dropouts,
            }
        })
    }

    fn forward(&self, t: &Tape, shared: &BlockContext, x: &Tensor) -> (Tensor, Option<Tensor>) {
        let [batch, seq, hidden] = [x.size(0), x.size(1), x.size(2)];
        let shape = [batch, seq, hidden / self.head_dim, self.head_dim];
        let flat = [0, 1, 2].map(|i| self.qkv[i].call(t, x));
        let [q, mut k, mut v] = flat.map(|x| t.transpose(&t.view(&x, shape), 1, 2));
        if let Some(cache) = &shared.cache {
            (k, v) = cache.update(t, &k, &v);
        }
        let (mut out, weights) = self.attend(t, [&q, &k, &v], shared.mask.as_ref());
        out = merged(t, out);
        out = self.out_proj.call(t, &out);
        out = t.dropout(&out, self.dropouts.residual);
        (out, Some(weights))
    }

    /// `_attn`: the output and the weights.
    fn attend(&self, t: &Tape, [q, k, v]: [&Tensor; 3], mask: Option<&Mask>) -> (Tensor, Tensor) {
        let q = t.to_dtype(q, DType::F32);
        let k = t.to_dtype(k, DType::F32);
        let mut weights = t.matmul(&q, &t.transpose(&k, 2, 3));
        let seq = weights.last();
        let seen = t.slice(&t.slice(&self.bias, 0, seq), 1, seq);
        let lowest = t.empty([], weights.dtype(), "lowest value");
        weights = t.select_where(&seen, &weights, &lowest);
        if let Some(Mask::Bias(bias) | Mask::Bool(bias)) = mask {
            weights = t.add(&weights, bias);
        }
        weights = t.softmax(&weights, None);
        weights = t.to_dtype(&weights, v.dtype());
        weights = t.dropout(&weights, self.dropouts.attention);
        let out = t.matmul(&weights, v);
        drop((lowest, q, k));
        (out, weights)
    }
}

impl Attend for TableAttention {
    fn call(&self, t: &Tape, shared: &BlockContext, x: &Tensor) -> (Tensor, Option<Tensor>) {
        self.around
            .call(t, || self.module.call(t, || self.forward(t, shared, x)))
    }

    fn initialise(&self, t: &Tape) {
        lower_triangle_again(t, self.bias.size(0), self.local);
    }
}

/// `_merge_heads`: [batch, heads, seq, width] → [batch, seq, hidden].
pub(super) fn merged(t: &Tape, out: Tensor) -> Tensor {
    let [batch, heads, seq, width] = [out.size(0), out.size(1), out.size(2), out.size(3)];
    let transposed = t.contiguous(&t.permute(&out, &[0, 2, 1, 3]));
    drop(out);
    t.view(&transposed, [batch, seq, heads * width])
}
