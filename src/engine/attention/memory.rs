//! Peak memory of one attention call, and the tensors that make it up.

use super::algorithms;
use super::call::{Algorithm, Call, Refused};
use super::formula::{Namer, Product};
use super::replay;
use crate::order::sort_by;
use crate::tape::log::{Allocation, Log};
use crate::tape::{Gpu, Tape};
use crate::units::Bytes;

/// Tensors of one shape and type that live at the peak.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Term {
    /// Names of the tensors, each once, in order of allocation: the operation within its step of the algorithm.
    pub names: Vec<String>,
    /// Number of tensors.
    pub count: u64,
    /// Elements of one.
    pub elements: Product,
    /// Bytes of an element.
    pub width: u64,
    /// Bytes of all, as asked of the allocator.
    pub bytes: Bytes,
}

/// Highest bytes beyond the inputs, and what they consist of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Memory {
    /// Highest allocated bytes beyond the inputs.
    pub peak: Bytes,
    /// Tensors live at that instant, largest first.
    pub terms: Vec<Term>,
    /// Bytes of the allocator's blocks beyond the bytes requested.
    pub rounding: Bytes,
}

/// Simulates an attention of `length` queries and keys.
///
/// # Errors
/// When the call makes no sense, or the card has no such kernel.
pub fn memory(call: &Call, algorithm: Algorithm, length: u64, gpu: Gpu) -> Result<Memory, Refused> {
    call.check(algorithm, length, &gpu)?;
    let (log, warm) = record(call, algorithm, length, gpu);
    let peak = replay::peak(&log, warm).ok_or_else(|| Refused(format!("{length} positions are beyond any device")))?;
    let namer = Namer {
        call,
        algorithm,
        length,
    };
    let live: Vec<&Allocation> = peak.live.iter().map(|&id| &log.allocations[id as usize]).collect();
    let terms = terms(&log, &live, &namer);
    let asked: Bytes = terms.iter().map(|term| term.bytes).sum();
    let peak = Bytes::new(peak.bytes);
    Ok(Memory {
        peak,
        rounding: peak.saturating_sub(asked),
        terms,
    })
}

/// Records two runs, and returns the index of the second one's first event.
fn record(call: &Call, algorithm: Algorithm, length: u64, gpu: Gpu) -> (Log, usize) {
    let t = Tape::new(gpu);
    let inputs = algorithms::inputs(&t, call, length);
    algorithms::once(&t, call, algorithm, &inputs);
    let warm = t.mark();
    algorithms::once(&t, call, algorithm, &inputs);
    let end = t.mark();
    drop(inputs);
    let mut log = t.finish();
    log.events.truncate(end);
    (log, warm)
}

fn terms(log: &Log, live: &[&Allocation], namer: &Namer<'_>) -> Vec<Term> {
    let mut terms: Vec<Term> = Vec::new();
    for allocation in live {
        let step = log.scopes[allocation.scope as usize].name;
        let elements = namer.product(&allocation.shape, holds_scores(step, allocation.name));
        let width = allocation.dtype.width();
        let known = terms.iter().position(|t| t.elements == elements && t.width == width);
        let at = known.unwrap_or_else(|| {
            terms.push(Term {
                names: Vec::new(),
                count: 0,
                elements,
                width,
                bytes: Bytes::ZERO,
            });
            terms.len() - 1
        });
        let term = &mut terms[at];
        term.count += 1;
        term.bytes += Bytes::new(allocation.bytes);
        let name = if step.is_empty() {
            allocation.name.to_owned()
        } else {
            format!("{step}: {}", allocation.name)
        };
        if !term.names.contains(&name) {
            term.names.push(name);
        }
    }
    sort_by(&mut terms, |a, b| {
        a.bytes
            .cmp(&b.bytes)
            .reverse()
            .then_with(|| (&a.elements, a.width).cmp(&(&b.elements, b.width)))
    });
    terms
}

/// Returns true if the last extent of such a tensor is keys.
fn holds_scores(step: &str, name: &str) -> bool {
    match step {
        "softmax" | "mask" | "scatter" | "top-k" => true,
        "scores" => name != "bmm backward",
        _ => false,
    }
}
