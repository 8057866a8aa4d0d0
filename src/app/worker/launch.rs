//! Reads the files and commands that start a run, and turns them into entries. The code has a chunk of its own.

use serde_json::Value;
use vramscope_engine::Case;
use vramscope_engine::device::Device;
use vramscope_engine::setup::Setting;
use vramscope_launch::{Fate, Launch, LaunchError, Line, ModelFacts, Remark, Resolved, Source, Tool, read_on};

use super::coded::Coded;
use super::launched::{
    FoundModel, LaunchAnswer, LaunchFault, LaunchRead, LaunchText, Launched, ReadFate, ReadLine, Said,
};
use super::protocol::Answer;
use crate::state::{Draft, Key};

/// Code of the chunk.
#[derive(Debug, Clone, Copy)]
pub struct LaunchReader {
    /// Entries of the model that files name; of these entries if they name none.
    pub model: fn(&Launched) -> Draft,
    /// Reads files beside the page's entries, for a model, or for one that can't be read.
    pub read: fn(&Launched, Result<ModelFacts, String>) -> Answer,
}

impl LaunchReader {
    /// Returns the code. The caller's part of the program contains it.
    pub fn own() -> Self {
        Self {
            model: |launched| match launch(launched) {
                Ok(launch) => of_model(&launch, launched),
                Err(_) => of_page(&launched.entries),
            },
            read: |launched, model| Answer::Launch(Coded::of(&answer(launched, model))),
        }
    }
}

fn launch(launched: &Launched) -> Result<Launch, LaunchError> {
    let sources: Vec<Source<'_>> = launched
        .texts
        .iter()
        .map(|LaunchText { name, text }| Source { name, text })
        .collect();
    let card = Device::by_name(launched.entries.get(Key::Gpu)).ok();
    read_on(&sources, card.and_then(Device::has_bf16))
}

/// Entries of the page's own model.
fn of_page(entries: &Draft) -> Draft {
    entries.only(|key| matches!(key, Key::Model | Key::Config))
}

fn of_model(launch: &Launch, launched: &Launched) -> Draft {
    let mut out = of_page(&launched.entries);
    if let Some(name) = launch.model() {
        let found = found(launch, launched);
        let (id, config) = found.map_or((name, ""), |found| (&found.id, &found.config));
        out.set(Key::Model, id);
        out.set(Key::Config, config);
    }
    out
}

/// What was found for the name of a launch.
fn found<'a>(launch: &Launch, launched: &'a Launched) -> Option<&'a FoundModel> {
    launched
        .found
        .as_ref()
        .filter(|found| Some(found.name.as_str()) == launch.model())
}

fn answer(launched: &Launched, model: Result<ModelFacts, String>) -> LaunchAnswer {
    let launch = launch(launched).map_err(fault)?;
    let resolved = launch.setup(*model.as_ref().unwrap_or(&ModelFacts::UNKNOWN));
    let said = |all: &[Remark]| all.iter().map(said).collect();
    Ok(LaunchRead {
        tool: launch.tool.name().to_owned(),
        lines: launch.lines.iter().map(line).collect(),
        defaults: launch
            .defaults
            .iter()
            .map(|default| (default.key.to_owned(), default.value.to_owned()))
            .collect(),
        assumed: said(&resolved.assumed),
        missing: said(&resolved.missing),
        not_simulated: said(&resolved.not_simulated),
        model: launch.model().map(str::to_owned),
        model_fault: model.err(),
        another_run: resolved
            .another_run()
            .map(|left| (left.given.clone(), left.why.clone()))
            .collect(),
        entries: with_setup(&launch, &resolved, launched),
    })
}

fn fault(error: LaunchError) -> LaunchFault {
    match error {
        LaunchError::TooLarge { name, .. } => LaunchFault::TooLarge(name),
        LaunchError::Unreadable { name, reason } => LaunchFault::Unreadable(name, reason),
        LaunchError::UnknownTool { name } => {
            let tools: Vec<&str> = Tool::ALL.iter().map(|tool| tool.name()).collect();
            LaunchFault::UnknownTool(name, tools.join(", "))
        }
        LaunchError::Nothing => LaunchFault::Unreadable(String::new(), error.to_string()),
    }
}

fn said(remark: &Remark) -> Said {
    let values = remark.values.iter();
    Said {
        word: remark.note.word().to_owned(),
        values: values
            .map(|(name, value)| ((*name).to_owned(), value.clone()))
            .collect(),
    }
}

fn line(of: &Line) -> ReadLine {
    ReadLine {
        source: of.source,
        line: of.entry.line,
        cell: of.entry.cell,
        key: of.entry.key.clone(),
        value: of.entry.text(),
        fate: match &of.fate {
            Fate::Simulated => ReadFate::Simulated,
            Fate::Replaced => ReadFate::Replaced,
            Fate::NoEffect(why) => ReadFate::NoEffect(why.text().to_owned()),
            Fate::Off(_) => ReadFate::Off,
            Fate::NotSimulated(why) => ReadFate::NotSimulated(why.clone()),
            Fate::Wrong(takes) => ReadFate::Wrong((*takes).to_owned()),
            Fate::Unknown(similar) => ReadFate::Unknown(similar.map(str::to_owned)),
        },
    }
}

/// Returns the page's entries with the setup of a launch. What a launch never tells stays: the card and, for the same model,
/// the images. All else that decides a run is as the launch says, or the default.
fn with_setup(launch: &Launch, resolved: &Resolved, launched: &Launched) -> Result<Draft, String> {
    let (page, model) = (&launched.entries, of_model(launch, launched));
    let is_same = model == of_page(page);
    // Samples are filled with images where nothing is known of them; what the page has of the same model's is known.
    let mut case = resolved.case.clone();
    if is_same
        && [Setting::Images, Setting::ImageSizes]
            .into_iter()
            .any(|setting| page.has(setting))
    {
        case.retain(|key, _| key != Setting::Images.key() && key != Setting::ImageSizes.key());
    }
    let has = |setting: Setting| case.contains_key(setting.key());
    let mut out = page.only(|key| match key {
        Key::Gpu | Key::LimitGib => true,
        Key::Setting(Setting::Seq) => is_same && !has(Setting::Seq),
        Key::Setting(setting) => is_same && is_of_images(setting) && !has(setting),
        _ => false,
    });
    model.entries().for_each(|(key, text)| out.set(key, text));
    let mut named = case.clone();
    named.entry("model").or_insert_with(|| "".into());
    let named = Case::from_json(&Value::Object(named).to_string()).map_err(|error| error.to_string())?;
    if let Some(case) = named {
        for setting in Setting::ALL.iter().filter(|setting| has(**setting)) {
            out.set(*setting, setting.of(&case.setup).text());
        }
        out.share(case.parallel.as_ref());
    }
    out.leave_out(&resolved.not_this_run);
    out.stand_in(found(launch, launched).and_then(|found| found.bound.as_deref()));
    let share = resolved.vllm_share.map(|share| share.to_string());
    out.set(Key::VllmShare, share.unwrap_or_default());
    Ok(out)
}

const fn is_of_images(setting: Setting) -> bool {
    matches!(
        setting,
        Setting::Images | Setting::Image | Setting::Grid | Setting::ImageSizes | Setting::Frames
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "model_name_or_path: qwen2.5-vl-3b\nstage: sft\nfinetuning_type: lora\nlora_rank: 16\n\
                        lora_target: all\ncutoff_len: 4096\nimage_max_pixels: 262144\nper_device_train_batch_size: 2\n\
                        gradient_accumulation_steps: 4\nlearning_rate: 1.0e-4\nbf16: true\nneat_packing: true\nlerning: 1\n";
    const ZERO: &str = r#"{"zero_optimization": {"stage": 2, "reduce_bucket_size": 2e8}, "bf16": {"enabled": "auto"}}"#;

    fn read(texts: &[(&str, &str)], page: &Draft) -> LaunchAnswer {
        let texts: Vec<LaunchText> = texts
            .iter()
            .map(|(name, text)| LaunchText {
                name: (*name).to_owned(),
                text: (*text).to_owned(),
            })
            .collect();
        let launched = Launched {
            texts,
            entries: page.clone(),
            found: None,
        };
        answer(&launched, Ok(ModelFacts::UNKNOWN))
    }

    #[test]
    fn a_model_that_was_found_for_the_name_is_taken() {
        let text = |name: &str| LaunchText {
            name: String::new(),
            text: format!("swift sft --model {name} --tuner_type lora"),
        };
        let found = FoundModel {
            name: "someone/model".into(),
            id: "someone/model".into(),
            config: "{}".into(),
            bound: Some("larger".into()),
        };
        let of = |name: &str| {
            let launched = Launched {
                texts: vec![text(name)],
                entries: Draft::default(),
                found: Some(found.clone()),
            };
            let read = answer(&launched, Ok(ModelFacts::UNKNOWN)).expect("ms-swift's");
            read.entries.expect("a setup")
        };
        let entries = of("someone/model");
        assert_eq!(entries.config_id(), Some("someone/model"));
        assert!(entries.left_out().iter().any(|left| left.is_of_larger_model()));
        assert!(!of("gpt2").left_out().iter().any(|left| left.is_of_larger_model()));
        assert_eq!(of("gpt2").model_name(), Some("gpt2"));
        assert!(!of("gpt2").has(Key::Config));
    }

    #[test]
    fn a_file_becomes_entries_and_what_it_never_tells_stays() {
        let mut page = Draft::default();
        page.set(Key::Gpu, "RTX 4090");
        page.set(Setting::Lengths, "100, 200");
        page.set(Setting::Image, "448");
        let read = read(&[("a.yaml", FILE)], &page).expect("LLaMA-Factory's");
        let entries = read.entries.expect("a setup");
        for (key, wanted) in [
            (Key::Model, "qwen2.5-vl-3b"),
            (Key::Gpu, "RTX 4090"),
            (Setting::Batch.into(), "2"),
            (Setting::Accum.into(), "4"),
            (Setting::Seq.into(), "4096"),
            (Setting::Rank.into(), "16"),
            (Setting::Freeze.into(), "lora"),
            (Setting::Trainer.into(), "transformers"),
            // The lengths would decide batch and positions, and the size was another model's.
            (Setting::Lengths.into(), ""),
            (Setting::Image.into(), ""),
        ] {
            assert_eq!(entries.get(key), wanted, "{key:?}");
        }
        let fate = |key: &str| {
            read.lines
                .iter()
                .find(|line| line.key == key)
                .map(|line| line.fate.clone())
        };
        assert_eq!(fate("cutoff_len"), Some(ReadFate::Simulated));
        assert!(matches!(fate("learning_rate"), Some(ReadFate::NoEffect(_))));
        assert!(matches!(fate("neat_packing"), Some(ReadFate::NotSimulated(_))));
        assert!(matches!(fate("lerning"), Some(ReadFate::Unknown(_))));
        assert!(read.missing.iter().any(|said| said.word == "most_pixels"));
        // What changes memory and is left out stays with the entries.
        let given: Vec<_> = entries.left_out().into_iter().filter_map(|left| left.given).collect();
        assert_eq!(given, ["neat_packing: true", "lerning: 1"]);
        // Lines are told one by one.
        assert!(!read.not_simulated.iter().any(|said| said.word == "of_line"));
    }

    #[test]
    fn deepspeeds_keys_reach_the_entries() {
        let read = read(&[("a.yaml", FILE), ("ds.json", ZERO)], &Draft::default()).expect("both");
        let entries = read.entries.expect("a setup");
        assert_eq!(entries.get(Key::Zero), "reduce_bucket_size=200000000");
        assert_eq!(read.lines.iter().filter(|line| line.source == 1).count(), 3);
    }

    #[test]
    fn vllm_in_the_same_process_and_another_run_are_told() {
        let grpo = "trl grpo --model_name_or_path qwen2.5-0.5b --use_vllm True --vllm_mode colocate \\\n \
                    --vllm_gpu_memory_utilization 0.4 --num_generations 4 --per_device_train_batch_size 4";
        let read_grpo = read(&[("run.sh", grpo)], &Draft::default()).expect("TRL's");
        assert_eq!(read_grpo.entries.expect("a setup").get(Key::VllmShare), "0.4");
        let dpo =
            read(&[("a.yaml", "stage: ppo\nfinetuning_type: lora\n")], &Draft::default()).expect("LLaMA-Factory's");
        assert!(!dpo.another_run.is_empty());
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let wrong = read(&[("x.yaml", "learning_speed: 4\n")], &Draft::default());
        assert!(matches!(wrong, Err(LaunchFault::UnknownTool(name, _)) if name == "x.yaml"));
        let wrong = read(&[("y.yaml", "a: [1")], &Draft::default());
        assert!(matches!(wrong, Err(LaunchFault::Unreadable(name, _)) if name == "y.yaml"));
    }
}
