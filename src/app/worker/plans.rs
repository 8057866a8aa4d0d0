//! Searches for setups that train, a few classes of setups per slice, then builds the plan setup by setup.

use std::cell::RefCell;

use serde::{Deserialize, Serialize};
use vramscope_engine::device::Device;
use vramscope_engine::model::ModelError;
use vramscope_engine::simulate::SimulateError;
use vramscope_engine::units::Bytes;
use vramscope_engine::verdict::Room;
use vramscope_plan::search::{Entry, NoBatch, Question, Samples, Search, Space, inputs};
use vramscope_plan::{Judge, Plan, PlanBuilder, Target, less_margin};
use vramscope_time::{Clock, Costs};

use super::clocks::chosen;
use super::protocol::Answer;
use super::run::{model, settle_length};
use super::slices::Parts;
use crate::state::{Draft, Key, Reading};

/// Progress and result of a search.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct PlanNews {
    /// Setups decided so far, and their total number.
    pub setups: [usize; 2],
    /// Setups that fit, each with its largest micro-batch.
    pub fitting: usize,
    /// The plan, as far as it is complete.
    pub plan: Option<Plan>,
    /// True if the plan is complete.
    pub is_whole: bool,
    /// Sources of the kernel times and of the host's pace; `None` if the card's rates are unknown.
    pub sources: Option<[String; 2]>,
    /// Reason for having no plan.
    pub refused: Option<NoPlan>,
}

/// Reasons for having no plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum NoPlan {
    /// The name matches no card, or several.
    Card {
        /// Name entered.
        name: String,
        /// The engine's message, in English.
        message: String,
    },
    /// GPU count outside the supported range.
    Gpus(u64),
    /// Margin that is not a percentage or leaves no memory.
    Margin,
    /// The model cannot be read; holds the reason in English.
    Model(String),
    /// No micro-batch yields the requested samples per step.
    Batch(NoBatch),
    /// A setup of the plan cannot be simulated.
    Setup(SimulateError),
}

/// Largest supported number of GPUs.
pub const MOST_GPUS: u64 = 4096;

/// Most setup classes per slice, and the number of recordings after which a slice ends.
const CLASSES: usize = 64;
const RECORDINGS: usize = 24;
/// Setups of the Pareto front that are shown.
const SHOWN: usize = 8;

/// A card's clock and the sources of its times.
type Priced = (&'static Costs<'static>, [String; 2]);

/// Returns a card's clock, cached for the life of the program: searches repeat, and cards and records of them are few.
/// `mine` holds the kernels of the user's card.
fn priced(card: &'static Device, mine: Option<&str>) -> Option<Priced> {
    type Known = ((&'static str, Option<String>), Option<Priced>);
    thread_local!(static KNOWN: RefCell<Vec<Known>> = const { RefCell::new(Vec::new()) });
    let is_it = |(name, text): &(&str, Option<String>)| *name == card.name && text.as_deref() == mine;
    let known = KNOWN.with_borrow(|all| all.iter().find(|(key, _)| is_it(key)).cloned());
    if let Some((_, priced)) = known {
        return priced;
    }
    let priced = chosen(card, mine, None).map(|chosen| {
        let clock: &'static Clock = Box::leak(Box::new(chosen.clock.clone()));
        let costs: &'static Costs<'static> = Box::leak(Box::new(clock.costs()));
        (costs, clock.sources().map(str::to_owned))
    });
    KNOWN.with_borrow_mut(|all| all.push(((card.name, mine.map(str::to_owned)), priced.clone())));
    priced
}

/// A search in progress.
pub struct PlanWork {
    asked: Result<Asked, NoPlan>,
    stage: Stage,
}

struct Asked {
    space: Space,
    card: &'static Device,
    limit: Bytes,
    planned: Bytes,
    priced: Option<Priced>,
}

enum Stage {
    Refused,
    Searching(Box<Search<'static>>),
    PlanBuilder(Box<PlanBuilder>),
    Done,
}

impl PlanWork {
    /// Prepares the search. Entries that make no valid question yield the reason instead.
    pub fn of(entries: &Draft, mine: Option<&str>) -> Self {
        let mut reading = Reading::of(entries, &Draft::default());
        if let Ok(model) = model(&reading) {
            settle_length(&mut reading, &model);
        }
        let asked = Asked::read(&reading, mine);
        let stage = match &asked {
            Ok(asked) => Stage::Searching(Box::new(Search::new(Question {
                space: asked.space.clone(),
                device: Some(asked.card),
                costs: asked.priced.as_ref().map(|(costs, _)| *costs),
                room: asked.planned,
            }))),
            Err(_) => Stage::Refused,
        };
        Self { asked, stage }
    }

    fn news(&mut self) -> PlanNews {
        let asked = match &self.asked {
            Ok(asked) => asked,
            Err(why) => {
                self.stage = Stage::Done;
                return PlanNews {
                    refused: Some(why.clone()),
                    ..PlanNews::default()
                };
            }
        };
        let judge = asked.judge();
        let told = |plan: Plan, is_whole| PlanNews {
            setups: [plan.searched.setups, asked.space.len()],
            fitting: plan.front_len,
            plan: Some(plan),
            is_whole,
            sources: asked.priced.as_ref().map(|(_, sources)| sources.clone()),
            refused: None,
        };
        match std::mem::replace(&mut self.stage, Stage::Done) {
            Stage::Searching(mut search) => {
                let before = search.found().decided.recorded;
                let mut left = true;
                for _ in 0..CLASSES {
                    left = search.step();
                    if !left || search.found().decided.recorded >= before + RECORDINGS {
                        break;
                    }
                }
                let found = search.found();
                let news = PlanNews {
                    setups: [found.decided.setups, asked.space.len()],
                    fitting: found.fitting.len(),
                    ..PlanNews::default()
                };
                self.stage = if left {
                    Stage::Searching(search)
                } else {
                    Stage::PlanBuilder(Box::new(PlanBuilder::new(&judge, search.close(), &asked.target())))
                };
                news
            }
            Stage::PlanBuilder(mut builder) => match builder.step(&judge) {
                Ok(_) if builder.left() > 0 => {
                    let news = told(builder.so_far().clone(), false);
                    self.stage = Stage::PlanBuilder(builder);
                    news
                }
                Ok(_) => told(builder.plan(), true),
                Err(error) => PlanNews {
                    refused: Some(NoPlan::Setup(error)),
                    ..PlanNews::default()
                },
            },
            Stage::Refused | Stage::Done => PlanNews::default(),
        }
    }
}

impl Parts for PlanWork {
    fn left(&self) -> u32 {
        let left = match &self.stage {
            Stage::Searching(search) => {
                let (done, all) = search.progress();
                (all - done).div_ceil(CLASSES) + SHOWN + 2
            }
            Stage::PlanBuilder(builder) => builder.left().max(1),
            Stage::Refused => 1,
            Stage::Done => 0,
        };
        left as u32
    }

    fn next(&mut self) -> Option<Answer> {
        // Plain data always serializes to JSON.
        serde_json::to_string(&self.news()).ok().map(Answer::Plan)
    }
}

impl Asked {
    fn read(reading: &Reading, mine: Option<&str>) -> Result<Self, NoPlan> {
        let card = Device::by_name(&reading.gpu).map_err(|error| NoPlan::Card {
            name: reading.gpu.clone(),
            message: error.to_string(),
        })?;
        let number = |key: Key| key.form().read(reading.good.get(key)).ok();
        let gpus = number(Key::Gpus).and_then(|n| n.as_u64()).unwrap_or(1);
        if !(1..=MOST_GPUS).contains(&gpus) {
            return Err(NoPlan::Gpus(gpus));
        }
        let margin = reading.good.get(Key::Margin).parse::<f64>().unwrap_or(f64::NAN);
        if !(0.0..=90.0).contains(&margin) {
            return Err(NoPlan::Margin);
        }
        let open = open(reading.good.get(Key::Open));
        let of_setup = |setup: &vramscope_engine::Setup| {
            let reading = Reading {
                setup: setup.clone(),
                ..reading.clone()
            };
            model(&reading).map_err(ModelError)
        };
        let inputs = inputs(of_setup, &reading.setup, &open).map_err(|error| NoPlan::Model(error.to_string()))?;
        let kept: Vec<Entry> = Entry::ALL.into_iter().filter(|entry| !open.contains(entry)).collect();
        let samples = Samples::of(number(Key::Effective).and_then(|n| n.as_u64()));
        let space = Space::around(inputs, samples, gpus, &kept);
        if let Some(why) = space.refusal() {
            return Err(NoPlan::Batch(why));
        }
        let limit = Room::Card(card).beside_vllm(reading.vllm_share()).for_allocator(gpus);
        Ok(Self {
            space,
            card,
            limit,
            planned: less_margin(limit, margin),
            priced: priced(card, mine),
        })
    }

    fn judge(&self) -> Judge<'_> {
        Judge {
            space: &self.space,
            device: Some(self.card),
            costs: self.priced.as_ref().map(|(costs, _)| *costs),
            limit: self.planned,
        }
    }

    fn target(&self) -> Target<'_> {
        Target {
            model: &self.space.model(0).name,
            limit: self.limit,
            card: Some(self.card),
            most: SHOWN,
        }
    }
}

/// Entries that the search may change: those named in the text, or all default ones if the text is empty.
pub fn open(text: &str) -> Vec<Entry> {
    let named = |name: &str| Entry::named(name.trim());
    match text.trim() {
        "" => Entry::ALL.into_iter().filter(|entry| !entry.is_asked_for()).collect(),
        text => text.split(',').filter_map(named).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vramscope_engine::setup::Setting;

    fn finish(pairs: &[(Key, &str)]) -> Vec<PlanNews> {
        let mut draft = Draft::default();
        pairs.iter().for_each(|(key, text)| draft.set(*key, *text));
        let mut work = PlanWork::of(&draft, None);
        let mut all = Vec::new();
        while work.left() > 0 {
            let Some(Answer::Plan(text)) = work.next() else {
                panic!("news are told")
            };
            all.push(serde_json::from_str(&text).expect("news are read"));
        }
        all
    }

    #[test]
    fn a_plan_comes_after_the_search_and_is_whole_at_last() {
        let news = finish(&[
            (Key::Model, "gpt2"),
            (Setting::Seq.into(), "256"),
            (Key::Gpu, "RTX 4060"),
            (Key::Effective, "16"),
        ]);
        assert!(news.len() > 3);
        assert!(news.windows(2).all(|two| two[0].setups[0] <= two[1].setups[0]));
        let last = news.last().expect("there are some");
        assert_eq!(last.setups[0], last.setups[1]);
        let plan = last.plan.as_ref().expect("GPT-2 trains on 8 GB");
        assert!(last.is_whole && plan.recommended.as_ref().is_some_and(|best| best.samples == 16));
        assert!(!plan.front.is_empty() && last.sources.is_some());
    }

    #[test]
    fn what_makes_no_question_says_why() {
        let no_batch = NoBatch { samples: 3, gpus: 2 };
        for (pairs, wanted) in [
            (&[(Key::Model, "gpt2"), (Key::Margin, "95")][..], NoPlan::Margin),
            (&[(Key::Model, "gpt2"), (Key::Gpus, "5000")], NoPlan::Gpus(5000)),
            (
                &[(Key::Model, "gpt2"), (Key::Gpus, "2"), (Key::Effective, "3")],
                NoPlan::Batch(no_batch),
            ),
        ] {
            let news = finish(pairs);
            assert_eq!(news.len(), 1);
            assert_eq!(news[0].refused, Some(wanted));
        }
        let news = finish(&[(Key::Gpu, "RTX 9999")]);
        let is_told = |why: &NoPlan| matches!(why, NoPlan::Card { name, message } if name == "RTX 9999" && message.contains(name));
        assert!(news[0].refused.as_ref().is_some_and(is_told), "{news:?}");
    }

    #[test]
    fn what_may_change_is_named_or_all_that_need_not_be_asked_for() {
        assert_eq!(open("optim, images"), [Entry::Optim, Entry::Images]);
        assert!(open("").contains(&Entry::Ckpt) && !open("").contains(&Entry::Offload));
        assert_eq!(open("none"), []);
    }
}
