//! What a run costs on each card and on several of them, one simulation each.

use std::collections::VecDeque;

use vramscope_engine::device::Device;
use vramscope_plan::cost::{CostQuestion, Prices, cards, numbers};

use super::clocks::chosen;
use super::coded::Coded;
use super::protocol::Answer;
use super::run::Subject;
use super::slices::Parts;
use crate::state::{Draft, Key, Task};

/// Starts the costs of a run: prices as the page keeps them, and the kernels of the user's card if one is selected.
pub type Coster = fn(&Draft, &str, Option<&str>) -> Box<dyn Parts>;

/// Starts the costs of a run.
pub fn costs(entries: &Draft, prices: &str, card: Option<&str>) -> Box<dyn Parts> {
    Box::new(CostWork::of(entries, prices, card))
}

/// Cards and numbers of them that are left to simulate.
struct CostWork {
    subject: Option<Subject>,
    prices: Prices,
    samples: Option<u64>,
    /// Kernels of the user's card.
    mine: Option<String>,
    left: VecDeque<(&'static Device, u64)>,
}

impl CostWork {
    /// Prepares the runs; none if the entries describe no model or do not train.
    fn of(entries: &Draft, prices: &str, mine: Option<&str>) -> Self {
        let subject = Subject::read(entries).ok();
        let subject = subject.filter(|subject| subject.reading.task == Task::Train);
        // The page keeps none but what it has read.
        let prices = Prices::read(prices).unwrap_or_default();
        let mut left = VecDeque::new();
        if let Some(subject) = &subject {
            let numbers = numbers(&prices, subject.gpus());
            let meant = subject.device.as_ref().ok().copied();
            // The card that is meant comes first, since it is looked at first.
            let mut all = cards(&prices, meant);
            all.sort_by_key(|card| meant.is_none_or(|meant| meant.name != card.name));
            left.extend(
                all.into_iter()
                    .flat_map(|card| numbers.iter().map(move |gpus| (card, *gpus))),
            );
        }
        let samples = Key::Samples.form().read(entries.get(Key::Samples)).ok();
        Self {
            subject,
            prices,
            samples: samples.and_then(|n| n.as_u64()).filter(|n| *n > 0),
            mine: mine.map(str::to_owned),
            left,
        }
    }
}

impl Parts for CostWork {
    fn left(&self) -> u32 {
        self.left.len() as u32
    }

    fn next(&mut self) -> Option<Answer> {
        let (card, gpus) = self.left.pop_front()?;
        let subject = self.subject.as_ref()?;
        let question = CostQuestion {
            model: &subject.model,
            setup: &subject.reading.setup,
            parallel: subject.reading.parallel,
            prices: &self.prices,
            samples: self.samples,
            co2: None,
        };
        let clock = chosen(card, self.mine.as_deref(), None);
        let row = question.on(card, gpus, clock.as_ref().map(|chosen| &chosen.clock));
        Some(Answer::Cost(Coded::of(&row)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vramscope_engine::setup::Setting;
    use vramscope_plan::cost::CostRow;

    fn rows(pairs: &[(Key, &str)], prices: &str) -> Vec<CostRow> {
        let mut draft = Draft::default();
        draft.set(Key::Model, "gpt2");
        draft.set(Setting::Seq, "256");
        pairs.iter().for_each(|(key, text)| draft.set(*key, *text));
        let mut work = CostWork::of(&draft, prices, None);
        std::iter::from_fn(|| work.next())
            .map(|answer| match answer {
                Answer::Cost(row) => row.open().expect("it is read back"),
                other => panic!("{other:?}"),
            })
            .collect()
    }

    #[test]
    fn each_priced_card_is_tried_on_each_number_and_the_meant_one_first() {
        let all = rows(
            &[(Key::Gpu, "RTX 4090"), (Key::Samples, "1000"), (Key::World, "3")],
            "card,per_hour\nH100,2\nRTX 4090,0.5",
        );
        assert_eq!(all.len(), 10);
        assert_eq!((&*all[0].card, all[0].gpus), ("RTX 4090", 1));
        assert_eq!(
            all.iter().map(|row| row.gpus).take(5).collect::<Vec<_>>(),
            [1, 2, 3, 4, 8]
        );
        assert!(
            all.iter().all(|row| row.cost.is_some_and(|cost| cost.run.is_some())),
            "{all:?}"
        );
    }

    #[test]
    fn what_does_not_train_costs_nothing() {
        assert_eq!(rows(&[(Key::Phase, "evaluate")], ""), []);
        assert_eq!(rows(&[(Key::Model, "gpt9")], ""), []);
    }
}
