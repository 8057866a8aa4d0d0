//! Reference of row-wise kernels in backward, and of rows selected by labels.

use vramscope_benchmark::{Check, Class, Kernel, Pass};

use super::elements::tolerance;
use super::rows::{ROWS, subnormal};
use super::{And, Given, Pairs, Reader, TensorIndex, places, rounding};

const COLUMNS: &str = "fp64 on the CPU, rows and columns drawn at random";

pub(super) fn rows_backward(kernel: &Kernel, given: &Given<'_>, reader: &mut dyn Reader) -> Result<Check, String> {
    let columns = kernel.shape.columns.unwrap_or(1);
    let mut pairs = Pairs::default();
    for row in places(kernel.shape.rows.unwrap_or(1), 12) {
        let of = |input: usize| -> Vec<f64> { (0..columns).map(|i| given.at(input, row * columns + i)).collect() };
        let (gradient, left) = (of(0), of(1));
        let expected: Vec<f64> = match kernel.class {
            Class::Softmax => {
                let sum: f64 = gradient.iter().zip(&left).map(|(g, p)| g * p).sum();
                gradient.iter().zip(&left).map(|(g, p)| p * (g - sum)).collect()
            }
            Class::LogSoftmax => {
                let sum: f64 = gradient.iter().sum();
                gradient.iter().zip(&left).map(|(g, l)| g - l.exp() * sum).collect()
            }
            class => norm_backward(class, given, row, &gradient, &left),
        };
        let results = reader.read(TensorIndex::Output(0), row * columns, columns)?;
        results
            .into_iter()
            .zip(expected)
            .for_each(|(out, of)| pairs.push(out, of));
    }
    let allowed = tolerance(given.precision) + subnormal(given.precision, columns);
    let check = pairs.check(ROWS, allowed);
    match weights(kernel, given, reader)? {
        Some(weights) => Ok(check.and(weights)),
        None => Ok(check),
    }
}

/// Mean (0 for RMSNorm) and scale of a row.
fn statistics(class: Class, given: &Given<'_>, row: u64) -> [f64; 2] {
    let mean = if class == Class::LayerNorm {
        given.at(4, row)
    } else {
        0.0
    };
    [mean, given.at(3, row)]
}

/// Gradient of a norm's input for any mean and scale: scale × (g − mean of g − normed × mean of g × normed), where g is
/// gradient times weight.
fn norm_backward(class: Class, given: &Given<'_>, row: u64, gradient: &[f64], input: &[f64]) -> Vec<f64> {
    let count = input.len() as f64;
    let [mean, scale] = statistics(class, given, row);
    let normed: Vec<f64> = input.iter().map(|x| (x - mean) * scale).collect();
    let weighted: Vec<f64> = (0..)
        .zip(gradient)
        .map(|(i, gradient)| gradient * given.at(2, i))
        .collect();
    let sum = match class {
        Class::LayerNorm => weighted.iter().sum::<f64>() / count,
        _ => 0.0,
    };
    let product = weighted.iter().zip(&normed).map(|(g, n)| g * n).sum::<f64>() / count;
    let of = |(g, n): (&f64, &f64)| scale * (g - sum - n * product);
    weighted.iter().zip(&normed).map(of).collect()
}

/// Checks the gradients of weight and bias in some columns, over all rows.
fn weights(kernel: &Kernel, given: &Given<'_>, reader: &mut dyn Reader) -> Result<Option<Check>, String> {
    let made = given.work.outputs.len();
    if made < 2 {
        return Ok(None);
    }
    let [rows, columns] = [kernel.shape.rows, kernel.shape.columns].map(|n| n.unwrap_or(1));
    let mut of_weight = Pairs::default();
    let mut of_bias = Pairs::default();
    for column in places(columns, 4) {
        let (mut weight, mut bias) = (0.0, 0.0);
        for row in 0..rows {
            let [mean, scale] = statistics(kernel.class, given, row);
            let gradient = given.at(0, row * columns + column);
            weight += gradient * (given.at(1, row * columns + column) - mean) * scale;
            bias += gradient;
        }
        of_weight.push(reader.read(TensorIndex::Output(1), column, 1)?[0], weight);
        if made == 3 {
            of_bias.push(reader.read(TensorIndex::Output(2), column, 1)?[0], bias);
        }
    }
    // Sums of many terms of either sign: the result may be small compared with the terms.
    let allowed = tolerance(given.precision) + 4.0 * (rows as f64).sqrt() * f64::from(f32::EPSILON);
    let [weight, bias] = [of_weight, of_bias].map(|pairs| pairs.check(COLUMNS, allowed));
    Ok(Some(if made == 3 { weight.and(bias) } else { weight }))
}

/// Checks losses and table rows that labels select, and their gradients.
pub(super) fn choices(kernel: &Kernel, given: &Given<'_>, reader: &mut dyn Reader) -> Result<Check, String> {
    let [rows, columns] = [kernel.shape.rows, kernel.shape.columns].map(|n| n.unwrap_or(1));
    let label = |row: u64| given.at(0, row) as u64;
    let backward = kernel.pass == Some(Pass::Backward);
    let mut pairs = Pairs::default();
    if (kernel.class, backward) == (Class::Nll, false) {
        let sum: f64 = (0..rows).map(|row| -given.at(1, row * columns + label(row))).sum();
        pairs.push(reader.read(TensorIndex::Output(0), 0, 1)?[0], sum / rows as f64);
        return Ok(pairs.check("fp64 on the CPU, all rows", 1e-5));
    }
    let mut added: u64 = 1;
    for row in places(rows, 12) {
        let (start, expected): (u64, Vec<f64>) = match (kernel.class, backward) {
            (Class::Nll, _) => {
                let mut of_row = vec![0.0; columns as usize];
                of_row[label(row) as usize] = -1.0 / rows as f64;
                (row * columns, of_row)
            }
            (_, false) => {
                let from = label(row) * columns;
                let of_row = (from..from + columns).map(|i| given.at(1, i)).collect();
                (row * columns, of_row)
            }
            (_, true) => {
                let same: Vec<u64> = (0..rows).filter(|other| label(*other) == label(row)).collect();
                added = added.max(same.len() as u64);
                let of = |i: u64| same.iter().map(|row| given.at(1, row * columns + i)).sum();
                (label(row) * columns, (0..columns).map(of).collect())
            }
        };
        let results = reader.read(TensorIndex::Output(0), start, columns)?;
        results
            .into_iter()
            .zip(expected)
            .for_each(|(out, of)| pairs.push(out, of));
    }
    // Each addition to the table rounds; a copy is exact.
    let allowed = match (kernel.class, backward) {
        (Class::Nll, _) => tolerance(given.precision) + subnormal(given.precision, rows),
        (_, false) => 0.0,
        (_, true) => added as f64 * rounding(given.precision),
    };
    Ok(pairs.check(ROWS, allowed))
}
