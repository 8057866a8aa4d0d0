//! Positions of RoFormer: sinusoids by which alternating elements of queries and keys are rotated as pairs.

use crate::tape::{Tape, Tensor};

/// `apply_rotary_position_embeddings`: queries and keys rotated by `waves`, [1, 1, seq, head], and values if `all` are.
/// The caller's variables and those of the function hold what is rotated until all are.
pub(super) fn rotated(t: &Tape, waves: &Tensor, [q, k, v]: [Tensor; 3], all: bool) -> [Tensor; 3] {
    let d = waves.dim() - 1;
    let [sin, cos] = [0, 1].map(|_| t.narrow(waves, d, waves.last() / 2));
    // Each wave rotates both elements of a pair.
    let [sin, cos] = [sin, cos].map(|half| t.reshape(&t.stack_last(&[&half, &half]), *waves.shape()));
    let mut held = Vec::new();
    let mut rotate = |x: Tensor| {
        let half = x.last() / 2;
        let paired = {
            let second = t.neg(&t.narrow(&x, 3, half));
            let first = t.narrow(&x, 3, half);
            t.reshape(&t.stack_last(&[&second, &first]), *x.shape())
        };
        let straight = t.mul(&x, &cos);
        let across = t.mul(&paired, &sin);
        let out = t.add(&straight, &across);
        held.push((x, paired));
        out
    };
    let [q, k] = [q, k].map(&mut rotate);
    let v = if all { rotate(v) } else { v };
    drop(held);
    [q, k, v]
}
