//! Sorts and top-k searches.

use super::call::Call;
use crate::tape::{MOST_IN_PLACE, Tensor};

/// Returns the number and length of rows along `dim`, and the position of `dim`.
fn rows(x: &Tensor, dim: i64) -> Option<([u64; 2], usize)> {
    if x.dim() == 0 {
        return None;
    }
    let dim = usize::try_from(dim.rem_euclid(x.dim() as i64)).ok()?;
    let n = x.size(dim);
    Some(([x.numel() / n, n], dim))
}

/// Replays `sort(x, dim, descending)` and `sort(x, *, stable, dim, descending)`; returns false if its memory is
/// unknown.
pub(super) fn sort(call: &Call<'_>) -> bool {
    call.make();
    let Some(x) = call.tensor(0, "self") else { return true };
    let at = if call.name.ends_with("stable") { 2 } else { 1 };
    let Some((of, dim)) = rows(&x, call.int(at, "dim").unwrap_or(-1)) else {
        return true;
    };
    // Longer rows that are not contiguous are copied first; the memory of these copies is unknown.
    let lies = of[1] <= MOST_IN_PLACE || x.is_contiguous() && dim + 1 == x.dim();
    lies && call.tape.in_sort(of, x.dtype().width())
}

/// Replays `topk(x, k, dim, largest, sorted)`; returns false if its memory is unknown.
pub(super) fn topk(call: &Call<'_>) -> bool {
    call.make();
    let Some(x) = call.tensor(0, "self") else { return true };
    let Some((of, dim)) = rows(&x, call.int(2, "dim").unwrap_or(-1)) else {
        return true;
    };
    let few = call.int(1, "k").is_some_and(|k| k <= MOST_IN_PLACE as i64);
    let lies = x.is_contiguous() && dim + 1 == x.dim();
    call.tape.in_topk(of, x.dtype().width()) && few && lies
}

/// Replays `multinomial(probs, num_samples, replacement)`; returns false if its memory is unknown.
pub(super) fn multinomial(call: &Call<'_>) -> bool {
    call.make();
    if let Some(probs) = call.tensor(0, "self") {
        call.tape.in_multinomial(&probs);
    }
    call.int(1, "num_samples") == Some(1)
}
