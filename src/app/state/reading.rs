//! Entries as typed values, with the last good text in place of invalid ones.

use serde::Deserialize;
use serde_json::{Map, Value};
use vramscope_engine::Setup;
use vramscope_engine::device::Device;
use vramscope_engine::setup::{Parallel, Setting};
use vramscope_engine::units::Bytes;
use vramscope_engine::verdict::Room;

use super::{Draft, Key, Scope, several};

/// Reasons why a text does not have the format of its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Problem {
    /// Not a whole number.
    NotCount,
    /// Exceeds 64 bits.
    TooLarge,
    /// Not two whole numbers.
    NotGrid,
    /// Not a list of whole numbers.
    NotLengths,
    /// Not a list of heights by widths.
    NotSizes,
    /// Not a list of whole numbers by name.
    NotNamedCounts,
    /// Not a number from 0 to 1.
    NotProbability,
    /// Not a number of at least 0.
    NotAmount,
    /// Not a number above 0.
    NotRate,
    /// Not an amount of memory.
    NotGib,
    /// Not DeepSpeed's keys with their values.
    NotZero,
    /// Neither `true` nor `false`.
    NotSwitch,
    /// A pattern that is no regular expression.
    NotParameterNames,
    /// Neither one of these keywords nor module names.
    NotTargets(&'static [&'static str]),
    /// Truncated or garbled setups.
    NotSetups,
    /// Not one of these words.
    NotChoice(&'static [&'static str]),
}

/// An invalid text, with the text used in its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldError {
    /// Key of the entry.
    pub key: Key,
    /// Text entered.
    pub given: String,
    /// Reason for the refusal.
    pub problem: Problem,
    /// Text used instead: the last valid one of this key.
    pub used: String,
}

/// Source of the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// Catalogue name.
    Catalogue(String),
    /// Text of a `config.json`.
    Config(String),
}

/// Task of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    /// A training step.
    Train,
    /// One batch without gradients.
    Evaluate,
    /// Generation of text.
    Generate {
        /// Tokens per sample.
        new_tokens: u64,
    },
}

/// A draft as typed values.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    /// The model.
    pub source: Source,
    /// Name of the card.
    pub gpu: String,
    /// Limit of the bytes that the allocator may reserve, if entered.
    pub limit: Option<Bytes>,
    /// Task of the model.
    pub task: Task,
    /// The training setup.
    pub setup: Setup,
    /// Several GPUs that share a training step; `None` for one.
    pub parallel: Option<Parallel>,
    /// Invalid texts.
    pub errors: Vec<FieldError>,
    /// The draft with invalid texts replaced; the next reading falls back to it.
    pub good: Draft,
}

impl Reading {
    /// Memory that the entries give the run on this card.
    pub fn room(&self, device: &'static Device) -> Room<'static> {
        Room::limited(device, self.limit).beside_vllm(self.vllm_share())
    }

    /// Share of the card that vLLM takes in the same process.
    pub fn vllm_share(&self) -> Option<f64> {
        let share = Key::VllmShare.form().read(self.good.get(Key::VllmShare)).ok();
        share.and_then(|share| share.as_f64())
    }

    /// Reads a draft, replacing each invalid text by that of `last_good`.
    pub fn of(draft: &Draft, last_good: &Draft) -> Self {
        let mut good = draft.clone();
        let mut errors = Vec::new();
        // Defaults are always valid, so only stored entries are checked.
        for (key, given) in draft.entries() {
            if let Err(problem) = key.form().read(given) {
                let used = usable(last_good, key);
                good.set(key, used.clone());
                errors.push(FieldError {
                    key,
                    given: given.to_owned(),
                    problem,
                    used,
                });
            }
        }
        Self {
            source: source(&good),
            gpu: good.get(Key::Gpu).to_owned(),
            limit: limit(&good),
            task: task(&good),
            setup: setup(&good),
            parallel: several::parallel(&good),
            errors,
            good,
        }
    }

    /// Returns the entries that affect a run.
    pub fn entries(&self) -> Draft {
        self.good.only(Key::decides_run)
    }

    /// Returns the entries that affect the memory of a recorded step or its fit.
    pub fn of_recorded(&self) -> Draft {
        self.good.only(Key::decides_recorded)
    }

    /// Returns the entries that affect only the time or price of a run.
    pub fn of_time(&self) -> Draft {
        self.good.only(|key| key.scope() == Scope::Time)
    }

    /// Returns the entries that affect the attention curves.
    pub fn of_attention(&self) -> Draft {
        let is_of_model = |key| match key {
            Key::Model | Key::Config | Key::Gpu => true,
            Key::Setting(setting) => matches!(setting, Setting::Batch | Setting::Precision),
            _ => false,
        };
        self.good
            .only(|key| key.scope() == Scope::Attention || is_of_model(key))
    }

    /// Returns the entries that affect a sweep.
    pub fn of_sweep(&self) -> Draft {
        let entries = self.entries();
        self.good.only(|key| entries.has(key) || key.scope() == Scope::Sweep)
    }

    /// Returns the entries that affect a plan.
    pub fn of_plan(&self) -> Draft {
        self.good.only(|key| key.decides_run() || key.scope() == Scope::Plan)
    }

    /// Returns the error of a key.
    pub fn error(&self, key: Key) -> Option<&FieldError> {
        self.errors.iter().find(|e| e.key == key)
    }
}

fn usable(last_good: &Draft, key: Key) -> String {
    let text = last_good.get(key);
    match key.form().read(text) {
        Ok(_) => text.to_owned(),
        Err(_) => key.default_text().to_owned(),
    }
}

fn source(good: &Draft) -> Source {
    match good.get(Key::Config) {
        "" => Source::Catalogue(good.get(Key::Model).trim().to_owned()),
        text => Source::Config(text.to_owned()),
    }
}

/// Rounds down to whole bytes, as the command line does.
fn limit(good: &Draft) -> Option<Bytes> {
    let gib = Key::LimitGib.form().read(good.get(Key::LimitGib)).ok()?.as_f64()?;
    Some(Bytes::new((gib * f64::from(1 << 30)) as u64))
}

fn task(good: &Draft) -> Task {
    match good.get(Key::Phase) {
        "evaluate" => Task::Evaluate,
        "generate" => Task::Generate {
            new_tokens: Key::NewTokens
                .form()
                .read(good.get(Key::NewTokens))
                .ok()
                .and_then(|n| n.as_u64())
                .unwrap_or(1),
        },
        _ => Task::Train,
    }
}

impl Draft {
    /// Returns the setup's entries as a case file holds them; invalid ones count as not entered.
    pub fn setup_values(&self) -> Map<String, Value> {
        values(Key::all().map(|key| (key, self.get(key))))
    }
}

/// Builds the setup of a draft without errors, whose keys are those of a case file. Entries left out take the engine's
/// defaults, which the page shares.
fn setup(good: &Draft) -> Setup {
    let values = values(good.entries());
    // Cannot fail: the tests below verify that the formats match the engine's vocabulary.
    Setup::deserialize(Value::Object(values)).unwrap_or_default()
}

/// Converts the setup's texts to the values of a case file; skips invalid and empty ones.
fn values<'a>(texts: impl Iterator<Item = (Key, &'a str)>) -> Map<String, Value> {
    texts
        .filter(|(key, _)| key.in_setup())
        .filter_map(|(key, text)| Some((key.name().to_owned(), key.form().read(text).ok()?)))
        .filter(|(_, value)| !value.is_null())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::Form;
    use vramscope_engine::setup::{AdapterType, Loss, Packing, Targets, TrainerKind, ZeroGrad};

    #[test]
    fn an_empty_draft_is_the_default_setup() {
        let reading = Reading::of(&Draft::default(), &Draft::default());
        assert_eq!(reading.setup, Setup::default());
        assert_eq!(reading.source, Source::Catalogue("llava-1.5-7b".into()));
        assert_eq!(reading.errors, []);
    }

    #[test]
    fn the_pages_defaults_are_the_engines() {
        let written = Value::Object(Draft::default().setup_values());
        assert_eq!(Setup::deserialize(written).expect("they are a setup"), Setup::default());
    }

    #[test]
    fn the_engine_takes_every_choice() {
        for key in Key::all().filter(|k| k.in_setup()) {
            let Form::Choice(choices) = key.form() else {
                continue;
            };
            for choice in choices {
                let one = Map::from_iter([(key.name().to_owned(), Value::from(*choice))]);
                let setup = Setup::deserialize(Value::Object(one)).expect("a choice of the page is the engine's");
                let written = serde_json::to_value(setup).expect("a setup is JSON");
                assert_eq!(written[key.name()], *choice);
            }
        }
    }

    /// On an unknown variant, serde's error lists all accepted ones.
    #[test]
    fn the_page_offers_every_choice_of_the_engine() {
        for key in Key::all().filter(|k| k.in_setup()) {
            let Form::Choice(choices) = key.form() else {
                continue;
            };
            let one = Map::from_iter([(key.name().to_owned(), Value::from("?"))]);
            let error = Setup::deserialize(Value::Object(one))
                .expect_err("no choice is called `?`")
                .to_string();
            let (_, listed) = error.split_once("expected ").expect("it lists what is allowed");
            let named: Vec<_> = listed.split('`').skip(1).step_by(2).collect();
            assert_eq!(named, choices, "{}", key.name());
        }
    }

    #[test]
    fn every_entered_value_reaches_the_setup() {
        let mut draft = Draft::default();
        for (key, text) in [
            (Key::LimitGib, "23.5"),
            (Setting::Batch.into(), "4"),
            (Setting::Seq.into(), "1,024"),
            (Setting::Lengths.into(), "100, 900"),
            (Setting::Packing.into(), "packed"),
            (Setting::Images.into(), "2"),
            (Setting::Image.into(), "448"),
            (Setting::Grid.into(), "24x36"),
            (Setting::ImageSizes.into(), "480x640, 300x200"),
            (Setting::Frames.into(), "8"),
            (Setting::Rank.into(), "64"),
            (Setting::LoraDropout.into(), "0.05"),
            (Setting::LoraTargets.into(), "q_proj, v_proj"),
            (Setting::LoraDtype.into(), "bf16"),
            (Setting::Accum.into(), "3"),
            (Setting::Clip.into(), "true"),
            (Setting::ZeroGrad.into(), "to_zero"),
            (Setting::AutocastCache.into(), "false"),
            (Setting::Ema.into(), "true"),
            (Setting::Loss.into(), "fused_linear"),
            (Setting::Trainer.into(), "transformers"),
            (Setting::UseCache.into(), "true"),
        ] {
            draft.set(key, text);
        }
        let expected = Setup {
            batch: 4,
            seq: 1024,
            lengths: vec![100, 900],
            packing: Packing::Packed,
            images: 2,
            image: Some(448),
            grid: Some([24, 36]),
            image_sizes: vec![[480, 640], [300, 200]],
            frames: Some(8),
            rank: 64,
            lora_dropout: 0.05,
            lora_targets: Targets::Named(vec!["q_proj".into(), "v_proj".into()]),
            lora_dtype: AdapterType::Bf16,
            accum: 3,
            clip: true,
            zero_grad: ZeroGrad::ToZero,
            autocast_cache: false,
            ema: true,
            loss: Loss::FusedLinear,
            trainer: TrainerKind::Transformers,
            use_cache: Some(true),
            ..Setup::default()
        };
        let reading = Reading::of(&draft, &Draft::default());
        assert_eq!(reading.setup, expected);
        assert_eq!(reading.limit, Some(Bytes::mib(47 * 512)));
    }

    #[test]
    fn a_task_is_training_until_another_is_chosen() {
        let mut draft = Draft::default();
        let task = |draft: &Draft| Reading::of(draft, &Draft::default()).task;
        assert_eq!(task(&draft), Task::Train);
        draft.set(Key::NewTokens, "64");
        draft.set(Key::Phase, "generate");
        assert_eq!(task(&draft), Task::Generate { new_tokens: 64 });
        draft.set(Key::Phase, "evaluate");
        assert_eq!(task(&draft), Task::Evaluate);
    }

    #[test]
    fn a_wrong_text_falls_back_to_the_last_good_one() {
        let mut last_good = Draft::default();
        last_good.set(Setting::Batch, "4");
        let mut draft = Draft::default();
        draft.set(Setting::Batch, "four");
        let reading = Reading::of(&draft, &last_good);
        assert_eq!(reading.setup.batch, 4);
        let error = reading.error(Setting::Batch.into()).expect("it is named");
        assert_eq!((error.given.as_str(), error.used.as_str()), ("four", "4"));
        assert_eq!(reading.good, last_good);
    }
}
