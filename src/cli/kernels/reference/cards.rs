//! Reference of copies and collectives between cards.

use vramscope_benchmark::{Check, Class, Kernel};

use super::{Given, Pairs, Reader, TensorIndex, places, rounding};

/// Number of ranges that are compared on each card, and their length in elements.
const RUNS: u64 = 24;
const RUN: u64 = 64;

pub(super) fn cards(kernel: &Kernel, given: &Given<'_>, reader: &mut dyn Reader) -> Result<Check, String> {
    let cards = given.work.inputs.len() as u64;
    let mut pairs = Pairs::default();
    for (card, output) in (0..).zip(&given.work.outputs) {
        // One more range if the output consists of parts, so that each part is checked.
        for start in places(output.elements.saturating_sub(RUN - 1), RUNS) {
            let count = output.elements.min(RUN);
            let results = reader.read(TensorIndex::Output(card), start, count)?;
            for (place, result) in (start..).zip(results) {
                pairs.push(result, expected(kernel, given, cards, card as u64, place));
            }
        }
    }
    let sums = matches!(kernel.class, Class::AllReduce | Class::ReduceScatter);
    // A sum is rounded once for each card that contributes; a copy is exact.
    let tolerance = if sums {
        cards as f64 * rounding(given.precision)
    } else {
        0.0
    };
    Ok(pairs.check(
        "fp64 on the CPU of what each card gave, elements drawn at random",
        tolerance,
    ))
}

/// Expected element at index `place` of a card's output.
fn expected(kernel: &Kernel, given: &Given<'_>, cards: u64, card: u64, place: u64) -> f64 {
    let sum = |place| (0..cards).map(|card| given.at(card as usize, place)).sum();
    let part = given.work.inputs[0].elements;
    match kernel.class {
        Class::AllReduce => sum(place),
        Class::ReduceScatter => sum(card * given.work.outputs[0].elements + place),
        Class::AllGather => given.at((place / part) as usize, place % part),
        Class::Broadcast => given.at(0, place),
        Class::SendReceive => given.at(((card + cards - 1) % cards) as usize, place),
        _ => given.at(card as usize, place),
    }
}
