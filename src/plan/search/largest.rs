//! Finds the largest micro-batch that fits for a class of setups.

use super::pass::Update;
use super::{Class, Search};
use vramscope_engine::setup::Optimizer;
use vramscope_engine::simulate::Pass;
use vramscope_engine::units::Bytes;

impl Search<'_> {
    /// Returns true if a recorded micro-batch fits with the states of an optimizer.
    pub(super) fn fits_somewhere(&self, update: &Update, passes: &[Option<Pass>]) -> bool {
        let known = passes.iter().flatten();
        known.into_iter().any(|pass| pass.peak + update.states <= self.room)
    }

    /// Index at which to start: the largest micro-batch that fitted in a similar class. A micro-batch that holds all samples of
    /// a step is left out: it is not accumulated, so its forward has no earlier gradients beside it, and whether it fits says
    /// nothing about the others.
    pub(super) fn hint(&self, class: &Class, (optim, update): (Optimizer, &Update), batches: &[u64]) -> Option<usize> {
        let key = (class.setup.ckpt, class.setup.loss, optim);
        let (_, at) = self.hints.iter().find(|(known, _)| *known == key)?;
        let most = batches.len() - 1 - usize::from(self.space.ends_without_gradients(class.parallel.as_ref()));
        let beyond = self.first_beyond(class, update, batches);
        let at = (*at).min(most).min(beyond.saturating_sub(1));
        (at > 0).then_some(at)
    }

    /// Index of the first micro-batch that already exceeds the room with smaller samples.
    fn first_beyond(&self, class: &Class, update: &Update, batches: &[u64]) -> usize {
        let first = batches
            .iter()
            .position(|&batch| self.is_beyond(class, batch, self.room, update));
        first.unwrap_or(batches.len())
    }

    /// Stores the result as a hint for the next class.
    pub(super) fn note_hint(&mut self, class: &Class, optim: Optimizer, best: Option<usize>) {
        let key = (class.setup.ckpt, class.setup.loss, optim);
        self.hints.retain(|(known, _)| *known != key);
        self.hints.extend(best.map(|at| (key, at)));
    }

    /// Index of the largest micro-batch that fits, which has been recorded.
    pub(super) fn largest(
        &mut self,
        class: &Class,
        update: &Update,
        batches: &[u64],
        passes: &mut [Option<Pass>],
    ) -> Option<usize> {
        if update.states > self.room {
            return None;
        }
        let room = self.room.saturating_sub(update.states);
        let fits = |pass: &Option<Pass>| pass.as_ref().map(|pass| pass.peak <= room);
        let bad = passes.iter().position(|pass| fits(pass) == Some(false));
        let mut bad = bad
            .unwrap_or(batches.len())
            .min(self.first_beyond(class, update, batches));
        let good = passes[..bad].iter().rposition(|pass| fits(pass) == Some(true));
        let good = good.map(|mut good| {
            while bad - good > 1 {
                let Some(at) = guess(room, batches, passes, good, bad) else {
                    break;
                };
                match self.record_pass(class, batches[at]) {
                    Ok(pass) => {
                        if pass.peak <= room {
                            good = at;
                        } else {
                            bad = at;
                        }
                        passes[at] = Some(pass);
                    }
                    // If this size cannot be recorded, no larger one can.
                    Err(_) => bad = at,
                }
            }
            good
        });
        self.without_gradients(class, update, room, batches, passes).or(good)
    }

    /// Index of the last micro-batch if it fits although smaller ones do not. It fills a step alone, so no gradients of
    /// an earlier micro-batch lie beside it, and the line through the others is no lower bound for it.
    fn without_gradients(
        &mut self,
        class: &Class,
        update: &Update,
        room: Bytes,
        batches: &[u64],
        passes: &mut [Option<Pass>],
    ) -> Option<usize> {
        let last = batches.len() - 1;
        if !self.space.ends_without_gradients(class.parallel.as_ref()) {
            return None;
        }
        if passes[last].is_none() {
            if self.is_beyond(class, batches[last], self.room, update) {
                return None;
            }
            // The line through two smaller micro-batches lies above the last one by the gradients that they have beside
            // them and it has not. If even that much less does not fit, nothing needs to be recorded.
            let known = |at: usize| Some((batches[at], passes[at].as_ref()?.peak));
            let (first, low) = (0..last).find_map(known)?;
            let (most, high) = (0..last).rev().find_map(known)?;
            let slope = high.saturating_sub(low).get().checked_div(most - first).unwrap_or(0);
            let line = high + Bytes::new(slope * (batches[last] - most));
            if line > room + update.trained {
                return None;
            }
            passes[last] = self.record_pass(class, batches[last]).ok();
        }
        passes[last].as_ref().filter(|pass| pass.peak <= room).map(|_| last)
    }
}

/// Index to record next, between one that fits and one that does not; `None` if nothing in between can fit.
///
/// The peak is convex in the micro-batch. Beyond the last two that fit it is above the line through them; between one
/// that fits and one that does not it is below the line through both. The answer lies between the points where these
/// two lines reach the room.
fn guess(room: Bytes, batches: &[u64], passes: &[Option<Pass>], good: usize, bad: usize) -> Option<usize> {
    let point = |at: usize| Some((*batches.get(at)?, passes[at].as_ref()?.peak.get()));
    let line = |(b0, p0): (u64, u64), (b1, p1): (u64, u64), at: usize| {
        let slope = u128::from(p1.saturating_sub(p0)) * u128::from(batches[at] - b1) / u128::from((b1 - b0).max(1));
        u128::from(p1) + slope
    };
    let last = point(good)?;
    let most = match (0..good).rev().find_map(point) {
        Some(before) => (good + 1..bad)
            .rev()
            .find(|&at| line(before, last, at) <= u128::from(room.get()))?,
        // A line needs two points.
        None if bad == batches.len() => return Some(good + 1),
        None => bad - 1,
    };
    let Some(beyond) = point(bad) else { return Some(most) };
    let chord = |at: usize| {
        let rise = u128::from(beyond.1.saturating_sub(last.1)) * u128::from(batches[at] - last.0);
        u128::from(last.1) + rise / u128::from(beyond.0 - last.0)
    };
    let least = (good + 1..bad).rev().find(|&at| chord(at) <= u128::from(room.get()));
    let least = least.unwrap_or(good + 1).min(most);
    // The middle of what is still possible halves it in the worst case; the two lines mostly leave one or two candidates.
    Some(least + (most - least).div_ceil(2))
}
