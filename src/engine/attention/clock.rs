//! How long an attention takes on a card whose kernels were measured, with the host that launches them.

use super::algorithms;
use super::call::{Algorithm, Call, Refused};
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
    call.check(algorithm, length, &gpu)?;
    let t = Tape::new(gpu);
    let inputs = algorithms::inputs(&t, call, length);
    algorithms::once(&t, call, algorithm, &inputs);
    t.write_work();
    algorithms::once(&t, call, algorithm, &inputs);
    let work = t.take_work();
    drop(inputs);
    Ok(Seconds::new(span(&work, costs).total))
}
