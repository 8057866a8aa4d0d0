//! Our own elementwise and row-wise kernels in forward, and the dispatch to the other files.

use vramscope_benchmark::{Class, Kernel, Pass, Precision};

use super::compile::{Arguments, Function, Source};
use super::job::{Launch, Ready, Tensors};
use super::{Cuda, gradients, lists};
use crate::backends::Refusal;
use crate::kernels::reference::{AdamwStep, EPSILON, Numbers};

/// Prepares one of our own kernels, or one of the driver's.
pub fn ready<'a>(
    cuda: &'a Cuda,
    kernel: &Kernel,
    precision: Precision,
    sets: &[Tensors],
) -> Result<Ready<'a>, Refusal> {
    let backward = kernel.pass == Some(Pass::Backward);
    match kernel.class {
        Class::DeviceCopy | Class::Launch | Class::Fill => driver(cuda, kernel, precision),
        Class::Embedding | Class::Nll => gradients::choices(cuda, kernel, precision),
        Class::SumColumns => gradients::columns(cuda, kernel, precision),
        class if class.extents().contains(&"tensors") || kernel.shape.tensors.is_some() => {
            lists::ready(cuda, kernel, precision, sets)
        }
        class if class.extents().contains(&"columns") && class != Class::RotateHalf => match backward {
            true => gradients::rows(cuda, kernel, precision),
            false => rows(cuda, kernel, precision),
        },
        _ => flat(cuda, kernel, precision),
    }
}

/// Threads per block and vectors per thread for a row of `vectors` vectors; `None` if the row is too long to hold in
/// registers.
pub fn row_plan(vectors: u64) -> Option<(u32, u32)> {
    [1, 2, 4].into_iter().find_map(|held| {
        let threads = vectors.div_ceil(u64::from(held)).next_multiple_of(32).max(32);
        let most = if held == 4 { 512 } else { 256 };
        (threads <= most).then_some((threads as u32, held))
    })
}

/// Number of elements in 16 bytes.
pub const fn wide(precision: Precision) -> u64 {
    16 / precision.width()
}

/// Number of vectors in a row.
///
/// # Errors
/// If the row is not a whole number of vectors.
pub fn vectors(columns: u64, precision: Precision) -> Result<u64, Refusal> {
    match columns.is_multiple_of(wide(precision)) {
        true => Ok(columns / wide(precision)),
        false => Err(Refusal::Unsupported(format!(
            "rows of {columns} elements are no multiple of {}",
            wide(precision)
        ))),
    }
}

/// Describes one of our own kernels as the implementation that ran.
pub fn made<'a>(cuda: &Cuda, name: &str, launch: Launch<'a>) -> Ready<'a> {
    Ready {
        launch,
        implementation: cuda.implementation("vramscope", name.to_owned(), true),
        extra: Vec::new(),
        within: 0,
    }
}

/// Addresses of all inputs, then of all outputs.
pub fn all_of(set: &Tensors) -> Arguments {
    let buffers = set.inputs.iter().chain(&set.outputs);
    buffers.fold(Arguments::default(), |arguments, buffer| arguments.wide(buffer.address))
}

fn driver<'a>(cuda: &'a Cuda, kernel: &Kernel, precision: Precision) -> Result<Ready<'a>, Refusal> {
    let card = &cuda.card;
    let (name, launch): (&str, Launch<'a>) = match kernel.class {
        Class::DeviceCopy => (
            "cuMemcpyDtoDAsync",
            Box::new(move |_, set| {
                let (from, to) = (&set.inputs[0], &set.outputs[0]);
                // SAFETY: both buffers are as long.
                card.ok(unsafe {
                    (card.api.cuMemcpyDtoDAsync_v2)(to.address, from.address, from.bytes as usize, card.stream)
                })
            }),
        ),
        Class::Fill => ("cuMemsetD8Async", Box::new(|_, set| set.outputs[0].set(0))),
        _ => {
            let empty = cuda.function(Source::Elements, precision, "empty")?;
            let launch = move |_, _: &Tensors| empty.launch(1, 32, &Arguments::default());
            ("cuLaunchKernel", Box::new(launch))
        }
    };
    Ok(Ready {
        launch,
        implementation: cuda.implementation("driver", name.into(), false),
        extra: Vec::new(),
        within: 0,
    })
}

/// Number of blocks of 256 threads for `vectors` vectors.
pub fn blocks(cuda: &Cuda, vectors: u64) -> u64 {
    vectors
        .div_ceil(256)
        .min(u64::from(cuda.facts.multiprocessors) * 32)
        .max(1)
}

/// Appends the arguments of AdamW's first step, including its bias corrections.
pub fn adamw(arguments: Arguments) -> Arguments {
    let (beta1, beta2) = (AdamwStep::BETA1, AdamwStep::BETA2);
    let numbers = [
        AdamwStep::RATE,
        beta1,
        beta2,
        AdamwStep::EPSILON,
        AdamwStep::DECAY,
        1.0 - beta1,
        (1.0 - beta2).sqrt(),
    ];
    numbers.into_iter().fold(arguments, Arguments::float)
}

/// Prepares a launch over contiguous vectors.
fn flat<'a>(cuda: &'a Cuda, kernel: &Kernel, precision: Precision) -> Result<Ready<'a>, Refusal> {
    let shape = &kernel.shape;
    let class = kernel.class;
    let name = match (class, kernel.pass) {
        (Class::Tanh, Some(Pass::Backward)) => "tanh_backward".to_owned(),
        (Class::Tanh, _) => "tanh_of".to_owned(),
        (_, Some(Pass::Backward)) => format!("{}_backward", class.name()),
        _ => class.name().to_owned(),
    };
    let [length, heads, width] = [shape.length, shape.heads, shape.head_dim].map(|n| n.unwrap_or(1));
    let cells = shape.rows.zip(shape.columns).map(|(rows, columns)| rows * columns);
    let laid_out = shape.batch.unwrap_or(1) * length * heads * width;
    let count = vectors(shape.elements.or(cells).unwrap_or(laid_out), precision)?;
    // Rows, and their halves, consist of whole vectors.
    let row = match class {
        Class::RotateHalf => 2 * vectors(shape.columns.unwrap_or(2) / 2, precision)?,
        Class::TransposeCopy => vectors(width, precision)?,
        _ => 1,
    } as u32;
    let function = cuda.function(Source::Elements, precision, &name)?;
    let blocks = blocks(cuda, count);
    let launch = move |_, set: &Tensors| {
        let arguments = all_of(set).wide(count);
        let arguments = match class {
            Class::Adamw => adamw(arguments),
            Class::Scale => arguments.float(Numbers::FACTOR),
            Class::Dropout => arguments.float(Numbers::DROPPED).narrow(Numbers::DROPOUT_SEED),
            Class::TransposeCopy => arguments.narrow(length as u32).narrow(heads as u32).narrow(row),
            Class::RotateHalf => arguments.narrow(row),
            _ => arguments,
        };
        function.launch(blocks, 256, &arguments)
    };
    Ok(made(cuda, &name, Box::new(launch)))
}

/// Prepares a launch with one block per row.
fn rows<'a>(cuda: &'a Cuda, kernel: &Kernel, precision: Precision) -> Result<Ready<'a>, Refusal> {
    let [rows, columns] = [kernel.shape.rows, kernel.shape.columns].map(|n| n.unwrap_or(1));
    let class = kernel.class;
    let count = vectors(columns, precision)?;
    let (name, threads) = row_kernel(class, class.name(), count, columns)?;
    let function: Function = cuda.function(Source::Rows, precision, &name)?;
    let launch = move |_, set: &Tensors| {
        let arguments = match class {
            // The kernel takes the losses before the gradient.
            Class::CrossEntropy => Arguments::default()
                .wide(set.inputs[0].address)
                .wide(set.inputs[1].address)
                .wide(set.outputs[1].address)
                .wide(set.outputs[0].address),
            _ => all_of(set),
        };
        let arguments = arguments.narrow(count as u32);
        let arguments = match class {
            // Skips the optional sums.
            Class::Softmax => arguments.float(1.0).wide(0),
            Class::CrossEntropy => arguments.float(1.0 / rows as f32),
            Class::LayerNorm | Class::RmsNorm => arguments.float(EPSILON as f32),
            _ => arguments,
        };
        function.launch(rows, threads, &arguments)
    };
    Ok(made(cuda, &name, Box::new(launch)))
}

/// Kernel for rows of `count` vectors, and the threads of its blocks.
pub fn row_kernel(class: Class, stem: &str, count: u64, columns: u64) -> Result<(String, u32), Refusal> {
    Ok(match (class, row_plan(count)) {
        (Class::CrossEntropy | Class::LogSoftmax, _) => (stem.to_owned(), 1024),
        (_, Some((threads, held))) => (format!("{stem}_{held}"), threads),
        (Class::Softmax, None) => (format!("{stem}_long"), 1024),
        (_, None) => return Err(Refusal::Unsupported(format!("rows of {columns} elements are too long"))),
    })
}
