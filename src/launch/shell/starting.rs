//! Commands: what the shell does itself, functions, scripts, programs that start others, and programs that train.

use std::rc::Rc;

use super::interpret::{MOST_CALLS, Shell, Status, assigned};
use super::job::{first_of, header_options, option};
use super::output;
use super::path::{file_name, within};
use super::state::{Flow, State, Value};
use super::{EarlyEnd, Run, is_assignment, is_name, is_open, open, open_word, plain};
use crate::program::{PROGRAMS, is_runner, is_scheduler, started, takes_value};

/// A command whose words are expanded.
#[derive(Debug, Clone)]
pub(super) struct Started {
    words: Vec<String>,
    /// Variables that it alone sees.
    own: Vec<(String, String)>,
    line: usize,
    cut_off: Option<(Option<EarlyEnd>, Vec<String>)>,
    /// Processes that a scheduler starts of it, and why their number is not known.
    tasks: Option<Result<u64, String>>,
}

impl Started {
    pub fn new(
        words: Vec<String>,
        own: Vec<(String, String)>,
        line: usize,
        cut_off: Option<(Option<EarlyEnd>, Vec<String>)>,
    ) -> Self {
        Self {
            words,
            own,
            line,
            cut_off,
            tasks: None,
        }
    }

    /// The same with the words from a place on.
    fn from(&self, at: usize) -> Self {
        Self {
            words: self.words[at.min(self.words.len())..].to_vec(),
            ..self.clone()
        }
    }
}

/// Shells, which start a script or what `-c` holds.
const SHELLS: [&str; 6] = ["bash", "sh", "zsh", "dash", "ksh", "source"];

impl Shell<'_> {
    /// Follows a command.
    pub fn invoke(&mut self, started: Started, state: &mut State) -> Status {
        let mut started = started;
        // `$SRUN python …` of a variable that nobody sets, and the settings of `env`.
        while let Some(first) = started.words.first() {
            match first.split_once('=') {
                _ if open_word(first).is_some() => {}
                Some((name, value)) if is_assignment(first) => started.own.push((name.to_owned(), value.to_owned())),
                _ => break,
            }
            started = started.from(1);
        }
        let Some(first) = started.words.first().cloned() else {
            return Status::Ran;
        };
        if !self.spend(1) || state.calls > MOST_CALLS {
            return Status::Ran;
        }
        if let Some(body) = state.functions.get(&first).cloned() {
            return self.call(&body, &started, state);
        }
        if let Some(status) = self.own_command(&first, &started, state) {
            return status;
        }
        self.program(&first, &started, state)
    }

    fn call(&mut self, body: &Rc<super::syntax::List>, started: &Started, state: &mut State) -> Status {
        let arguments = state.arguments.replace(Rc::new(started.words[1..].to_vec()));
        state.calls += 1;
        let status = self.list(body, state);
        state.calls -= 1;
        state.arguments = arguments;
        if state.flow == Flow::Return {
            state.flow = Flow::Go;
        }
        match status {
            Status::Is(_) | Status::Assumed(_) => status,
            _ => Status::Ran,
        }
    }

    /// What the shell does itself; `None` for programs.
    fn own_command(&mut self, name: &str, started: &Started, state: &mut State) -> Option<Status> {
        let arguments = &started.words[1..];
        match name {
            "true" | ":" => return Some(Status::Is(true)),
            "false" => return Some(Status::Is(false)),
            "exit" => state.flow = Flow::Exit,
            "return" => state.flow = Flow::Return,
            "break" => state.flow = Flow::Break,
            "continue" => state.flow = Flow::Continue,
            "export" | "declare" | "typeset" | "local" | "readonly" => self.declare(name, arguments, state),
            "unset" => arguments.iter().for_each(|name| state.unset(name)),
            "let" => {
                for sum in arguments {
                    self.number(sum, state);
                }
            }
            "set" => {
                if let Some(at) = arguments.iter().position(|word| word == "--") {
                    state.arguments = Some(Rc::new(arguments[at + 1..].to_vec()));
                }
            }
            "shift" => {
                let count = arguments
                    .first()
                    .and_then(|count| count.parse().ok())
                    .unwrap_or(1_usize);
                if let Some(own) = &state.arguments {
                    state.arguments = Some(Rc::new(own.iter().skip(count).cloned().collect()));
                }
            }
            "getopts" => return Some(self.option(arguments, state)),
            "cd" | "pushd" => {
                let to = arguments.iter().find(|word| !word.starts_with('-'));
                state.folder = to.map_or_else(String::new, |to| within(&state.folder, to));
            }
            "popd" => state.folder = String::new(),
            "read" | "mapfile" | "readarray" => {
                self.take_line(name, started, state);
                return Some(Status::Unknown);
            }
            "eval" => {
                let text = arguments.join(" ");
                let list = super::syntax::parse(&plain(&text));
                state.calls += 1;
                let status = self.list(&list, state);
                state.calls -= 1;
                return Some(status);
            }
            "test" | "[" | "[[" => return Some(self.test_command(arguments, state)),
            "echo" | "printf" => self.say(name, arguments),
            "trap" | "alias" | "shopt" | "ulimit" | "umask" | "wait" | "sleep" | "set -x" | "module" | "mkdir"
            | "rm" => {}
            _ => return None,
        }
        Some(Status::Ran)
    }

    /// Status of a test.
    fn test_command(&mut self, arguments: &[String], state: &mut State) -> Status {
        let words: Vec<String> = arguments.iter().filter(|word| *word != "]").cloned().collect();
        // Its words were expanded outside of a test, so that what nobody sets is seen.
        let is_assumed = words.iter().any(|word| word.contains(super::UNSET));
        let words: Vec<String> = words.iter().map(|word| without_unset(word)).collect();
        match self.holds(&words, false, state) {
            Some(value) if is_assumed => Status::Assumed(value),
            Some(value) => Status::Is(value),
            None => Status::Unknown,
        }
    }

    fn declare(&mut self, name: &str, arguments: &[String], state: &mut State) {
        let flags: String = arguments
            .iter()
            .filter(|word| word.starts_with('-'))
            .map(String::as_str)
            .collect();
        let is_exported = name == "export" || flags.contains('x');
        for word in arguments.iter().filter(|word| !word.starts_with('-')) {
            let name = match word.split_once('=') {
                Some((name, value)) if is_name(name) => {
                    // A list in brackets is written as it stands.
                    match value.starts_with('(') {
                        true => self.assign(word, state),
                        false => state.set_text(name, value),
                    }
                    name
                }
                Some(_) => match assigned(word) {
                    Some((name, ..)) => {
                        self.assign(word, state);
                        name
                    }
                    None => continue,
                },
                None => {
                    if flags.contains('A') {
                        state.set(word, Value::Map(Rc::default()));
                    }
                    word
                }
            };
            if is_exported {
                state.export(name);
            }
        }
    }

    fn say(&mut self, name: &str, arguments: &[String]) {
        if name == "printf" {
            let text = output::formatted(arguments);
            return self.print(text.as_deref());
        }
        let flags = arguments
            .iter()
            .take_while(|word| matches!(word.as_str(), "-n" | "-e" | "-ne" | "-en"))
            .count();
        let text = arguments[flags..].join(" ");
        let escapes = arguments[..flags].iter().any(|flag| flag.contains('e'));
        let text = if escapes { super::expand::unescaped(&text) } else { text };
        let ends = arguments[..flags].iter().any(|flag| flag.contains('n'));
        self.print(Some(&(text + if ends { "" } else { "\n" })));
    }

    /// `read`, whose line is known in a here-string.
    fn take_line(&mut self, name: &str, started: &Started, state: &mut State) {
        let arguments = &started.words[1..];
        let mut names: Vec<&String> = arguments.iter().filter(|word| is_name(word)).collect();
        let is_array = name != "read" || arguments.iter().any(|word| word.starts_with('-') && word.contains('a'));
        let line = self
            .input
            .as_ref()
            .and_then(|input| input.lines().next().map(str::to_owned));
        let own = started
            .own
            .iter()
            .find(|(name, _)| name == "IFS")
            .map(|(_, text)| text.clone());
        let separators = match (own, state.get("IFS")) {
            (Some(text), _) => text,
            (None, Some(Value::Text(text))) => text.to_string(),
            _ => " \t".to_owned(),
        };
        let Some(line) = line.filter(|line| name == "read" && !is_open(line)) else {
            for name in names {
                state.set_text(name, &open(&format!("${name}")));
            }
            return;
        };
        let parts: Vec<String> = line
            .split(|c| separators.contains(c))
            .filter(|part| !part.is_empty())
            .map(str::to_owned)
            .collect();
        if is_array {
            if let Some(name) = names.pop() {
                state.set(name, Value::List(parts.into()));
            }
            return;
        }
        let count = names.len();
        for (at, name) in names.into_iter().enumerate() {
            let text = if at + 1 == count {
                parts.get(at..).unwrap_or_default().join(" ")
            } else {
                parts.get(at).cloned().unwrap_or_default()
            };
            state.set_text(name, &text);
        }
    }

    /// `getopts`: takes the next option of the arguments.
    fn option(&mut self, arguments: &[String], state: &mut State) -> Status {
        let [letters, name, ..] = arguments else {
            return Status::Is(false);
        };
        let Some(given) = state.arguments.clone() else {
            self.asked_arguments = true;
            return Status::Unknown;
        };
        let at = match state.get("OPTIND") {
            Some(Value::Text(text)) => text.parse().unwrap_or(1),
            _ => 1_usize,
        };
        let Some(word) = given
            .get(at - 1)
            .filter(|word| word.len() > 1 && word.starts_with('-') && *word != "--")
        else {
            return Status::Is(false);
        };
        let letter = word.chars().nth(1).unwrap_or_default();
        let takes_value = letters.contains(&format!("{letter}:"));
        let attached = &word[1 + letter.len_utf8()..];
        let mut next = at + 1;
        if takes_value {
            let value = match attached {
                "" => {
                    next += 1;
                    given.get(at).cloned().unwrap_or_default()
                }
                attached => attached.to_owned(),
            };
            state.set_text("OPTARG", &value);
        }
        let known = letters.contains(letter) && letter != ':';
        state.set_text(name, &if known { letter.to_string() } else { "?".to_owned() });
        state.set_text("OPTIND", &next.to_string());
        Status::Is(true)
    }

    /// Follows a program.
    fn program(&mut self, first: &str, started: &Started, state: &mut State) -> Status {
        let name = file_name(first).to_owned();
        let arguments = &started.words[1..];
        if SHELLS.contains(&name.as_str()) || first == "." {
            self.shell(started, matches!(first, "source" | "."), state);
            return Status::Ran;
        }
        let is_script = [".sh", ".bash", ".slurm", ".sbatch"]
            .iter()
            .any(|ending| first.ends_with(ending))
            || first.starts_with("./") && self.file(first, state).is_some_and(|(text, _)| text.starts_with("#!"));
        if is_script {
            self.start(first, arguments, started, state);
            return Status::Ran;
        }
        match name.as_str() {
            "sbatch" | "qsub" | "bsub" => self.submit(started, state),
            "docker" | "podman" | "nerdctl" => self.contained(started, state),
            "ray" | "kubectl" | "sky" => {
                if let Some(at) = started.words.iter().position(|word| word == "--") {
                    self.invoke(started.from(at + 1), state);
                }
            }
            "ssh" | "tmux" | "screen" | "script" => self.quoted_command(started, state),
            "make" => self.make(arguments, started, state),
            "cat" | "tee" => self.cat(&name, arguments, state),
            _ if is_scheduler(first) => return self.scheduled(started, state),
            _ if PROGRAMS.contains(&started_name(&started.words).unwrap_or_default()) => {
                let printed = output::printed(&started.words, self.input.as_deref(), state);
                self.print(printed.as_deref());
                if !started.words.iter().any(|word| word == "-c") {
                    self.record(started, state);
                }
            }
            _ if is_runner(first) => {
                let at = behind_runner(&started.words);
                return match at {
                    Some(at) => self.invoke(started.from(at), state),
                    None => Status::Ran,
                };
            }
            _ => {
                let printed = output::printed(&started.words, self.input.as_deref(), state);
                self.print(printed.as_deref());
                return Status::Ran;
            }
        }
        Status::Ran
    }

    fn cat(&mut self, name: &str, arguments: &[String], state: &mut State) {
        let paths: Vec<&String> = arguments.iter().filter(|word| !word.starts_with('-')).collect();
        let input = self.input.clone();
        if name == "tee" {
            if let (Some(input), Some(path)) = (&input, paths.first()) {
                let path = within(&state.folder, path);
                Rc::make_mut(&mut state.files).insert(path, input.to_string());
            }
            return self.print(input.as_deref());
        }
        match paths[..] {
            [] => self.print(input.as_deref()),
            _ => {
                for path in paths {
                    let text = self.file(path, state).map(|(text, _)| text);
                    self.print(text.as_deref());
                }
            }
        }
    }

    /// `bash x.sh`, `bash -c '…'`, `bash <<END`, `source x.sh`.
    fn shell(&mut self, started: &Started, is_same_shell: bool, state: &mut State) {
        let arguments = &started.words[1..];
        let flags = arguments.iter().take_while(|word| word.starts_with(['-', '+'])).count();
        let is_text = arguments[..flags]
            .iter()
            .any(|flag| !flag.starts_with("--") && flag.contains('c'));
        match arguments.get(flags) {
            Some(text) if is_text => {
                let mut child = self.child(started, state);
                child.script = started.words[0].as_str().into();
                child.arguments = Some(Rc::new(arguments[flags + 1..].iter().skip(1).cloned().collect()));
                let source = state.source.to_string();
                let first = self.runs.len();
                self.script(&source, &plain(text), &mut child);
                for run in &mut self.runs[first..] {
                    run.line = started.line;
                }
                state.files = child.files;
            }
            Some(path) if is_same_shell => self.include(path, &arguments[flags + 1..], state),
            Some(path) => self.start(path, &arguments[flags + 1..], started, state),
            None => {
                if let Some(text) = self.input.clone() {
                    let mut child = self.child(started, state);
                    let source = state.source.to_string();
                    self.script(&source, &text, &mut child);
                    state.files = child.files;
                }
            }
        }
    }

    /// The state of what a command starts.
    fn child(&self, started: &Started, state: &State) -> State {
        let mut child = state.of_child();
        for (name, value) in &started.own {
            child.set_text(name, value);
            child.export(name);
        }
        child
    }

    /// Starts a script.
    fn start(&mut self, path: &str, arguments: &[String], started: &Started, state: &mut State) {
        let Some((text, source)) = self.file(path, state) else {
            self.absent.push(plain(path));
            return;
        };
        let mut child = self.child(started, state);
        child.arguments = Some(Rc::new(arguments.to_vec()));
        child.script = path.into();
        let first = self.runs.len();
        if let Some(source) = source {
            if *source != *state.source {
                self.started.insert(source.clone());
            }
            child.source = source.into();
        }
        let name = child.source.to_string();
        self.script(&name, &text, &mut child);
        if let Some(tasks) = &started.tasks {
            for run in &mut self.runs[first..] {
                apply(tasks, run);
            }
        }
        state.files = child.files;
    }

    /// Reads a script into the same shell.
    fn include(&mut self, path: &str, arguments: &[String], state: &mut State) {
        let Some((text, source)) = self.file(path, state) else {
            // What sets up an environment starts nothing.
            let name = file_name(path);
            let is_set_up = [
                "activate", "rc", "profile", "conda", "bashrc", "setvars", "setup", "venv",
            ];
            if name.ends_with(".sh") && !is_set_up.iter().any(|part| name.contains(part)) {
                self.absent.push(plain(path));
            }
            return;
        };
        if state.calls >= MOST_CALLS {
            return;
        }
        let own = (
            Rc::clone(&state.script),
            Rc::clone(&state.source),
            state.arguments.clone(),
        );
        if let Some(source) = source {
            self.started.insert(source.clone());
            state.source = source.into();
        }
        if !arguments.is_empty() {
            state.arguments = Some(Rc::new(arguments.to_vec()));
        }
        state.script = path.into();
        state.calls += 1;
        let name = state.source.to_string();
        self.script(&name, &text, state);
        state.calls -= 1;
        (state.script, state.source, state.arguments) = own;
    }

    /// `sbatch`: its options before the script decide as the script's own header does.
    fn submit(&mut self, started: &Started, state: &mut State) {
        let arguments = &started.words[1..];
        let is_path = |word: &String| !word.starts_with('-') && (word.contains('.') || word.contains('/'));
        let at = arguments.iter().position(is_path);
        let options = at.map_or(arguments, |at| &arguments[..at]);
        if let Some(text) = arguments.iter().find_map(|word| word.strip_prefix("--wrap=")) {
            let list = super::syntax::parse(text);
            let mut child = self.child(started, state);
            header_options(options, &mut child);
            self.list(&list, &mut child);
        } else if let Some(at) = at {
            let mut with = started.clone();
            let mut asked = State::default();
            header_options(options, &mut asked);
            let told: Vec<(String, String)> = asked
                .exported()
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect();
            with.own.extend(told);
            self.start(&arguments[at], &arguments[at + 1..], &with, state);
        } else if let Some(text) = self.input.clone() {
            let mut child = self.child(started, state);
            header_options(options, &mut child);
            let source = state.source.to_string();
            self.script(&source, &text, &mut child);
        }
    }

    /// `docker run`: what runs in the image, with the GPUs and the variables that it is given.
    fn contained(&mut self, started: &Started, state: &mut State) {
        let words = &started.words;
        let Some(at) = words.iter().position(|word| matches!(word.as_str(), "run" | "exec")) else {
            return;
        };
        const WITHOUT_VALUE: [&str; 12] = [
            "--rm",
            "--privileged",
            "--init",
            "--interactive",
            "--tty",
            "--detach",
            "--read-only",
            "--no-healthcheck",
            "--oom-kill-disable",
            "--publish-all",
            "--quiet",
            "--sig-proxy",
        ];
        let mut inner = started.clone();
        let mut place = at + 1;
        while let Some(word) = words.get(place).filter(|word| word.starts_with('-')) {
            let is_letters = !word.starts_with("--") && word[1..].chars().all(|c| "itdPq".contains(c));
            place += 1;
            let (name, value) = match word.split_once('=').filter(|_| word.starts_with("--")) {
                Some((name, value)) => (name, value.to_owned()),
                None if is_letters || WITHOUT_VALUE.contains(&word.as_str()) => continue,
                None => {
                    place += 1;
                    (word.as_str(), words.get(place - 1).cloned().unwrap_or_default())
                }
            };
            match (name, value.split_once('=')) {
                ("-e" | "--env", Some((name, value))) => inner.own.push((name.to_owned(), value.to_owned())),
                ("--gpus", _) => inner.own.extend(devices_of(&value)),
                _ => {}
            }
        }
        // The image, or the container.
        inner.words = words.get(place + 1..).unwrap_or_default().to_vec();
        let mut child = state.clone();
        child.folder = String::new();
        self.invoke(inner, &mut child);
    }

    /// `ssh host '…'`, `tmux … '…'`: a text that is a command of its own.
    fn quoted_command(&mut self, started: &Started, state: &mut State) {
        let text = match self.input.clone() {
            Some(input) => Some(input.to_string()),
            None => started.words[1..].iter().rev().find(|word| word.contains(' ')).cloned(),
        };
        let at = started
            .words
            .iter()
            .skip(1)
            .position(|word| PROGRAMS.contains(&word.as_str()) || SHELLS.contains(&word.as_str()));
        match (text, at) {
            (_, Some(at)) => _ = self.invoke(started.from(at + 1), state),
            (Some(text), None) => {
                let mut child = self.child(started, state);
                let source = state.source.to_string();
                self.script(&source, &plain(&text), &mut child);
            }
            (None, None) => {}
        }
    }

    /// `make target`: the commands of a makefile beside.
    fn make(&mut self, arguments: &[String], started: &Started, state: &mut State) {
        let named = arguments
            .iter()
            .position(|word| word == "-f")
            .and_then(|at| arguments.get(at + 1))
            .cloned();
        let path = named.unwrap_or_else(|| "Makefile".to_owned());
        let Some((text, source)) = self.file(&path, state) else {
            self.absent.push(path);
            return;
        };
        let target = arguments
            .iter()
            .find(|word| !word.starts_with('-') && !word.contains('=') && **word != path);
        let Some(text) = super::translate::makefile(&text, target.map(String::as_str)) else {
            return;
        };
        let mut child = self.child(started, state);
        for (name, value) in arguments.iter().filter_map(|word| word.split_once('=')) {
            child.set_text(name, value);
            child.export(name);
        }
        if let Some(source) = source {
            self.started.insert(source.clone());
            child.source = source.into();
        }
        self.list(&super::syntax::parse(&text), &mut child);
    }

    /// `srun`, `mpirun`: how many processes they start of a command.
    fn scheduled(&mut self, started: &Started, state: &mut State) -> Status {
        let words = &started.words;
        let Some(at) = behind_runner(words) else {
            return Status::Ran;
        };
        let scheduler = file_name(&words[0]).to_owned();
        let mut asked = state.clone();
        let mut inner = started.from(at);
        let options: Vec<String> = words[1..at].to_vec();
        let number = |names: &[&str]| -> Option<u64> { option(&options, names)?.parse().ok() };
        let told = match scheduler.as_str() {
            "srun" => {
                header_options(&options, &mut asked);
                let held = |name: &str| match asked.get(name)? {
                    Value::Text(text) => text.parse::<u64>().ok(),
                    _ => None,
                };
                let of_node = held("SLURM_NTASKS_PER_NODE").map(|tasks| tasks * held("SLURM_NNODES").unwrap_or(1));
                held("SLURM_NTASKS").or(of_node)
            }
            _ => number(&["-np", "-n", "--np"]),
        };
        // Python alone does not know of Slurm: each process would train for itself, unless its program asks Slurm for its rank, as
        // InternVL's does (`dist_utils.py`).
        let asks_slurm = words.iter().any(|word| word.contains("internvl_chat_"));
        let told = told.filter(|tasks| scheduler != "srun" || *tasks == 1 || asks_slurm);
        inner.tasks = Some(told.ok_or_else(|| {
            format!(
                "`{scheduler}` decides how many processes run, which is not read; give the command that it \
                 runs, with torchrun and --nproc_per_node"
            )
        }));
        for name in [
            "CUDA_VISIBLE_DEVICES",
            "SLURM_NNODES",
            "SLURM_NTASKS",
            "SLURM_GPUS_ON_NODE",
        ] {
            if let Some(Value::Text(text)) = asked.get(name) {
                state.set_text(name, text.as_ref());
                state.export(name);
            }
        }
        self.invoke(inner, state)
    }

    /// Keeps a program that may train.
    fn record(&mut self, started: &Started, state: &State) {
        // What Slurm and clouds tell is used by scripts, and by no trainer.
        let is_told = |name: &str| {
            ["SLURM_", "SKYPILOT_", "DSTACK_"]
                .iter()
                .any(|begin| name.starts_with(begin))
        };
        let exported = state.exported().filter(|(name, _)| !is_told(name));
        let mut settings: Vec<(String, String)> = exported
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        settings.extend(started.own.iter().cloned());
        let program = started_name(&started.words).unwrap_or_default();
        let words = std::iter::once(program.to_owned()).chain(started.words[1..].iter().cloned());
        let mut run = Run {
            words: words.collect(),
            settings,
            line: started.line,
            source: state.source.to_string(),
            is_conditional: state.conditions > 0,
            cut_off: started.cut_off.clone(),
            fault: None,
            written: Rc::clone(&state.files),
            folder: state.folder.clone(),
        };
        self.listed_hosts(&mut run, state);
        if let Some(tasks) = &started.tasks {
            apply(tasks, &mut run);
        }
        self.runs.push(run);
    }

    /// Machines and their GPUs from DeepSpeed's file of hosts, if it is given.
    fn listed_hosts(&self, run: &mut Run, state: &State) {
        if run.words[0] != "deepspeed" {
            return;
        }
        let told = |names: &[&str]| option(&run.words, names);
        if let Some(included) = told(&["-i", "--include"]) {
            let hosts: Vec<&str> = included.split('@').collect();
            let gpus = hosts[0].split_once(':').map(|(_, gpus)| gpus.split(',').count());
            let at = 1;
            if let Some(gpus) = gpus {
                run.words.splice(at..at, ["--num_gpus".to_owned(), gpus.to_string()]);
            }
            if hosts.len() > 1 {
                run.words
                    .splice(at..at, ["--num_nodes".to_owned(), hosts.len().to_string()]);
            }
            return;
        }
        let Some(path) = told(&["-H", "--hostfile"]) else {
            return;
        };
        let Some((text, _)) = self.file(&path, state) else {
            return;
        };
        let lines = text
            .lines()
            .filter_map(|line| Some((line.split('#').next()?, line.split_once("slots=")?.1)));
        let slots: Vec<u64> = lines
            .filter_map(|(_, slots)| slots.split_whitespace().next()?.parse().ok())
            .collect();
        if let Some(most) = slots.iter().max() {
            let words = ["--num_nodes", &slots.len().to_string(), "--num_gpus", &most.to_string()].map(str::to_owned);
            let is_told = told(&["--num_gpus"]).is_some() || told(&["--num_nodes"]).is_some();
            if !is_told {
                run.words.splice(1..1, words);
            }
        }
    }
}

/// Gives a run the number of processes that a scheduler starts of it.
fn apply(tasks: &Result<u64, String>, run: &mut Run) {
    // What starts processes itself is started once on each machine.
    if !matches!(run.words[0].as_str(), "python" | "python3")
        || run.words.iter().any(|word| word.starts_with("torch.distributed"))
    {
        return;
    }
    match tasks {
        Ok(1) => {}
        Ok(tasks) => run
            .words
            .splice(1..1, ["--nproc_per_node".to_owned(), tasks.to_string()])
            .for_each(drop),
        Err(why) => run.fault = Some(why.clone()),
    }
}

/// Name by which a program of [`PROGRAMS`] is known, if the first word is one.
fn started_name(words: &[String]) -> Option<&'static str> {
    started(words.get(..1)?).map(|(name, _)| name)
}

/// Place of the command behind a program that starts others.
fn behind_runner(words: &[String]) -> Option<usize> {
    let is_command = |word: &String| {
        let name = file_name(word);
        PROGRAMS.contains(&name)
            || started(std::slice::from_ref(word)).is_some()
            || SHELLS.contains(&name)
            || is_scheduler(name)
            || word.ends_with(".sh")
    };
    let candidates = || (1..words.len()).filter(|at| is_command(&words[*at]));
    // Behind an option may be its value, such as an environment or a package of a program's name.
    candidates()
        .find(|at| !takes_value(&words[at - 1]))
        .or_else(|| candidates().next())
}

/// Devices that `docker run --gpus` gives.
fn devices_of(value: &str) -> Option<(String, String)> {
    let value = value.trim_matches(['"', '\'']);
    let list = match value.strip_prefix("device=") {
        Some(list) => list.to_owned(),
        None => first_of(value.parse().ok()?),
    };
    Some(("CUDA_VISIBLE_DEVICES".to_owned(), list))
}

/// A word without what stands for variables that nobody sets.
fn without_unset(word: &str) -> String {
    let mut out = String::new();
    let mut rest = word;
    while let Some((before, behind)) = rest.split_once(super::UNSET) {
        out.push_str(before);
        rest = behind.split_once(super::CLOSE).map_or("", |(_, rest)| rest);
    }
    out + rest
}
