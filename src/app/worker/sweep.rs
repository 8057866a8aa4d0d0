//! Runs the plan page's sweeps, one simulation per slice.

mod cards;

use std::collections::VecDeque;

use vramscope_engine::device::Device;
use vramscope_engine::units::Bytes;
use vramscope_engine::verdict::Room;
use vramscope_engine::{Model, Setup};
use vramscope_plan::{Axis, Limit, Needed, Sweep, largest};

pub use self::cards::cards;
use super::coded::Coded;
use super::protocol::{Answer, Largest};
use super::run::{model, settle_length};
use super::slices::Parts;
use crate::state::{Draft, Key, Reading};

/// The entry to sweep: the selected one if it applies to the model, otherwise the batch size.
pub fn axis(reading: &Reading, model: &Model) -> Axis {
    let named = |axis: &Axis| axis.name() == reading.good.get(Key::Sweep);
    let chosen = Axis::all().find(named);
    let applies = |axis: &Axis| axis.applies(model, &reading.setup);
    chosen.filter(applies).unwrap_or(Axis::BATCH)
}

type Remake = Box<dyn FnMut(&Setup) -> Result<Model, vramscope_engine::model::ModelError>>;

/// A sweep in progress: first the curve, then the largest value for each card.
pub struct SweepWork {
    sweep: Option<Sweep<Remake>>,
    axis: Axis,
    unit: u64,
    /// Number of GPUs that share each run.
    gpus: u64,
    cards: VecDeque<(&'static Device, Room<'static>)>,
    /// Values of the curve that ran, each with the memory it needs.
    ran: Vec<(u64, Bytes)>,
    ended: bool,
}

impl SweepWork {
    /// Prepares the sweep. Yields no points if the entries describe no model or name no card; the page reports that
    /// itself.
    pub fn of(draft: &Draft) -> Self {
        let mut reading = Reading::of(draft, &Draft::default());
        let cards = cards(&reading);
        let nothing = Self {
            sweep: None,
            axis: Axis::BATCH,
            unit: 1,
            gpus: 1,
            cards: VecDeque::new(),
            ran: Vec::new(),
            ended: true,
        };
        let (Ok(own), Some(widest)) = (model(&reading), cards.last()) else {
            return nothing;
        };
        settle_length(&mut reading, &own);
        let axis = axis(&reading, &own);
        let setup = reading.setup.clone();
        let values = axis.values(&own, axis.value(&own, &setup), axis.most());
        // Goes a tenth beyond the largest card, so that the curve visibly crosses its line.
        let beyond = Bytes::new(widest.usable().get() / 10 * 11);
        let device = Device::by_name(&reading.gpu).unwrap_or(widest);
        let unit = axis.unit(&own);
        // An entered memory limit applies to the selected card only.
        let own_room = reading.room(device);
        let cards = cards.into_iter().map(|card| match card.name == device.name {
            true => (card, own_room),
            false => (card, Room::Card(card).beside_vllm(reading.vllm_share())),
        });
        let cards = cards.collect();
        let parallel = reading.parallel;
        let remake: Remake = Box::new(move |setup| {
            let reading = Reading {
                setup: setup.clone(),
                ..reading.clone()
            };
            model(&reading).map_err(vramscope_engine::model::ModelError)
        });
        let sweep = Sweep::new(remake, setup, axis, (device, own_room), beyond, values);
        Self {
            sweep: Some(sweep.on_several(parallel)),
            gpus: parallel.map_or(1, |parallel| parallel.world),
            axis,
            unit,
            cards,
            ended: false,
            ..nothing
        }
    }

    fn largest(&mut self, card: (&'static Device, Room<'static>)) -> Largest {
        let room = card.1.bytes();
        let most = self.axis.most();
        let mut found = None;
        let ran = &self.ran;
        let (sweep, gpus) = (&mut self.sweep, self.gpus);
        let highest = ran.last().map_or(0, |last| last.0);
        let mut fits = |value: u64| {
            // The curve was computed for the selected card, so for another one it is off by a little, at most by what
            // lies outside the allocator. Far from the card's limit it still answers without a simulation.
            let outside = card.1.outside(gpus).iter().map(|term| term.bytes).sum();
            let margin = Bytes::new(room.get() / 10) + outside;
            let below = ran.iter().rfind(|point| point.0 >= value && point.1 + margin < room);
            let above = ran.iter().find(|point| point.0 <= value && point.1 > room + margin);
            if below.is_some() && value < highest {
                return true;
            }
            if above.is_some() {
                return false;
            }
            let needed = sweep.as_mut().and_then(|sweep| sweep.needed(value, card).ok());
            let fits = needed.is_some_and(|n| n.needed <= room);
            if let (true, Some(needed)) = (fits, needed) {
                found = Some((value, needed));
            }
            fits
        };
        // Values below the first that runs are refused for reasons other than memory.
        let first = ran.first().map_or(0, |first| first.0);
        let value = largest(self.unit, most, |v| {
            Ok::<_, std::convert::Infallible>(v < first || fits(v))
        });
        let value = match value {
            Ok(value) => value,
            Err(never) => match never {},
        };
        let found = self.found(value, found, first, card);
        let last = found
            .as_ref()
            .map_or(first.saturating_sub(self.unit), |(value, _)| *value);
        let bounds = (self.unit, most);
        let limit = self.sweep.as_mut().map(|sweep| sweep.limit(last, bounds, card));
        Largest {
            card: card.0.name.to_owned(),
            room: room.get(),
            found,
            open: value >= most / self.unit * self.unit,
            limit: limit.unwrap_or(Limit::Untried),
        }
    }

    fn found(
        &mut self,
        value: u64,
        known: Option<(u64, Needed)>,
        first: u64,
        card: (&'static Device, Room<'static>),
    ) -> Option<(u64, Needed)> {
        if value == 0 || value < first {
            return None;
        }
        match known {
            Some(known) if known.0 == value => Some(known),
            // The curve answered without a simulation, so the figures are computed now.
            _ => Some((value, self.sweep.as_mut()?.needed(value, card).ok()?)),
        }
    }
}

impl Parts for SweepWork {
    fn left(&self) -> u32 {
        let points = match &self.sweep {
            Some(sweep) if !self.ended => sweep.left(),
            _ => 0,
        };
        (points + self.cards.len()) as u32
    }

    fn next(&mut self) -> Option<Answer> {
        if let Some(point) = self.sweep.as_mut().filter(|_| !self.ended).and_then(Iterator::next) {
            self.ended = self.sweep.as_ref().is_none_or(|sweep| sweep.left() == 0);
            self.ran
                .extend(point.outcome.as_ref().ok().map(|needed| (point.value, needed.needed)));
            return Some(Answer::Point(Coded::of(&point)));
        }
        self.ended = true;
        let card = self.cards.pop_front()?;
        Some(Answer::Largest(Coded::of(&self.largest(card))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vramscope_engine::setup::Setting;
    use vramscope_engine::simulate_on;
    use vramscope_engine::verdict::Fit;

    fn work(pairs: &[(Key, &str)]) -> SweepWork {
        let mut draft = Draft::default();
        pairs.iter().for_each(|(key, text)| draft.set(*key, *text));
        SweepWork::of(&draft)
    }

    fn finish(mut work: SweepWork) -> (Vec<u64>, Vec<Largest>) {
        let (mut values, mut found) = (Vec::new(), Vec::new());
        while work.left() > 0 {
            match work.next() {
                Some(Answer::Point(point)) => values.extend(point.open().map(|point| point.value)),
                Some(Answer::Largest(largest)) => found.extend(largest.open()),
                other => panic!("{other:?}"),
            }
        }
        (values, found)
    }

    #[test]
    fn the_largest_batch_is_what_a_scan_finds() {
        let entries = [
            (Key::Model, "gpt2"),
            (Setting::Seq.into(), "1024"),
            (Key::Gpu, "RTX 4060 Ti 16GB"),
            (Key::Cards, "RTX 4060 Ti 16GB,RTX 4070"),
        ];
        let (values, found) = finish(work(&entries));
        assert!(values.len() > 3 && values.is_sorted());
        assert_eq!(found.len(), 2);
        let model = Model::from_catalogue("gpt2").unwrap();
        for largest in found {
            let card = Device::by_name(&largest.card).unwrap();
            let fits = |batch| {
                let setup = Setup {
                    batch,
                    seq: 1024,
                    ..Setup::default()
                };
                let report = simulate_on(&model, &setup, card.gpu().unwrap_or_default()).unwrap();
                Fit::of(&report, Room::Card(card)).needed <= card.usable()
            };
            let scanned = (1..64).take_while(|b| fits(*b)).last().unwrap_or(0);
            assert_eq!(largest.found.map(|f| f.0).unwrap_or(0), scanned, "{}", largest.card);
        }
    }

    #[test]
    fn what_makes_no_model_has_no_points() {
        assert_eq!(work(&[(Key::Model, "gpt9")]).left(), 0);
    }
}
