//! The matrix products of a run.

use vramscope_benchmark::{Class, Kernel, Layout, Precision, Shape};

use Precision::{Bf16, Fp16, Fp32, Tf32};

/// Weights `[out, in]` of a model's linear layers, which a training step multiplies with.
struct Layers {
    /// Name of the model, for readers of this file.
    #[allow(dead_code, reason = "names the row")]
    model: &'static str,
    weights: &'static [[u64; 2]],
}

/// Attention's output, attention's key and value, the gated and the down projection of some models, from their
/// config.json: hidden size, heads × head size, intermediate size, vocabulary.
const MODELS: [Layers; 4] = [
    Layers {
        model: "Qwen2.5-1.5B: 1536, 12 and 2 × 128, 8960",
        weights: &[[1536, 1536], [256, 1536], [8960, 1536], [1536, 8960]],
    },
    Layers {
        model: "Llama-3.1-8B: 4096, 32 and 8 × 128, 14336",
        weights: &[[4096, 4096], [1024, 4096], [14336, 4096], [4096, 14336]],
    },
    Layers {
        model: "Qwen2.5-VL-7B: 3584, 28 and 4 × 128, 18944, 152064",
        weights: &[[3584, 3584], [512, 3584], [18944, 3584], [3584, 18944], [152_064, 3584]],
    },
    Layers {
        model: "CLIP ViT-L/14: 1024, 4096",
        weights: &[[1024, 1024], [4096, 1024], [1024, 4096]],
    },
];

/// Square products by side length.
pub(super) fn squares(quick: bool) -> Vec<Kernel> {
    let precisions = [Bf16, Fp16, Tf32, Fp32];
    let sides: &[u64] = if quick {
        &[1024, 4096]
    } else {
        &[256, 512, 1024, 2048, 4096, 8192]
    };
    let mut all = Vec::new();
    for precision in precisions {
        all.extend(sides.iter().map(|&n| gemm(precision, [n, n, n], Layout::Nt)));
    }
    if quick {
        all.push(gemm(Bf16, [8192, 8192, 8192], Layout::Nt));
    }
    all
}

/// A matrix product of `[m, n, k]`.
pub fn gemm(precision: Precision, [m, n, k]: [u64; 3], layout: Layout) -> Kernel {
    Kernel {
        precision: Some(precision),
        shape: Shape {
            m: Some(m),
            n: Some(n),
            k: Some(k),
            ..Shape::default()
        },
        layout: Some(layout),
        ..Kernel::of(Class::Gemm)
    }
}

/// The models' linear layers, forward and both gradients, by number of tokens in a batch.
pub(super) fn layers() -> Vec<Kernel> {
    let mut all = Vec::new();
    for precision in [Bf16, Fp32, Fp16] {
        let tokens: &[u64] = match precision {
            Bf16 => &[256, 1024, 4096, 16384],
            _ => &[1024, 4096],
        };
        for layers in &MODELS {
            for &[out, input] in layers.weights {
                for &tokens in tokens {
                    all.push(gemm(precision, [tokens, out, input], Layout::Nt));
                    if precision != Fp16 && tokens == 4096 {
                        all.push(gemm(precision, [tokens, input, out], Layout::Nn));
                        all.push(gemm(precision, [out, input, tokens], Layout::Tn));
                    }
                }
            }
        }
    }
    all
}

/// Products of many small matrices, as unfused attention has them: scores, results, and gradients. Lengths are typical
/// of texts, and of CLIP's and SigLIP's patches.
pub(super) fn batched() -> Vec<Kernel> {
    let shapes: [(u64, &[u64]); 2] = [(16, &[256, 577, 1024, 2048]), (128, &[64, 197, 577])];
    let mut all = Vec::new();
    for precision in [Bf16, Fp32] {
        for (count, lengths) in shapes {
            for &length in lengths {
                for width in [64, 128] {
                    let products = [
                        ([length, length, width], Layout::Nt),
                        ([length, width, length], Layout::Nn),
                        ([length, width, length], Layout::Tn),
                    ];
                    all.extend(products.map(|(extents, layout)| many(precision, count, extents, layout)));
                }
            }
        }
    }
    all
}

/// `count` matrix products of `[m, n, k]`.
pub fn many(precision: Precision, count: u64, extents: [u64; 3], layout: Layout) -> Kernel {
    let one = gemm(precision, extents, layout);
    Kernel {
        shape: Shape {
            batch: Some(count),
            ..one.shape
        },
        ..one
    }
}
