//! Loading of a model as `from_pretrained` does it (`modeling_utils.py` and `core_model_loading.py` of transformers 5.17),
//! which TRL's trainers call: memory for all weights in one piece, then every weight by the order of its name.

use std::cmp::Ordering;
use std::collections::HashSet;

use super::Replayer;
use crate::allocator::{CachingAllocator, Options};
use crate::dtype::DType;
use crate::order::sort_by;
use crate::tape::log::{Event, Log, StorageId};
use crate::tape::{Tape, Tensor};

/// Bytes below which memory that lacks is not made in advance.
const LITTLE: u64 = 3 << 29;

/// Turns what a constructor made since event `from` into what loading makes; `params` are the weights that were made.
pub(super) fn load(t: &Tape, from: usize, params: &[Tensor]) {
    let built = t.mark();
    let named = params
        .iter()
        .filter_map(|param| Some((param.storage().id()?, t.path_of(param))));
    let mut named: Vec<(StorageId, String)> = named.collect();
    sort_by(&mut named, |a, b| natural(&a.1, &b.1));
    named.dedup_by_key(|(id, _)| *id);
    // A number that is copied to the GPU and back.
    drop(t.empty([], DType::I64, "probe"));
    let cached = t.read_log(|log| cached(log, from, &[Event::alloc(newest(log)), Event::free(newest(log))]));
    let wanted: u64 = t.read_log(|log| named.iter().map(|(id, _)| log.allocations[*id as usize].bytes).sum());
    drop(t.empty([warm_up(wanted, cached) / 2], DType::F16, "memory for all weights"));
    t.rewrite_from(from, |events| {
        let (made, probes) = events.split_at(built - from);
        let dropped: HashSet<StorageId> = made.iter().filter(|e| !e.is_alloc()).map(|e| e.storage()).collect();
        let weights: HashSet<StorageId> = named.iter().map(|(id, _)| *id).collect();
        let is_buffer = |id: &StorageId| !dropped.contains(id) && !weights.contains(id);
        let buffers = made
            .iter()
            .filter(|e| e.is_alloc())
            .map(|e| e.storage())
            .filter(is_buffer);
        let loaded = named.iter().map(|(id, _)| *id).chain(buffers).map(Event::alloc);
        probes.iter().copied().chain(loaded).collect()
    });
}

/// Storage that was made last.
fn newest(log: &Log) -> StorageId {
    (log.allocations.len() - 1) as StorageId
}

/// Bytes that a fresh process has reserved and not allocated, after the events before `from` and these.
fn cached(log: &Log, from: usize, more: &[Event]) -> u64 {
    let allocator = CachingAllocator::new(Options::default());
    let mut replayer = Replayer::new(log.allocations.requests_from(0), &[], allocator);
    let played = [&log.events[..from], more]
        .into_iter()
        .try_for_each(|events| replayer.play(events));
    match played {
        Ok(()) => replayer.allocator().reserved().get() - replayer.allocator().allocated().get(),
        Err(_) => 0,
    }
}

/// Bytes that `caching_allocator_warmup` allocates for `wanted` bytes of weights where `cached` are free.
fn warm_up(wanted: u64, cached: u64) -> u64 {
    match wanted.saturating_sub(cached) {
        lacking if lacking > cached => lacking,
        lacking if lacking > LITTLE => cached + 1,
        _ => 0,
    }
}

/// `dot_natural_key`: by the parts of a dotted name, numbers before words, and numbers at the end of a word as numbers.
fn natural(a: &str, b: &str) -> Ordering {
    let key = |name: &str| -> Vec<(bool, String, Option<u64>)> {
        let part = |part: &str| {
            let word = part.trim_end_matches(|c: char| c.is_ascii_digit());
            let number = part[word.len()..].parse().ok();
            (!word.is_empty(), word.to_owned(), number)
        };
        name.split('.').map(part).collect()
    };
    key(a).cmp(&key(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_come_by_the_numbers_in_their_names() {
        let mut names = [
            "model.norm",
            "model.layers.10.a",
            "lm_head",
            "model.layers.9.b",
            "model.layers.10.A2",
        ];
        names.sort_by(|a, b| natural(a, b));
        assert_eq!(
            names,
            [
                "lm_head",
                "model.layers.9.b",
                "model.layers.10.A2",
                "model.layers.10.a",
                "model.norm"
            ]
        );
    }

    #[test]
    fn memory_that_is_cached_is_not_made_again_if_it_is_most_of_it() {
        assert_eq!(warm_up(100, 10), 90);
        assert_eq!(warm_up(100, 60), 0);
        assert_eq!(warm_up(10 << 30, 6 << 30), (6 << 30) + 1);
    }
}
