//! The kernels of a run that only a Python with PyTorch can launch.

use vramscope_benchmark::{Class, Kernel, Pass, Precision, Shape};
use vramscope_engine::attention::Algorithm;

use Precision::{Bf16, Fp32};

/// Batch, heads, length and width of attention: text, patches of CLIP, ViT and SigLIP, and of a short video.
const CALLS: [[u64; 4]; 8] = [
    [1, 16, 512, 64],
    [1, 16, 1024, 64],
    [1, 16, 2048, 64],
    [1, 32, 1024, 128],
    [1, 32, 4096, 128],
    [8, 16, 197, 64],
    [8, 16, 577, 64],
    [1, 12, 3136, 64],
];

/// Images, patches of each, output channels, and pixel values of a patch: ViT/16, CLIP/14 at 224 and 336, SigLIP/14 at 448.
const EMBEDDINGS: [[u64; 4]; 5] = [
    [1, 576, 1024, 588],
    [8, 196, 768, 768],
    [32, 196, 1024, 768],
    [8, 256, 1024, 588],
    [8, 1024, 1152, 588],
];

/// Rows and columns of embeddings, over some of which `masked_scatter` writes the features of images.
const PLACES: [[u64; 2]; 4] = [[1024, 896], [1024, 4096], [4096, 2048], [16384, 4096]];

/// Experts, rows of all of them together, outputs and inputs of each: Qwen3-30B-A3B and gpt-oss-20b, eight and four experts for
/// each of 4096 positions.
const EXPERTS: [[u64; 4]; 3] = [
    [128, 32768, 1536, 2048],
    [128, 32768, 2048, 768],
    [32, 16384, 5760, 2880],
];

/// Attention, convolutions over patches, `masked_scatter`, and grouped GEMMs.
pub(super) fn kernels() -> Vec<Kernel> {
    let passes = [Pass::Forward, Pass::Backward];
    let mut all = Vec::new();
    for call in CALLS {
        let forms = [
            (Algorithm::Efficient, Fp32),
            (Algorithm::Efficient, Bf16),
            (Algorithm::Flash, Bf16),
        ];
        for (algorithm, precision) in forms {
            for causal in [false, true] {
                all.extend(passes.map(|pass| attention((algorithm, precision), call, causal, pass)));
            }
        }
    }
    for precision in [Bf16, Fp32] {
        for [batch, m, n, k] in EMBEDDINGS {
            let shape = product(batch, [m, n, k]);
            all.extend(passes.map(|pass| Kernel {
                pass: Some(pass),
                ..of(Class::Convolution, precision, shape.clone())
            }));
        }
        all.extend(PLACES.map(|[rows, columns]| {
            let shape = Shape {
                rows: Some(rows),
                columns: Some(columns),
                ..Shape::default()
            };
            of(Class::MaskedScatter, precision, shape)
        }));
    }
    all.extend(EXPERTS.map(|[batch, m, n, k]| of(Class::GroupedGemm, Bf16, product(batch, [m, n, k]))));
    all
}

fn of(class: Class, precision: Precision, shape: Shape) -> Kernel {
    Kernel {
        precision: Some(precision),
        shape,
        ..Kernel::of(class)
    }
}

fn product(batch: u64, [m, n, k]: [u64; 3]) -> Shape {
    Shape {
        batch: Some(batch),
        m: Some(m),
        n: Some(n),
        k: Some(k),
        ..Shape::default()
    }
}

fn attention(
    (algorithm, precision): (Algorithm, Precision),
    [batch, heads, length, width]: [u64; 4],
    causal: bool,
    pass: Pass,
) -> Kernel {
    let one = super::attention::attention(algorithm, precision, [heads, width], length, causal, pass);
    Kernel {
        shape: Shape {
            batch: Some(batch),
            ..one.shape
        },
        ..one
    }
}
