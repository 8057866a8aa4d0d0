//! Reference of row-wise kernels in forward.

use vramscope_benchmark::{Check, Class, Kernel, Precision};

use super::elements::{HOW, tolerance};
use super::{Given, Pairs, Reader, TensorIndex, places};
use crate::kernels::work::Extents;

/// Epsilon that both norms add to the variance.
pub const EPSILON: f64 = 1e-5;

pub(super) const ROWS: &str = "fp64 on the CPU, rows drawn at random";

pub(super) fn rows(kernel: &Kernel, given: &Given<'_>, reader: &mut dyn Reader) -> Result<Check, String> {
    let [rows, columns] = [kernel.shape.rows, kernel.shape.columns].map(|n| n.unwrap_or(1));
    let mut pairs = Pairs::default();
    let mut losses = Pairs::default();
    for row in places(rows, 12) {
        let given_row: Vec<f64> = (0..columns).map(|i| given.at(0, row * columns + i)).collect();
        if kernel.class == Class::SumRows {
            pairs.push(reader.read(TensorIndex::Output(0), row, 1)?[0], given_row.iter().sum());
            continue;
        }
        let results = reader.read(TensorIndex::Output(0), row * columns, columns)?;
        let expected = match kernel.class {
            Class::LayerNorm | Class::RmsNorm => normed(kernel.class, given, &given_row),
            Class::Softmax => softmax(&given_row),
            Class::LogSoftmax => softmax(&given_row).into_iter().map(f64::ln).collect(),
            Class::RotateHalf => {
                let half = given_row.len() / 2;
                let negated = given_row[half..].iter().map(|x| -x);
                negated.chain(given_row[..half].iter().copied()).collect()
            }
            _ => {
                let label = given.at(1, row) as usize;
                let mut gradient = softmax(&given_row);
                losses.push(reader.read(TensorIndex::Output(1), row, 1)?[0], -gradient[label].ln());
                gradient[label] -= 1.0;
                // Gradient of the mean over rows, scaled back so that the label's element does not dominate the others.
                gradient.iter().map(|g| g / rows as f64).collect()
            }
        };
        for (result, reference) in results.into_iter().zip(expected) {
            pairs.push(result, reference);
        }
    }
    let allowed = tolerance(given.precision) + subnormal(given.precision, columns);
    let mut check = pairs.check(ROWS, allowed);
    if kernel.class == Class::CrossEntropy {
        // Losses have their own tolerance; their error is not reported.
        let losses = losses.check(HOW, 1e-4);
        check.passed &= losses.passed;
        check.compared += losses.compared;
    }
    Ok(check)
}

/// Additional tolerance for halves, which lose bits below 2⁻¹⁴: the smallest probabilities and gradients round in steps
/// of 2⁻²⁴.
pub(super) fn subnormal(precision: Precision, columns: u64) -> f64 {
    match precision {
        Precision::Fp16 => columns as f64 / 16_777_216.0,
        _ => 0.0,
    }
}

/// Checks the sums of some columns over all rows.
pub(super) fn column_sums(kernel: &Kernel, given: &Given<'_>, reader: &mut dyn Reader) -> Result<Check, String> {
    let [rows, columns] = [kernel.shape.rows, kernel.shape.columns].map(|n| n.unwrap_or(1));
    let mut pairs = Pairs::default();
    for column in places(columns, 6) {
        let sum = (0..rows).map(|row| given.at(0, row * columns + column)).sum();
        pairs.push(reader.read(TensorIndex::Output(0), column, 1)?[0], sum);
    }
    Ok(pairs.check("fp64 on the CPU, columns drawn at random", tolerance(given.precision)))
}

fn normed(class: Class, given: &Given<'_>, row: &[f64]) -> Vec<f64> {
    let count = row.len() as f64;
    let mean = match class {
        Class::LayerNorm => row.iter().sum::<f64>() / count,
        _ => 0.0,
    };
    let variance = row.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / count;
    let scale = 1.0 / (variance + EPSILON).sqrt();
    let of = |(i, x): (usize, &f64)| {
        let bias = if class == Class::LayerNorm {
            given.at(2, i as u64)
        } else {
            0.0
        };
        (x - mean) * scale * given.at(1, i as u64) + bias
    };
    row.iter().enumerate().map(of).collect()
}

/// Softmax of scores, with the maximum subtracted so that exponentials do not overflow.
pub(super) fn softmax(scores: &[f64]) -> Vec<f64> {
    let most = scores.iter().fold(f64::NEG_INFINITY, |most, x| most.max(*x));
    let powers: Vec<f64> = scores.iter().map(|x| (x - most).exp()).collect();
    let sum: f64 = powers.iter().sum();
    powers.into_iter().map(|p| p / sum).collect()
}

/// Number of keys that a query of an attention sees.
pub(super) fn seen(extents: &Extents, query: u64) -> u64 {
    if extents.causal { query + 1 } else { extents.length }
}
