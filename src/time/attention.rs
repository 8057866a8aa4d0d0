//! Time of one attention on a card whose kernels were measured, with the host that launches them.

use vramscope_engine::attention::{Algorithm, Call, Refused, work};
use vramscope_engine::tape::Gpu;
use vramscope_engine::units::Seconds;

use crate::{Costs, span};

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
