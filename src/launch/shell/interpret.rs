//! Follows the commands of a script.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::arithmetic;
use super::lexer::{Redirection, RedirectionKind, Word};
use super::path::{fitting, within};
use super::pattern::fits;
use super::state::{Flow, State, Value};
use super::syntax::{Chain, Command, List, Node, Pipeline, Simple, parse};
use super::{Reading, Run, is_name, is_open, job, open, starting, translate};
use crate::Source;

/// Steps of a script that are followed. A command, a copy of the variables and each 64 bytes of expanded text are some.
const MOST_STEPS: usize = 300_000;
/// Turns of a loop that are followed.
const MOST_TURNS: usize = 200;
/// Scripts and functions within each other that are followed.
pub(super) const MOST_CALLS: usize = 12;
/// Runs that are kept.
const MOST_RUNS: usize = 300;

/// Result of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    Is(bool),
    /// It is so if no variable is set that the script leaves to its caller.
    Assumed(bool),
    /// A program whose work is taken to succeed.
    Ran,
    Unknown,
}

impl Status {
    fn not(self) -> Self {
        match self {
            Self::Is(value) => Self::Is(!value),
            Self::Assumed(value) => Self::Assumed(!value),
            other => other,
        }
    }

    /// Whether what follows `&&` runs.
    const fn succeeds(self) -> Option<bool> {
        match self {
            Self::Is(value) | Self::Assumed(value) => Some(value),
            Self::Ran => Some(true),
            Self::Unknown => None,
        }
    }
}

/// A script that is followed.
pub(super) struct Shell<'a> {
    sources: Vec<Source<'a>>,
    pub runs: Vec<Run>,
    pub absent: Vec<String>,
    pub started: BTreeSet<String>,
    pub read: BTreeSet<String>,
    pub fault: Option<String>,
    steps: usize,
    pub nested: usize,
    /// A test is evaluated, in which a variable that nobody sets is empty.
    pub is_test: bool,
    pub asked_unset: bool,
    pub asked_arguments: bool,
    /// What commands print that are read by others; `None` once something is not known.
    printed: Vec<Option<String>>,
    /// What the command reads.
    pub input: Option<Rc<str>>,
}

/// Evaluates a script.
pub(super) fn evaluate(main: Source<'_>, beside: &[Source<'_>]) -> Reading {
    let sources: Vec<Source<'_>> = beside.iter().copied().chain([main]).collect();
    let mut shell = Shell {
        sources,
        runs: Vec::new(),
        absent: Vec::new(),
        started: BTreeSet::new(),
        read: BTreeSet::new(),
        fault: None,
        steps: 0,
        nested: 0,
        is_test: false,
        asked_unset: false,
        asked_arguments: false,
        printed: Vec::new(),
        input: None,
    };
    let mut state = State::of_script(main.name);
    shell.script(main.name, main.text, &mut state);
    if shell.steps > MOST_STEPS {
        shell.fault = Some(format!(
            "it does more than is followed here ({MOST_STEPS} steps); give the command that it starts alone"
        ));
    }
    Reading {
        runs: shell.runs,
        absent: shell.absent,
        started: shell.started,
        read: shell.read,
        fault: shell.fault,
    }
}

impl<'a> Shell<'a> {
    /// Takes some steps; false once there were too many.
    pub fn spend(&mut self, steps: usize) -> bool {
        self.steps = self.steps.saturating_add(steps);
        self.steps <= MOST_STEPS
    }

    pub fn note_read(&mut self, text: &str) {
        for word in text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
            if is_name(word) {
                self.read.insert(word.to_owned());
            }
        }
    }

    /// Follows the text of a script.
    pub fn script(&mut self, name: &str, text: &str, state: &mut State) {
        let text = text.replace("\r\n", "\n");
        let text: String = text
            .chars()
            .filter(|c| !('\u{e000}'..='\u{e002}').contains(c))
            .collect();
        let text = translate::to_shell(name, &text).unwrap_or(text);
        if !self.spend(text.len() / 64) {
            return;
        }
        job::headers(&text, state);
        self.list(&parse(&text), state);
        if state.flow == Flow::Exit || state.flow == Flow::Return {
            state.flow = Flow::Go;
        }
    }

    pub fn list(&mut self, list: &List, state: &mut State) -> Status {
        let mut status = Status::Is(true);
        for chain in list {
            if state.flow != Flow::Go || !self.spend(1) {
                break;
            }
            status = self.chain(chain, state);
        }
        status
    }

    fn chain(&mut self, chain: &Chain, state: &mut State) -> Status {
        let mut status = Status::Is(true);
        for (at, (is_or, pipeline)) in chain.links.iter().enumerate() {
            if state.flow != Flow::Go {
                break;
            }
            let runs = match status.succeeds() {
                _ if at == 0 => Some(true),
                Some(succeeds) => Some(succeeds != *is_or),
                None => None,
            };
            match runs {
                Some(true) => status = self.pipeline(pipeline, state),
                Some(false) => {}
                None => {
                    self.maybe(state, |shell, state| _ = shell.pipeline(pipeline, state));
                    status = Status::Unknown;
                }
            }
        }
        status
    }

    /// Follows what may be done or not.
    fn maybe(&mut self, state: &mut State, follow: impl FnOnce(&mut Self, &mut State)) {
        if !self.spend(1 + state.len() / 8) {
            return;
        }
        let mut branch = state.clone();
        branch.conditions += 1;
        follow(self, &mut branch);
        branch.conditions = state.conditions;
        state.join(branch);
    }

    fn pipeline(&mut self, pipeline: &Pipeline, state: &mut State) -> Status {
        let status = match &pipeline.commands[..] {
            [one] => self.node(one, state),
            many => self.piped(many, state),
        };
        if pipeline.is_negated { status.not() } else { status }
    }

    /// Follows commands of which each reads what the one before it prints.
    fn piped(&mut self, commands: &[Node], state: &State) -> Status {
        let before = self.input.take();
        let mut status = Status::Ran;
        for (at, node) in commands.iter().enumerate() {
            let mut own = state.clone();
            if !self.spend(1 + own.len() / 16) {
                break;
            }
            if at + 1 == commands.len() {
                status = self.node(node, &mut own);
            } else {
                self.printed.push(Some(String::new()));
                self.node(node, &mut own);
                self.input = self.printed.pop().flatten().map(Rc::from);
            }
        }
        self.input = before;
        // Whether a filter finds something is not known.
        if status == Status::Ran { Status::Ran } else { status }
    }

    /// Prints a text, or something that is not known.
    pub fn print(&mut self, text: Option<&str>) {
        let Some(top) = self.printed.last_mut() else { return };
        match (top.as_mut(), text) {
            (Some(all), Some(text)) if all.len() + text.len() <= crate::MOST_BYTES => all.push_str(text),
            _ => *top = None,
        }
    }

    /// What a script prints in a shell of its own.
    pub fn printed(&mut self, script: &str, state: &State) -> Option<String> {
        if !self.spend(2 + state.len() / 16) {
            return None;
        }
        let mut own = state.clone();
        let (is_test, input) = (std::mem::take(&mut self.is_test), self.input.take());
        self.printed.push(Some(String::new()));
        if let Some(path) = script.trim().strip_prefix('<') {
            let path = self.text(path.trim(), &mut own);
            let text = self.file(&path, &own).map(|(text, _)| text);
            self.print(text.as_deref());
        } else {
            self.list(&parse(script), &mut own);
        }
        (self.is_test, self.input) = (is_test, input);
        self.printed.pop().flatten()
    }

    /// Follows a command with its redirections.
    fn node(&mut self, node: &Node, state: &mut State) -> Status {
        let input = self.input.clone();
        let mut target = None;
        for redirection in &node.redirections {
            self.redirect(redirection, &mut target, state);
        }
        let Some((path, is_appended)) = target else {
            let status = self.command(&node.command, state);
            self.input = input;
            return status;
        };
        self.printed.push(Some(String::new()));
        let status = self.command(&node.command, state);
        self.input = input;
        let text = self.printed.pop().flatten();
        // The log of a run is no file that a later command names.
        if !matches!(path.as_str(), "" | "/dev/null") {
            let path = within(&state.folder, &path);
            let files = Rc::make_mut(&mut state.files);
            match text {
                Some(text) if is_appended => {
                    let all = files.entry(path).or_default();
                    if all.len() + text.len() <= crate::MOST_BYTES {
                        all.push_str(&text);
                    }
                }
                Some(text) => _ = files.insert(path, text),
                None => _ = files.remove(&path),
            }
        }
        status
    }

    fn redirect(&mut self, redirection: &Redirection, target: &mut Option<(String, bool)>, state: &mut State) {
        let own = &redirection.target;
        match redirection.kind {
            RedirectionKind::Out | RedirectionKind::Append => {
                let path = self.text(own, state);
                *target = Some((path, redirection.kind == RedirectionKind::Append));
            }
            RedirectionKind::Document(true) => self.input = Some(own.as_str().into()),
            RedirectionKind::Document(false) => self.input = Some(self.document(own, state).into()),
            RedirectionKind::Text => self.input = Some((self.text(own, state) + "\n").into()),
            RedirectionKind::In => {
                let path = self.text(own, state);
                self.input = self.file(&path, state).map(|(text, _)| text.into());
            }
            RedirectionKind::Other => {}
        }
    }

    fn command(&mut self, command: &Command, state: &mut State) -> Status {
        match command {
            Command::Simple(simple) => self.simple(simple, state),
            Command::Group(list) => self.list(list, state),
            Command::Subshell(list) => {
                let mut own = state.clone();
                let status = self.list(list, &mut own);
                state.files = own.files;
                status
            }
            Command::If(arms, otherwise) => {
                self.branches(arms, otherwise, state);
                Status::Ran
            }
            Command::Case(word, arms) => {
                self.case(word, arms, state);
                Status::Ran
            }
            Command::For(name, words, body) => {
                self.each(name, words.as_deref(), body, state);
                Status::Ran
            }
            Command::Count(sums, body) => {
                self.count(sums, body, state);
                Status::Ran
            }
            Command::While(condition, is_until, body) => {
                self.repeat(condition, *is_until, body, state);
                Status::Ran
            }
            Command::Function(name, body) => {
                state.functions.insert(name.clone(), Rc::clone(body));
                Status::Ran
            }
            Command::Test(words) => self.tested(state, |shell, state| {
                let words: Vec<String> = words.iter().map(|word| shell.text(word, state)).collect();
                shell.holds(&words, true, state)
            }),
            Command::Sum(text) => self.tested(state, |shell, state| {
                let expanded = shell.document(text, state);
                shell.note_read(&expanded);
                arithmetic::value(&expanded, state).map(|value| value != 0)
            }),
        }
    }

    /// Evaluates a test.
    pub fn tested(&mut self, state: &mut State, test: impl FnOnce(&mut Self, &mut State) -> Option<bool>) -> Status {
        let before = (self.is_test, self.asked_unset);
        (self.is_test, self.asked_unset) = (true, false);
        let value = test(self, state);
        let is_assumed = self.asked_unset;
        (self.is_test, self.asked_unset) = before;
        match value {
            Some(value) if is_assumed => Status::Assumed(value),
            Some(value) => Status::Is(value),
            None => Status::Unknown,
        }
    }

    fn branches(&mut self, arms: &[(List, List)], otherwise: &List, state: &mut State) {
        let Some(((condition, body), rest)) = arms.split_first() else {
            self.list(otherwise, state);
            return;
        };
        match self.list(condition, state) {
            _ if state.flow != Flow::Go => {}
            Status::Is(true) => _ = self.list(body, state),
            Status::Is(false) => self.branches(rest, otherwise, state),
            Status::Assumed(value) => {
                // A script that ends where its caller sets nothing is meant to be given something.
                let mut branch = state.clone();
                let runs = self.runs.len();
                let one = |shell: &mut Self, takes: bool, state: &mut State| match takes {
                    true => _ = shell.list(body, state),
                    false => shell.branches(rest, otherwise, state),
                };
                if !self.spend(1 + state.len() / 8) {
                    return;
                }
                one(self, value, &mut branch);
                if branch.flow == Flow::Exit && self.runs.len() == runs {
                    one(self, !value, state);
                } else {
                    *state = branch;
                }
            }
            Status::Ran | Status::Unknown => {
                if !self.spend(1 + state.len() / 8) {
                    return;
                }
                state.conditions += 1;
                let mut branch = state.clone();
                self.list(body, &mut branch);
                self.branches(rest, otherwise, state);
                state.conditions = state.conditions.saturating_sub(1);
                branch.conditions = state.conditions;
                state.join(branch);
            }
        }
    }

    fn case(&mut self, word: &str, arms: &[(Vec<String>, List)], state: &mut State) {
        let before = (self.is_test, self.asked_unset);
        (self.is_test, self.asked_unset) = (true, false);
        let text = self.text(word, state);
        (self.is_test, self.asked_unset) = before;
        let start = state.clone();
        let is_known = !is_open(&text);
        for (patterns, list) in arms {
            let patterns: Vec<String> = patterns.iter().map(|pattern| self.pattern(pattern, state)).collect();
            if is_known {
                if patterns.iter().any(|pattern| fits(pattern, &text)) {
                    self.list(list, state);
                    return;
                }
            } else if self.spend(1 + start.len() / 8) {
                let mut branch = start.clone();
                branch.conditions += 1;
                self.list(list, &mut branch);
                branch.conditions = start.conditions;
                state.join(branch);
            }
        }
    }

    /// A pattern, in which quoted stars are none.
    fn pattern(&mut self, raw: &str, state: &mut State) -> String {
        let is_quoted = raw.starts_with(['"', '\'']);
        let text = self.text(raw, state);
        if !is_quoted {
            return text;
        }
        let escaped = text
            .chars()
            .flat_map(|c| "*?[\\".contains(c).then_some('\\').into_iter().chain([c]));
        escaped.collect()
    }

    fn each(&mut self, name: &str, words: Option<&[Word]>, body: &List, state: &mut State) {
        let items: Vec<String> = match words {
            Some(words) => words.iter().flat_map(|word| self.fields(&word.raw, state)).collect(),
            None => state.arguments.as_ref().map(|all| all.to_vec()).unwrap_or_default(),
        };
        for item in items.into_iter().take(MOST_TURNS) {
            state.set_text(name, &item);
            self.list(body, state);
            if !self.turns(state) {
                break;
            }
        }
    }

    /// Whether a loop goes on.
    fn turns(&mut self, state: &mut State) -> bool {
        match state.flow {
            Flow::Go => {}
            Flow::Continue => state.flow = Flow::Go,
            Flow::Break => {
                state.flow = Flow::Go;
                return false;
            }
            Flow::Return | Flow::Exit => return false,
        }
        self.spend(1) && self.runs.len() < MOST_RUNS
    }

    fn count(&mut self, [first, condition, step]: &[String; 3], body: &List, state: &mut State) {
        self.number(first, state);
        for _ in 0..MOST_TURNS {
            if !condition.is_empty() && self.number(condition, state) == Some(0) {
                break;
            }
            self.list(body, state);
            if !self.turns(state) {
                break;
            }
            self.number(step, state);
        }
    }

    fn repeat(&mut self, condition: &List, is_until: bool, body: &List, state: &mut State) {
        for _ in 0..MOST_TURNS {
            let before = std::mem::take(&mut self.asked_arguments);
            let status = self.list(condition, state);
            let asks = std::mem::replace(&mut self.asked_arguments, before) || status == Status::Unknown && before;
            let status = if is_until { status.not() } else { status };
            match status {
                _ if state.flow != Flow::Go => return,
                Status::Is(true) | Status::Assumed(true) => _ = self.list(body, state),
                Status::Is(false) | Status::Assumed(false) => return,
                // Options of the script, of which nobody says that there are any.
                Status::Unknown | Status::Ran if asks => return,
                Status::Unknown | Status::Ran => {
                    self.maybe(state, |shell, state| {
                        shell.list(body, state);
                        shell.turns(state);
                    });
                    return;
                }
            }
            if !self.turns(state) {
                return;
            }
        }
    }

    fn simple(&mut self, simple: &Simple, state: &mut State) -> Status {
        if let Some(word) = simple.words.iter().find(|word| !word.is_closed) {
            let line = word.line;
            self.fault
                .get_or_insert_with(|| format!("quotes do not end, from line {line} on"));
            return Status::Ran;
        }
        let count = simple
            .words
            .iter()
            .take_while(|word| assigned(&word.raw).is_some())
            .count();
        let (assignments, words) = simple.words.split_at(count);
        let fields: Vec<String> = words.iter().flat_map(|word| self.fields(&word.raw, state)).collect();
        if fields.is_empty() {
            for word in assignments {
                self.assign(&word.raw, state);
            }
            return Status::Ran;
        }
        let own: Vec<(String, String)> = assignments
            .iter()
            .filter_map(|word| {
                let (name, value) = word.raw.split_once('=')?;
                Some((name.to_owned(), self.text(value, state)))
            })
            .collect();
        let line = simple.words[0].line;
        self.invoke(starting::Started::new(fields, own, line, simple.cut_off.clone()), state)
    }

    /// Assigns `NAME=value`, `NAME+=value`, `NAME[i]=value` or `NAME=(…)`.
    pub fn assign(&mut self, raw: &str, state: &mut State) {
        let Some((name, index, is_added, value)) = assigned(raw) else {
            return;
        };
        if let Some(items) = value.strip_prefix('(').and_then(|value| value.strip_suffix(')')) {
            return self.assign_items(name, is_added, items, state);
        }
        let mut text = self.text(value, state);
        let Some(index) = index else {
            if is_added {
                let before = match state.get(name) {
                    Some(Value::Text(before)) => before.to_string(),
                    Some(Value::List(items)) => items.first().cloned().unwrap_or_default(),
                    _ => String::new(),
                };
                text = before + &text;
            }
            return state.set_text(name, &text);
        };
        match state.get(name).cloned() {
            Some(Value::Map(items)) => {
                let mut items = (*items).clone();
                let key = self.text(index, state);
                self.spend(items.len() / 8);
                items.insert(key, text);
                state.set(name, Value::Map(items.into()));
            }
            own => {
                let mut items = match own {
                    Some(Value::List(items)) => (*items).clone(),
                    _ => Vec::new(),
                };
                self.spend(items.len() / 8);
                match self.number(index, state).and_then(|at| usize::try_from(at).ok()) {
                    Some(at) if at < 4096 => {
                        items.resize(items.len().max(at + 1), String::new());
                        items[at] = text;
                        state.set(name, Value::List(items.into()));
                    }
                    _ => state.set_text(name, &open(&format!("${{{name}[@]}}"))),
                }
            }
        }
    }

    fn assign_items(&mut self, name: &str, is_added: bool, items: &str, state: &mut State) {
        let mut list = match state.get(name) {
            Some(Value::List(before)) if is_added => before.to_vec(),
            Some(Value::Text(before)) if is_added && !before.is_empty() => vec![before.to_string()],
            _ => Vec::new(),
        };
        let mut map = match state.get(name) {
            Some(Value::Map(before)) => Some(if is_added { (**before).clone() } else { BTreeMap::new() }),
            _ => None,
        };
        self.spend(list.len() / 8);
        for token in super::lexer::tokens(items) {
            let super::lexer::Token::Word(word) = token else {
                continue;
            };
            let keyed = word.raw.strip_prefix('[').and_then(|rest| rest.split_once("]="));
            match (keyed, &mut map) {
                (Some((key, value)), Some(map)) => {
                    let (key, value) = (self.text(key, state), self.text(value, state));
                    map.insert(key, value);
                }
                (Some((_, value)), None) => list.push(self.text(value, state)),
                (None, _) => list.extend(self.fields(&word.raw, state)),
            }
        }
        state.set(
            name,
            map.map_or_else(|| Value::List(list.into()), |map| Value::Map(map.into())),
        );
    }

    /// Text of a file that was written or is given, and the name of its source.
    pub fn file(&self, path: &str, state: &State) -> Option<(String, Option<String>)> {
        let path = within(&state.folder, path);
        if path.is_empty() {
            return None;
        }
        if let Some(at) = fitting(state.files.keys().map(String::as_str), &path) {
            return state.files.values().nth(at).map(|text| (text.clone(), None));
        }
        let at = fitting(self.sources.iter().map(|source| source.name), &path)?;
        let source = self.sources[at];
        Some((source.text.to_owned(), Some(source.name.to_owned())))
    }

    pub fn has_file(&self, path: &str, state: &State) -> bool {
        self.file(path, state).is_some()
    }
}

/// Name, index, whether it is added to, and value of an assignment.
pub(super) fn assigned(raw: &str) -> Option<(&str, Option<&str>, bool, &str)> {
    let (head, value) = raw.split_once('=')?;
    let (head, is_added) = match head.strip_suffix('+') {
        Some(head) => (head, true),
        None => (head, false),
    };
    let (name, index) = match head.split_once('[') {
        Some((name, index)) => (name, Some(index.strip_suffix(']')?)),
        None => (head, None),
    };
    is_name(name).then_some((name, index, is_added, value))
}
