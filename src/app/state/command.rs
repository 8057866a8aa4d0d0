//! Converts a setup into the command line that computes the same bytes.

use serde_json::Value;

use super::left_out::note;
use super::several::parallel;
use super::{Draft, Form, Key, Scope};

/// Returns the command for a draft without errors, for any POSIX shell. A configuration is passed through standard input,
/// unless it was found for an id, which the command finds too.
pub fn command(good: &Draft) -> String {
    let name = good.model_name();
    let mut words = vec!["vramscope estimate".to_owned()];
    match name {
        Some(name) => words.push(quoted(name)),
        None => words.push("--config -".into()),
    }
    words.push(format!("--gpu {}", quoted(good.get(Key::Gpu))));
    let is_flag = |key: Key| {
        let is_other = matches!(key, Key::LimitGib | Key::Phase | Key::NewTokens);
        key.in_setup() || is_other
    };
    words.extend(flags(good, is_flag));
    words.extend(several(good));
    // Not as comments: zsh takes none from the keyboard, and would run what is in them.
    let left_out = good.left_out();
    let notes = left_out.iter().map(|left| format!(": {}\n", quoted(&note(left))));
    let command = notes.collect::<String>() + &words.join(" ");
    match name {
        Some(_) => command,
        None => format!("{command} <<'CONFIG'\n{}\nCONFIG", good.get(Key::Config).trim_end()),
    }
}

/// Returns the command that replays a recording, for a draft without errors and any POSIX shell.
pub fn recorded_command(good: &Draft, file: &str) -> String {
    let mut words = vec![format!("vramscope estimate --recording {}", quoted(file))];
    words.push(format!("--gpu {}", quoted(good.get(Key::Gpu))));
    let is_flag = |key: Key| {
        matches!(
            key,
            Key::Sizes | Key::LimitGib | Key::ExpandableSegments | Key::OptimizerForm
        )
    };
    words.extend(flags(good, is_flag));
    words.join(" ")
}

/// Formats the entries of several GPUs; none for one.
fn several(good: &Draft) -> Vec<String> {
    let Some(parallel) = parallel(good) else {
        return Vec::new();
    };
    let mut flags = vec![
        format!("--strategy {}", parallel.strategy.name()),
        format!("--world {}", parallel.world),
    ];
    if parallel.mp {
        flags.push("--mp".into());
    }
    if parallel.offload.is_any() {
        flags.push(format!("--offload={}", parallel.offload.word()));
    }
    let own = [Key::Bucket, Key::Zero, Key::Link]
        .into_iter()
        .filter(|key| good.has(*key));
    flags.extend(own.filter_map(|key| flag(key, good.get(key))));
    flags
}

/// Formats the entries that differ from their defaults: those that match, and those of the time.
fn flags(good: &Draft, is_flag: impl Fn(Key) -> bool) -> impl Iterator<Item = String> {
    let keys = Key::all().filter(move |&key| is_flag(key) || key.scope() == Scope::Time);
    let changed = keys.filter(|key| good.has(*key) && key.is_meant(good));
    changed.filter_map(|key| flag(key, good.get(key)))
}

impl Key {
    /// Returns false if the entry has no effect: new tokens without generation, or a price without a number of samples.
    fn is_meant(self, good: &Draft) -> bool {
        match self {
            Self::NewTokens => good.get(Self::Phase) == "generate",
            Self::PricePerHour | Self::Watts => good.has(Self::Samples),
            // Follows the strategy, without which it means nothing.
            Self::Link => false,
            _ => true,
        }
    }
}

/// Formats a flag such as `--lora-rank 8`; `None` if the value is absent.
fn flag(key: Key, text: &str) -> Option<String> {
    let name = match key {
        Key::Sizes => "at".to_owned(),
        key => key.name().replace('_', "-"),
    };
    let value = match key.form().read(text).ok()? {
        Value::Null => return None,
        Value::String(text) => quoted(&text),
        Value::Array(parts) if key.form() == Form::Grid => joined(&parts, "x"),
        Value::Array(parts) => joined(&parts, ","),
        other => other.to_string(),
    };
    // Boolean flags may stand alone, so their value must be attached with `=`.
    let tied = matches!(key.form(), Form::Switch | Form::ModelSwitch) || key == Key::ExpandableSegments;
    let sign = if tied { '=' } else { ' ' };
    Some(format!("--{name}{sign}{value}"))
}

/// Joins numbers with a separator; a list of sizes becomes `480x640`.
fn joined(parts: &[Value], sign: &str) -> String {
    let word = |part: &Value| match part {
        Value::Array(sides) => joined(sides, "x"),
        other => other.to_string(),
    };
    parts.iter().map(word).collect::<Vec<_>>().join(sign)
}

/// Puts text in single quotes unless the shell would read it as one plain word.
fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./,:+@%".contains(c);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vramscope_engine::setup::Setting;

    fn of(pairs: &[(Key, &str)]) -> String {
        let mut draft = Draft::default();
        for (key, text) in pairs {
            draft.set(*key, *text);
        }
        command(&draft)
    }

    #[test]
    fn what_differs_from_the_defaults_is_a_flag() {
        assert_eq!(of(&[]), "vramscope estimate llava-1.5-7b --gpu 'H100 SXM'");
        let changed = [
            (Key::Model, "gpt2"),
            (Key::Gpu, "RTX 4090"),
            (Setting::Batch.into(), "1,024"),
            (Setting::Lengths.into(), "512， 300"),
            (Setting::Grid.into(), "24×36"),
            (Setting::ImageSizes.into(), "480x640、 300x200"),
            (Setting::UseCache.into(), "false"),
            (Setting::Clip.into(), "true"),
            (Setting::LoraDropout.into(), "0.05"),
            (Key::NewTokens, "64"),
        ];
        assert_eq!(
            of(&changed),
            "vramscope estimate gpt2 --gpu 'RTX 4090' --batch 1024 --lengths 512,300 --grid 24x36 \
             --image-sizes 480x640,300x200 --lora-dropout 0.05 --clip=true --use-cache=false"
        );
        let generating = [(Key::Phase, "generate"), (Key::NewTokens, "64")];
        assert!(of(&generating).ends_with("--phase generate --new-tokens 64"));
        let priced = [
            (Key::Data, "read=1,decode=8,workers=4"),
            (Key::Samples, "1,000,000"),
            (Key::PricePerHour, "2.5"),
        ];
        let flags = "--data 'read=1,decode=8,workers=4' --samples 1000000 --price-per-hour 2.5";
        assert!(of(&priced).ends_with(flags), "{}", of(&priced));
        assert!(!of(&[(Key::Watts, "700")]).contains("watts"), "it needs the samples");
        assert!(of(&[(Key::LimitGib, "23.50")]).ends_with("--gpu 'H100 SXM' --limit-gib 23.5"));
    }

    #[test]
    fn several_gpus_name_their_strategy() {
        let eight = [
            (Key::Model, "gpt2"),
            (Key::World, "8"),
            (Key::Link, "50"),
            (Key::Samples, "1000"),
        ];
        let base = "vramscope estimate gpt2 --gpu 'H100 SXM'";
        let shared = "--strategy fsdp --world 8 --link 50.0";
        assert_eq!(of(&eight), format!("{base} --samples 1000 {shared}"));
        let offloaded = [
            (Key::Strategy, "deepspeed2"),
            (Key::Offload, "optimizer"),
            (Key::Mp, "true"),
        ];
        let shared = of(&[&eight[..2], &offloaded[..]].concat());
        assert_eq!(
            shared,
            format!("{base} --strategy deepspeed2 --world 8 --mp --offload=optimizer")
        );
        assert_eq!(of(&[&eight[..1], &offloaded[..]].concat()), base, "of one GPU");
        let evaluated = of(&[&eight[..2], &[(Key::Phase, "evaluate")]].concat());
        assert_eq!(evaluated, format!("{base} --phase evaluate"));
    }

    #[test]
    fn a_recording_is_replayed_at_the_chosen_sizes() {
        let mut draft = Draft::default();
        draft.set(Setting::Batch, "8");
        let base = "vramscope estimate --recording 'my run.sizes.gz' --gpu 'H100 SXM'";
        assert_eq!(recorded_command(&draft, "my run.sizes.gz"), base);
        for (key, text) in [
            (Key::Sizes, "batch=4, seq=512"),
            (Key::ExpandableSegments, "true"),
            (Key::OptimizerForm, "fused"),
            (Key::LimitGib, "24"),
            (Key::Samples, "1,000"),
        ] {
            draft.set(key, text);
        }
        assert_eq!(
            recorded_command(&draft, "my run.sizes.gz"),
            format!(
                "{base} --at 'batch=4,seq=512' --expandable-segments=true --optimizer-form fused --limit-gib 24.0 --samples 1000"
            )
        );
    }

    #[test]
    fn the_shell_takes_every_text_for_one_word() {
        assert_eq!(
            of(&[(Key::Gpu, "it's; rm -rf $HOME")]),
            r"vramscope estimate llava-1.5-7b --gpu 'it'\''s; rm -rf $HOME'"
        );
    }

    #[test]
    fn what_is_left_out_is_a_note_that_no_shell_runs() {
        let text = r#"[{"what":"length","given":"packing: $(id)\n'; id","why":"packs","direction":"at_most"}]"#;
        assert_eq!(
            of(&[(Key::NotThisRun, text)]),
            ": 'Not simulated: packing: $(id) '\\''; id (packs)'\nvramscope estimate llava-1.5-7b --gpu 'H100 SXM'"
        );
    }

    #[test]
    fn a_pasted_configuration_goes_through_standard_input() {
        assert_eq!(
            of(&[(Key::Config, "{\"a\": 1}\n")]),
            "vramscope estimate --config - --gpu 'H100 SXM' <<'CONFIG'\n{\"a\": 1}\nCONFIG"
        );
        assert_eq!(
            of(&[(Key::Model, "someone/model"), (Key::Config, "{\"a\": 1}\n")]),
            "vramscope estimate someone/model --gpu 'H100 SXM'"
        );
    }
}
