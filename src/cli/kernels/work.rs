//! The bytes that a kernel moves and its tensors; [`Kernel::flops`] counts its operations.

mod attention;
mod cards;
mod pytorch;
mod tensors;

pub use attention::{Extents, blocks};
pub use tensors::{Element, Fill, Input, Output};

use vramscope_benchmark::{Class, Kernel, Pass, Precision};

/// The bytes that a kernel moves, and its tensors.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Work {
    /// Bytes that it must at least read and write: each input and output once.
    pub bytes: u64,
    /// Inputs in the order of the kernel's arguments.
    pub inputs: Vec<Input>,
    /// Outputs in the order of the kernel's arguments.
    pub outputs: Vec<Output>,
}

impl Work {
    /// Work of a kernel. Unstated extents count as 1.
    pub fn of(kernel: &Kernel) -> Self {
        let shape = &kernel.shape;
        let bytes = shape.bytes.unwrap_or(1);
        match kernel.class {
            Class::DeviceCopy => Self::copy(2 * bytes, bytes),
            Class::HostToDevice | Class::DeviceToHost => Self::copy(bytes, bytes),
            class if class == Class::PeerCopy || class.is_collective() => cards::work(kernel),
            Class::Launch => Self::default(),
            Class::Attention => attention::work(kernel),
            Class::Gemm => {
                let [m, n, k, count] = [shape.m, shape.n, shape.k, shape.batch].map(|x| x.unwrap_or(1));
                let inputs = vec![Input::unit(count * m * k), Input::unit(count * k * n)];
                Self::tallied(kernel, inputs, vec![Output::of(count * m * n)])
            }
            class if class.is_of_pytorch() => pytorch::work(kernel),
            Class::Embedding | Class::Nll => Self::of_choices(kernel),
            _ if Class::extents(kernel.class).contains(&"columns") => match kernel.pass {
                Some(Pass::Backward) => Self::of_rows_backward(kernel),
                _ => Self::of_rows(kernel),
            },
            _ => Self::of_elements(kernel),
        }
    }

    fn copy(bytes: u64, elements: u64) -> Self {
        Self {
            bytes,
            inputs: vec![Input::unit(elements / 4)],
            outputs: vec![Output::float(elements / 4)],
        }
    }

    /// Work whose bytes are those of inputs and outputs.
    fn tallied(kernel: &Kernel, inputs: Vec<Input>, outputs: Vec<Output>) -> Self {
        let precision = kernel.precision.unwrap_or(Precision::Fp32);
        let read: u64 = inputs.iter().map(|input| input.bytes(precision)).sum();
        let written: u64 = outputs.iter().map(|output| output.bytes(precision)).sum();
        Self {
            bytes: read + written,
            inputs,
            outputs,
        }
    }

    fn of_rows(kernel: &Kernel) -> Self {
        let [rows, columns] = [kernel.shape.rows, kernel.shape.columns].map(|x| x.unwrap_or(1));
        let cells = rows * columns;
        let (inputs, outputs) = match kernel.class {
            Class::LayerNorm => (
                vec![
                    Input::around(cells, Input::UNIT, 0.5),
                    Input::around(columns, 0.5, 1.0),
                    Input::around(columns, 0.5, 0.0),
                ],
                vec![Output::of(cells)],
            ),
            Class::RmsNorm => (
                vec![Input::around(cells, Input::UNIT, 0.5), Input::around(columns, 0.5, 1.0)],
                vec![Output::of(cells)],
            ),
            Class::CrossEntropy => (
                vec![Input::unit(cells), Input::labels(rows, columns)],
                vec![Output::of(cells), Output::float(rows)],
            ),
            Class::SumRows => (vec![Input::around(cells, 1.0, 0.5)], vec![Output::of(rows)]),
            Class::SumColumns => (vec![Input::around(cells, 1.0, 0.5)], vec![Output::of(columns)]),
            Class::Softmax | Class::LogSoftmax => (vec![Input::unit(cells)], vec![Output::of(cells)]),
            _ => (vec![Input::unit(cells)], vec![Output::of(cells)]),
        };
        Self::tallied(kernel, inputs, outputs)
    }

    /// Work of a row-wise kernel in backward: the gradient of the result first, then the results of forward.
    fn of_rows_backward(kernel: &Kernel) -> Self {
        let [rows, columns] = [kernel.shape.rows, kernel.shape.columns].map(|x| x.unwrap_or(1));
        let cells = rows * columns;
        let share = 1.0 / columns as f32;
        let (inputs, outputs) = match kernel.class {
            // Inputs: gradient, input, weight, each row's mean and scale. Outputs: gradients of input, weight and bias.
            Class::LayerNorm | Class::RmsNorm => {
                let mut inputs = vec![
                    Input::unit(cells),
                    Input::around(cells, Input::UNIT, 0.5),
                    Input::around(columns, 0.5, 1.0),
                    Input::floats(rows, 0.2, 1.0),
                ];
                let mut outputs = vec![Output::of(cells)];
                if kernel.frozen != Some(true) {
                    outputs.push(Output::of(columns));
                }
                if kernel.class == Class::LayerNorm {
                    inputs.push(Input::floats(rows, 0.2, 0.5));
                    if kernel.frozen != Some(true) {
                        outputs.push(Output::of(columns));
                    }
                }
                (inputs, outputs)
            }
            // Inputs: gradient and probabilities.
            Class::Softmax => (
                vec![Input::unit(cells), Input::around(cells, 0.5 * share, share)],
                vec![Output::of(cells)],
            ),
            // Inputs: gradient and log-probabilities.
            _ => (
                vec![Input::unit(cells), Input::around(cells, 1.0, share.ln())],
                vec![Output::of(cells)],
            ),
        };
        Self::tallied(kernel, inputs, outputs)
    }

    /// Work of kernels on rows or columns selected by labels.
    fn of_choices(kernel: &Kernel) -> Self {
        let shape = &kernel.shape;
        let [rows, columns, entries] = [shape.rows, shape.columns, shape.entries].map(|x| x.unwrap_or(1));
        let backward = kernel.pass == Some(Pass::Backward);
        let precision = kernel.precision.unwrap_or(Precision::Fp32);
        let labels = Input::labels(rows, if kernel.class == Class::Nll { columns } else { entries });
        let (inputs, outputs) = match (kernel.class, backward) {
            (Class::Nll, false) => (
                vec![labels, Input::around(rows * columns, 1.0, -(columns as f32).ln())],
                vec![Output::float(1)],
            ),
            (Class::Nll, true) => (vec![labels], vec![Output::of(rows * columns)]),
            (_, false) => (
                vec![labels, Input::unit(entries * columns)],
                vec![Output::of(rows * columns)],
            ),
            (_, true) => (
                vec![labels, Input::unit(rows * columns)],
                vec![Output::of(entries * columns)],
            ),
        };
        let mut work = Self::tallied(kernel, inputs, outputs);
        // Only the selected rows are read.
        match (kernel.class, backward) {
            (Class::Nll, false) => work.bytes = 4 * rows + rows * precision.width() + 4,
            (Class::Embedding, false) => work.bytes = 4 * rows + 2 * rows * columns * precision.width(),
            _ => {}
        }
        work
    }

    fn of_elements(kernel: &Kernel) -> Self {
        let shape = &kernel.shape;
        let tensors = shape.tensors.unwrap_or(1);
        let [batch, length, heads, width] = [shape.batch, shape.length, shape.heads, shape.head_dim];
        let laid_out = [batch, length, heads, width].map(|x| x.unwrap_or(1)).iter().product();
        let each = shape.elements.unwrap_or(laid_out);
        let n = tensors * each;
        let backward = kernel.pass == Some(Pass::Backward);
        let precision = kernel.precision.unwrap_or(Precision::Fp32);
        let unit = || Input::unit(n);
        let one = || vec![Output::of(n)];
        // Kernels that work in place have no outputs: they write to this many of their inputs.
        let (inputs, outputs, in_place) = match kernel.class {
            Class::SiluMul if backward => (vec![unit(), unit(), unit()], vec![Output::of(n); 2], 0),
            Class::SiluMul => (vec![unit(), unit()], one(), 0),
            Class::Gelu | Class::GeluTanh | Class::Silu | Class::Tanh if backward => (vec![unit(), unit()], one(), 0),
            Class::Gelu | Class::GeluTanh | Class::Silu | Class::Sigmoid => (vec![unit()], one(), 0),
            Class::Add | Class::Mul => (vec![unit(), unit()], one(), 0),
            Class::MaskedFill => (vec![unit(), Input::mask(n)], one(), 0),
            Class::Fill => (Vec::new(), one(), 0),
            Class::Cast => (vec![unit()], vec![Output::cast(n, precision)], 0),
            Class::Dropout => (vec![unit()], vec![Output::of(n), Output::bytes_of(n)], 0),
            Class::Adamw => (
                vec![unit(), unit(), Input::around(n, 0.1, 0.0), Input::around(n, 0.01, 0.02)],
                Vec::new(),
                3,
            ),
            Class::ForeachScale => (vec![unit()], Vec::new(), 1),
            Class::ForeachLerp => (vec![unit(), unit()], Vec::new(), 1),
            Class::ForeachAddcdiv => (vec![unit(), unit(), Input::around(n, 0.5, 1.5)], Vec::new(), 1),
            Class::ForeachNorm => (vec![unit()], vec![Output::float(tensors)], 0),
            _ => (vec![unit()], one(), 0),
        };
        let mut work = Self::tallied(kernel, inputs, outputs);
        work.bytes += in_place * n * precision.width();
        work
    }
}

#[cfg(test)]
mod tests {
    use vramscope_benchmark::Shape;

    use super::*;

    fn kernel(class: Class, pass: Option<Pass>, shape: Shape) -> Work {
        Work::of(&Kernel {
            precision: Some(Precision::Bf16),
            pass,
            shape,
            ..Kernel::of(class)
        })
    }

    #[test]
    fn every_input_and_output_is_counted_once() {
        let flat = Shape {
            elements: Some(1000),
            ..Shape::default()
        };
        let bytes = |class, pass| kernel(class, pass, flat.clone()).bytes;
        assert_eq!(bytes(Class::Scale, None), 4000);
        assert_eq!(bytes(Class::Add, None), 6000);
        assert_eq!(bytes(Class::Fill, None), 2000);
        assert_eq!(bytes(Class::Cast, None), 6000);
        assert_eq!(bytes(Class::MaskedFill, None), 5000);
        assert_eq!(bytes(Class::Dropout, None), 5000);
        assert_eq!(bytes(Class::SiluMul, Some(Pass::Backward)), 10_000);
        // Four tensors read, three written.
        assert_eq!(bytes(Class::Adamw, None), 14_000);
    }

    #[test]
    fn gradients_of_weights_are_made_where_they_are_trained() {
        let of = |class, frozen| {
            Work::of(&Kernel {
                precision: Some(Precision::Fp32),
                pass: Some(Pass::Backward),
                frozen,
                shape: Shape {
                    rows: Some(10),
                    columns: Some(64),
                    ..Shape::default()
                },
                ..Kernel::of(class)
            })
            .outputs
            .len()
        };
        assert_eq!([of(Class::LayerNorm, None), of(Class::LayerNorm, Some(true))], [3, 1]);
        assert_eq!([of(Class::RmsNorm, None), of(Class::RmsNorm, Some(true))], [2, 1]);
    }
}
