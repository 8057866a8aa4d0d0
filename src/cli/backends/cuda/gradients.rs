//! Our own kernels for backward over rows, sums over columns, and rows selected by labels.

use vramscope_benchmark::{Class, Kernel, Pass, Precision};

use super::Cuda;
use super::compile::{Arguments, Function, Source};
use super::job::{Ready, Tensors};
use super::memory::Buffer;
use super::own::{all_of, made, row_kernel, vectors};
use crate::backends::Refusal;

/// Column sums in two steps: partial sums over groups of rows, then their total.
struct Columns {
    parts: Function,
    whole: Function,
    /// Partial sums in fp32, `[parts][terms][columns]`.
    partial: Buffer,
    /// Blocks along the columns, and groups of rows.
    grid: [u64; 2],
    rows: u64,
    columns: u64,
    vectors: u64,
    /// Number of sums for each column.
    terms: u64,
}

impl Columns {
    fn of(cuda: &Cuda, name: &str, kernel: &Kernel, precision: Precision, terms: u64) -> Result<Self, Refusal> {
        let [rows, columns] = [kernel.shape.rows, kernel.shape.columns].map(|n| n.unwrap_or(1));
        let vectors = vectors(columns, precision)?;
        let across = vectors.div_ceil(32);
        // Enough blocks to fill the card several times, each with at least 32 rows.
        let wanted = (u64::from(cuda.facts.multiprocessors) * 8).div_ceil(across);
        let parts = wanted.clamp(1, rows.div_ceil(32).max(1));
        Ok(Self {
            parts: cuda.function(Source::Gradients, precision, name)?,
            whole: cuda.function(Source::Gradients, precision, "sum_parts")?,
            partial: cuda.card.allocate(4 * parts * terms * columns)?,
            grid: [across, parts],
            rows,
            columns,
            vectors,
            terms,
        })
    }

    /// Sums `given`, each term into one of `results`.
    fn run(&self, given: Arguments, results: &[Buffer]) -> Result<(), Refusal> {
        let arguments = given
            .wide(self.partial.address)
            .narrow(self.rows as u32)
            .narrow(self.vectors as u32);
        self.parts.launch_over(self.grid, 256, &arguments)?;
        for (term, result) in (0..self.terms as u32).zip(results) {
            let arguments = Arguments::default()
                .wide(self.partial.address)
                .wide(result.address)
                .narrow(self.grid[1] as u32)
                .narrow(self.columns as u32)
                .narrow(self.terms as u32)
                .narrow(term);
            self.whole.launch(self.columns.div_ceil(32), 256, &arguments)?;
        }
        Ok(())
    }
}

/// Prepares the sum of each column.
pub fn columns<'a>(cuda: &'a Cuda, kernel: &Kernel, precision: Precision) -> Result<Ready<'a>, Refusal> {
    let columns = Columns::of(cuda, "sum_columns", kernel, precision, 1)?;
    let extra = vec![columns.partial.bytes];
    let launch = move |_, set: &Tensors| columns.run(Arguments::default().wide(set.inputs[0].address), &set.outputs);
    Ok(Ready {
        extra,
        ..made(cuda, "sum_columns, sum_parts", Box::new(launch))
    })
}

/// Prepares backward of norms and softmaxes.
pub fn rows<'a>(cuda: &'a Cuda, kernel: &Kernel, precision: Precision) -> Result<Ready<'a>, Refusal> {
    let [rows, columns] = [kernel.shape.rows, kernel.shape.columns].map(|n| n.unwrap_or(1));
    let class = kernel.class;
    let count = vectors(columns, precision)?;
    let (name, threads) = row_kernel(class, &format!("{}_backward", class.name()), count, columns)?;
    let function = cuda.function(Source::Gradients, precision, &name)?;
    let is_norm = matches!(class, Class::LayerNorm | Class::RmsNorm);
    let weights = match is_norm && kernel.frozen != Some(true) {
        true => {
            let terms = if class == Class::LayerNorm { 2 } else { 1 };
            let name = format!("{}_weights", class.name());
            Some(Columns::of(cuda, &name, kernel, precision, terms)?)
        }
        false => None,
    };
    let extra = weights.iter().map(|columns| columns.partial.bytes).collect();
    let name = match &weights {
        Some(weights) => format!("{name}, {}, {}", weights.parts.name, weights.whole.name),
        None => name,
    };
    let launch = move |_, set: &Tensors| {
        let given = set
            .inputs
            .iter()
            .fold(Arguments::default(), |arguments, buffer| arguments.wide(buffer.address));
        let arguments = given.wide(set.outputs[0].address).narrow(count as u32);
        function.launch(rows, threads, &arguments)?;
        let Some(weights) = &weights else { return Ok(()) };
        // All inputs except the weight itself.
        let given = set
            .inputs
            .iter()
            .enumerate()
            .filter(|(i, _)| *i != 2)
            .fold(Arguments::default(), |arguments, (_, buffer)| {
                arguments.wide(buffer.address)
            });
        weights.run(given, &set.outputs[1..])
    };
    Ok(Ready {
        extra,
        ..made(cuda, &name, Box::new(launch))
    })
}

/// Prepares losses and table rows that labels select, and their gradients.
pub fn choices<'a>(cuda: &'a Cuda, kernel: &Kernel, precision: Precision) -> Result<Ready<'a>, Refusal> {
    let [rows, columns] = [kernel.shape.rows, kernel.shape.columns].map(|n| n.unwrap_or(1));
    let backward = kernel.pass == Some(Pass::Backward);
    let stem = kernel.class.name();
    let name = if backward {
        format!("{stem}_backward")
    } else {
        stem.to_owned()
    };
    let function = cuda.function(Source::Gradients, precision, &name)?;
    let is_loss = kernel.class == Class::Nll;
    let count = match (is_loss, backward) {
        (true, _) => columns,
        (false, false) => vectors(columns, precision)?,
        // Counts words of 4 bytes.
        (false, true) => vectors(columns, precision)? * 4,
    };
    let launch = move |_, set: &Tensors| {
        if backward {
            set.outputs[0].set(0)?;
        }
        let arguments = all_of(set);
        match (is_loss, backward) {
            (true, false) => function.launch(1, 1024, &arguments.narrow(rows as u32).narrow(count as u32)),
            (true, true) => function.launch(
                rows.div_ceil(256),
                256,
                // Omits the logarithms, which this kernel does not read.
                &arguments.narrow(rows as u32).narrow(count as u32),
            ),
            (false, _) => function.launch(rows, 256, &arguments.narrow(count as u32)),
        }
    };
    let name = if backward {
        format!("cuMemsetD8Async, {name}")
    } else {
        name
    };
    Ok(made(cuda, &name, Box::new(launch)))
}
