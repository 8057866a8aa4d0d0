//! Single changes to a recorded step that need no other recording.

use std::rc::Rc;

use vramscope_engine::device::Device;
use vramscope_engine::recording::Sizes;
use vramscope_plan::Now;

use super::replay::{Recorded, point};
use crate::state::{Draft, Key, Reading};
use crate::worker::coded::Coded;
use crate::worker::protocol::Answer;
use crate::worker::recorded::{Change, Changed};
use crate::worker::slices::Parts;

/// Single changes, one replay each.
pub struct ChangesWork {
    recording: Rc<Recorded>,
    entries: Draft,
    now: Now,
    changes: std::vec::IntoIter<Change>,
}

impl ChangesWork {
    /// Prepares the changes to these entries, whose run has the figures in `now`.
    pub fn of(recording: Rc<Recorded>, entries: &Draft, now: Now) -> Self {
        let changes = all(&recording, entries);
        Self {
            recording,
            entries: entries.clone(),
            now,
            changes: changes.into_iter(),
        }
    }
}

impl Parts for ChangesWork {
    fn left(&self) -> u32 {
        self.changes.len() as u32
    }

    fn next(&mut self) -> Option<Answer> {
        let change = self.changes.next()?;
        let mut entries = self.entries.clone();
        change.apply(&mut entries);
        let replayed = self.recording.replay(&entries, false);
        let card = replayed.as_ref().ok().and_then(|replayed| replayed.card.as_ref().ok());
        let fit = card.map(|card| &card.fit);
        let changed = Changed {
            change,
            fit: fit.map(|fit| [fit.needed, fit.room]),
            effect: match &replayed {
                Ok(replayed) => Ok(self.now.effect(replayed.report(), fit.map(|fit| fit.verdict))),
                Err(fault) => Err(fault.clone()),
            },
        };
        Some(Answer::RecordedChange(Coded::of(&changed)))
    }
}

/// Returns the changes to some entries, in the order of the controls; none before the first replay.
fn all(recording: &Recorded, entries: &Draft) -> Vec<Change> {
    let Some(facts) = recording.facts() else {
        return Vec::new();
    };
    let reading = Reading::of(entries, &Draft::default());
    let grows = match reading.good.get(Key::ExpandableSegments).parse() {
        Ok(chosen) => chosen,
        Err(_) => facts.expandable_segments,
    };
    let chosen = Device::by_name(&reading.gpu).ok();
    let is_other = |card: &&Device| chosen.is_none_or(|chosen| chosen.name != card.name);
    let runs_it = |card: &&Device| {
        card.gpu()
            .is_some_and(|gpu| <[u32; 2]>::from(gpu.capability) == facts.capability)
    };
    let cards = Device::all().iter().filter(is_other).filter(runs_it);
    let sizes = recording.sizes().and_then(|all| {
        let point = point(&all, &reading).ok()?;
        Some(beside(&all, &point))
    });
    let mut changes = sizes.unwrap_or_default();
    changes.extend(cards.map(|card| Change::Card(card.name.to_owned())));
    changes.push(Change::ExpandableSegments(!grows));
    let form = reading.good.get(Key::OptimizerForm);
    let chosen = facts.optimizer_forms.iter().find(|known| *known == form);
    let chosen = chosen.or(facts.optimizer_forms.first());
    let others = facts.optimizer_forms.iter().filter(|known| Some(*known) != chosen);
    changes.extend(others.cloned().map(Change::OptimizerForm));
    changes
}

/// Returns half and double of each size or, where these were not recorded, the values between which it was; of a size
/// with recorded values alone, the ones beside it.
fn beside(all: &Sizes, point: &[u64]) -> Vec<Change> {
    let mut changes = Vec::new();
    for (at, axis) in all.axes().into_iter().enumerate() {
        let now = point[at];
        let recorded = || axis.recorded.iter().copied();
        let [less, more] = match axis.between {
            true => [
                recorded().next().map(|least| least.max(now / 2)),
                recorded().next_back().map(|most| most.min(now.saturating_mul(2))),
            ],
            false => [
                recorded().rfind(|value| *value < now),
                recorded().find(|value| *value > now),
            ],
        };
        let holds = |value: &u64| {
            let mut point = point.to_vec();
            point[at] = *value;
            *value != now && all.holds(&point).is_ok()
        };
        let values = [less, more].into_iter().flatten().filter(holds);
        changes.extend(values.map(|value| Change::Size(axis.name.clone(), value)));
    }
    changes
}
