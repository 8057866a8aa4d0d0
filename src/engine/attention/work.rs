//! Work of GPU and host for one attention.

use super::algorithms;
use super::call::{Algorithm, Call, Refused};
use crate::tape::work::{Chore, Item};
use crate::tape::{Gpu, Tape};

/// What GPU and host do for an attention of `length` queries and keys, libraries warm.
///
/// # Errors
/// When the call makes no sense, or the card has no such kernel.
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
