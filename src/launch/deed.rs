//! What a command does: it trains, or it does something else with models.

/// What a command does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deed {
    /// Its program, subcommand or script is one that trains.
    Trains,
    /// A script whose name does not tell.
    MayTrain,
    /// It answers, converts, measures, serves and so on.
    Other,
}

/// Subcommands that train, of programs whose others do not.
const TRAINING: [(&str, &[&str]); 4] = [
    ("swift", &["sft", "pt", "rlhf"]),
    ("llamafactory-cli", &["train"]),
    ("axolotl", &["train"]),
    ("trl", &["sft", "dpo", "grpo", "kto", "reward", "rloo"]),
];

/// Parts of the names of scripts that train.
const TRAINING_NAMES: [&str; 9] = ["train", "tune", "sft", "dpo", "grpo", "ppo", "kto", "rlhf", "orpo"];

/// Words in the names of scripts that do something else, and beginnings of such words.
const OTHER_WORDS: [&str; 10] = [
    "eval", "serve", "chat", "api", "app", "web", "demo", "pip", "venv", "vllm",
];
const OTHER_BEGINNINGS: [&str; 14] = [
    "infer", "evalu", "export", "merge", "convert", "prepar", "preproc", "server", "deploy", "downlo", "generat",
    "predict", "bench", "rollout",
];

/// What a command of these words does: a program, and its subcommand or script.
pub(crate) fn deed(program: &[String]) -> Deed {
    let words: Vec<&str> = program.iter().map(String::as_str).collect();
    let own = |word: &str| TRAINING.iter().find(|(name, _)| file_name(word) == *name);
    if let Some((at, (_, training))) = words.iter().enumerate().find_map(|(at, word)| Some((at, own(word)?))) {
        return match words.get(at + 1) {
            Some(sub) if training.contains(sub) => Deed::Trains,
            _ => Deed::Other,
        };
    }
    match words[..] {
        ["accelerate", "launch", ..] | ["torchrun" | "deepspeed" | "python" | "python3", ..] => of_script(&words[1..]),
        _ => Deed::Other,
    }
}

/// What a script or module does, by its name.
fn of_script(words: &[&str]) -> Deed {
    let is_module = |at: usize| words.get(at.wrapping_sub(1)) == Some(&"-m");
    let script = words.iter().rposition(|word| word.ends_with(".py"));
    let module = (0..words.len()).rev().find(|at| is_module(*at));
    let name = match script.or(module) {
        Some(at) if is_module(at) => words[at].rsplit('.').take(2).collect::<Vec<_>>().join(" "),
        Some(at) => file_name(words[at]).to_owned(),
        // Code on the command line, or nothing.
        None => {
            return if words.contains(&"-c") {
                Deed::Other
            } else {
                Deed::MayTrain
            };
        }
    };
    let name = name.to_ascii_lowercase();
    let trains = TRAINING_NAMES.iter().any(|part| name.contains(part));
    let is_other = |word: &str| {
        OTHER_WORDS.contains(&word) || OTHER_BEGINNINGS.iter().any(|beginning| word.starts_with(beginning))
    };
    match (trains, name.split(|c: char| !c.is_ascii_alphanumeric()).any(is_other)) {
        (true, false) => Deed::Trains,
        (false, true) => Deed::Other,
        _ => Deed::MayTrain,
    }
}

fn file_name(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn training_is_told_from_all_else() {
        for (command, wanted) in [
            ("swift sft", Deed::Trains),
            ("swift rlhf", Deed::Trains),
            ("swift infer", Deed::Other),
            ("swift export", Deed::Other),
            ("swift rollout", Deed::Other),
            ("swift", Deed::Other),
            ("llamafactory-cli train", Deed::Trains),
            ("llamafactory-cli webchat", Deed::Other),
            ("accelerate launch /usr/bin/llamafactory-cli train", Deed::Trains),
            ("axolotl preprocess", Deed::Other),
            ("trl vllm-serve", Deed::Other),
            ("accelerate config", Deed::Other),
            ("accelerate launch -m axolotl.cli.train", Deed::Trains),
            ("accelerate launch main.py", Deed::MayTrain),
            ("torchrun /x/swift/cli/infer.py", Deed::Other),
            ("python -m torch.distributed.run src/finetune_vlm.py", Deed::Trains),
            ("python convert_weights.py", Deed::Other),
            ("python run.py", Deed::MayTrain),
            ("python mapper.py", Deed::MayTrain),
            ("python merge_and_train.py", Deed::MayTrain),
            ("python -m pip install x", Deed::Other),
            ("python -c print(1)", Deed::Other),
        ] {
            let words: Vec<String> = command.split(' ').map(str::to_owned).collect();
            assert_eq!(deed(&words), wanted, "{command}");
        }
    }
}
