//! The largest micro-batch of a class of setups that fits.

use super::pass::Update;
use super::{Class, Search};
use crate::units::Bytes;

impl Search<'_> {
    /// The place of the largest micro-batch that fits, recorded.
    pub(super) fn largest(
        &mut self,
        class: &Class,
        update: Update,
        batches: &[u64],
        passes: &mut [Option<Bytes>],
    ) -> Option<usize> {
        if update.states > self.room {
            return None;
        }
        let room = self.room.saturating_sub(update.states);
        if passes[0].is_none_or(|peak| peak > room) {
            return None;
        }
        let (mut good, mut bad) = (0, batches.len());
        for (at, pass) in passes.iter().enumerate() {
            match pass {
                Some(peak) if *peak <= room => good = at,
                Some(_) => {
                    bad = at;
                    break;
                }
                None => {}
            }
        }
        while bad - good > 1 {
            let Some(at) = guess(room, batches, passes, good, bad) else {
                break;
            };
            match self.record_pass(class, batches[at]) {
                Ok(peak) => {
                    passes[at] = Some(peak);
                    if peak <= room {
                        good = at;
                    } else {
                        bad = at;
                    }
                }
                // What cannot be recorded at this size cannot at a larger one.
                Err(_) => bad = at,
            }
        }
        Some(
            self.without_gradients(class, update, room, batches, passes)
                .unwrap_or(good),
        )
    }

    /// The place of the largest micro-batch where it alone makes a step: no gradients lie there from one before, so
    /// that no line through the others is below it.
    fn without_gradients(
        &mut self,
        class: &Class,
        update: Update,
        room: Bytes,
        batches: &[u64],
        passes: &mut [Option<Bytes>],
    ) -> Option<usize> {
        let last = batches.len() - 1;
        if self.space.accum(batches[last]) > 1 || last == 0 || self.space.accum(batches[0]) == 1 {
            return None;
        }
        if passes[last].is_none() {
            let (at, known) = (0..last).rev().find_map(|at| Some((at, passes[at]?)))?;
            let first = passes[0].filter(|_| at > 0)?;
            let slope = known.saturating_sub(first).get() / (batches[at] - batches[0]);
            let line = known + Bytes::new(slope * (batches[last] - batches[at]));
            if line > room + update.trained {
                return None;
            }
            passes[last] = self.record_pass(class, batches[last]).ok();
        }
        passes[last].filter(|peak| *peak <= room).map(|_| last)
    }
}

/// The place to record next between one that fits and one that does not; nothing where none is left that may fit.
///
/// The peak is convex in the micro-batch: further on it is above the line through the last two that fit, and between
/// one that fits and one that does not it is below the line through both. The answer lies between where these lines
/// meet the room.
fn guess(room: Bytes, batches: &[u64], passes: &[Option<Bytes>], good: usize, bad: usize) -> Option<usize> {
    let point = |at: usize| Some((*batches.get(at)?, passes[at]?.get()));
    let line = |(b0, p0): (u64, u64), (b1, p1): (u64, u64), at: usize| {
        let slope = u128::from(p1.saturating_sub(p0)) * u128::from(batches[at] - b1) / u128::from((b1 - b0).max(1));
        u128::from(p1) + slope
    };
    let last = point(good)?;
    let Some(before) = (0..good).rev().find_map(point) else {
        return Some(good + 1);
    };
    let most = (good + 1..bad)
        .rev()
        .find(|&at| line(before, last, at) <= u128::from(room.get()))?;
    let Some(beyond) = point(bad) else { return Some(most) };
    let chord = |at: usize| {
        let rise = u128::from(beyond.1 - last.1) * u128::from(batches[at] - last.0);
        u128::from(last.1) + rise / u128::from(beyond.0 - last.0)
    };
    let least = (good + 1..bad).rev().find(|&at| chord(at) <= u128::from(room.get()));
    let least = least.unwrap_or(good + 1).min(most);
    Some(least + (most - least).div_ceil(2))
}
