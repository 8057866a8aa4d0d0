//! How long an attention takes on a card whose kernels were measured, with the host that launches them.

use super::algorithms;
use super::call::{Algorithm, Call, Refused};
use crate::tape::work::{Chore, Item};
use crate::tape::{Gpu, Tape};
use crate::time::{Costs, span};
use crate::units::Seconds;

/// The time of an attention of `length` queries and keys, from its first launch on an idle GPU to the end of
/// its last kernel, as a benchmark that waits after each run measures it. Libraries are warm.
///
/// # Errors
/// When the call makes no sense, or the card has no such kernel.
pub fn elapsed(
    call: &Call,
    algorithm: Algorithm,
    length: u64,
    gpu: Gpu,
    costs: &Costs<'_>,
) -> Result<Seconds, Refused> {
    let pace = costs.pace.alone();
    let alone = Costs::new(costs.rates, costs.kernels, &pace);
    Ok(Seconds::new(span(&work(call, algorithm, length, gpu)?, &alone).total))
}

/// What GPU and host do for an attention of `length` queries and keys, libraries warm.
///
/// # Errors
/// As [`elapsed`].
pub fn work(call: &Call, algorithm: Algorithm, length: u64, gpu: Gpu) -> Result<Vec<Item>, Refused> {
    call.check(algorithm, length, &gpu)?;
    let t = Tape::new(gpu);
    let inputs = algorithms::inputs(&t, call, length);
    algorithms::once(&t, call, algorithm, &inputs);
    t.write_work();
    algorithms::once(&t, call, algorithm, &inputs);
    let mut work = t.take_work();
    drop(inputs);
    // names on the tape, no modules that Python calls
    work.retain(|item| *item != Item::Chore(Chore::Module));
    Ok(work)
}
