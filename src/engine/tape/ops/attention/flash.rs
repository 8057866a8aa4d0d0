//! FlashAttention 2, as PyTorch ships it and as the package `flash-attn`.

use smallvec::smallvec;

use super::super::super::core::Tape;
use super::super::super::dims;
use super::super::super::failure::Failure;
use super::super::super::gpu::Gpu;
use super::super::super::tensor::Tensor;
use super::{Pass, SdpaBackend, SdpaInputs};
use crate::dtype::DType;

/// Sequences are padded to a multiple of this many rows in the buffers in which backward sums.
const ROWS: u64 = 128;

/// The kernels take no mask.
const MASKED: bool = false;

/// Caller of the kernels, which decides their arguments. PyTorch keeps one tensor more for the random number generator,
/// which it does not use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Caller {
    /// `_scaled_dot_product_flash_attention`.
    PyTorch,
    /// `flash_attn_func`.
    Package,
    /// The package, with this many segments of different lengths in one sequence.
    PackageOfSegments(u64),
}

impl Tape {
    /// `_scaled_dot_product_flash_attention`.
    pub(super) fn flash_sdpa(&self, call: &SdpaInputs<'_>) -> Tensor {
        self.flash(Caller::PyTorch, call)
    }

    /// `flash_attn.flash_attn_func` → [batch, heads, queries, width], in the layout of the queries
    /// (`flash_attn_interface.py` and `csrc/flash_attn/flash_api.cpp` of flash-attn 2.8). The run fails in fp32.
    /// Simulated from the source: no run of the package has been recorded.
    pub fn flash_attention(&self, call: &SdpaInputs<'_>) -> Tensor {
        self.refuse_fp32(call.q);
        self.flash(Caller::Package, call)
    }

    /// `flash_attn.flash_attn_varlen_func` on [1, heads, positions, width] each: each of `segments` attends to itself.
    /// Simulated from the source: no run of the package has been recorded.
    pub fn flash_attention_of_segments(&self, [q, k, v]: [&Tensor; 3], segments: u64) -> Tensor {
        self.refuse_fp32(q);
        let call = SdpaInputs {
            q,
            k,
            v,
            mask: None,
            dropout: 0.0,
            enable_gqa: true,
        };
        self.flash(Caller::PackageOfSegments(segments), &call)
    }

    fn refuse_fp32(&self, q: &Tensor) {
        if q.dtype() == DType::F32 {
            self.fail(|| Failure::FlashInFp32);
        }
    }

    /// Runs the kernels; heads whose width is no multiple of 8 are padded.
    fn flash(&self, caller: Caller, call: &SdpaInputs<'_>) -> Tensor {
        let width = call.q.size(3);
        let missing = width.next_multiple_of(8) - width;
        if missing == 0 {
            return self.flash_forward(caller, [call.q, call.k, call.v], call.dropout);
        }
        let [q, k, v] = [call.q, call.k, call.v].map(|x| self.pad_end(x, 3, missing));
        let out = self.flash_forward(caller, [&q, &k, &v], call.dropout);
        self.slice(&out, 3, width)
    }

    /// `mha_fwd`, and `mha_bwd` as its backward.
    fn flash_forward(&self, caller: Caller, [q, k, v]: [&Tensor; 3], dropout: f64) -> Tensor {
        let mut rec = self.record("FlashAttentionBackward", &[q, k, v]);
        for t in [q, k, v] {
            rec.save(self, t);
        }
        let mark = self.work_mark();
        let strides = dims::dense_strides_like(q.shape(), q.strides());
        let out = self.empty_strided(*q.shape(), strides, q.dtype(), "attention output");
        let [b, h, s] = [q.size(0), q.size(1), q.size(2)];
        let lse = self.empty([b, h, s], DType::F32, "logsumexp of scores");
        let partial = self.flash_partials(caller, [q, k], dropout);
        let mut state = vec![lse, self.empty([2], DType::I64, "generator state")];
        if caller == Caller::PyTorch {
            state.push(self.empty([], DType::I64, "unused"));
            if dropout > 0.0 {
                drop(self.empty([2], DType::I64, "generator state"));
            }
        }
        drop(partial);
        self.attended(mark, SdpaBackend::Flash, (q, k), MASKED, Pass::Forward);
        rec.save(self, &out);
        for t in &state {
            rec.save(self, t);
        }
        drop(state);
        rec.finish(self, out, move |t, bw| {
            let (q, k, v) = (&bw.saved[0], &bw.saved[1], &bw.saved[2]);
            let like = |x: &Tensor, name| t.empty_like(x, x.dtype(), name);
            let (mark, dq, dk, dv) = t.in_flash_backward(caller, [bw.grad(), &bw.saved[3], q, k], || {
                let mark = t.work_mark();
                let dq = like(q, "attention backward, queries");
                let dk = like(k, "attention backward, keys");
                let dv = like(v, "attention backward, values");
                (mark, dq, dk, dv)
            });
            t.attended(mark, SdpaBackend::Flash, (q, k), MASKED, Pass::Backward);
            smallvec![bw.want(0, || dq), bw.want(1, || dk), bw.want(2, || dv)]
        })
    }
}

impl Tape {
    /// Logsumexp and output of each part of the keys, if forward splits the keys.
    pub(crate) fn flash_partials(&self, caller: Caller, [q, k]: [&Tensor; 2], dropout: f64) -> Option<[Tensor; 2]> {
        let [b, h, s] = [q.size(0), q.size(1), q.size(2)];
        let may_split = dropout == 0.0 && !matches!(caller, Caller::PackageOfSegments(_));
        let parts = if may_split { splits(&self.0.gpu, q, k) } else { 1 };
        (parts > 1).then(|| {
            let lse = self.empty([parts, b, h, s], DType::F32, "logsumexp of each part of the keys");
            let out = self.empty(
                [parts, b, h, s, rounded_width(q)],
                DType::F32,
                "output of each part of the keys",
            );
            [lse, out]
        })
    }

    /// Runs `make`, which makes the gradients of a backward. Backward also allocates sums, the gradients of keys and
    /// values by query head if heads share these, and in PyTorch contiguous copies.
    pub(crate) fn in_flash_backward<R>(
        &self,
        caller: Caller,
        [grad, out, q, k]: [&Tensor; 4],
        make: impl FnOnce() -> R,
    ) -> R {
        let _copies = (caller == Caller::PyTorch).then(|| {
            // Output and gradient are made contiguous as [batch, positions, heads, width]
            // (`_flash_attention_backward` in `transformers/cuda/attention_backward.cu`).
            let contiguous = |x: &Tensor| self.contiguous(&x.alias(x.shape().swapped(1, 2), x.strides().swapped(1, 2)));
            (contiguous(grad), contiguous(out))
        });
        let made = make();
        let rows = match caller {
            Caller::PackageOfSegments(n) => q.size(2) + ROWS * n,
            _ => q.size(2).next_multiple_of(ROWS),
        };
        let [b, h, s] = [q.size(0), q.size(1), rows];
        let sums = self.empty([b, h, s], DType::F32, "row sums");
        let sum = self.empty([b, h, s, rounded_width(q)], DType::F32, "sum of the queries' gradient");
        let expanded = (k.size(1) != h).then(|| {
            let shape = [b, h, k.size(2), k.size(3)];
            ["keys", "values"].map(|_| self.empty(shape, k.dtype(), "gradient for each query head"))
        });
        drop((expanded, sum, sums));
        made
    }
}

/// Elements of one head as the kernels pad them.
fn rounded_width(q: &Tensor) -> u64 {
    match q.size(3) {
        width @ 0..=192 => width.next_multiple_of(32),
        _ => 256,
    }
}

/// Number of parts that forward splits the keys into, to fill the multiprocessors (`set_params_splitkv`).
fn splits(gpu: &Gpu, q: &Tensor, k: &Tensor) -> u64 {
    let keys_of_block = match q.size(3) {
        0..=64 => 256,
        65..=128 => 128,
        _ => 64,
    };
    let blocks = q.size(0) * q.size(1) * q.size(2).div_ceil(64);
    efficient_splits(blocks, 2 * gpu.sms, k.size(2).div_ceil(keys_of_block))
}

/// `num_splits_heuristic`: the fewest parts that come within 15% of the best use of `slots`.
fn efficient_splits(blocks: u64, slots: u64, key_blocks: u64) -> u64 {
    const MOST: u64 = 128;
    if 10 * blocks >= 8 * slots {
        return 1;
    }
    let differs = |n: &u64| *n == 1 || key_blocks.div_ceil(*n) != key_blocks.div_ceil(n - 1);
    let candidates = || (1..=MOST.min(slots).min(key_blocks)).filter(differs);
    let use_of = |n: u64| {
        let work = blocks * n;
        work as f64 / (slots * work.div_ceil(slots)) as f64
    };
    let best = candidates().map(use_of).fold(0.0, f64::max);
    candidates().find(|n| use_of(*n) >= 0.85 * best).unwrap_or(1)
}
