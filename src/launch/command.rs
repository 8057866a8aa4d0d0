//! Reads a command line or a shell script that starts a run.

use serde_json::Value;

use crate::Parsed;
use crate::deed::{Deed, deed};
use crate::entry::{Entry, flatten};
use crate::processes::Launcher;
use crate::program::{PROGRAMS, is_scheduler, started};
use crate::remark::{Note, Remark};
use crate::shell::Variables;
use crate::simple_commands::{EarlyEnd, LogicalLine, logical_lines, simple_commands};
use crate::tool::Tool;

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
}

/// Returns true if a text of this name looks like a command or a shell script.
pub(crate) fn looks_like(name: &str, text: &str) -> bool {
    let starts = |line: &str| {
        let words: Vec<String> = line.split_ascii_whitespace().map(str::to_owned).collect();
        let count = words.iter().take_while(|word| is_assignment(word)).count();
        started(&words[count..]).is_some()
    };
    let is_script = [".sh", ".bash"].iter().any(|ending| name.ends_with(ending));
    is_script || text.starts_with("#!") || text.lines().flat_map(simple_commands).any(|line| starts(&line))
}

/// Returns true for `NAME=value` before a command.
fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

/// A command of a script that starts a program.
struct Found {
    command: Command,
    /// Number of its first line.
    line: usize,
    /// Why its settings cannot be read here.
    fault: Option<String>,
}

impl Found {
    /// Its program with the subcommand or the script, and where it stands.
    fn shown(&self) -> String {
        format!("`{}` (line {})", self.command.program.join(" "), self.line)
    }
}

/// Reads the one command of a text that starts a training run.
///
/// # Errors
/// Says what can't be read: quotes that do not end, no program that is known, none that trains, several that train, or one
/// that starts under a condition or in a number of processes that is not read.
pub(crate) fn read(text: &str) -> Result<Command, String> {
    let mut all = found(text)?;
    if all.is_empty() {
        return Err(format!("it starts none of: {}", PROGRAMS.join(", ")));
    }
    let of = |wanted: Deed| -> Vec<usize> {
        let mut out: Vec<usize> = Vec::new();
        for (at, found) in all.iter().enumerate() {
            let is_again = out
                .iter()
                .any(|earlier| all[*earlier].command.is_same_run(&found.command));
            if deed(&found.command.program) == wanted && !is_again {
                out.push(at);
            }
        }
        out
    };
    let named = |places: &[usize]| -> String {
        let shown: Vec<String> = places.iter().map(|at| all[*at].shown()).collect();
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
    let others: Vec<usize> = [Deed::MayTrain, Deed::Other].into_iter().flat_map(of).collect();
    let others: Vec<usize> = others.into_iter().filter(|at| *at != run).collect();
    let passed_over = (!others.is_empty()).then(|| {
        let values = [("command", all[run].shown()), ("others", named(&others))];
        Note::OtherCommands.with(values)
    });
    let mut found = all.swap_remove(run);
    if let [program, trainer, ..] = &found.command.program[..]
        && program == "trl"
        && !["sft", "dpo", "grpo"].contains(&trainer.as_str())
    {
        return Err(format!(
            "`trl {trainer}` is not simulated yet; trl sft, trl dpo and trl grpo are"
        ));
    }
    if let Some(fault) = found.fault {
        return Err(fault);
    }
    found.command.remarks.extend(passed_over);
    // Its preferences are learnt with DPO where nothing is said (`RLHFArguments.rlhf_type`).
    let says_how = found.command.entries.iter().any(|entry| entry.key == "rlhf_type");
    if found.command.program.get(1).is_some_and(|word| word == "rlhf") && !says_how {
        found.command.entries.push(entry("rlhf_type", "dpo".into(), text));
    }
    Ok(found.command)
}

/// Reads all commands of a text that start a known program, in order.
fn found(text: &str) -> Result<Vec<Found>, String> {
    let mut script = Script {
        text,
        ..Script::default()
    };
    let mut lines = logical_lines(text).into_iter().peekable();
    while let Some(line) = lines.next() {
        let before = script.found.len();
        for command in simple_commands(&line.text) {
            script.take(&command, line.line)?;
        }
        let cut_off = cut_off(&mut lines);
        if script.found.len() > before
            && !cut_off.is_empty()
            && let Some(last) = script.found.last_mut()
        {
            last.command.remarks.push(Note::CutOff.with([
                ("line", line.line.to_string()),
                ("options", cut_off.join(", ")),
                ("why", why_cut_off(line.early_end).to_owned()),
            ]));
        }
    }
    Ok(script.found)
}

/// A script that is walked, command by command.
#[derive(Default)]
struct Script<'a> {
    text: &'a str,
    found: Vec<Found>,
    exported: Vec<Entry>,
    variables: Variables,
    /// Conditions and loops that are open.
    depth: usize,
}

impl Script<'_> {
    /// Takes a simple command that stands in a line.
    fn take(&mut self, command: &str, line: usize) -> Result<(), String> {
        match command.split_ascii_whitespace().next() {
            Some("if" | "for" | "while" | "case" | "until") => self.depth += 1,
            Some("fi" | "done" | "esac") => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
        let command = self.variables.expand(command);
        let Some(words) = shlex::split(&command) else {
            // What follows a run changes nothing in it.
            return match self.found.is_empty() {
                true => Err(format!("quotes do not end in `{}`", command.trim())),
                false => Ok(()),
            };
        };
        let is_exported = words.first().is_some_and(|word| word == "export");
        let words = &words[usize::from(is_exported)..];
        let count = words.iter().take_while(|word| is_assignment(word)).count();
        let (settings, words) = words.split_at(count);
        let started = started(words);
        // `env` takes settings too.
        let (before, words) = words.split_at(started.map_or(0, |(_, at)| at));
        let settings = settings.iter().chain(before.iter().filter(|word| is_assignment(word)));
        let mut own = Vec::new();
        for (name, value) in settings.filter_map(|word| word.split_once('=')) {
            // A variable that is not exported is the shell's own.
            if is_exported {
                self.exported.push(entry(name, scalar(value), self.text));
            } else if started.is_some() {
                own.push(entry(name, scalar(value), self.text));
            }
            if words.is_empty() {
                self.variables.set(name, (self.depth == 0).then_some(value));
            }
        }
        let Some((program, _)) = started else { return Ok(()) };
        let mut command = Command {
            entries: self.exported.iter().cloned().chain(own).collect(),
            ..Command::default()
        };
        let program = program.to_owned();
        let words: Vec<&String> = std::iter::once(&program).chain(&words[1..]).collect();
        command.options(&words, self.text);
        self.found.push(Found {
            command,
            line,
            fault: fault(before, self.depth),
        });
        Ok(())
    }
}

/// Why a command behind these words, within this many conditions and loops, cannot be read.
fn fault(before: &[String], depth: usize) -> Option<String> {
    if depth > 0 {
        return Some("it starts its run inside of `if` or `for`; give the command alone".to_owned());
    }
    let scheduler = before.first().filter(|word| is_scheduler(word))?;
    Some(format!(
        "`{scheduler}` decides how many processes run, which is not read; give the command that it runs, with torchrun and \
         --nproc_per_node"
    ))
}

/// Takes lines that begin with an option: the author meant them for the command before them, and the shell does not.
/// Returns the options.
fn cut_off(lines: &mut std::iter::Peekable<impl Iterator<Item = LogicalLine>>) -> Vec<String> {
    let mut out = Vec::new();
    while let Some(line) = lines.next_if(|line| line.text.trim_start().starts_with(['-', '#'])) {
        let words = line
            .text
            .split_ascii_whitespace()
            .take_while(|word| !word.starts_with('#'));
        out.extend(words.filter(|word| word.starts_with("--")).map(str::to_owned));
    }
    out
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

impl Command {
    /// The command as a source that is read.
    pub fn parsed(self) -> Parsed {
        Parsed {
            tool: Tool::of_command(&self),
            launcher: Some(Launcher::of(&self.program)),
            words: self.program,
            script: None,
            entries: self.entries,
            is_command: true,
            files: self.files,
            remarks: self.remarks,
        }
    }

    /// Returns true if both start the same program with the same options.
    fn is_same_run(&self, other: &Self) -> bool {
        let options = |of: &Self| -> Vec<(String, Value)> {
            let options = of.entries.iter();
            options.map(|entry| (entry.key.clone(), entry.value.clone())).collect()
        };
        self.program == other.program && self.files == other.files && options(self) == options(other)
    }

    fn options(&mut self, words: &[&String], text: &str) {
        // A blank behind a backslash is a word.
        let words: Vec<&String> = words.iter().copied().filter(|word| !word.trim().is_empty()).collect();
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
                while given.is_none() && at < words.len() && self.is_value(words[at]) {
                    values.push(words[at]);
                    at += 1;
                }
                self.option(key, &values, text);
            } else if let Some((key, value)) = word.split_once('=').filter(|_| is_override(word)) {
                flatten(key, scalar(value), line_of(text, key), &mut self.entries);
            } else if [".yaml", ".yml", ".json"].iter().any(|ending| word.ends_with(ending)) {
                self.files.push(word.to_owned());
            } else {
                self.program.push(word.to_owned());
            }
        }
    }

    /// Returns true for a word that may be a value of the option before it. In `accelerate launch --config_file X train.py
    /// --flag` the script is none.
    fn is_value(&self, word: &str) -> bool {
        let is_launched = self
            .program
            .first()
            .is_some_and(|first| LAUNCHERS.contains(&first.as_str()));
        let is_script = |word: &str| word.ends_with(".py");
        let awaits_script = is_launched && !self.program.iter().any(|word| is_script(word));
        let is_short = word.starts_with('-') && word[1..].starts_with(|c: char| c.is_ascii_alphabetic());
        !(word.starts_with("--") || is_short || is_override(word) || awaits_script && is_script(word))
    }

    fn option(&mut self, key: &str, values: &[&str], text: &str) {
        let key = key.replace('-', "_");
        let value = match values {
            [] => Value::Bool(true),
            [one] => scalar(one),
            many => Value::Array(many.iter().map(|word| scalar(word)).collect()),
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
