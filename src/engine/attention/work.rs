//! Kernels and host ops of one attention call.

use super::algorithms;
use super::call::{Algorithm, Call, Refused};
use crate::tape::work::{HostOp, WorkItem};
use crate::tape::{Gpu, Tape};

/// Kernels and host ops of an attention call of `length` queries and keys, with warm libraries.
///
/// # Errors
/// When the call makes no sense, or the card has no such kernel.
pub fn work(call: &Call, algorithm: Algorithm, length: u64, gpu: Gpu) -> Result<Vec<WorkItem>, Refused> {
    call.check(algorithm, length, &gpu)?;
    let t = Tape::new(gpu);
    let inputs = algorithms::inputs(&t, call, length);
    algorithms::once(&t, call, algorithm, &inputs);
    t.write_work();
    algorithms::once(&t, call, algorithm, &inputs);
    let mut work = t.take_work();
    drop(inputs);
    // Scopes name tensors here; they are no modules that Python calls.
    work.retain(|item| *item != WorkItem::HostOp(HostOp::Module));
    Ok(work)
}
