//! Reference of elementwise kernels, and of kernels over lists of tensors.

use vramscope_benchmark::{Check, Class, Kernel, Pass, Precision};

use super::{And, Given, Pairs, Reader, TensorIndex, places, rounding};
use crate::kernels::random;
use crate::kernels::work::Element;

/// Parameters of the measured AdamW step, the first one: `torch.optim.AdamW`'s defaults.
pub struct AdamwStep;

impl AdamwStep {
    /// Learning rate.
    pub const RATE: f32 = 1e-3;
    /// Decay of the first moment.
    pub const BETA1: f32 = 0.9;
    /// Decay of the second moment.
    pub const BETA2: f32 = 0.999;
    /// Added to the square root in the denominator.
    pub const EPSILON: f32 = 1e-8;
    /// Weight decay.
    pub const DECAY: f32 = 1e-2;
}

/// Constants of the simpler kernels.
pub struct Numbers;

impl Numbers {
    /// Factor that tensors, and lists of them, are multiplied by.
    pub const FACTOR: f32 = 0.999;
    /// Weight of the interpolation between two lists.
    pub const WEIGHT: f32 = 0.1;
    /// Factor of quotients before they are added.
    pub const VALUE: f32 = 1e-4;
    /// Probability of dropout.
    pub const DROPPED: f32 = 0.1;
    /// Seed of dropout's random numbers.
    pub const DROPOUT_SEED: u32 = 99;
}

pub(super) const HOW: &str = "fp64 on the CPU, elements drawn at random";

/// Tolerance for fp32 arithmetic with fast exponentials, then one rounding.
pub(super) fn tolerance(precision: Precision) -> f64 {
    1.5 * rounding(precision) + 1e-5
}

/// Expected elements at index `i` of each tensor that the kernel writes.
fn expected(kernel: &Kernel, given: &Given<'_>, i: u64) -> Vec<(TensorIndex, f64)> {
    let x = |input: usize| given.at(input, i);
    let backward = kernel.pass == Some(Pass::Backward);
    let one = |value: f64| vec![(TensorIndex::Output(0), value)];
    match kernel.class {
        Class::Gelu if backward => one(x(0) * gelu(x(1))[1]),
        Class::Gelu => one(gelu(x(0))[0]),
        Class::GeluTanh if backward => one(x(0) * gelu_tanh(x(1))[1]),
        Class::GeluTanh => one(gelu_tanh(x(0))[0]),
        Class::Silu if backward => one(x(0) * silu(x(1))[1]),
        Class::Silu => one(silu(x(0))[0]),
        Class::SiluMul if backward => {
            // Inputs: gradient of the result, gate, up.
            let [value, slope] = silu(x(1));
            vec![
                (TensorIndex::Output(0), x(0) * x(2) * slope),
                (TensorIndex::Output(1), x(0) * value),
            ]
        }
        Class::SiluMul => one(silu(x(0))[0] * x(1)),
        // Backward takes the result of forward.
        Class::Tanh if backward => one(x(0) * (1.0 - x(1) * x(1))),
        Class::Tanh => one(x(0).tanh()),
        Class::Sigmoid => one(1.0 / (1.0 + (-x(0)).exp())),
        Class::Scale => one(x(0) * f64::from(Numbers::FACTOR)),
        Class::Add => one(x(0) + x(1)),
        Class::Mul => one(x(0) * x(1)),
        Class::MaskedFill => one(if x(1) == 0.0 { x(0) } else { 0.0 }),
        Class::Fill => one(0.0),
        Class::Cast => one(x(0)),
        Class::Dropout => {
            let drawn = (random::draw(i, Numbers::DROPOUT_SEED) + 1.0) * 0.5;
            let kept = if drawn >= Numbers::DROPPED { 1.0 } else { 0.0 };
            let value = x(0) * kept / f64::from(1.0 - Numbers::DROPPED);
            vec![(TensorIndex::Output(0), value), (TensorIndex::Output(1), kept)]
        }
        Class::TransposeCopy => one(given.at(0, transposed(kernel, i))),
        Class::ForeachScale => vec![(TensorIndex::Input(0), x(0) * f64::from(Numbers::FACTOR))],
        Class::ForeachLerp => {
            let value = x(0) + f64::from(Numbers::WEIGHT) * (x(1) - x(0));
            vec![(TensorIndex::Input(0), value)]
        }
        Class::ForeachAddcdiv => {
            let value = x(0) + f64::from(Numbers::VALUE) * x(1) / x(2);
            vec![(TensorIndex::Input(0), value)]
        }
        _ => {
            let after = adamw([0, 1, 2, 3].map(x));
            [0, 2, 3]
                .into_iter()
                .zip(after)
                .map(|(input, value)| (TensorIndex::Input(input), value))
                .collect()
        }
    }
}

/// Index in `[batch, length, heads, width]` of the element at index `i` of `[batch, heads, length, width]`.
fn transposed(kernel: &Kernel, i: u64) -> u64 {
    let shape = &kernel.shape;
    let [length, heads, width] = [shape.length, shape.heads, shape.head_dim].map(|x| x.unwrap_or(1));
    let (within, rest) = (i % width, i / width);
    let (position, rest) = (rest % length, rest / length);
    let (head, sample) = (rest % heads, rest / heads);
    ((sample * length + position) * heads + head) * width + within
}

pub(super) fn elements(kernel: &Kernel, given: &Given<'_>, reader: &mut dyn Reader) -> Result<Check, String> {
    let own = given.precision;
    let tensors = given.work.outputs.first().map(|output| output.elements);
    let elements = tensors.unwrap_or_else(|| given.work.inputs[0].elements);
    let rounded = match given.work.outputs.first().map(|output| output.element) {
        // Widening is exact; narrowing rounds to the target type.
        Some(Element::Of(Precision::Fp32)) => Precision::Fp32,
        Some(Element::Of(other)) => other,
        _ => own,
    };
    // Outputs may differ in magnitude from tensor to tensor, so each is compared separately.
    let mut written: Vec<(TensorIndex, Pairs)> = Vec::new();
    for start in places(elements.saturating_sub(63), 64) {
        let count = elements.min(64);
        let expected: Vec<_> = (start..start + count).map(|i| expected(kernel, given, i)).collect();
        for slot in 0..expected[0].len() {
            let place = expected[0][slot].0;
            if written.len() == slot {
                written.push((place, Pairs::default()));
            }
            for (result, of) in reader.read(place, start, count)?.into_iter().zip(&expected) {
                written[slot].1.push(result, of[slot].1);
            }
        }
    }
    let checks = written
        .into_iter()
        .map(|(_, pairs)| pairs.check(HOW, tolerance(rounded)));
    Ok(checks
        .reduce(Check::and)
        .unwrap_or_else(|| Pairs::default().check(HOW, 0.0)))
}

/// Checks the norms of some tensors in a list.
pub(super) fn norms(kernel: &Kernel, given: &Given<'_>, reader: &mut dyn Reader) -> Result<Check, String> {
    let [tensors, elements] = [kernel.shape.tensors, kernel.shape.elements].map(|n| n.unwrap_or(1));
    let mut pairs = Pairs::default();
    for tensor in places(tensors, if elements > 1 << 20 { 2 } else { 6 }) {
        let squares = (tensor * elements..(tensor + 1) * elements).map(|i| given.at(0, i) * given.at(0, i));
        let result = reader.read(TensorIndex::Output(0), tensor, 1)?[0];
        pairs.push(result, squares.sum::<f64>().sqrt());
    }
    Ok(pairs.check(HOW, 1e-5))
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

/// Value and derivative.
fn gelu(x: f64) -> [f64; 2] {
    let below = 0.5 * (1.0 + erf(x / 2f64.sqrt()));
    let density = (-0.5 * x * x).exp() / (2.0 * std::f64::consts::PI).sqrt();
    [x * below, below + x * density]
}

/// Value and derivative of the tanh approximation.
fn gelu_tanh(x: f64) -> [f64; 2] {
    let root = (2.0 / std::f64::consts::PI).sqrt();
    let t = (root * (x + 0.044_715 * x * x * x)).tanh();
    let inner = root * (1.0 + 3.0 * 0.044_715 * x * x);
    [0.5 * x * (1.0 + t), 0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * inner]
}

/// Value and derivative.
fn silu(x: f64) -> [f64; 2] {
    let s = 1.0 / (1.0 + (-x).exp());
    [x * s, s * (1.0 + x * (1.0 - s))]
}

/// Error function by its Taylor series, which is exact to fp64 for the arguments used here, below 3.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_function_is_that_of_the_tables() {
        // Values from Abramowitz and Stegun, table 7.1.
        for (x, y) in [(0.5, 0.520_499_877_8), (1.0, 0.842_700_792_9), (2.0, 0.995_322_265_0)] {
            assert!((erf(x) - y).abs() < 1e-9);
        }
    }

    #[test]
    fn slopes_are_those_of_the_values() {
        for f in [gelu, gelu_tanh, silu] {
            for x in [-1.7, -0.3, 0.0, 0.9, 1.6] {
                let difference = (f(x + 1e-5)[0] - f(x - 1e-5)[0]) / 2e-5;
                assert!((f(x)[1] - difference).abs() < 1e-8, "{x}");
            }
        }
    }

    #[test]
    fn a_first_step_of_adamw_moves_by_the_rate() {
        let [weight, mean, square] = adamw([1.0, 0.5, 0.0, 0.0]);
        assert!((weight - (1.0 - 1e-5 - 1e-3)).abs() < 1e-8);
        assert!((mean - 0.05).abs() < 1e-7 && (square - 0.00025).abs() < 1e-7);
    }
}
