//! Maps each class of kernels to its WGSL kernels and grid sizes.

use vramscope_benchmark::{Class, Kernel, Layout, Pass};

use super::gpu::Source;
use super::job::{Job, WIDTH, grid};
use crate::backends::Refusal;
use crate::kernels::reference::{AdamwStep, EPSILON, Numbers};

/// Kernel for matrix products.
pub(super) const PRODUCT: (Source, &str) = (Source::Products, "product");

/// Floats of a product: its scale, then for each matrix 1 if it is transposed.
pub(super) const fn product_numbers(layout: Layout, scale: f32) -> [f32; 4] {
    match layout {
        Layout::Nn => [scale, 0.0, 0.0, 0.0],
        Layout::Nt => [scale, 0.0, 1.0, 0.0],
        Layout::Tn => [scale, 1.0, 0.0, 0.0],
    }
}

/// Grid for `count` products of rows × columns.
pub(super) const fn tiles([rows, columns]: [u64; 2], count: u64) -> [u32; 3] {
    [columns.div_ceil(64) as u32, rows.div_ceil(64) as u32, count as u32]
}

impl Job<'_> {
    /// Prepares the steps of a kernel.
    pub(super) fn ready(&mut self, kernel: &Kernel) -> Result<(), Refusal> {
        let shape = &kernel.shape;
        let class = kernel.class;
        let [rows, columns] = [shape.rows, shape.columns].map(|n| n.unwrap_or(1));
        let backward = kernel.pass == Some(Pass::Backward);
        let name = match (class, backward) {
            (Class::Tanh, false) => "tanh_of".to_owned(),
            (_, false) => class.name().to_owned(),
            (_, true) => format!("{}_backward", class.name()),
        };
        match (class, backward) {
            (Class::Attention, _) => self.attention(kernel),
            (Class::Launch, _) => self.one((Source::Elements, "empty"), [0; 4], [0.0; 4], [1, 1, 1]),
            (Class::Gemm, _) => self.product(kernel),
            (Class::DeviceCopy | Class::Fill, _) => {
                let elements = self.work.outputs[0].elements;
                // A fill has no random input.
                let name = if class == Class::Fill { "fill" } else { "copy" };
                self.flat(name, [elements, 0, 0, 0], [0.0; 4])
            }
            (Class::Adamw, _) if shape.tensors.is_none() => {
                let real = [AdamwStep::RATE, AdamwStep::BETA1, AdamwStep::BETA2, AdamwStep::DECAY];
                self.flat("adamw", [self.work.inputs[0].elements, 0, 0, 0], real)
            }
            (Class::Scale, _) => {
                let elements = self.work.inputs[0].elements;
                self.flat("scale", [elements, 0, 0, 0], [Numbers::FACTOR, 0.0, 0.0, 0.0])
            }
            (Class::TransposeCopy, _) => {
                let extents = [shape.length, shape.heads, shape.head_dim].map(|n| n.unwrap_or(1));
                let [length, heads, width] = extents;
                let elements = self.work.inputs[0].elements;
                self.flat("transpose_copy", [elements, length, heads, width], [0.0; 4])
            }
            (Class::RotateHalf, _) => self.flat("rotate_half", [rows * columns, columns, 0, 0], [0.0; 4]),
            (Class::SumColumns, _) => {
                let groups = grid(columns.div_ceil(WIDTH));
                self.one((Source::Rows, "sum_columns"), [rows, columns, 0, 0], [0.0; 4], groups)
            }
            (Class::CrossEntropy, _) => {
                let real = [1.0 / rows as f32, 1.0, 0.0, 0.0];
                self.one(
                    (Source::Labels, "cross_entropy"),
                    [rows, columns, 0, 0],
                    real,
                    grid(rows),
                )
            }
            (Class::LayerNorm | Class::RmsNorm, false) => self.rows(&name, rows, columns, EPSILON as f32),
            (Class::Softmax | Class::LogSoftmax | Class::SumRows, _) => self.rows(&name, rows, columns, 1.0),
            (
                Class::Add | Class::Mul | Class::Sigmoid | Class::Gelu | Class::GeluTanh | Class::Silu | Class::Tanh,
                _,
            )
            | (Class::SiluMul, false) => self.flat(&name, [self.work.inputs[0].elements, 0, 0, 0], [0.0; 4]),
            _ => Err(Refusal::Unsupported(
                "not written in WGSL; NVIDIA's cards measure it through CUDA".into(),
            )),
        }
    }

    fn product(&mut self, kernel: &Kernel) -> Result<(), Refusal> {
        let shape = &kernel.shape;
        let [m, n, k, count] = [shape.m, shape.n, shape.k, shape.batch].map(|n| n.unwrap_or(1));
        let layout = kernel.layout.unwrap_or(Layout::Nn);
        self.one(
            PRODUCT,
            [m, n, k, count],
            product_numbers(layout, 1.0),
            tiles([m, n], count),
        )
    }

    fn flat(&mut self, name: &str, whole: [u64; 4], real: [f32; 4]) -> Result<(), Refusal> {
        let groups = grid(whole[0].div_ceil(WIDTH));
        self.one((Source::Elements, name), whole, real, groups)
    }

    fn rows(&mut self, name: &str, rows: u64, columns: u64, number: f32) -> Result<(), Refusal> {
        self.one(
            (Source::Rows, name),
            [rows, columns, 0, 0],
            [number, 0.0, 0.0, 0.0],
            grid(rows),
        )
    }
}
