//! Kernels of elements and of rows.

use vramscope_engine::record::{Check, Class, Kernel, Precision};

use super::{And, Given, Pairs, Place, Reader, places, rounding};
use crate::kernels::work::Extents;

/// What both norms add to the variance.
pub const EPSILON: f64 = 1e-5;

/// The step of AdamW that is measured, the first: `torch.optim.AdamW`'s defaults.
pub struct AdamwStep;

impl AdamwStep {
    /// Learning rate.
    pub const RATE: f32 = 1e-3;
    /// Decay of the mean.
    pub const BETA1: f32 = 0.9;
    /// Decay of the mean square.
    pub const BETA2: f32 = 0.999;
    /// What is added to the root.
    pub const EPSILON: f32 = 1e-8;
    /// Weight decay.
    pub const DECAY: f32 = 1e-2;
}

const HOW: &str = "fp64 on the CPU, elements drawn at random";

/// fp32 arithmetic with fast exponentials, then one rounding.
fn tolerance(precision: Precision) -> f64 {
    1.5 * rounding(precision) + 1e-5
}

pub(super) fn elements(kernel: &Kernel, given: &Given<'_>, reader: &mut dyn Reader) -> Result<Check, String> {
    let elements = kernel.shape.elements.unwrap_or(1);
    let mut pairs: [Pairs; 3] = Default::default();
    for start in places(elements.saturating_sub(63), 64) {
        let count = elements.min(64);
        match kernel.class {
            Class::Gelu | Class::SiluMul => {
                for (i, value) in (start..).zip(reader.read(Place::Output(0), start, count)?) {
                    let x = given.at(0, i);
                    let reference = match kernel.class {
                        Class::Gelu => 0.5 * x * (1.0 + erf(x / 2f64.sqrt())),
                        _ => x / (1.0 + (-x).exp()) * given.at(1, i),
                    };
                    pairs[0].push(value, reference);
                }
            }
            _ => {
                // Weights and both moments are of different sizes: each is held to its own.
                for (slot, input) in [0, 2, 3].into_iter().enumerate() {
                    for (i, value) in (start..).zip(reader.read(Place::Input(input), start, count)?) {
                        pairs[slot].push(value, adamw([0, 1, 2, 3].map(|input| given.at(input, i)))[slot]);
                    }
                }
            }
        }
    }
    let checks = pairs.map(|pairs| pairs.check(HOW, tolerance(given.precision)));
    Ok(checks
        .into_iter()
        .reduce(Check::and)
        .unwrap_or_else(|| Pairs::default().check(HOW, 0.0)))
}

/// Weight and both moments after one step.
fn adamw([weight, gradient, mean, square]: [f64; 4]) -> [f64; 3] {
    let [rate, beta1, beta2] = [AdamwStep::RATE, AdamwStep::BETA1, AdamwStep::BETA2].map(f64::from);
    let decayed = weight * (1.0 - rate * f64::from(AdamwStep::DECAY));
    let mean = beta1 * mean + (1.0 - beta1) * gradient;
    let square = beta2 * square + (1.0 - beta2) * gradient * gradient;
    let root = (square / (1.0 - beta2)).sqrt() + f64::from(AdamwStep::EPSILON);
    [decayed - rate * mean / (1.0 - beta1) / root, mean, square]
}

pub(super) fn rows(kernel: &Kernel, given: &Given<'_>, reader: &mut dyn Reader) -> Result<Check, String> {
    let [rows, columns] = [kernel.shape.rows, kernel.shape.columns].map(|n| n.unwrap_or(1));
    let mut pairs = Pairs::default();
    let mut losses = Pairs::default();
    for row in places(rows, 12) {
        let given_row: Vec<f64> = (0..columns).map(|i| given.at(0, row * columns + i)).collect();
        let results = reader.read(Place::Output(0), row * columns, columns)?;
        let expected = match kernel.class {
            Class::LayerNorm | Class::RmsNorm => normed(kernel.class, given, &given_row),
            Class::Softmax => softmax(&given_row),
            _ => {
                let label = given.at(1, row) as usize;
                let mut gradient = softmax(&given_row);
                losses.push(reader.read(Place::Output(1), row, 1)?[0], -gradient[label].ln());
                gradient[label] -= 1.0;
                // Of the mean over rows; scaled back, so that the label's place does not hide the others.
                gradient.iter().map(|g| g / rows as f64).collect()
            }
        };
        for (result, reference) in results.into_iter().zip(expected) {
            pairs.push(result, reference);
        }
    }
    // Halves lose bits below 2⁻¹⁴: the smallest probabilities and gradients round in steps of 2⁻²⁴.
    let subnormal = match given.precision {
        Precision::Fp16 => columns as f64 / 16_777_216.0,
        _ => 0.0,
    };
    let mut check = pairs.check(
        "fp64 on the CPU, rows drawn at random",
        tolerance(given.precision) + subnormal,
    );
    if kernel.class == Class::CrossEntropy {
        // Another tolerance: its error is not the one that is told.
        let losses = losses.check(HOW, 1e-4);
        check.passed &= losses.passed;
        check.compared += losses.compared;
    }
    Ok(check)
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

/// The softmax of scores, in place of their exponentials' overflow taken from the highest.
pub(super) fn softmax(scores: &[f64]) -> Vec<f64> {
    let most = scores.iter().fold(f64::NEG_INFINITY, |most, x| most.max(*x));
    let powers: Vec<f64> = scores.iter().map(|x| (x - most).exp()).collect();
    let sum: f64 = powers.iter().sum();
    powers.into_iter().map(|p| p / sum).collect()
}

/// The error function by its Taylor series, which is exact to fp64 for the arguments drawn here, below 3.
fn erf(x: f64) -> f64 {
    let mut term = x;
    let mut sum = x;
    for n in 1..80 {
        let n = f64::from(n);
        term *= -x * x / n;
        sum += term / (2.0 * n + 1.0);
    }
    sum * 2.0 / std::f64::consts::PI.sqrt()
}

/// The keys that a query of an attention sees.
pub(super) fn seen(extents: &Extents, query: u64) -> u64 {
    if extents.causal { query + 1 } else { extents.length }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_function_is_that_of_the_tables() {
        // Abramowitz and Stegun, table 7.1.
        for (x, y) in [(0.5, 0.520_499_877_8), (1.0, 0.842_700_792_9), (2.0, 0.995_322_265_0)] {
            assert!((erf(x) - y).abs() < 1e-9);
        }
    }

    #[test]
    fn a_first_step_of_adamw_moves_by_the_rate() {
        let [weight, mean, square] = adamw([1.0, 0.5, 0.0, 0.0]);
        assert!((weight - (1.0 - 1e-5 - 1e-3)).abs() < 1e-8);
        assert!((mean - 0.05).abs() < 1e-7 && (square - 0.00025).abs() < 1e-7);
    }
}
