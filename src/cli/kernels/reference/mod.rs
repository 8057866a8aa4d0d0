//! Computes every kernel again on the CPU in fp64, at randomly chosen indices.

mod attention;
mod cards;
mod elements;
mod gradients;
mod rows;

pub use elements::{AdamwStep, Numbers};
pub use rows::EPSILON;

use vramscope_benchmark::{Check, Class, Kernel, Layout, Pass, Precision};

use super::random;
use super::work::{Fill, Work};

/// A tensor of a kernel, by index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TensorIndex {
    /// An input, in its state after the kernel ran.
    Input(usize),
    /// An output.
    Output(usize),
}

/// Reads elements of a tensor as fp32 from the device that ran the kernel.
pub trait Reader {
    /// Reads `count` elements from `start`.
    ///
    /// # Errors
    /// The driver's message.
    fn read(&mut self, place: TensorIndex, start: u64, count: u64) -> Result<Vec<f32>, String>;
}

/// Compares a kernel's results with the reference; `None` if the kernel has no results.
///
/// # Errors
/// If the results cannot be read.
pub fn check(kernel: &Kernel, reader: &mut dyn Reader) -> Result<Option<Check>, String> {
    let work = Work::of(kernel);
    let given = Given {
        work: &work,
        precision: kernel.precision.unwrap_or(Precision::Fp32),
    };
    let check = match kernel.class {
        Class::Launch => return Ok(None),
        Class::DeviceCopy | Class::HostToDevice | Class::DeviceToHost => copied(&given, reader)?,
        class if class == Class::PeerCopy || class.is_collective() => cards::cards(kernel, &given, reader)?,
        Class::Gemm => product(kernel, &given, reader)?,
        Class::Attention => attention::attention(kernel, &given, reader)?,
        Class::Embedding | Class::Nll => gradients::choices(kernel, &given, reader)?,
        Class::SumColumns => rows::column_sums(kernel, &given, reader)?,
        Class::ForeachNorm => elements::norms(kernel, &given, reader)?,
        class if class.extents().contains(&"columns") => match kernel.pass {
            Some(Pass::Backward) => gradients::rows_backward(kernel, &given, reader)?,
            _ => rows::rows(kernel, &given, reader)?,
        },
        _ => elements::elements(kernel, &given, reader)?,
    };
    Ok(Some(check))
}

/// The inputs of a kernel, computed again.
struct Given<'a> {
    work: &'a Work,
    precision: Precision,
}

impl Given<'_> {
    /// An element of an input.
    fn at(&self, input: usize, place: u64) -> f64 {
        let seed = input as u32 + 1;
        let tensor = &self.work.inputs[input];
        let precision = tensor.element.precision(self.precision).unwrap_or(self.precision);
        match tensor.fill {
            Fill::Uniform { scale, offset } => f64::from(random::value(place, seed, scale, offset, precision)),
            Fill::Labels(classes) => random::label(place, seed, classes) as f64,
            Fill::Mask => f64::from(u8::from(random::draw(place, seed) < 0.0)),
        }
    }
}

/// Half the distance between neighbouring numbers at 1: the relative error of rounding to a type.
const fn rounding(precision: Precision) -> f64 {
    match precision {
        Precision::Bf16 => 1.0 / 256.0,
        Precision::Fp16 => 1.0 / 2048.0,
        // Tensor cores may truncate instead of rounding.
        Precision::Tf32 => 1.0 / 1024.0,
        Precision::Fp32 => 1.0 / 16_777_216.0,
    }
}

/// Results with their references.
#[derive(Default)]
struct Pairs(Vec<[f64; 2]>);

impl Pairs {
    fn push(&mut self, result: f32, reference: f64) {
        self.0.push([f64::from(result), reference]);
    }

    /// Returns the largest error: the difference, divided by the magnitude of the reference plus the mean magnitude of
    /// all references, so that rounding counts equally for small and large results.
    fn check(self, reference: &str, tolerance: f64) -> Check {
        let count = self.0.len().max(1) as f64;
        let size = (self.0.iter().map(|[_, r]| r * r).sum::<f64>() / count).sqrt();
        let error = |[out, reference]: &[f64; 2]| match out == reference {
            true => 0.0,
            false => (out - reference).abs() / (reference.abs() + size),
        };
        let errors = self.0.iter().map(error);
        let worst = errors.fold(0.0, |worst: f64, e| {
            if e.is_nan() || worst.is_nan() {
                f64::NAN
            } else {
                worst.max(e)
            }
        });
        Check {
            reference: format!("{reference}; |result - reference| / (|reference| + root mean square of references)"),
            compared: self.0.len() as u64,
            max_error: Some(worst).filter(|e| e.is_finite()),
            tolerance,
            passed: worst <= tolerance,
        }
    }
}

/// Combines two comparisons.
trait And {
    fn and(self, other: Self) -> Self;
}

impl And for Check {
    /// Passes if both pass. The error is the larger one; `None` if either is NaN.
    fn and(mut self, other: Self) -> Self {
        self.compared += other.compared;
        self.max_error = self.max_error.zip(other.max_error).map(|(a, b)| a.max(b));
        self.passed &= other.passed;
        self
    }
}

/// Random indices below `end`, including the first and the last.
fn places(end: u64, count: u64) -> Vec<u64> {
    let random = (2..count).map(|i| {
        let x = u64::from(random::draw(i, 77).to_bits()) << 24 ^ u64::from(random::draw(i, 78).to_bits());
        x % end.max(1)
    });
    let mut all: Vec<u64> = [0, end.saturating_sub(1)].into_iter().chain(random).collect();
    all.sort_unstable();
    all.dedup();
    all
}

fn copied(given: &Given<'_>, reader: &mut dyn Reader) -> Result<Check, String> {
    let elements = given.work.inputs[0].elements;
    let mut pairs = Pairs::default();
    // Compare runs of 64 elements, so that few reads compare many elements.
    for start in places(elements.saturating_sub(63), 64) {
        let count = elements.min(64);
        for (i, value) in (start..).zip(reader.read(TensorIndex::Output(0), start, count)?) {
            pairs.push(value, given.at(0, i));
        }
    }
    Ok(pairs.check("the copied bytes", 0.0))
}

/// Checks a matrix product: some rows and columns, in the first and the last matrix of a batch.
fn product(kernel: &Kernel, given: &Given<'_>, reader: &mut dyn Reader) -> Result<Check, String> {
    let shape = &kernel.shape;
    let [m, n, k, count] = [shape.m, shape.n, shape.k, shape.batch].map(|x| x.unwrap_or(1));
    let layout = kernel.layout.unwrap_or(Layout::Nn);
    let left = |matrix: u64, row: u64, i: u64| match layout {
        Layout::Tn => given.at(0, (matrix * k + i) * m + row),
        _ => given.at(0, (matrix * m + row) * k + i),
    };
    let right = |matrix: u64, i: u64, column: u64| match layout {
        Layout::Nt => given.at(1, (matrix * n + column) * k + i),
        _ => given.at(1, (matrix * k + i) * n + column),
    };
    let (rows, columns) = (places(m, 24), places(n, 24));
    let mut pairs = Pairs::default();
    for matrix in places(count, 2) {
        let drawn: Vec<Vec<f64>> = columns
            .iter()
            .map(|&column| (0..k).map(|i| right(matrix, i, column)).collect())
            .collect();
        for &row in &rows {
            let line: Vec<f64> = (0..k).map(|i| left(matrix, row, i)).collect();
            for (&column, values) in columns.iter().zip(&drawn) {
                let sum = line.iter().zip(values).map(|(a, b)| a * b).sum();
                let result = reader.read(TensorIndex::Output(0), (matrix * m + row) * n + column, 1)?;
                pairs.push(result[0], sum);
            }
        }
    }
    // The result is rounded once, and sums in fp32 err by the square root of their length. TF32 rounds both factors of
    // every product; these errors average out to the size of one product's error.
    let tolerance = match given.precision {
        Precision::Tf32 => 6.0 * rounding(Precision::Tf32),
        precision => 1.5 * rounding(precision) + 4.0 * (k as f64).sqrt() * rounding(Precision::Fp32),
    };
    Ok(pairs.check("fp64 on the CPU, rows and columns drawn at random", tolerance))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_never_written_fails() {
        let mut pairs = Pairs::default();
        pairs.push(1.0, 1.0);
        pairs.push(f32::NAN, 1.0);
        pairs.push(1.0, 1.0);
        let check = pairs.check("a test", 1.0);
        assert!(!check.passed && check.max_error.is_none());
    }

    #[test]
    fn an_error_above_the_tolerance_fails() {
        let check = |result| {
            let mut pairs = Pairs::default();
            pairs.push(result, 1.0);
            pairs.check("a test", 0.01)
        };
        assert!(check(1.01).passed && !check(1.03).passed);
    }

    #[test]
    fn places_hold_both_ends() {
        assert_eq!(places(1, 24), [0]);
        let all = places(1 << 40, 24);
        assert!(all.contains(&0) && all.contains(&((1 << 40) - 1)) && all.len() == 24);
    }
}
