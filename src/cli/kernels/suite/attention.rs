//! The attention kernels of a run.

use vramscope_benchmark::{Class, Kernel, Pass, Precision, Shape};
use vramscope_engine::attention::Algorithm;

use Precision::{Bf16, Fp32};

/// Sequence lengths of attention.
const LENGTHS: [u64; 8] = [128, 256, 512, 1024, 2048, 4096, 8192, 16384];

/// Numbers of heads, and elements per head.
pub(super) const HEADS: [[u64; 2]; 2] = [[16, 64], [32, 128]];

/// Fused attention kernels.
pub(super) fn fused(quick: bool) -> Vec<Kernel> {
    let lengths: &[u64] = if quick { &[2048, 8192] } else { &LENGTHS };
    let mut all = Vec::new();
    for heads in HEADS {
        for &length in lengths {
            for causal in [false, true] {
                if !quick || (!causal && heads[1] == 128) {
                    all.push(attention(Algorithm::Flash, Bf16, heads, length, causal, Pass::Forward));
                }
                for pass in [Pass::Forward, Pass::Backward, Pass::ForwardBackward] {
                    let skip = quick && (causal || pass == Pass::ForwardBackward || heads[1] == 64);
                    if !skip {
                        all.push(attention(Algorithm::Cudnn, Bf16, heads, length, causal, pass));
                    }
                }
            }
        }
    }
    all
}

/// Attention as matrix products and softmax; training only for lengths that fit on a card with 80 GB.
pub(super) fn unfused(quick: bool) -> Vec<Kernel> {
    let lengths: &[u64] = if quick { &[2048] } else { &LENGTHS };
    let mut all = Vec::new();
    for algorithm in [
        Algorithm::Standard,
        Algorithm::Sliding,
        Algorithm::Chunked,
        Algorithm::TopK,
    ] {
        for heads in HEADS {
            for &length in lengths {
                let blocked = matches!(algorithm, Algorithm::Sliding | Algorithm::Chunked);
                if (blocked && length > 8192) || (quick && heads[1] == 64) {
                    continue;
                }
                all.push(attention(algorithm, Bf16, heads, length, false, Pass::Forward));
                if length <= 8192 && (!quick || algorithm == Algorithm::Standard) {
                    all.push(attention(algorithm, Bf16, heads, length, false, Pass::ForwardBackward));
                }
                if algorithm == Algorithm::Standard && !quick {
                    all.push(attention(algorithm, Bf16, heads, length, true, Pass::Forward));
                    if length <= 8192 {
                        all.push(attention(algorithm, Fp32, heads, length, false, Pass::Forward));
                    }
                }
            }
        }
    }
    all
}

/// An attention with one sample.
pub fn attention(
    algorithm: Algorithm,
    precision: Precision,
    [heads, width]: [u64; 2],
    length: u64,
    causal: bool,
    pass: Pass,
) -> Kernel {
    let number = |of: Algorithm, n: u64| Some(n).filter(|_| algorithm == of);
    Kernel {
        precision: Some(precision),
        shape: Shape {
            batch: Some(1),
            heads: Some(heads),
            kv_heads: Some(heads),
            head_dim: Some(width),
            length: Some(length),
            window: number(Algorithm::Sliding, 512),
            kept_percent: number(Algorithm::TopK, 10),
            chunk: number(Algorithm::Chunked, 64),
            ..Shape::default()
        },
        pass: Some(pass),
        algorithm: Some(algorithm),
        causal: Some(causal),
        ..Kernel::of(Class::Attention)
    }
}
