//! Runs work on several threads if there are any: WebAssembly has one.

use std::ops::Range;

#[cfg(not(target_family = "wasm"))]
use rayon::iter::{IntoParallelIterator, ParallelIterator};

/// Runs both and returns their results; `a` runs on this thread, and should be the one that takes longer.
#[cfg(not(target_family = "wasm"))]
pub(super) fn both<A, B: Send>(a: impl FnOnce() -> A, b: impl FnOnce() -> B + Send) -> (A, B) {
    let mut other = None;
    let own = rayon::in_place_scope(|scope| {
        scope.spawn(|_| other = Some(b()));
        a()
    });
    (own, other.expect("the scope waits for it"))
}

/// Runs both and returns their results.
#[cfg(target_family = "wasm")]
pub(super) fn both<A, B>(a: impl FnOnce() -> A, b: impl FnOnce() -> B) -> (A, B) {
    (a(), b())
}

/// Returns the result for the lowest of these numbers that has one.
#[cfg(not(target_family = "wasm"))]
pub(super) fn first_answer<T: Send>(numbers: Range<u64>, answer: impl Fn(u64) -> Option<T> + Sync + Send) -> Option<T> {
    numbers.into_par_iter().find_map_first(answer)
}

/// Returns the result for the lowest of these numbers that has one.
#[cfg(target_family = "wasm")]
pub(super) fn first_answer<T>(numbers: Range<u64>, answer: impl FnMut(u64) -> Option<T>) -> Option<T> {
    numbers.into_iter().find_map(answer)
}

/// Returns the result for each number, in order.
#[cfg(not(target_family = "wasm"))]
pub(super) fn each<T: Send>(numbers: Range<u64>, answer: impl Fn(u64) -> T + Sync + Send) -> Vec<T> {
    numbers.into_par_iter().map(answer).collect()
}

/// Returns the result for each number, in order.
#[cfg(target_family = "wasm")]
pub(super) fn each<T>(numbers: Range<u64>, answer: impl FnMut(u64) -> T) -> Vec<T> {
    numbers.map(answer).collect()
}
