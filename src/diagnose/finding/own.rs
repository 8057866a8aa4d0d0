//! Tells the run itself from other processes on its card. PyTorch compares `getpid()` with the process ids that NVML
//! reports; in a container the two differ, and the run is listed as a stranger.

use std::collections::BTreeMap;

use vramscope_engine::units::Bytes;

use super::hypotheses::make;
use super::known::Known;
use super::{Finding, words};
use crate::facts::Place;
use crate::oom::{OomMessage, Process};

/// Most that CUDA's context, its kernels and NCCL hold beside the allocator's memory.
const MOST_CONTEXT: Bytes = Bytes::gib(2);
/// Rounding of the figures of one message.
const ROUNDED: Bytes = Bytes::mib(64);
/// Most that one rank's bare context holds on a card that is not its own.
const BARE_CONTEXT: Bytes = Bytes::mib(1536);

/// The message with the run's own process taken from the strangers, and what is said of that.
pub fn told_apart(message: &OomMessage, known: &Known<'_>, place: Place) -> (OomMessage, Option<Finding>) {
    let mut message = message.clone();
    let Some(process) = own(&message) else {
        let finding = contexts(&message, known, place);
        return (message, finding);
    };
    message.others.retain(|other| other.pid != process.pid);
    message.own = Some(process.holds);
    let allocated = message.allocated.unwrap_or_default().bytes;
    let unallocated = message.unallocated_in_all().unwrap_or_default().bytes;
    let context = process.holds.bytes.saturating_sub(allocated + unallocated);
    let values = BTreeMap::from([
        ("pid".to_owned(), process.pid.to_string()),
        ("holds".to_owned(), words::bytes(process.holds.bytes)),
        ("tensors".to_owned(), words::bytes(allocated)),
        ("cache".to_owned(), words::bytes(unallocated)),
        ("context".to_owned(), words::bytes(context)),
    ]);
    let finding = make("own-process", &known.facts, values, vec![place], &known.texts);
    (message, finding)
}

/// The listed process that is the run. Beside a stranger of its size there would be no room for what PyTorch holds; or what
/// PyTorch holds and a context make its figure.
fn own(message: &OomMessage) -> Option<Process> {
    if message.own.is_some() {
        return None;
    }
    let allocator = message.reserved_in_all()?;
    let used = message
        .total
        .zip(message.free)
        .map(|(total, free)| total.most().saturating_sub(free.least()));
    let context = |process: &Process| {
        let most = process.holds.most().saturating_sub(allocator.least());
        let is_below = process.holds.most() < allocator.least();
        let leaves_no_room = used.is_some_and(|used| process.holds.least() + allocator.least() > used + ROUNDED);
        (!is_below && (most <= MOST_CONTEXT || leaves_no_room)).then_some(most)
    };
    let fitting = message
        .others
        .iter()
        .filter_map(|process| Some((context(process)?, *process)));
    fitting.min_by_key(|(context, _)| *context).map(|(_, process)| process)
}

/// Several other processes that hold next to nothing but a context: the other ranks of the run.
fn contexts(message: &OomMessage, known: &Known<'_>, place: Place) -> Option<Finding> {
    let own = message.own?;
    let bare: Vec<&Process> = message
        .others
        .iter()
        .filter(|process| process.holds.bytes <= BARE_CONTEXT)
        .collect();
    let alike = message.others.iter().filter(|process| {
        let (held, own) = (process.holds.bytes.get(), own.bytes.get());
        held > own / 10 * 7 && held < own / 7 * 10
    });
    let alike = alike.count();
    let (name, count) = match (bare.len(), alike) {
        (2.., _) => ("ranks-contexts-on-one-card", bare.len()),
        (_, 1..) => ("ranks-on-one-card", alike),
        _ => return None,
    };
    let held: Bytes = message.others.iter().map(|process| process.holds.bytes).sum();
    let values = BTreeMap::from([
        ("count".to_owned(), count.to_string()),
        ("held".to_owned(), words::bytes(held)),
        ("own_holds".to_owned(), words::bytes(own.bytes)),
    ]);
    make(name, &known.facts, values, vec![place], &known.texts)
}
