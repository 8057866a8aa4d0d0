//! Time of a single attention call on a card with measured kernels, including launches by the host.

use vramscope_engine::attention::{Algorithm, Call, Refused, work};
use vramscope_engine::tape::Gpu;
use vramscope_engine::units::Seconds;

use crate::{Costs, span};

/// Seconds of an attention over `length` queries and keys, from its first launch on an idle GPU to the end of its last
/// kernel. This is what a benchmark measures that synchronizes after each run with warm libraries.
///
/// # Errors
/// If the arguments are inconsistent, or the card has no such kernel.
pub fn elapsed(
    call: &Call,
    algorithm: Algorithm,
    length: u64,
    gpu: Gpu,
    costs: &Costs<'_>,
) -> Result<Seconds, Refused> {
    let pace = costs.pace.alone();
    let alone = costs.with_pace(&pace);
    Ok(Seconds::new(span(&work(call, algorithm, length, gpu)?, &alone).total))
}
