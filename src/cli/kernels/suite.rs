//! Which kernels a run measures.

use vramscope_engine::attention::Algorithm;
use vramscope_engine::record::{Class, Kernel, Layout, Pass, Precision, Shape};

use Precision::{Bf16, Fp16, Fp32, Tf32};

/// The weights of a model's linear layers, `[out, in]`, of which a training step multiplies.
struct Layers {
    /// For people who read this file.
    #[allow(dead_code, reason = "names the row")]
    model: &'static str,
    weights: &'static [[u64; 2]],
}

/// Attention's output, attention's key and value, the gated and the down projection of some models, from
/// their config.json: hidden size, heads × head size, intermediate size, vocabulary.
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

/// All kernels of a run, in the order in which they run: what matters most first, so that an interrupted
/// run holds it.
pub fn kernels(quick: bool) -> Vec<Kernel> {
    let mut all = copies(quick);
    all.push(Kernel::of(Class::Launch));
    all.extend(squares(quick));
    all.extend(fused_attention(quick));
    all.extend(elementwise(quick));
    all.extend(unfused_attention(quick));
    if !quick {
        all.extend(layers());
    }
    let mut seen = std::collections::HashSet::new();
    all.retain(|kernel| seen.insert(kernel.clone()));
    all
}

/// What the portable backend can run of it: fp32 and fp16, at sizes that small cards hold.
#[cfg_attr(
    not(feature = "portable"),
    allow(dead_code, reason = "only the portable backend runs it")
)]
pub fn portable(quick: bool) -> Vec<Kernel> {
    let mut all: Vec<Kernel> = [20, 24, 26, 27]
        .map(|log| copy(Class::DeviceCopy, 1 << log, None))
        .into();
    all.push(Kernel::of(Class::Launch));
    let last = |sizes: &[u64]| {
        if quick {
            sizes[sizes.len() - 1..].to_vec()
        } else {
            sizes.to_vec()
        }
    };
    for precision in [Fp32, Fp16] {
        for n in last(&[256, 512, 1024, 2048]) {
            all.push(gemm(precision, [n; 3], Layout::Nt));
            all.push(gemm(precision, [n; 3], Layout::Nn));
        }
        for log in last(&[16, 20, 24]) {
            all.extend([Class::Gelu, Class::SiluMul, Class::Adamw].map(|class| flat(class, precision, 1 << log)));
            let rows = (1 << log) / 1024;
            let classes = [Class::Softmax, Class::LayerNorm, Class::RmsNorm];
            all.extend(classes.map(|class| rowed(class, precision, rows, 1024)));
        }
        all.push(rowed(Class::CrossEntropy, precision, 512, 50_264));
        for length in last(&[128, 256, 512, 1024, 2048]) {
            for heads in HEADS {
                for (algorithm, causal) in [
                    (Algorithm::Flash, false),
                    (Algorithm::Flash, true),
                    (Algorithm::Standard, false),
                ] {
                    all.push(attention(algorithm, precision, heads, length, causal, Pass::Forward));
                }
            }
        }
    }
    all
}

fn copies(quick: bool) -> Vec<Kernel> {
    let sizes: &[u64] = if quick {
        &[28]
    } else {
        &[16, 18, 20, 22, 24, 26, 28, 30, 32]
    };
    let device = sizes.iter().map(|log| copy(Class::DeviceCopy, 1 << log, None));
    let host_sizes: &[u64] = if quick { &[26] } else { &[12, 16, 20, 24, 28] };
    let host = host_sizes.iter().flat_map(|log| {
        [Class::HostToDevice, Class::DeviceToHost]
            .into_iter()
            .flat_map(move |class| [true, false].map(|pinned| copy(class, 1 << log, Some(pinned))))
    });
    device.chain(host).collect()
}

fn copy(class: Class, bytes: u64, pinned: Option<bool>) -> Kernel {
    Kernel {
        shape: Shape {
            bytes: Some(bytes),
            ..Shape::default()
        },
        pinned,
        ..Kernel::of(class)
    }
}

fn squares(quick: bool) -> Vec<Kernel> {
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

/// The linear layers of the models, forward and both gradients, by tokens in a batch.
fn layers() -> Vec<Kernel> {
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

fn elementwise(quick: bool) -> Vec<Kernel> {
    let mut all = Vec::new();
    let logs: &[u64] = if quick { &[24] } else { &[16, 18, 20, 22, 24, 26, 28] };
    let precisions: &[Precision] = if quick { &[Bf16] } else { &[Bf16, Fp32] };
    for &precision in precisions {
        for &log in logs {
            all.extend([Class::Gelu, Class::SiluMul].map(|class| flat(class, precision, 1 << log)));
        }
        for &log in logs {
            for columns in [1024, 4096] {
                let rows = (1u64 << log) / columns;
                all.extend(
                    [Class::LayerNorm, Class::RmsNorm, Class::Softmax].map(|c| rowed(c, precision, rows, columns)),
                );
            }
        }
        // Rows of a vocabulary: GPT-2's in whole vectors, Llama-3's, Qwen2.5-VL's.
        for (rows, columns) in [(2048, 50_264), (1024, 128_256), (4096, 152_064)] {
            if !quick || rows == 1024 {
                all.push(rowed(Class::CrossEntropy, precision, rows, columns));
            }
        }
    }
    if !quick {
        all.push(flat(Class::Gelu, Fp16, 1 << 26));
        all.push(rowed(Class::Softmax, Fp16, 1 << 14, 4096));
    }
    let parameters: &[u64] = if quick { &[26] } else { &[16, 20, 22, 24, 26, 28, 30] };
    for &precision in &[Fp32, Bf16] {
        all.extend(parameters.iter().map(|log| flat(Class::Adamw, precision, 1 << log)));
    }
    all
}

fn flat(class: Class, precision: Precision, elements: u64) -> Kernel {
    Kernel {
        precision: Some(precision),
        shape: Shape {
            elements: Some(elements),
            ..Shape::default()
        },
        ..Kernel::of(class)
    }
}

fn rowed(class: Class, precision: Precision, rows: u64, columns: u64) -> Kernel {
    Kernel {
        precision: Some(precision),
        shape: Shape {
            rows: Some(rows),
            columns: Some(columns),
            ..Shape::default()
        },
        ..Kernel::of(class)
    }
}

/// Lengths of attention.
const LENGTHS: [u64; 8] = [128, 256, 512, 1024, 2048, 4096, 8192, 16384];

/// Heads, and elements of each.
const HEADS: [[u64; 2]; 2] = [[16, 64], [32, 128]];

fn fused_attention(quick: bool) -> Vec<Kernel> {
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

fn unfused_attention(quick: bool) -> Vec<Kernel> {
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

/// An attention of one sample.
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
