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
    let mut named = named(t, params);
    sort_by(&mut named, |a, b| natural(&a.1, &b.1));
    named.dedup_by_key(|(id, _)| *id);
    reserve(t, from, &named);
    t.rewrite_from(from, |events| {
        let (made, probes) = events.split_at(built - from);
        let dropped: HashSet<StorageId> = dropped(made).collect();
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

/// [`load`] of a model of which some linear layers are kept in 4 bits: each is quantised when its weight has come.
pub(super) fn load_quantised(t: &Tape, from: usize, params: &[Tensor]) {
    let built = t.mark();
    let named = named(t, params);
    let packed = params.iter().filter(|param| param.dtype() == DType::U8);
    let packed: HashSet<String> = packed.map(|param| module_of(&t.path_of(param)).to_owned()).collect();
    reserve(t, from, &named);
    let path = |id: StorageId| t.read_log(|log| log.path(log.allocations[id as usize].scope));
    let made = t.read_log(|log| log.events[from..built].to_vec());
    let dropped: HashSet<StorageId> = dropped(&made).collect();
    let mut loaded: Vec<(String, Event)> = made.iter().map(|event| (path(event.storage()), *event)).collect();
    // What constructors make for a moment is not made where weights are loaded.
    loaded.retain(|(module, event)| packed.contains(module) || !dropped.contains(&event.storage()));
    sort_by(&mut loaded, |a, b| natural(&a.0, &b.0));
    t.rewrite_from(from, |events| {
        let probes = events[built - from..].iter().copied();
        probes.chain(loaded.iter().map(|(_, event)| *event)).collect()
    });
}

/// Weights that were made, with their paths.
fn named(t: &Tape, params: &[Tensor]) -> Vec<(StorageId, String)> {
    let named = params
        .iter()
        .filter_map(|param| Some((param.storage().id()?, t.path_of(param))));
    named.collect()
}

/// Path of a tensor's module.
fn module_of(path: &str) -> &str {
    path.rsplit_once('.').map_or("", |(module, _)| module)
}

/// Storages that these events free.
fn dropped(events: &[Event]) -> impl Iterator<Item = StorageId> {
    events.iter().filter(|e| !e.is_alloc()).map(|e| e.storage())
}

/// Copies a number to the GPU and back, and makes memory for all weights in one piece, which is cached from then on.
fn reserve(t: &Tape, from: usize, named: &[(StorageId, String)]) {
    drop(t.empty([], DType::I64, "probe"));
    let cached = t.read_log(|log| cached(log, from, &[Event::alloc(newest(log)), Event::free(newest(log))]));
    let wanted: u64 = t.read_log(|log| named.iter().map(|(id, _)| log.allocations[*id as usize].bytes).sum());
    drop(t.empty([warm_up(wanted, cached) / 2], DType::F16, "memory for all weights"));
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
