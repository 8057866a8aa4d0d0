//! Reads the command in a paste: what it starts, and what of it never reaches the program.

use serde::{Deserialize, Serialize};

use crate::paste::Paste;

/// The command that starts the run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct OfCommand {
    /// Number of the line that starts it.
    pub line: usize,
    /// Its text, for the reader of launch files.
    #[serde(skip)]
    pub text: String,
    /// What a comment or a blank cut off.
    pub lost: Option<Lost>,
    /// Variables that are set and never reach it, with their lines.
    pub unexported: Vec<(String, usize)>,
}

/// Options after the end of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lost {
    /// Number of the line that ends the command.
    pub line: usize,
    /// True for a comment, false for a blank after the backslash.
    pub is_comment: bool,
    /// Options that never reach the program.
    pub options: Vec<String>,
}

/// Words that begin a command of training, serving or launching.
const PROGRAMS: [&str; 15] = [
    "swift",
    "megatron",
    "llamafactory-cli",
    "deepspeed",
    "torchrun",
    "accelerate",
    "axolotl",
    "trl",
    "python",
    "python3",
    "vllm",
    "xtuner",
    "srun",
    "tune",
    "mpirun",
];
/// Most lines of one command.
const MOST_LINES: usize = 200;

/// The command of a text; `None` if it has none.
pub fn command(paste: &Paste<'_>) -> Option<OfCommand> {
    let (index, first) = (0..paste.len()).find_map(|index| {
        let line = paste.line(index);
        starts(line).then(|| (index, first_of(paste, index)))
    })?;
    // A comment among the variables before the program cuts those above it off.
    if let Some(lost) = lost_above(paste, first, index) {
        return Some(OfCommand {
            line: paste.number(index),
            text: paste.line(index).to_owned(),
            lost: Some(lost),
            unexported: Vec::new(),
        });
    }
    let (end, lost) = end_of(paste, index);
    let lines: Vec<&str> = (first..=end.min(paste.len() - 1)).map(|i| paste.line(i)).collect();
    let text = lines.join("\n");
    // Options on lines of their own without a backslash: the paste lost the backslashes, those between variables too, so
    // nothing can be said about variables on lines of their own.
    let is_flat = lost.is_none() && paste.line(end + 1).trim_start().starts_with("--");
    let unexported = match is_flat {
        true => Vec::new(),
        false => unexported(paste, first, index, &text),
    };
    Some(OfCommand {
        line: paste.number(index),
        text,
        lost,
        unexported,
    })
}

/// Variables above a comment that separates them from the program.
fn lost_above(paste: &Paste<'_>, first: usize, index: usize) -> Option<Lost> {
    let is_comment = |&at: &usize| paste.line(at).trim_start().starts_with('#');
    let at = (first..index).rev().find(is_comment)?;
    let above = (first..at).map(|i| paste.line(i).trim().trim_end_matches('\\').trim_end());
    let options: Vec<String> = above
        .filter(|line| is_assignment(line))
        .map(crate::paste::masked)
        .collect();
    (!options.is_empty()).then(|| Lost {
        line: paste.number(at),
        is_comment: true,
        options,
    })
}

/// Last line of a command that begins at a line, and what its end cuts off.
fn end_of(paste: &Paste<'_>, index: usize) -> (usize, Option<Lost>) {
    let lost = |end: usize, is_comment: bool| {
        let options = after(paste, end + 1)?;
        Some(Lost {
            line: paste.number(end),
            is_comment,
            options,
        })
    };
    let most = paste.len().min(index + MOST_LINES);
    for end in index..most {
        let line = paste.line(end);
        if end > index && line.trim_start().starts_with('#') {
            // The comment joins the line before it, and takes the rest of the command's line with it.
            return (end, lost(end, true));
        }
        if !line.trim_end().ends_with('\\') {
            return (end, None);
        }
        if line.ends_with([' ', '\t']) {
            return (end, lost(end, false));
        }
    }
    (most.max(1) - 1, None)
}

/// First line of a command whose variables stand on lines of their own before it, joined by backslashes.
fn first_of(paste: &Paste<'_>, index: usize) -> usize {
    let mut first = index;
    while first > 0 && paste.line(first - 1).trim_end().ends_with('\\') && index - first < MOST_LINES {
        first -= 1;
    }
    first
}

/// Returns true if a line starts a program, after variables and a prompt.
fn starts(line: &str) -> bool {
    let line = line.trim_start();
    let line = line
        .strip_prefix("$ ")
        .or_else(|| line.strip_prefix("> "))
        .or_else(|| line.strip_prefix('!'))
        .unwrap_or(line);
    let mut words = line.split_ascii_whitespace();
    let Some(word) = words.find(|word| !is_assignment(word) && *word != "env" && *word != "nohup") else {
        return false;
    };
    let name = word.rsplit('/').next().unwrap_or(word);
    let Some(next) = words.next() else { return false };
    match name {
        "python" | "python3" => next.ends_with(".py") || next == "-m" || next.starts_with('-'),
        "swift" | "megatron" => matches!(next, "sft" | "rlhf" | "pt" | "infer" | "rollout" | "deploy" | "eval"),
        "accelerate" => next == "launch",
        "axolotl" => next == "train",
        "trl" => matches!(next, "sft" | "dpo" | "grpo" | "kto" | "reward"),
        "tune" => next == "run",
        "vllm" => next == "serve",
        name => {
            PROGRAMS.contains(&name)
                && (next.starts_with('-') || next.contains('.') || next == "train" || next == "python")
        }
    }
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    })
}

/// Options in the lines after a command's end; `None` if there are none.
fn after(paste: &Paste<'_>, from: usize) -> Option<Vec<String>> {
    let mut options = Vec::new();
    for index in from..paste.len().min(from + MOST_LINES) {
        let line = paste.line(index).trim();
        let line = line.trim_end_matches('\\').trim_end();
        if !line.starts_with('-') {
            break;
        }
        options.push(crate::paste::masked(line));
    }
    (!options.is_empty()).then_some(options)
}

/// Variables in capitals that are set on lines of their own before the command, without `export`, and not used in it.
fn unexported(paste: &Paste<'_>, first: usize, index: usize, command: &str) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    for at in first.min(index).saturating_sub(MOST_LINES)..first {
        let line = paste.line(at).trim();
        let Some((name, _)) = line.split_once('=').filter(|_| is_assignment(line)) else {
            continue;
        };
        let is_alone = !line.trim_end_matches(';').contains(char::is_whitespace);
        let is_variable = name.len() > 2
            && name
                .bytes()
                .all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_');
        let is_used = [format!("${name}"), format!("${{{name}")].iter().any(|used| {
            command.contains(used.as_str()) || (0..paste.len().min(2000)).any(|i| paste.line(i).contains(used.as_str()))
        });
        let is_exported = (0..paste.len().min(2000)).any(|i| {
            let line = paste.line(i).trim_start();
            line.starts_with("export ") && line.contains(name) || line.starts_with("set -a")
        });
        if is_alone && is_variable && !is_used && !is_exported {
            found.push((name.to_owned(), paste.number(at)));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> OfCommand {
        command(&Paste::of(text)).expect("a command")
    }

    #[test]
    fn what_ends_a_command_early_is_found() {
        let comment = read("deepspeed train.py \\\n  --a 1 \\\n  # --b 2 \\\n  --c 3 \\\n  --d\nnext");
        assert_eq!(
            comment.lost.as_ref().map(|lost| (lost.line, lost.is_comment)),
            Some((3, true))
        );
        assert_eq!(comment.lost.expect("it").options, ["--c 3", "--d"]);
        let blank = read("swift sft \\\n  --a 1 \\ \n  --c 3\n");
        assert_eq!(blank.lost.expect("it").options, ["--c 3"]);
        let variables = read("MAX_PIXELS=1 \\\n# A=2 \\\nswift sft \\\n  --a 1\n");
        assert_eq!(variables.lost.expect("it").options, ["MAX_PIXELS=1"]);
        assert_eq!(read("torchrun --nproc_per_node 2 train.py \\\n --a 1\nOOM").lost, None);
    }

    #[test]
    fn a_variable_that_is_not_exported_does_not_arrive() {
        let found = read("MAX_PIXELS=602112\nDATA=x.json\nswift sft --dataset $DATA\n");
        assert_eq!(found.unexported, [("MAX_PIXELS".to_owned(), 1)]);
        assert!(read("MAX_PIXELS=602112 \\\nswift sft --a b\n").unexported.is_empty());
        assert!(
            read("MAX_PIXELS=602112\nswift sft\n--a b\n--c d\n")
                .unexported
                .is_empty()
        );
        assert!(
            read("export MAX_PIXELS=602112\nswift sft --a b\n")
                .unexported
                .is_empty()
        );
    }
}
