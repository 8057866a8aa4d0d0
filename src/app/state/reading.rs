use serde::Deserialize;
use serde_json::{Map, Value};
use vramscope_engine::Setup;
use vramscope_engine::units::Bytes;

use super::{Draft, Form, Key};

/// Why a text does not have the form of its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Problem {
    /// Not a whole number.
    NotCount,
    /// More than 64 bits hold.
    TooLarge,
    /// Not two whole numbers.
    NotGrid,
    /// Not a list of whole numbers.
    NotLengths,
    /// Not a list of heights by widths.
    NotSizes,
    /// Not a number from 0 to 1.
    NotProbability,
    /// Not a number of 0 or more.
    NotAmount,
    /// Not an amount of memory.
    NotGib,
    /// Neither `true` nor `false`.
    NotSwitch,
    /// Neither one of these words nor names of modules.
    NotTargets(&'static [&'static str]),
    /// Cut or garbled setups.
    NotSetups,
    /// None of these.
    NotChoice(&'static [&'static str]),
}

/// A text that could not be used, and the one that is used in its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldError {
    /// Where it was entered.
    pub key: Key,
    /// What was entered.
    pub given: String,
    /// What is wrong with it.
    pub problem: Problem,
    /// What is used: the last good text of this key.
    pub used: String,
}

/// Where the model comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A name of the catalogue.
    Catalogue(String),
    /// The text of a `config.json`.
    Config(String),
}

/// What the model does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    /// A training step.
    Train,
    /// One batch without gradients.
    Evaluate,
    /// Text of so many tokens.
    Generate {
        /// For each sample.
        new_tokens: u64,
    },
}

/// A draft as values.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    /// The model.
    pub source: Source,
    /// Name of the card.
    pub gpu: String,
    /// What the allocator may reserve, where that is entered.
    pub limit: Option<Bytes>,
    /// What the model does.
    pub task: Task,
    /// The training setup.
    pub setup: Setup,
    /// Texts that could not be used.
    pub errors: Vec<FieldError>,
    /// The draft with those texts replaced: what the next reading falls back to.
    pub good: Draft,
}

impl Reading {
    /// Reads a draft; a text that cannot be used is replaced by that of `last_good`.
    pub fn of(draft: &Draft, last_good: &Draft) -> Self {
        let mut good = draft.clone();
        let mut errors = Vec::new();
        // A default has its form.
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
            errors,
            good,
        }
    }

    /// The entries that the engine's answer rests on.
    pub fn entries(&self) -> Draft {
        self.good.only(Key::decides_run)
    }

    /// The entries that only the time of a run, or its price, rests on.
    pub fn of_time(&self) -> Draft {
        self.good.only(Key::of_time)
    }

    /// The entries that the curves of attention rest on.
    pub fn of_attention(&self) -> Draft {
        const OWN: [Key; 12] = [
            Key::Heads,
            Key::KvHeads,
            Key::HeadDim,
            Key::Dtype,
            Key::Causal,
            Key::Window,
            Key::Topk,
            Key::Chunk,
            Key::Pass,
            Key::Longest,
            Key::At,
            Key::Algorithms,
        ];
        let model = [Key::Model, Key::Config, Key::Gpu, Key::Batch, Key::Precision];
        self.good.only(|key| OWN.contains(&key) || model.contains(&key))
    }

    /// The entries that a sweep rests on.
    pub fn of_sweep(&self) -> Draft {
        let entries = self.entries();
        self.good
            .only(|key| entries.has(key) || matches!(key, Key::Sweep | Key::Cards))
    }

    /// The entries that a plan rests on.
    pub fn of_plan(&self) -> Draft {
        self.good.only(|key| key.decides_run() || key.of_plan())
    }

    /// The error of one key.
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

/// In whole bytes, as the command line has it.
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
    /// The entries of the setup as a case has them; those that cannot be used are as if not entered.
    pub fn setup_values(&self) -> Map<String, Value> {
        values(Key::ALL.into_iter().map(|key| (key, self.get(key))))
    }
}

/// The setup of a draft without errors; its keys are those of a case. What is not entered is the engine's
/// default, which is the page's.
fn setup(good: &Draft) -> Setup {
    let values = values(good.entries());
    // Forms and the engine's vocabulary agree, as the tests below hold; nothing is left to fail.
    Setup::deserialize(Value::Object(values)).unwrap_or_default()
}

/// Texts as a case has them, those of the setup; what cannot be used or says nothing is left out.
fn values<'a>(texts: impl Iterator<Item = (Key, &'a str)>) -> Map<String, Value> {
    texts
        .filter(|(key, _)| key.in_setup())
        .filter_map(|(key, text)| Some((key.name().to_owned(), key.form().read(text).ok()?)))
        .filter(|(_, value)| !value.is_null())
        .collect()
}

impl Key {
    /// The choices of a key of that form.
    pub const fn choices(self) -> &'static [&'static str] {
        match self.form() {
            Form::Choice(all) => all,
            Form::ModelSwitch => &["model", "true", "false"],
            _ => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vramscope_engine::setup::{AdapterType, Loss, Packing, Targets, ZeroGrad};

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
        for key in Key::ALL.into_iter().filter(|k| k.in_setup()) {
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

    /// serde names every variant that it would have taken.
    #[test]
    fn the_page_offers_every_choice_of_the_engine() {
        for key in Key::ALL.into_iter().filter(|k| k.in_setup()) {
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
            (Key::Batch, "4"),
            (Key::Seq, "1,024"),
            (Key::Lengths, "100, 900"),
            (Key::Packing, "packed"),
            (Key::Images, "2"),
            (Key::Image, "448"),
            (Key::Grid, "24x36"),
            (Key::ImageSizes, "480x640, 300x200"),
            (Key::Frames, "8"),
            (Key::Rank, "64"),
            (Key::LoraDropout, "0.05"),
            (Key::LoraTargets, "q_proj, v_proj"),
            (Key::LoraDtype, "bf16"),
            (Key::Accum, "3"),
            (Key::Clip, "true"),
            (Key::ZeroGrad, "to_zero"),
            (Key::AutocastCache, "false"),
            (Key::Ema, "true"),
            (Key::Loss, "fused_linear"),
            (Key::UseCache, "true"),
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
        last_good.set(Key::Batch, "4");
        let mut draft = Draft::default();
        draft.set(Key::Batch, "four");
        let reading = Reading::of(&draft, &last_good);
        assert_eq!(reading.setup.batch, 4);
        let error = reading.error(Key::Batch).expect("it is named");
        assert_eq!((error.given.as_str(), error.used.as_str()), ("four", "4"));
        assert_eq!(reading.good, last_good);
    }
}
