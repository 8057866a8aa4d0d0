//! Files that hold commands of a shell without being scripts: makefiles, justfiles, notes in Markdown, what was typed in a
//! terminal, batch files of Windows and scripts of PowerShell, as scripts, whose lines keep their numbers; and jobs ([`super::task`]).

use super::{is_assignment, is_name, task};
use crate::program::started;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Makefile,
    Justfile,
    Notes,
    Batch,
    PowerShell,
    Session,
    Task,
}

/// Kind of a file that is no script, by its name, or by how it begins.
pub(super) fn kind(name: &str, text: &str) -> Option<Kind> {
    let name = name.rsplit(['/', '\\']).next().unwrap_or(name).to_ascii_lowercase();
    let ends = |endings: &[&str]| endings.iter().any(|ending| name.ends_with(ending));
    let first = text
        .trim_start()
        .lines()
        .next()
        .unwrap_or_default()
        .to_ascii_lowercase();
    if name == "makefile" || name == "gnumakefile" || ends(&[".mk", ".make"]) {
        return Some(Kind::Makefile);
    }
    if name == "justfile" || name == ".justfile" || ends(&[".just"]) {
        return Some(Kind::Justfile);
    }
    if task::is_one(&name, text) {
        return Some(Kind::Task);
    }
    if ends(&[".bat", ".cmd"]) || first.starts_with("@echo off") {
        return Some(Kind::Batch);
    }
    if ends(&[".ps1"]) {
        return Some(Kind::PowerShell);
    }
    let is_script = first.starts_with("#!") || ends(&[".sh", ".bash", ".slurm", ".sbatch"]);
    let is_fence = |line: &str| line.trim_start().starts_with("```");
    let is_notes = ends(&[".md", ".markdown"]) || !is_script && text.lines().any(is_fence);
    let is_other = ends(&[".py", ".ipynb", ".yaml", ".yml", ".json"]);
    match is_notes {
        _ if is_other => None,
        true => Some(Kind::Notes),
        false => text.lines().any(starts_behind_prompt).then_some(Kind::Session),
    }
}

/// What is typed behind a prompt: `$ …`, `(env) user@host:~/folder# …`, `[user@host folder]$ …`.
fn behind_prompt(line: &str) -> Option<&str> {
    let mut line = line.trim_start();
    while let Some((environment, rest)) = line.strip_prefix('(').and_then(|rest| rest.split_once(") ")) {
        if environment.contains([' ', '(', '$']) {
            return None;
        }
        line = rest.trim_start();
    }
    if let Some(typed) = line.strip_prefix("$ ") {
        return Some(typed);
    }
    let (prompt, typed) = ["$ ", "# "]
        .iter()
        .filter_map(|sign| line.split_once(sign))
        .min_by_key(|(prompt, _)| prompt.len())?;
    let inner = prompt.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let (user, place) = inner.unwrap_or(prompt).split_once('@')?;
    let is_host = match inner {
        Some(_) => place.split(' ').count() <= 2,
        None => place.contains(':') && !place.contains(' '),
    };
    let is_user = !user.is_empty() && user.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c));
    (is_host && is_user && !place.contains(['=', '\'', '"'])).then_some(typed)
}

/// True for a line that starts a program behind a prompt.
fn starts_behind_prompt(line: &str) -> bool {
    behind_prompt(line).is_some_and(|typed| {
        let words: Vec<String> = typed.split_ascii_whitespace().map(str::to_owned).collect();
        let settings = words.iter().take_while(|word| is_assignment(word)).count();
        let is_shell = |word: &String| matches!(word.as_str(), "bash" | "sh" | "sbatch" | "export");
        started(&words[settings..]).is_some() || words.get(settings).map_or(settings > 0, is_shell)
    })
}

/// What is typed in a terminal, without what is printed there.
fn session(text: &str) -> String {
    let mut is_continued = false;
    let line = |line: &str| {
        let typed = match is_continued {
            true => Some(line.strip_prefix("> ").unwrap_or(line)),
            false => behind_prompt(line),
        };
        is_continued = typed.is_some_and(|typed| typed.trim_end().ends_with('\\'));
        typed.unwrap_or_default().to_owned()
    };
    let lines: Vec<String> = text.lines().map(line).collect();
    lines.join("\n")
}

/// The script that a file holds; `None` if it is one itself.
pub(super) fn to_shell(name: &str, text: &str) -> Option<String> {
    match kind(name, text)? {
        Kind::Makefile => makefile(text, None),
        Kind::Justfile => Some(justfile(text)),
        Kind::Task => task::to_shell(text),
        Kind::Notes => Some(notes(text)),
        Kind::Batch => Some(batch(text)),
        Kind::PowerShell => Some(power_shell(text)),
        Kind::Session => Some(session(text)),
    }
}

/// Lines of notes that are of a file of settings, at their places: `key: value`, items of lists, comments.
pub(super) fn settings(name: &str, text: &str) -> Option<String> {
    let is_settings = |line: &str| {
        let plain = line.trim();
        let is_key = |key: &str| is_name(&key.replace(['.', '-'], "_"));
        let is_pair = plain.split_once(':').is_some_and(|(key, value)| {
            let value = value.trim_start_matches(' ');
            is_key(key) && (value.len() < plain.len() - key.len() - 1 || value.is_empty()) && !value.starts_with("//")
        });
        plain.starts_with("- ") && line.starts_with(' ') || is_pair
    };
    (kind(name, text)? == Kind::Notes).then(|| {
        let lines: Vec<&str> = text
            .lines()
            .map(|line| if is_settings(line) { line } else { "" })
            .collect();
        lines.join("\n")
    })
}

/// Blocks of commands in Markdown, without prompts.
fn notes(text: &str) -> String {
    let mut is_block = false;
    let line = |line: &str| {
        let plain = line.trim_start();
        if let Some(language) = plain.strip_prefix("```") {
            let is_shell = ["", "bash", "sh", "shell", "console", "zsh", "shell-session", "text"];
            is_block = !is_block && is_shell.contains(&language.trim().to_ascii_lowercase().as_str());
            return String::new();
        }
        match is_block {
            true => behind_prompt(plain).unwrap_or(plain).to_owned(),
            false => String::new(),
        }
    };
    let lines: Vec<String> = text.lines().map(line).collect();
    lines.join("\n")
}

/// Commands of a makefile: those of a target, or of all that are no others' files.
pub(super) fn makefile(text: &str, wanted: Option<&str>) -> Option<String> {
    let mut out = Vec::new();
    let mut is_taken = true;
    let mut is_continued = false;
    for line in text.lines() {
        let is_joined = std::mem::replace(&mut is_continued, line.ends_with('\\'));
        let is_recipe = line.starts_with('\t') || is_joined;
        let target = line
            .split_once(':')
            .filter(|(_, rest)| !is_recipe && !rest.starts_with('='));
        let assignment = ["?=", ":=", "+=", "="].iter().find_map(|sign| {
            let (name, value) = line.split_once(sign)?;
            let name = name.trim().trim_start_matches("export ");
            is_name(name).then(|| (name.to_owned(), *sign, value.trim().to_owned()))
        });
        out.push(match (is_recipe, assignment, target) {
            // A line that goes on begins with an option rather than with a mark of make's.
            (true, ..) if is_taken && is_joined => of_make(line.trim_start()),
            (true, ..) if is_taken => of_make(line.trim_start_matches(['\t', '@', '-', '+'])),
            (true, ..) => String::new(),
            (_, Some((name, "?=", value)), _) => format!(": \"${{{name}:={}}}\"", of_make(&value).replace('"', "\\\"")),
            (_, Some((name, _, value)), _) => format!("{name}=\"{}\"", of_make(&value).replace('"', "\\\"")),
            (_, None, Some((names, _))) => {
                is_taken = wanted.is_none_or(|wanted| names.split_whitespace().any(|name| name == wanted));
                String::new()
            }
            _ => String::new(),
        });
    }
    Some(out.join("\n"))
}

/// Commands of a justfile: `x := "…"` is a variable, `{{x}}` its value.
fn justfile(text: &str) -> String {
    let mut is_continued = false;
    let line = |line: &str| {
        let is_joined = std::mem::replace(&mut is_continued, line.ends_with('\\'));
        let plain = line.trim_start();
        if is_joined {
            return of_braces(plain);
        }
        if line.starts_with([' ', '\t']) {
            return of_braces(plain.trim_start_matches(['@', '-']));
        }
        match line.trim_start_matches("export ").split_once(":=") {
            Some((name, value)) if is_name(name.trim()) => {
                let value = value.trim().trim_matches(['"', '\'']);
                format!("{}=\"{}\"", name.trim(), of_braces(value).replace('"', "\\\""))
            }
            _ => String::new(),
        }
    };
    let lines: Vec<String> = text.lines().map(line).collect();
    lines.join("\n")
}

/// `{{x}}` as `${x}`.
fn of_braces(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once("{{") {
        out.push_str(before);
        match behind.split_once("}}") {
            Some((name, after)) if is_name(name.trim()) => {
                out.push_str(&format!("${{{}}}", name.trim()));
                rest = after;
            }
            _ => {
                out.push_str("{{");
                rest = behind;
            }
        }
    }
    out + rest
}

/// A line of a makefile with a shell's variables: `$(X)` is `${X}`, `$$` is `$`.
fn of_make(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some((before, behind)) = rest.split_once('$') {
        out.push_str(before);
        if let Some(behind) = behind.strip_prefix('$') {
            out.push('$');
            rest = behind;
            continue;
        }
        let inner = behind.strip_prefix('(').and_then(|behind| behind.split_once(')'));
        match inner {
            Some((name, after)) if is_name(name) => {
                out.push_str(&format!("${{{name}}}"));
                rest = after;
            }
            Some((command, after)) if command.starts_with("shell ") => {
                out.push_str(&format!("$({})", &command["shell ".len()..]));
                rest = after;
            }
            _ => {
                out.push('$');
                rest = behind;
            }
        }
    }
    out + rest
}

/// A batch file: `set`, `%X%`, `rem` and `^` as a shell has them.
fn batch(text: &str) -> String {
    let line = |line: &str| -> String {
        let plain = line.trim_end().trim_start().trim_start_matches('@');
        let lower = plain.to_ascii_lowercase();
        if lower.starts_with("rem ") || lower == "rem" || plain.starts_with("::") {
            return format!("# {plain}");
        }
        if let Some(set) = lower.strip_prefix("set ").map(|_| plain["set ".len()..].trim()) {
            let set = set.trim_matches('"');
            return match set.split_once('=') {
                Some((name, value)) if is_name(name.trim()) => {
                    format!("export {}=\"{}\"", name.trim(), of_percent(value).replace('"', ""))
                }
                _ => String::new(),
            };
        }
        let plain = plain
            .strip_prefix("call ")
            .or_else(|| plain.strip_prefix("start "))
            .unwrap_or(plain);
        let (body, end) = match plain.strip_suffix('^') {
            Some(body) => (body, "\\"),
            None => (plain, ""),
        };
        of_percent(body).replace('\\', "/").replace(".exe", "") + end
    };
    let lines: Vec<String> = text.lines().map(line).collect();
    lines.join("\n")
}

/// `%X%` as `${X}`, `%1` as `$1`.
fn of_percent(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('%') {
        out.push_str(before);
        match behind.split_once('%') {
            Some((name, after)) if is_name(name) => {
                out.push_str(&format!("${{{name}}}"));
                rest = after;
            }
            _ if behind.starts_with(|c: char| c.is_ascii_digit()) => {
                out.push('$');
                rest = behind;
            }
            _ => {
                out.push('%');
                rest = behind;
            }
        }
    }
    out + rest
}

/// A script of PowerShell: `$env:X = "…"`, `$x = …` and the backtick that joins lines.
fn power_shell(text: &str) -> String {
    let line = |line: &str| -> String {
        let plain = line.trim();
        let assigned = plain.strip_prefix('$').and_then(|rest| rest.split_once('='));
        if let Some((name, value)) = assigned {
            let name = name.trim();
            let (export, name) = match name.strip_prefix("env:").or_else(|| name.strip_prefix("Env:")) {
                Some(name) => ("export ", name),
                None => ("", name),
            };
            if is_name(name) {
                let value = value.trim().trim_matches(['"', '\'']);
                return format!("{export}{name}=\"{}\"", value.replace("$env:", "$"));
            }
        }
        let (body, end) = match plain.strip_suffix('`') {
            Some(body) => (body, "\\"),
            None => (plain, ""),
        };
        body.trim_start_matches("& ").replace("$env:", "$").replace('\\', "/") + end
    };
    let lines: Vec<String> = text.lines().map(line).collect();
    lines.join("\n")
}
