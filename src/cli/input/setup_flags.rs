//! Flags of a training setup: one for each setting that the engine declares, with the keys and values of a case file.

use std::sync::OnceLock;

use clap::builder::{BoolValueParser, PossibleValuesParser, TypedValueParser, ValueParser};
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use serde_json::Value;
use vramscope_engine::Setup;
use vramscope_engine::model::Takes;
use vramscope_engine::setup::{Change, Kind, ParameterNames, Setting, Targets, read_number};
use vramscope_plan::search::Entry;

use super::count;

/// The settings that were given; the others stay as they are.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SetupFlags(Vec<Change>);

impl SetupFlags {
    /// Returns true if a micro-batch was given.
    pub fn names_batch(&self) -> bool {
        self.gives(Setting::Batch)
    }

    /// Returns true if a sequence length was given.
    pub fn names_seq(&self) -> bool {
        self.gives(Setting::Seq)
    }

    /// Returns true if the images of a sample were given, by number or by size.
    pub fn names_images(&self) -> bool {
        let settings = [Setting::Images, Setting::ImageSizes, Setting::Grid, Setting::Image];
        settings.into_iter().any(|setting| self.gives(setting))
    }

    /// Gives a sequence length, in place of one given before.
    pub fn give_seq(&mut self, seq: u64) {
        self.0.push(Change::Seq(seq));
    }

    /// Returns true if positions with labels were given.
    pub fn names_labels(&self) -> bool {
        self.gives(Setting::Completion) || self.gives(Setting::Labels)
    }

    /// Gives how many positions at the end of each sample have labels.
    pub fn give_completion(&mut self, labels: u64) {
        self.0.push(Change::Completion(Some(labels)));
    }

    /// Gives rows that no collator makes longer.
    pub fn give_no_padding(&mut self) {
        self.0.push(Change::PadToMultipleOf(1));
    }

    /// Gives a number of images.
    pub fn give_images(&mut self, images: u64) {
        self.0.push(Change::Images(images));
    }

    /// Gives height and width of each image of a sample.
    pub fn give_image_sizes(&mut self, sizes: &[[u32; 2]]) {
        self.0.push(Change::ImageSizes(
            sizes.iter().map(|size| size.map(u64::from)).collect(),
        ));
    }

    /// Takes the sizes that were given, by name, and leaves the rest.
    pub fn take_sizes(&mut self) -> Vec<(String, u64)> {
        let is_size = |change: &Change| matches!(change, Change::Batch(_) | Change::Seq(_) | Change::Images(_));
        let (sizes, rest) = std::mem::take(&mut self.0).into_iter().partition(is_size);
        self.0 = rest;
        let sizes: Vec<Change> = sizes;
        let named = |size: &Change| Some((size.setting().key().to_owned(), size.count()?));
        sizes.iter().filter_map(named).collect()
    }

    /// Applies the given flags to a setup.
    pub fn apply(&self, setup: &mut Setup) {
        self.0.iter().for_each(|change| change.put(setup));
    }

    /// Settings of a plan that were given as flags, and therefore keep their values.
    pub fn entries(&self) -> Vec<Entry> {
        let given = self.0.iter().filter_map(|change| Entry::of(change.setting()));
        given.filter(|entry| !entry.is_asked_for()).collect()
    }

    /// Given flags that have no effect on a model with these inputs.
    pub fn without_effect(&self, takes: Takes) -> Vec<String> {
        let given = self.0.iter().map(Change::setting);
        given
            .filter(|setting| !setting.declaration().needs.met_by(takes))
            .map(|setting| format!("--{}", flag(setting)))
            .collect()
    }

    fn gives(&self, setting: Setting) -> bool {
        self.0.iter().any(|change| change.setting() == setting)
    }
}

impl FromArgMatches for SetupFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut flags = Self::default();
        flags.update_from_arg_matches(matches)?;
        Ok(flags)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        for &setting in Setting::ALL {
            let Some(values) = matches.get_many::<Value>(setting.key()) else {
                continue;
            };
            let values: Vec<Value> = values.cloned().collect();
            let value = match setting.declaration().kind {
                Kind::Lengths | Kind::Sizes => Value::from(values),
                _ => values.into_iter().next_back().unwrap_or_default(),
            };
            let change = setting.change(value);
            self.0.push(change.map_err(|error| {
                clap::Error::raw(ErrorKind::ValueValidation, format!("--{}: {error}\n", flag(setting)))
            })?);
        }
        Ok(())
    }
}

impl Args for SetupFlags {
    fn augment_args(command: Command) -> Command {
        command.args(Setting::ALL.iter().copied().map(argument))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

/// Name of a setting's flag, without `--`.
fn flag(setting: Setting) -> &'static str {
    static FLAGS: OnceLock<Vec<String>> = OnceLock::new();
    let of = |setting: &Setting| setting.key().replace('_', "-");
    &FLAGS.get_or_init(|| Setting::ALL.iter().map(of).collect())[setting as usize]
}

fn argument(setting: Setting) -> Arg {
    let declared = setting.declaration();
    let arg = Arg::new(setting.key())
        .long(flag(setting))
        .help(help(setting))
        .help_heading("Training setup")
        .value_parser(parser(declared.kind));
    let (value_name, arg) = match declared.kind {
        Kind::Count | Kind::OptionalCount => ("N", arg),
        Kind::Grid => ("HxW", arg),
        Kind::Lengths => ("N,N,..", arg.value_delimiter(',').action(ArgAction::Append)),
        Kind::Sizes => ("HxW,HxW,..", arg.value_delimiter(',').action(ArgAction::Append)),
        Kind::Probability => ("P", arg),
        Kind::Switch | Kind::ModelSwitch => ("BOOL", switch(arg)),
        Kind::Targets => ("NAMES", arg),
        Kind::ParameterNames => ("PATTERNS", arg.allow_hyphen_values(true)),
        Kind::Choice(_) => ("NAME", arg),
    };
    match declared.value_name {
        "" => arg.value_name(value_name),
        own => arg.value_name(own),
    }
}

/// A switch may stand alone for `true`; a value must follow after `=`, so that no other word is taken for it.
fn switch(arg: Arg) -> Arg {
    arg.num_args(0..=1)
        .require_equals(true)
        .default_missing_value("true")
        .hide_possible_values(true)
}

/// What the setting is, and what applies if it is not given.
fn help(setting: Setting) -> String {
    let declared = setting.declaration();
    let default = setting.of(&Setup::default()).text();
    let default = match (declared.absent, default.as_str()) {
        ("", "" | "false") => return declared.about.to_owned(),
        ("", default) => default,
        (absent, _) => absent,
    };
    format!("{} [default: {default}]", declared.about)
}

/// Parses a flag's value into that of a case.
fn parser(kind: Kind) -> ValueParser {
    match kind {
        Kind::Count | Kind::OptionalCount => ValueParser::new(|text: &str| count::size(text).map(Value::from)),
        Kind::Lengths => ValueParser::new(|text: &str| count::of_list(text).map(Value::from)),
        Kind::Grid => ValueParser::new(parse_grid),
        Kind::Sizes => ValueParser::new(parse_size),
        Kind::Probability => ValueParser::new(parse_number),
        Kind::Switch | Kind::ModelSwitch => BoolValueParser::new().map(Value::from).into(),
        Kind::Targets => ValueParser::new(parse_targets),
        Kind::ParameterNames => ValueParser::new(parse_names),
        Kind::Choice(choices) => PossibleValuesParser::new(choices.names).map(Value::from).into(),
    }
}

fn parse_targets(text: &str) -> Result<Value, String> {
    Targets::parse(text).map(|targets| Value::from(String::from(targets)))
}

fn parse_names(text: &str) -> Result<Value, String> {
    ParameterNames::parse(text).map(|names| Value::from(String::from(names)))
}

fn parse_number(text: &str) -> Result<Value, String> {
    read_number(text)
        .map(Value::from)
        .ok_or_else(|| "give a number, such as 0.05".into())
}

fn parse_size(text: &str) -> Result<Value, String> {
    sides(text).ok_or_else(|| "give height and width in pixels, such as 480x640".into())
}

fn parse_grid(text: &str) -> Result<Value, String> {
    sides(text).ok_or_else(|| "give height and width in patches, such as 24x32".into())
}

fn sides(text: &str) -> Option<Value> {
    let sides: Option<Vec<u64>> = text.split(['x', 'X', ',']).map(|side| count::size(side).ok()).collect();
    sides.filter(|sides| sides.len() == 2).map(Value::from)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parsed(words: &[&str]) -> Result<SetupFlags, clap::Error> {
        let command = SetupFlags::augment_args(Command::new("vramscope"));
        let words = ["vramscope"].iter().chain(words);
        SetupFlags::from_arg_matches(&command.try_get_matches_from(words)?)
    }

    #[test]
    fn a_grid_is_two_numbers() {
        assert_eq!(parse_grid("24x32"), Ok(json!([24, 32])));
        assert_eq!(parse_grid("24,32"), Ok(json!([24, 32])));
        for bad in ["", "24", "24x", "24x32x2", "axb", "-1x2"] {
            assert!(parse_grid(bad).is_err(), "{bad}");
        }
    }

    /// As on the page: a number is read whole, or not at all.
    #[test]
    fn numbers_are_read_as_people_write_them() {
        let mut setup = Setup::default();
        let flags = [
            "--seq",
            "4k",
            "--batch",
            "1e1",
            "--lengths",
            "1k,2K,300",
            "--accum",
            "1_0",
            "--image-sizes",
            "1kx768",
        ];
        parsed(&flags).expect("they are numbers").apply(&mut setup);
        assert_eq!((setup.seq, setup.batch, setup.accum), (4096, 10, 10));
        assert_eq!(setup.lengths, [1024, 2048, 300]);
        assert_eq!(setup.image_sizes, [[1024, 768]]);
        for wrong in ["4x", "1.5", "1e-1", "4kb", "", "k"] {
            let error = parsed(&["--seq", wrong]).expect_err("it is no number").to_string();
            assert!(error.contains("4096, 4k or 1e3"), "{wrong}: {error}");
        }
        assert!(parsed(&["--lengths", "1,000"]).is_err(), "a list of 1 and 0");
    }

    #[test]
    fn what_is_not_given_stays() {
        let mut setup = Setup {
            batch: 7,
            accum: 3,
            ..Setup::default()
        };
        parsed(&["--accum", "5", "--clip"])
            .expect("they are flags")
            .apply(&mut setup);
        assert_eq!(
            setup,
            Setup {
                batch: 7,
                accum: 5,
                clip: true,
                ..Setup::default()
            }
        );
    }

    #[test]
    fn each_setting_has_a_flag_that_takes_its_own_value() {
        let given = r#"{
            "batch": 4, "seq": 64, "lengths": [3, 4], "packing": "packed", "images": 2, "image": 448, "grid": [24, 36],
            "image_sizes": [[480, 640], [300, 200]], "frames": 8, "precision": "fp32", "optim": "sgd", "ckpt": "full", "reentrant": true,
            "attn": "eager", "packages": "fla", "freeze": "lora", "frozen_weights": "autocast", "rank": 8, "lora_dropout": 0.05, "dora": true,
            "frozen_names": "embed_tokens", "trained_names": "norm lm_head",
            "lora_targets": "q_proj,v_proj", "lora_experts": "all", "lora_dtype": "bf16",
            "saved_modules": "embed_tokens lm_head", "saved_dtype": "fp32", "accum": 3, "clip": true,
            "zero_grad": "to_zero", "autocast_cache": false, "ema": true, "loss": "fused_linear",
            "trainer": "transformers", "completion": 40, "reference": "precomputed", "generation": "vllm",
            "steps_per_generation": 2, "num_iterations": 2, "use_cache": false,
            "beside": 700, "compile": true, "pad_to_multiple_of": 8, "image_counts": [1, 3], "pixels": "processor",
            "loading": "loaded", "fetched": 70, "liger": "norms-mlps", "neftune": true, "labels": [3, 2]
        }"#;
        let asked: Setup = serde_json::from_str(given).expect("it is a setup");
        let words = Setting::ALL.iter().map(|setting| {
            let change = setting.of(&asked);
            assert_ne!(
                change,
                setting.of(&Setup::default()),
                "{} is another value",
                setting.key()
            );
            format!("--{}={}", flag(*setting), change.text().replace(", ", ","))
        });
        let words: Vec<String> = words.collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let mut setup = Setup::default();
        parsed(&words).expect("they are flags").apply(&mut setup);
        assert_eq!(setup, asked);
    }
}
