//! The tensors of kernels that PyTorch alone has, which it makes itself: for their bytes.

use vramscope_benchmark::{Class, Kernel};

use super::{Input, Output, Work};

/// Work of a kernel of PyTorch's.
pub(super) fn work(kernel: &Kernel) -> Work {
    let shape = &kernel.shape;
    let [batch, m, n, k] = [shape.batch, shape.m, shape.n, shape.k].map(|x| x.unwrap_or(1));
    let (inputs, outputs) = match kernel.class {
        // Backward reads the result's gradient and the images, and writes the gradient of the weight.
        Class::Convolution if kernel.pass == Some(vramscope_benchmark::Pass::Backward) => {
            ([batch * m * n, batch * m * k], n * k)
        }
        Class::Convolution => ([batch * m * k, n * k], batch * m * n),
        Class::GroupedGemm => ([m * k, batch * k * n], m * n),
        _ => {
            let cells = shape.rows.unwrap_or(1) * shape.columns.unwrap_or(1);
            ([cells, cells / 2], cells)
        }
    };
    Work::tallied(kernel, inputs.map(Input::unit).to_vec(), vec![Output::of(outputs)])
}
