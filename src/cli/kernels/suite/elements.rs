//! The elementwise and row-wise kernels, and those over lists of tensors.

use vramscope_benchmark::{Class, Kernel, Pass, Precision, Shape};

use Precision::{Bf16, Fp16, Fp32};

/// All of these kernels.
pub(super) fn kernels(quick: bool) -> Vec<Kernel> {
    if quick {
        return few();
    }
    let mut all = Vec::new();
    for precision in [Bf16, Fp32] {
        all.extend(rows(precision));
        all.extend(elementwise(precision));
        all.extend(row_gradients(precision));
        all.extend(chosen(precision));
        all.extend(lists(precision));
    }
    all.push(flat(Class::Gelu, Fp16, 1 << 26));
    all.push(rowed(Class::Softmax, Fp16, 1 << 14, 4096));
    for precision in [Fp32, Bf16] {
        let logs = [16, 20, 22, 24, 26, 28, 30];
        all.extend(logs.map(|log| flat(Class::Adamw, precision, 1 << log)));
    }
    all
}

/// The most significant kernel of each kind.
fn few() -> Vec<Kernel> {
    let mut all = [Class::Add, Class::Gelu, Class::SiluMul]
        .map(|class| flat(class, Bf16, 1 << 24))
        .to_vec();
    for class in [Class::LayerNorm, Class::RmsNorm, Class::Softmax] {
        all.extend([1024, 4096].map(|columns| rowed(class, Bf16, (1 << 24) / columns, columns)));
    }
    all.push(backward(rowed(Class::LayerNorm, Bf16, 1 << 12, 4096)));
    all.push(rowed(Class::SumColumns, Bf16, 1 << 12, 4096));
    all.push(rowed(Class::CrossEntropy, Bf16, 1024, 128_256));
    all.push(list(Class::ForeachNorm, Bf16, 128, 1 << 20));
    all.extend([Fp32, Bf16].map(|precision| flat(Class::Adamw, precision, 1 << 26)));
    all
}

fn rows(precision: Precision) -> Vec<Kernel> {
    let mut all = Vec::new();
    for log in [16, 18, 20, 22, 24, 26, 28] {
        for columns in [1024, 4096] {
            let classes = [Class::LayerNorm, Class::RmsNorm, Class::Softmax];
            all.extend(classes.map(|class| rowed(class, precision, (1 << log) / columns, columns)));
        }
    }
    // Vocabularies as row lengths: GPT-2's, padded to whole vectors, Llama-3's, Qwen2.5-VL's.
    for (rows, columns) in [(2048, 50_264), (1024, 128_256), (4096, 152_064)] {
        all.push(rowed(Class::CrossEntropy, precision, rows, columns));
    }
    all
}

fn elementwise(precision: Precision) -> Vec<Kernel> {
    let mut all = Vec::new();
    for log in [12, 16, 18, 20, 22, 24, 26, 28] {
        let elements = 1 << log;
        let classes = [
            Class::Scale,
            Class::Add,
            Class::Fill,
            Class::Cast,
            Class::Gelu,
            Class::SiluMul,
        ];
        all.extend(classes.map(|class| flat(class, precision, elements)));
    }
    for log in [12, 16, 20, 24, 28] {
        let elements = 1 << log;
        let classes = [
            Class::Mul,
            Class::MaskedFill,
            Class::Dropout,
            Class::GeluTanh,
            Class::Silu,
            Class::Tanh,
            Class::Sigmoid,
        ];
        all.extend(classes.map(|class| flat(class, precision, elements)));
        let gradients = [Class::Gelu, Class::GeluTanh, Class::Silu, Class::SiluMul, Class::Tanh];
        all.extend(gradients.map(|class| backward(flat(class, precision, elements))));
    }
    // Query and key heads, from tiny models to long sequences.
    for [batch, length, heads, width] in [
        [1, 128, 8, 64],
        [1, 1024, 12, 64],
        [1, 1024, 16, 128],
        [4, 1024, 16, 128],
        [2, 2048, 32, 128],
        [8, 2048, 32, 128],
    ] {
        let shape = Shape {
            batch: Some(batch),
            length: Some(length),
            heads: Some(heads),
            head_dim: Some(width),
            ..Shape::default()
        };
        all.push(Kernel {
            precision: Some(precision),
            shape,
            ..Kernel::of(Class::TransposeCopy)
        });
        all.push(rowed(Class::RotateHalf, precision, batch * length * heads, width));
    }
    all
}

fn row_gradients(precision: Precision) -> Vec<Kernel> {
    let mut all = Vec::new();
    for log in [16, 20, 22, 24, 27] {
        for columns in [128, 1024, 4096] {
            let of = |class| rowed(class, precision, (1 << log) / columns, columns);
            all.extend([Class::SumRows, Class::SumColumns].map(of));
            all.extend([Class::LayerNorm, Class::RmsNorm, Class::Softmax].map(|class| backward(of(class))));
            all.push(Kernel {
                frozen: Some(true),
                ..backward(of(Class::LayerNorm))
            });
        }
    }
    all
}

/// Losses over vocabularies in PyTorch's parts, and embedding tables.
fn chosen(precision: Precision) -> Vec<Kernel> {
    let mut all = Vec::new();
    for (rows, columns) in [(512, 32_064), (2048, 50_264), (8192, 32_064), (2048, 151_936)] {
        for class in [Class::LogSoftmax, Class::Nll] {
            let forward = rowed(class, precision, rows, columns);
            all.extend([forward.clone(), backward(forward)]);
        }
    }
    for (rows, columns, entries) in [
        (256, 768, 50_264),
        (1024, 2048, 151_936),
        (4096, 4096, 32_064),
        (16_384, 4096, 32_064),
    ] {
        let mut forward = rowed(Class::Embedding, precision, rows, columns);
        forward.shape.entries = Some(entries);
        all.extend([forward.clone(), backward(forward)]);
    }
    all
}

fn lists(precision: Precision) -> Vec<Kernel> {
    let classes = [
        Class::ForeachScale,
        Class::ForeachLerp,
        Class::ForeachAddcdiv,
        Class::ForeachNorm,
        Class::Adamw,
    ];
    let sizes = [(32, 1 << 12), (128, 1 << 16), (128, 1 << 20), (48, 1 << 23)];
    let of = |(tensors, elements)| classes.map(|class| list(class, precision, tensors, elements));
    sizes.into_iter().flat_map(of).collect()
}

/// A kernel over a list of tensors.
pub fn list(class: Class, precision: Precision, tensors: u64, elements: u64) -> Kernel {
    let one = flat(class, precision, elements);
    Kernel {
        shape: Shape {
            tensors: Some(tensors),
            ..one.shape
        },
        ..one
    }
}

/// The backward pass of a kernel.
pub fn backward(forward: Kernel) -> Kernel {
    Kernel {
        pass: Some(Pass::Backward),
        ..forward
    }
}

/// A kernel over elements.
pub fn flat(class: Class, precision: Precision, elements: u64) -> Kernel {
    Kernel {
        precision: Some(precision),
        shape: Shape {
            elements: Some(elements),
            ..Shape::default()
        },
        ..Kernel::of(class)
    }
}

/// A kernel over rows.
pub fn rowed(class: Class, precision: Precision, rows: u64, columns: u64) -> Kernel {
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
