//! Reads a command line or a shell script that starts a run.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::deed::{Deed, deed};
use crate::entry::{Entry, flatten};
use crate::keys::{Meaning, find, keys, may_matter};
use crate::launcher::Launcher;
use crate::program::{PROGRAMS, foreign, not_simulated, started};
use crate::remark::{Note, Remark};
use crate::shell::{EarlyEnd, Open, Reading, Run, evaluate, is_assignment, is_translated, open_word, plain};
use crate::tool::{Tool, loss_of_command};
use crate::{Parsed, Source, Way};

/// A command, taken apart.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Command {
    /// Words before the options of the training script: `accelerate launch`, `swift sft`, `torchrun` and so on.
    pub program: Vec<String>,
    /// Options, and `key=value` words.
    pub entries: Vec<Entry>,
    /// Files that the command names as its settings.
    pub files: Vec<String>,
    /// What was passed over to find it, and what it lacks.
    pub remarks: Vec<Remark>,
    /// How the script comes to it.
    pub way: Way,
    /// Variables that the scripts read themselves.
    read: BTreeSet<String>,
    /// Variables that stand among the options and that nobody sets.
    unset: BTreeSet<String>,
}

/// Returns true if a text of this name looks like a command or a shell script.
pub(crate) fn looks_like(name: &str, text: &str) -> bool {
    let starts = |line: &str| {
        let words: Vec<String> = line.split_ascii_whitespace().map(str::to_owned).collect();
        let count = words.iter().take_while(|word| is_assignment(word)).count();
        let words = &words[count..];
        let is_shell = |word: &String| ["bash", "sh", "sbatch", "docker", "make"].contains(&word.as_str());
        started(words).is_some() || words.len() > 1 && words.first().is_some_and(is_shell)
    };
    let is_script = [".sh", ".bash", ".slurm", ".sbatch"]
        .iter()
        .any(|ending| name.ends_with(ending));
    let commands = || text.lines().flat_map(|line| line.split([';', '&', '|']));
    is_script || text.starts_with("#!") || is_translated(name, text) || commands().any(starts)
}

/// A command of a script that starts a program.
struct Found {
    command: Command,
    run: Run,
}

impl Found {
    fn of(run: Run, sources: &[Source<'_>], reading: &Reading) -> Self {
        let text = sources
            .iter()
            .find(|source| source.name == run.source)
            .map_or("", |source| source.text);
        let mut command = Command {
            way: Way {
                source: run.source.clone(),
                folder: run.folder.clone(),
                started: reading.started.clone(),
                written: run
                    .written
                    .iter()
                    .map(|(path, text)| (path.clone(), text.clone()))
                    .collect(),
                script: None,
            },
            read: reading.read.clone(),
            ..Command::default()
        };
        let settings = run
            .settings
            .iter()
            .map(|(name, value)| entry(name, scalar(&plain(value)), text));
        command.entries = settings.collect();
        let words: Vec<String> = run.words.iter().map(|word| as_typed(word)).collect();
        command.options(&words, text);
        if let Some((early_end, options)) = &run.cut_off {
            command.remarks.push(Note::CutOff.with([
                ("line", run.line.to_string()),
                ("options", options.join(", ")),
                ("why", why_cut_off(*early_end).to_owned()),
            ]));
        }
        Self { command, run }
    }

    /// Its program with the subcommand or the script, and where it stands.
    fn shown(&self, main: &str) -> String {
        let place = match self.run.source == main {
            true => format!("line {}", self.run.line),
            false => format!("{}, line {}", self.run.source, self.run.line),
        };
        format!("`{}` ({place})", self.command.program.join(" "))
    }
}

/// Returns true if a command of the text runs a container.
fn starts_container(text: &str) -> bool {
    text.lines().any(|line| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let is_run = |pair: &[&str]| matches!(pair, ["docker" | "podman" | "nerdctl", "run" | "exec"]);
        words.windows(2).any(is_run)
    })
}

/// Reads the one command of a script that starts a training run; `beside` are the files that it may start or name.
///
/// # Errors
/// Says what can't be read: quotes that do not end, no program that is known, none that trains, several that train, or one
/// that starts in a number of processes that is not known.
pub(crate) fn read(main: Source<'_>, beside: &[Source<'_>]) -> Result<Command, String> {
    let mut reading = evaluate(main, beside);
    let runs = std::mem::take(&mut reading.runs);
    if let Some(fault) = reading
        .fault
        .take_if(|fault| runs.is_empty() || fault.contains("steps"))
    {
        return Err(fault);
    }
    let sources: Vec<Source<'_>> = beside.iter().copied().chain([main]).collect();
    let mut all: Vec<Found> = runs.into_iter().map(|run| Found::of(run, &sources, &reading)).collect();
    if all.is_empty() {
        return Err(match reading.absent.first() {
            _ if foreign(main.text).is_some() => {
                not_simulated("it starts", foreign(main.text).unwrap_or_default(), main.name)
            }
            Some(path) => format!("it starts {path}, which is not here; give it too, with --launch {path}"),
            None if starts_container(main.text) => {
                "it starts a container and no training run in it: give the command that is started there".to_owned()
            }
            None => format!(
                "no launch command found ({}); for a Python script: vramscope dry-run train.py",
                PROGRAMS.join(", ")
            ),
        });
    }
    let (run, passed_over) = the_run(&all, main)?;
    let mut found = all.swap_remove(run);
    if let [program, trainer, ..] = &found.command.program[..]
        && program == "trl"
        && !["sft", "dpo", "grpo", "kto", "reward"].contains(&trainer.as_str())
    {
        return Err(format!(
            "`trl {trainer}` is not simulated yet; trl sft, dpo, grpo, kto and reward are"
        ));
    }
    if let Some(fault) = found.run.fault {
        return Err(fault);
    }
    found.command.remarks.extend(passed_over);
    if found.run.is_conditional {
        let line = [("line", found.run.line.to_string())];
        found.command.remarks.push(Note::Conditional.with(line));
    }
    if !found.command.unset.is_empty() {
        let names: Vec<&str> = found.command.unset.iter().map(String::as_str).collect();
        found
            .command
            .remarks
            .push(Note::UnsetVariables.with([("names", names.join(", "))]));
    }
    // Its preferences are learnt with DPO where nothing is said (`RLHFArguments.rlhf_type`).
    let says_how = found.command.entries.iter().any(|entry| entry.key == "rlhf_type");
    if found.command.program.get(1).is_some_and(|word| word == "rlhf") && !says_how {
        found.command.entries.push(entry("rlhf_type", "dpo".into(), main.text));
    }
    Ok(found.command)
}

/// Of the commands of a script the one that trains, with remarks on the others.
fn the_run(all: &[Found], main: Source<'_>) -> Result<(usize, Vec<Remark>), String> {
    let essences: Vec<Essence> = all.iter().map(|found| found.command.essence()).collect();
    let of = |wanted: Deed| -> Vec<usize> {
        let mut out: Vec<usize> = Vec::new();
        for (at, found) in all.iter().enumerate() {
            let is_again = out.iter().any(|earlier| essences[*earlier] == essences[at]);
            if deed(&found.command.program) == wanted && !is_again {
                out.push(at);
            }
        }
        out
    };
    let named = |places: &[usize]| -> String {
        let shown: Vec<String> = places.iter().map(|at| all[*at].shown(main.name)).collect();
        shown.join(", ")
    };
    let runs = match of(Deed::Trains) {
        none if none.is_empty() => of(Deed::MayTrain),
        runs => runs,
    };
    let run = match runs[..] {
        [run] => run,
        [] => return Err(format!("it starts no training: {}", named(&of(Deed::Other)))),
        _ => {
            return Err(format!(
                "it starts several runs: {}; give the one that you mean alone",
                named(&runs)
            ));
        }
    };
    let mut remarks = Vec::new();
    let others: Vec<usize> = [Deed::MayTrain, Deed::Other].into_iter().flat_map(of).collect();
    let others: Vec<usize> = others.into_iter().filter(|at| *at != run).collect();
    if !others.is_empty() {
        let values = [("command", all[run].shown(main.name)), ("others", named(&others))];
        remarks.push(Note::OtherCommands.with(values));
    }
    let alike = essences.iter().filter(|essence| **essence == essences[run]).count();
    if alike > 1 {
        remarks.push(Note::AlikeRuns.with([("count", alike.to_string())]));
    }
    Ok((run, remarks))
}

/// A word without what programs that set texts make of its signs: dashes of options, and quotes.
fn as_typed(word: &str) -> String {
    let plain = word.trim_matches(['\u{201c}', '\u{201d}', '\u{2018}', '\u{2019}']);
    let option = plain.trim_start_matches(['-', '\u{2013}', '\u{2014}']);
    match plain[..plain.len() - option.len()].is_ascii() {
        true => plain.to_owned(),
        false => format!("--{option}"),
    }
}

const fn why_cut_off(early_end: Option<EarlyEnd>) -> &'static str {
    match early_end {
        Some(EarlyEnd::Comment) => "a comment among its lines",
        Some(EarlyEnd::Blank) => "a blank behind a backslash",
        None => "a line without a backslash",
    }
}

/// Programs that start a script, whose options stand before it.
const LAUNCHERS: [&str; 5] = ["accelerate", "torchrun", "deepspeed", "python", "python3"];

/// What of a command may decide memory: runs in which it is the same have the same.
type Essence = (Vec<String>, Vec<String>, Vec<(String, Value)>);

impl Command {
    /// The command as a source that is read.
    pub fn parsed(mut self) -> Parsed {
        let tool = Tool::of_command(&self.program, &self.entries);
        let words: Vec<&str> = self.program.iter().map(String::as_str).collect();
        if let (Some(Tool::TrlDpo), Some(loss)) = (tool, loss_of_command(&words)) {
            self.entries.push(Entry {
                key: "trainer.loss".to_owned(),
                value: loss.into(),
                line: 1,
                cell: None,
            });
        }
        let module = self.program.iter().skip_while(|word| *word != "-m").nth(1);
        let script = self.program.iter().rev().find(|word| word.ends_with(".py")).or(module);
        self.way.script = script.cloned();
        // Variables that a script reads itself reach the program through its options.
        let known = keys(tool.unwrap_or(Tool::Transformers));
        let read = std::mem::take(&mut self.read);
        self.entries
            .retain(|entry| known.contains_key(&*entry.key) || !read.contains(&entry.key));
        Parsed {
            tool,
            launcher: Some(Launcher::of(&self.program)),
            words: self.program,
            script: None,
            entries: self.entries,
            is_command: true,
            files: self.files,
            remarks: self.remarks,
            way: self.way,
        }
    }

    fn essence(&self) -> Essence {
        let known = keys(Tool::of_command(&self.program, &self.entries).unwrap_or(Tool::Transformers));
        let decides = |entry: &&Entry| match find(&known, &entry.key.replace('-', "_")) {
            Some(Meaning::NoEffect(_)) => false,
            Some(_) => true,
            None => !self.read.contains(&entry.key) && may_matter(&entry.key),
        };
        let options = self.entries.iter().filter(decides);
        let options = options.map(|entry| (entry.key.clone(), entry.value.clone()));
        (self.program.clone(), self.files.clone(), options.collect())
    }

    fn options(&mut self, words: &[String], text: &str) {
        // A blank behind a backslash is a word.
        let words: Vec<&String> = words.iter().filter(|word| !word.trim().is_empty()).collect();
        let mut at = 0;
        while at < words.len() {
            let word = words[at].as_str();
            at += 1;
            if let Some(option) = word.strip_prefix("--") {
                let (key, given) = match option.split_once('=') {
                    Some((key, value)) => (key, Some(value.to_owned())),
                    None => (option, None),
                };
                let mut values: Vec<&str> = given.as_deref().into_iter().collect();
                while given.is_none()
                    && at < words.len()
                    && self.is_value(words[at])
                    && (values.is_empty() || open_word(words[at]).is_none())
                {
                    values.push(words[at]);
                    at += 1;
                }
                self.option(key, &values, text);
            } else if let Some(open) = open_word(word).filter(|_| !self.awaits_script()) {
                match open {
                    Open::Unset => _ = self.unset.insert(plain(word)),
                    // It may stand for options.
                    Open::Unknown => {
                        let text = Value::String("options that are not known".to_owned());
                        self.entries.push(Entry {
                            key: plain(word),
                            value: text,
                            line: 1,
                            cell: None,
                        });
                    }
                }
            } else if let Some((key, value)) = word.split_once('=').filter(|_| is_override(word)) {
                flatten(key, scalar(&plain(value)), line_of(text, key), &mut self.entries);
            } else if [".yaml", ".yml", ".json"].iter().any(|ending| word.ends_with(ending)) {
                self.files.push(plain(word));
            } else {
                self.program.push(plain(word));
            }
        }
    }

    /// Returns true as long as the script of a launcher has not been named.
    fn awaits_script(&self) -> bool {
        let is_launched = self
            .program
            .first()
            .is_some_and(|first| LAUNCHERS.contains(&first.as_str()));
        is_launched && !self.program.iter().any(|word| word.ends_with(".py"))
    }

    /// Returns true for a word that may be a value of the option before it. In `accelerate launch --config_file X train.py
    /// --flag` the script is none, nor is a program that is started so.
    fn is_value(&self, word: &str) -> bool {
        let is_program = |word: &str| PROGRAMS.contains(&word.rsplit('/').next().unwrap_or(word));
        let is_short = word.starts_with('-') && word[1..].starts_with(|c: char| c.is_ascii_alphabetic());
        !(word.starts_with("--")
            || is_short
            || is_override(word)
            || self.awaits_script() && (word.ends_with(".py") || is_program(word)))
    }

    fn option(&mut self, key: &str, values: &[&str], text: &str) {
        let key = key.replace('-', "_");
        let value = match values {
            [] => Value::Bool(true),
            [one] => scalar(&plain(one)),
            many => Value::Array(many.iter().map(|word| scalar(&plain(word))).collect()),
        };
        if key == "config"
            && let Value::String(path) = &value
        {
            self.files.push(path.clone());
        }
        flatten(&key, value, line_of(text, &key), &mut self.entries);
    }
}

/// Returns true for `key=value` as Hydra and LLaMA-Factory take it.
fn is_override(word: &str) -> bool {
    word.split_once('=').is_some_and(|(key, _)| {
        !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.'))
    })
}

fn entry(key: &str, value: Value, text: &str) -> Entry {
    Entry {
        key: key.to_owned(),
        value,
        line: line_of(text, key),
        cell: None,
    }
}

/// Line of a text in which a key stands.
fn line_of(text: &str, key: &str) -> usize {
    let dashed = key.replace('_', "-");
    let holds = |line: &str| line.contains(key) || line.contains(&dashed);
    text.lines().position(holds).map_or(1, |place| place + 1)
}

/// Reads a word as JSON where it is, else as text. Python's `True`, `False` and `None` count too.
fn scalar(word: &str) -> Value {
    match word {
        "True" | "true" => Value::Bool(true),
        "False" | "false" => Value::Bool(false),
        "None" | "null" => Value::Null,
        _ => serde_json::from_str(word).unwrap_or_else(|_| Value::String(word.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(text: &str) -> Result<Command, String> {
        super::read(Source { name: "", text }, &[])
    }

    fn pairs(command: &Command) -> Vec<(&str, Value)> {
        command
            .entries
            .iter()
            .map(|e| (e.key.as_str(), e.value.clone()))
            .collect()
    }

    #[test]
    fn a_script_with_continued_lines_is_one_command() {
        let text = "#!/bin/bash\n# train\nexport MAX_PIXELS=1003520\nCUDA_VISIBLE_DEVICES=0,1 \\\nNPROC_PER_NODE=2 \\\n\
                    swift sft \\\n    --model Qwen/Qwen2.5-VL-7B-Instruct \\\n    --target-modules q_proj v_proj \\\n    --bf16\n";
        assert!(looks_like("", text));
        let command = read(text).unwrap();
        assert_eq!(command.program, ["swift", "sft"]);
        assert_eq!(
            pairs(&command),
            [
                ("MAX_PIXELS", json!(1_003_520)),
                ("CUDA_VISIBLE_DEVICES", json!("0,1")),
                ("NPROC_PER_NODE", json!(2)),
                ("model", json!("Qwen/Qwen2.5-VL-7B-Instruct")),
                ("target_modules", json!(["q_proj", "v_proj"])),
                ("bf16", json!(true)),
            ]
        );
    }

    #[test]
    fn variables_that_double_do_not_fill_memory() {
        let text = "a=xxxxxxxxxxxxxxxx\n".to_owned() + &"a=$a$a\n".repeat(60) + "python train.py --bf16 True --x $a\n";
        assert_eq!(read(&text).unwrap().program, ["python", "train.py"]);
    }

    #[test]
    fn commands_that_other_programs_start_are_read() {
        for line in [
            "python3 train.py --bf16 True",
            "/opt/conda/bin/python3.11 train.py --bf16 True > log 2>&1",
            "nohup python3 train.py --bf16 True &",
            "uv run --with trl python3 train.py --bf16 True",
            "conda run -n trl python3 train.py --bf16 True",
            "conda run -n python3 --no-capture-output python3 train.py --bf16 True",
            "python3 train.py \u{2014}bf16 \u{201c}True\u{201d}",
            "sudo -E python3 train.py --bf16 True",
            "env A=1 python3 train.py --bf16 True | tee log",
            "cd somewhere && python3 train.py --bf16 True; echo done",
            "# don't\ncat > a.yaml <<EOF\nit's: a file\nEOF\npython3 train.py --bf16 True",
            "args=\"\n --bf16 True\n\"\npython3 train.py ${args}",
        ] {
            assert!(looks_like("", line), "{line}");
            let command = read(line).unwrap();
            assert_eq!(command.program[0], "python3", "{line}");
            assert!(command.program.contains(&"train.py".to_owned()), "{line}");
            let options: Vec<_> = pairs(&command)
                .into_iter()
                .filter(|(key, _)| *key != "A" && *key != "with")
                .collect();
            assert_eq!(options, [("bf16", json!(true))], "{line}");
        }
        let told = read("srun -n 8 python train.py --bf16 True").unwrap_err();
        assert!(told.contains("`srun` decides how many processes run"), "{told}");
        assert!(!looks_like("", "model: python\nname: uv run\n"));
    }

    #[test]
    fn overrides_files_and_the_script_are_told_apart() {
        let command = read("llamafactory-cli train a.yaml cutoff_len=4096 lora_rank=64").unwrap();
        assert_eq!(
            (command.files.as_slice(), command.program.len()),
            (&["a.yaml".to_owned()][..], 2)
        );
        assert_eq!(pairs(&command), [("cutoff_len", json!(4096)), ("lora_rank", json!(64))]);
        let command = read("accelerate launch --config_file fsdp.yaml train.py --bf16 True").unwrap();
        assert_eq!(command.program, ["accelerate", "launch", "train.py"]);
        assert_eq!(
            pairs(&command),
            [("config_file", json!("fsdp.yaml")), ("bf16", json!(true))]
        );
    }

    #[test]
    fn variables_of_a_script_are_put_in() {
        let text = "nproc=2\nMODEL=a/b\nexport WANDB_MODE=off\nNPROC_PER_NODE=$nproc \\\nswift sft --model ${MODEL} \\\n\
                    --gradient_accumulation_steps $(expr 16 / $nproc) --learning_rate -1\n";
        assert_eq!(
            pairs(&read(text).unwrap()),
            [
                ("WANDB_MODE", json!("off")),
                ("NPROC_PER_NODE", json!(2)),
                ("model", json!("a/b")),
                ("gradient_accumulation_steps", json!(8)),
                ("learning_rate", json!(-1)),
            ]
        );
        let branches = "if [ $1 == a ]\nthen\nn=1\nelse\nn=2\nfi\ndeepspeed --num_gpus=$n --no_ssh train.py --bf16\n";
        let command = read(branches).unwrap();
        assert_eq!(command.program, ["deepspeed", "train.py"]);
        assert_eq!(
            pairs(&command),
            [
                ("num_gpus", json!("$n")),
                ("no_ssh", json!(true)),
                ("bf16", json!(true))
            ]
        );
        assert!(read("for x in 1 2\ndo\nswift sft --model $x\ndone\n").is_err());
        let module = read("accelerate launch --num_processes 2 -m axolotl.cli.train a.yml").unwrap();
        assert_eq!(module.program, ["accelerate", "launch", "-m", "axolotl.cli.train"]);
    }

    #[test]
    fn what_is_no_command_is_refused() {
        assert!(!looks_like("", "batch: 4\nseq: 2\n"));
        assert!(read("echo hello").is_err());
        assert!(read("swift sft --model 'x").is_err());
    }
}
