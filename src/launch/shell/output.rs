//! What programs print, of those whose output is known without running them.

use super::arithmetic;
use super::path::{file_name, folder, within};
use super::state::State;
use super::{is_open, open};

/// What a program prints, given what it reads; `None` if that is not known.
pub(super) fn printed(words: &[String], input: Option<&str>, state: &State) -> Option<String> {
    let arguments: Vec<&str> = words[1..].iter().map(String::as_str).collect();
    let last = arguments.last().copied().unwrap_or_default();
    let line = |text: &str| Some(format!("{text}\n"));
    match file_name(&words[0]) {
        "pwd" => line(&state.place()),
        "dirname" => line(&folder(last)),
        "basename" => {
            let name = file_name(arguments.first()?);
            let ending = arguments.get(1).copied().unwrap_or_default();
            line(name.strip_suffix(ending).unwrap_or(name))
        }
        "realpath" | "readlink" => line(&format!("./{}", within(&state.folder, last))),
        "which" | "whereis" => line(last),
        "command" if arguments.first() == Some(&"-v") => line(last),
        "git" if last == "--show-toplevel" => line("."),
        "expr" => line(&sum(&arguments.join(" "))?),
        "bc" => line(&sum(input?.trim())?),
        "seq" => sequence(&arguments),
        "nvidia-smi" => devices(&arguments, state.visible()?),
        name if name.starts_with("python") => counted_by_torch(&arguments, state.visible()),
        name => {
            let input = input?;
            (!is_open(input)).then(|| filtered(name, &arguments, input)).flatten()
        }
    }
}

fn sum(text: &str) -> Option<String> {
    let value = arithmetic::value(&text.replace('\\', ""), &mut State::default())?;
    Some(value.to_string())
}

/// Most lines of a sequence.
const MOST_LINES: i64 = 1000;

fn sequence(arguments: &[&str]) -> Option<String> {
    let numbers: Vec<i64> = arguments.iter().map(|text| text.parse().ok()).collect::<Option<_>>()?;
    let (from, step, to) = match numbers[..] {
        [to] => (1, 1, to),
        [from, to] => (from, 1, to),
        [from, step, to] if step > 0 => (from, step, to),
        _ => return None,
    };
    let count = to.checked_sub(from)?.checked_div(step)?;
    let lines = (0..=count.min(MOST_LINES)).filter(|_| count >= 0);
    Some(lines.map(|at| format!("{}\n", from + at * step)).collect())
}

/// Lines of `nvidia-smi` about this many GPUs.
fn devices(arguments: &[&str], count: usize) -> Option<String> {
    let lists = arguments.iter().any(|word| matches!(*word, "-L" | "--list-gpus"));
    let query = arguments.iter().find_map(|word| word.strip_prefix("--query-gpu="));
    let has_header = query.is_some() && !arguments.iter().any(|word| word.contains("noheader"));
    let header = has_header.then(|| format!("{}\n", query.unwrap_or_default()));
    let lines = (0..count.min(1000)).map(|at| match query {
        Some("count") => format!("{count}\n"),
        Some(_) => format!("{at}\n"),
        None => format!("GPU {at}\n"),
    });
    (lists || query.is_some()).then(|| header.into_iter().chain(lines).collect())
}

/// A line of Python that prints how many GPUs there are.
fn counted_by_torch(arguments: &[&str], visible: Option<usize>) -> Option<String> {
    let code = arguments.iter().position(|word| *word == "-c")?;
    let code = arguments.get(code + 1)?;
    let is_count = code.contains("device_count()") && code.contains("print");
    let is_plain = !code.contains(['+', '*', '/', '-']);
    (is_count && is_plain)
        .then_some(visible?)
        .map(|count| format!("{count}\n"))
}

/// Characters that mean more than themselves in a pattern of grep or sed.
const OF_PATTERNS: [char; 9] = ['*', '.', '[', '\\', '^', '$', '+', '?', '|'];

/// What a filter leaves of lines.
fn filtered(name: &str, arguments: &[&str], input: &str) -> Option<String> {
    match name {
        "cat" | "tee" if arguments.is_empty() => Some(input.to_owned()),
        "wc" if arguments.contains(&"-l") => Some(format!("{}\n", input.matches('\n').count())),
        "wc" if arguments.contains(&"-w") => Some(format!("{}\n", input.split_whitespace().count())),
        "head" | "tail" => Some(end_of(name, arguments, input)),
        "tr" => translated(arguments, input),
        "cut" => {
            let separator = option(arguments, "-d")?.chars().next()?;
            let field: usize = option(arguments, "-f")?.parse().ok()?;
            let cut = |line: &str| line.split(separator).nth(field.checked_sub(1)?).map(str::to_owned);
            let cut: Vec<String> = input.lines().map(|line| cut(line).unwrap_or_default()).collect();
            Some(joined(&cut))
        }
        "awk" => counted_fields(arguments, input),
        "grep" => matching(arguments, input),
        "sed" => {
            let code = arguments.last()?.strip_prefix('s')?;
            let mut parts = code.get(1..)?.split(code.chars().next()?);
            let (from, to, flags) = (parts.next()?, parts.next()?, parts.next()?);
            let is_plain = !from.contains(OF_PATTERNS) && !from.is_empty();
            let to = super::expand::unescaped(to);
            (is_plain && flags == "g").then(|| input.replace(from, &to))
        }
        "xargs" if arguments.is_empty() => {
            Some(format!("{}\n", input.split_whitespace().collect::<Vec<_>>().join(" ")))
        }
        "sort" if arguments.is_empty() => {
            let mut all: Vec<&str> = input.lines().collect();
            all.sort_unstable();
            Some(joined(&all))
        }
        _ => None,
    }
}

/// Value of an option, behind it or in the next word.
fn option<'a>(arguments: &[&'a str], wanted: &str) -> Option<&'a str> {
    let at = arguments.iter().position(|word| word.starts_with(wanted))?;
    match &arguments[at][wanted.len()..] {
        "" => arguments.get(at + 1).copied(),
        inside => Some(inside),
    }
}

fn joined<S: std::fmt::Display>(lines: &[S]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// What `head` and `tail` leave.
fn end_of(name: &str, arguments: &[&str], input: &str) -> String {
    let count = arguments
        .iter()
        .find_map(|word| word.trim_start_matches(['-', 'n']).parse::<usize>().ok());
    let count = count.unwrap_or(10);
    let all: Vec<&str> = input.lines().collect();
    match name {
        "head" => joined(&all[..count.min(all.len())]),
        _ => joined(&all[all.len().saturating_sub(count)..]),
    }
}

/// What `tr` makes of a text.
fn translated(arguments: &[&str], input: &str) -> Option<String> {
    match arguments {
        ["-d", set] => {
            let set = super::expand::unescaped(set);
            Some(input.replace(|c| set.contains(c), ""))
        }
        [from, to] if !from.contains(['[', '-']) => {
            let (from, to) = (super::expand::unescaped(from), super::expand::unescaped(to));
            let last = to.chars().last()?;
            let change = |c: char| {
                let at = from.chars().position(|own| own == c)?;
                Some(to.chars().nth(at).unwrap_or(last))
            };
            Some(input.chars().map(|c| change(c).unwrap_or(c)).collect())
        }
        _ => None,
    }
}

/// What `awk '{print NF}'` counts.
fn counted_fields(arguments: &[&str], input: &str) -> Option<String> {
    let code = arguments.last()?;
    if code.replace(' ', "") != "{printNF}" {
        return None;
    }
    let separator = option(arguments, "-F").map(|text| text.trim_matches(['\'', '"']).to_owned());
    let count = |line: &str| match &separator {
        Some(separator) if !separator.is_empty() => line.split(separator.as_str()).count(),
        _ => line.split_whitespace().count(),
    };
    Some(joined(&input.lines().map(count).collect::<Vec<_>>()))
}

/// What `grep` finds of a plain text.
fn matching(arguments: &[&str], input: &str) -> Option<String> {
    let pattern = *arguments.last()?;
    if pattern.is_empty() || pattern.contains(OF_PATTERNS) {
        return None;
    }
    let found: Vec<&str> = input.lines().filter(|line| line.contains(pattern)).collect();
    match arguments.first().copied()? {
        "-o" => Some(format!("{pattern}\n").repeat(input.matches(pattern).count().min(1000))),
        "-c" => Some(format!("{}\n", found.len())),
        first if first == pattern => Some(joined(&found)),
        _ => None,
    }
}

/// What `printf` prints.
pub(super) fn formatted(words: &[String]) -> Option<String> {
    let format = super::expand::unescaped(words.first()?);
    let mut arguments = words[1..].iter();
    let mut out = String::new();
    loop {
        let before = arguments.len();
        let mut rest = format.as_str();
        while let Some((text, behind)) = rest.split_once('%') {
            out.push_str(text);
            match behind.chars().next() {
                Some('s' | 'd' | 'q') => out.push_str(arguments.next().map_or("", String::as_str)),
                Some('%') => out.push('%'),
                _ => return Some(open(&format)),
            }
            rest = &behind[1..];
        }
        out.push_str(rest);
        if arguments.len() == 0 || arguments.len() == before {
            return Some(out);
        }
    }
}
