//! Runs through a program without running it: what is known is computed, what is called is written down, and where a
//! condition is not known both ways are read.

use std::collections::{BTreeMap, BTreeSet};

use ruff_python_ast::{ExceptHandler, Expr, Pattern, Stmt, StmtTry};
use ruff_text_size::{Ranged, TextSize};
use serde_json::Value as Json;

use super::heap::{Arguments, Dict, Heap, Held, Id, Object, Slot, UNKNOWN, Value};
use super::source::{Place, Unit};

/// Statements, expressions and elements that are read, at most.
const MOST_STEPS: usize = 400_000;

/// Blocks and expressions within one another, of all calls together: each takes a few frames.
const MOST_WITHIN: usize = 160;

/// Iterations of a loop that are read one by one; of longer loops one is read for all.
const MOST_TURNS: usize = 64;

/// What a program did.
#[derive(Debug, Clone)]
pub(super) enum Deed {
    /// It called something; the object is what came of it.
    Call(Id),
    /// It set an attribute of something that is not its own.
    Set(Value, String, Value),
}

/// What a program did, and where.
#[derive(Debug, Clone)]
pub(super) struct Event {
    pub deed: Deed,
    pub place: Place,
    /// It depends on what is not known.
    pub may_be: bool,
    /// It is done for each sample or batch, by something that the program handed over.
    pub is_of_data: bool,
}

/// What comes after a statement.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Flow {
    Next,
    Break,
    Continue,
    Return(Value),
    /// An error: the program does not come so far.
    Raise,
}

/// Options of the command that starts the program.
#[derive(Debug, Default, Clone)]
pub(crate) struct Options {
    pub values: BTreeMap<String, Json>,
    /// A command was given, so that an option that is not among them has its default.
    pub is_given: bool,
    /// Several processes run the program.
    pub is_several: bool,
    /// Files of settings that are here, by their names.
    pub files: Vec<(String, Json)>,
}

pub(super) struct Machine<'a> {
    pub heap: Heap<'a>,
    pub events: Vec<Event>,
    pub options: &'a Options,
    /// Options that the program took.
    pub taken: BTreeSet<String>,
    /// Options without a value in the command whose default was taken.
    pub took_defaults: bool,
    /// Values that functions gave back which the program handed over, and the function's name.
    pub handed: Vec<Value>,
    pub environ: Value,
    /// Names of other files of the program, their parsed text and the scope of those that were read.
    pub(super) modules: BTreeMap<String, (usize, Option<Id>)>,
    pub(super) units: &'a [&'a Unit],
    /// The unit that is read, and the place in it.
    pub(super) unit: usize,
    pub(super) place: Place,
    steps: usize,
    /// Calls of the program's own functions that are open.
    pub(super) calls: usize,
    /// Blocks and expressions that are open.
    within: usize,
    may_be: usize,
    of_data: usize,
    handed_functions: BTreeSet<Id>,
    /// True for a card that has bf16.
    pub has_bf16: bool,
    /// True once something was asked of the card that decides between bf16 and fp16.
    pub asks_card: bool,
}

impl<'a> Machine<'a> {
    /// A machine for parsed texts; those with a name can be imported.
    pub fn new(units: &'a [&'a Unit], names: &[(usize, String)], options: &'a Options) -> Self {
        let mut heap = Heap::default();
        let environ = heap.dict(Dict {
            items: Vec::new(),
            is_open: true,
        });
        Self {
            heap,
            events: Vec::new(),
            options,
            taken: BTreeSet::new(),
            took_defaults: false,
            handed: Vec::new(),
            environ,
            modules: names.iter().map(|(unit, name)| (name.clone(), (*unit, None))).collect(),
            units,
            unit: 0,
            place: Place::default(),
            steps: MOST_STEPS,
            calls: 0,
            within: 0,
            may_be: 0,
            of_data: 0,
            handed_functions: BTreeSet::new(),
            has_bf16: true,
            asks_card: false,
        }
    }

    /// Reads some units one after the other, as one file that is started.
    pub fn start(&mut self, units: impl Iterator<Item = usize>) -> Id {
        let scope = self.heap.scope(None);
        self.heap.set_name(scope, "__name__", Value::text("__main__"));
        // Of its own path the folder is not known.
        self.heap.set_name(scope, "__file__", Value::text("script.py"));
        for unit in units {
            self.unit = unit;
            if self.block(&self.units[unit].body, scope) == Flow::Raise {
                break;
            }
        }
        scope
    }

    /// True once nothing more is read.
    pub fn is_spent(&self) -> bool {
        self.steps == 0
    }

    /// Takes steps; false if none are left.
    pub(super) fn step(&mut self, count: usize) -> bool {
        self.steps = self.steps.saturating_sub(count);
        self.steps > 0
    }

    pub(super) fn stand_at(&mut self, at: TextSize) {
        self.place = self.units[self.unit].place(at);
    }

    /// Writes down a call, and returns what came of it.
    pub(super) fn called(&mut self, callee: Value, arguments: Arguments, place: Place) -> Value {
        let handed: Vec<Value> = arguments
            .places
            .iter()
            .chain(arguments.names.iter().map(|(_, value)| value))
            .cloned()
            .collect();
        let object = self.heap.object(Object {
            callee,
            arguments,
            place,
            is_parsed: false,
        });
        self.log(&object, place);
        for value in handed {
            self.hand_over(&value);
        }
        object
    }

    pub(super) fn log(&mut self, object: &Value, place: Place) {
        if let Value::Object(id) = object {
            self.event(Deed::Call(*id), place);
        }
    }

    pub(super) fn event(&mut self, deed: Deed, place: Place) {
        if self.step(1) {
            self.events.push(Event {
                deed,
                place,
                may_be: self.may_be > 0,
                is_of_data: self.of_data > 0,
            });
        }
    }

    /// Reads a function that the program hands over, or the methods of an object that are called for it, once, with
    /// arguments that are not known: it tells what is done to samples.
    fn hand_over(&mut self, value: &Value) {
        let functions: Vec<Value> = match value {
            Value::Function(_) | Value::Bound(..) => vec![value.clone()],
            Value::Object(id) => {
                let object = &self.heap.objects[*id];
                match &object.callee {
                    Value::Symbol(path) if path.ends_with("partial") => {
                        let inner = object.arguments.places.first().cloned();
                        if matches!(inner, Some(Value::Function(_))) {
                            vec![value.clone()]
                        } else {
                            Vec::new()
                        }
                    }
                    Value::Class(_) => {
                        let methods = ["__call__", "__getitem__", "torch_call"];
                        methods.iter().filter_map(|name| self.method(value, name)).collect()
                    }
                    _ => Vec::new(),
                }
            }
            _ => Vec::new(),
        };
        for function in functions {
            let id = match &function {
                Value::Function(id) | Value::Bound(_, id) => *id,
                Value::Object(id) => match self.heap.objects[*id].arguments.places.first() {
                    Some(Value::Function(id)) => *id,
                    _ => continue,
                },
                _ => continue,
            };
            if !self.handed_functions.insert(id) {
                continue;
            }
            self.of_data += 1;
            let since = self.heap.fork();
            let place = self.place;
            let arguments = Arguments {
                is_open: true,
                ..Arguments::default()
            };
            let result = self.call(function, arguments, place);
            self.heap.take_back(since);
            self.heap.join();
            self.place = place;
            self.of_data -= 1;
            self.handed.push(result);
        }
    }

    /// Goes one deeper; false if that is too deep, and then nothing more is read.
    pub(super) fn enter(&mut self) -> bool {
        if self.within >= MOST_WITHIN {
            self.steps = 0;
            return false;
        }
        self.within += 1;
        true
    }

    pub(super) fn leave(&mut self) {
        self.within -= 1;
    }

    pub(super) fn block(&mut self, body: &'a [Stmt], scope: Id) -> Flow {
        if !self.enter() {
            return Flow::Next;
        }
        let flow = self.statements(body, scope);
        self.leave();
        flow
    }

    fn statements(&mut self, body: &'a [Stmt], scope: Id) -> Flow {
        for (at, statement) in body.iter().enumerate() {
            if !self.step(1) {
                return Flow::Next;
            }
            self.stand_at(statement.range().start());
            if let Stmt::If(choice) = statement {
                let ways = ways(choice);
                if can_end(&ways) {
                    return self.choose(&ways, scope, Some(&body[at + 1..]));
                }
            }
            match self.statement(statement, scope) {
                Flow::Next => {}
                other => return other,
            }
        }
        Flow::Next
    }

    /// Takes the way of an `if` that its conditions ask for; both where they are not known. What follows belongs to each
    /// way if one of them may leave the block.
    fn choose(&mut self, ways: &[Way<'a>], scope: Id, rest: Option<&'a [Stmt]>) -> Flow {
        let then = |machine: &mut Self, flow: Flow| match (flow, rest) {
            (Flow::Next, Some(rest)) => machine.block(rest, scope),
            (flow, _) => flow,
        };
        for (at, (test, body)) in ways.iter().enumerate() {
            let is_met = test.map_or(Some(true), |test| {
                let value = self.expression(test, scope);
                self.truth(&value)
            });
            let others = &ways[at + 1..];
            match is_met {
                Some(true) => {
                    let flow = self.block(body, scope);
                    return then(self, flow);
                }
                Some(false) => {}
                None => {
                    return self.both(
                        |machine| {
                            let flow = machine.unsure(|machine| machine.block(body, scope));
                            then(machine, flow)
                        },
                        |machine| {
                            let flow = machine.unsure(|machine| machine.choose(others, scope, None));
                            then(machine, flow)
                        },
                    );
                }
            }
        }
        then(self, Flow::Next)
    }

    fn unsure<T>(&mut self, way: impl FnOnce(&mut Self) -> T) -> T {
        self.may_be += 1;
        let out = way(self);
        self.may_be -= 1;
        out
    }

    /// Reads two ways of which one is gone, and keeps what is true of both; a way that ends in an error is not gone.
    fn both(&mut self, one: impl FnOnce(&mut Self) -> Flow, other: impl FnOnce(&mut Self) -> Flow) -> Flow {
        if !self.enter() {
            return Flow::Next;
        }
        let since = self.heap.fork();
        let first_event = self.events.len();
        let flow = one(self);
        let written = self.heap.written(since);
        self.heap.take_back(since);
        if flow == Flow::Raise {
            self.events.truncate(first_event);
        }
        let second_event = self.events.len();
        let other_flow = other(self);
        let out = match (flow, other_flow) {
            (Flow::Raise, flow) => flow,
            (flow, Flow::Raise) => {
                self.heap.take_back(since);
                self.events.truncate(second_event);
                for (slot, held) in written {
                    self.heap.note(slot.clone());
                    self.heap.hold(&slot, held);
                }
                flow
            }
            (flow, other_flow) => {
                let other_written = self.heap.written(since);
                self.heap_merge(since, written, other_written);
                match (flow, other_flow) {
                    (Flow::Return(one), Flow::Return(other)) => Flow::Return(if one == other { one } else { UNKNOWN }),
                    (one, other) if one == other => one,
                    // The way that goes on is the one that may train.
                    (Flow::Next, _) | (_, Flow::Next) => Flow::Next,
                    (one, _) => one,
                }
            }
        };
        self.heap.join();
        self.leave();
        out
    }

    fn heap_merge(&mut self, since: usize, one: BTreeMap<Slot, Held>, other: BTreeMap<Slot, Held>) {
        self.heap.take_back(since);
        let slots: BTreeSet<Slot> = one.keys().chain(other.keys()).cloned().collect();
        for slot in slots {
            let base = self.heap.held(&slot);
            let of = |way: &BTreeMap<Slot, Held>| way.get(&slot).cloned().unwrap_or_else(|| base.clone());
            if let Held::Dict(dict) = &base {
                // Each key is looked for among the others.
                self.step(dict.items.len() * dict.items.len() / 16);
            }
            self.heap.merge(&slot, of(&one), of(&other));
        }
    }

    #[expect(clippy::too_many_lines, reason = "one arm for each kind of statement")]
    fn statement(&mut self, statement: &'a Stmt, scope: Id) -> Flow {
        match statement {
            Stmt::Expr(of) => {
                let value = self.expression(&of.value, scope);
                if is_exit(&self.heap, &value) {
                    return Flow::Raise;
                }
            }
            Stmt::Assign(of) => {
                let value = self.expression(&of.value, scope);
                for target in &of.targets {
                    self.assign(target, value.clone(), scope);
                }
            }
            Stmt::AnnAssign(of) => {
                if let Some(value) = &of.value {
                    let value = self.expression(value, scope);
                    self.assign(&of.target, value, scope);
                }
            }
            Stmt::AugAssign(of) => {
                let old = self.expression(&of.target, scope);
                let with = self.expression(&of.value, scope);
                let value = self.binary(of.op, &old, &with);
                self.assign(&of.target, value, scope);
            }
            Stmt::Return(of) => {
                let value = of
                    .value
                    .as_ref()
                    .map_or(Value::None, |value| self.expression(value, scope));
                return Flow::Return(value);
            }
            Stmt::FunctionDef(def) => self.function(def, scope),
            Stmt::ClassDef(def) => self.class(def, scope),
            Stmt::If(choice) => return self.choose(&ways(choice), scope, None),
            Stmt::For(of) => {
                let iterated = self.expression(&of.iter, scope);
                return match self.elements(&iterated).filter(|elements| elements.len() <= MOST_TURNS) {
                    Some(elements) => self.loop_over(&of.target, elements, &of.body, scope),
                    None => {
                        let element = self.element(&iterated);
                        self.some_turns(Some((&of.target, element)), &of.body, scope)
                    }
                };
            }
            Stmt::While(of) => {
                let test = self.expression(&of.test, scope);
                if self.truth(&test) != Some(false) {
                    return self.some_turns(None, &of.body, scope);
                }
            }
            Stmt::With(of) => {
                for item in &of.items {
                    let value = self.expression(&item.context_expr, scope);
                    if let Some(target) = &item.optional_vars {
                        self.assign(target, value, scope);
                    }
                }
                return self.block(&of.body, scope);
            }
            Stmt::Try(of) => return self.attempt(of, scope),
            Stmt::Match(of) => {
                let subject = self.expression(&of.subject, scope);
                return self.cases(&subject, &of.cases, scope);
            }
            Stmt::Raise(_) => return Flow::Raise,
            Stmt::Break(_) => return Flow::Break,
            Stmt::Continue(_) => return Flow::Continue,
            Stmt::Import(of) => {
                for alias in &of.names {
                    let path = alias.name.as_str();
                    match &alias.asname {
                        Some(name) => {
                            let value = self.import(path);
                            self.set(name.as_str(), value, scope);
                        }
                        None => {
                            let first = path.split('.').next().unwrap_or(path);
                            let value = self.import(first);
                            self.set(first, value, scope);
                        }
                    }
                }
            }
            Stmt::ImportFrom(of) => {
                let path = of.module.as_ref().map_or("", |name| name.as_str());
                let module = self.import(path);
                for alias in &of.names {
                    let name = alias.name.as_str();
                    if name == "*" {
                        self.import_all(&module, scope);
                        continue;
                    }
                    let value = match (&module, path) {
                        (Value::Module(_), _) => self.attribute(&module, name),
                        // `from . import settings`
                        (_, "") => self.import(name),
                        _ => self.heap.member(&module, name),
                    };
                    let own = alias.asname.as_ref().map_or(name, |name| name.as_str());
                    self.set(own, value, scope);
                }
            }
            Stmt::Global(of) => {
                let names = of.names.iter().map(|name| name.as_str().to_owned());
                self.heap.scopes[scope].globals.extend(names);
            }
            Stmt::Delete(_) | Stmt::TypeAlias(_) | Stmt::Assert(_) | Stmt::Nonlocal(_) | Stmt::Pass(_) => {}
            Stmt::IpyEscapeCommand(_) => {}
        }
        Flow::Next
    }

    /// Reads a loop over elements that are known.
    fn loop_over(&mut self, target: &'a Expr, elements: Vec<Value>, body: &'a [Stmt], scope: Id) -> Flow {
        for element in elements {
            self.assign(target, element, scope);
            match self.block(body, scope) {
                Flow::Next | Flow::Continue => {}
                Flow::Break => break,
                other => return other,
            }
            if self.is_spent() {
                break;
            }
        }
        Flow::Next
    }

    /// Reads a loop of which nobody knows how often it turns, once: what it changes is not known afterwards.
    fn some_turns(&mut self, target: Option<(&'a Expr, Value)>, body: &'a [Stmt], scope: Id) -> Flow {
        let since = self.heap.fork();
        if let Some((target, element)) = target {
            self.assign(target, element, scope);
        }
        let flow = self.block(body, scope);
        let written = self.heap.written(since);
        self.heap_merge(since, written, BTreeMap::new());
        self.heap.join();
        match flow {
            Flow::Return(value) => Flow::Return(value),
            _ => Flow::Next,
        }
    }

    /// Reads what is tried; where a handler would say otherwise, it is not known what holds.
    fn attempt(&mut self, of: &'a StmtTry, scope: Id) -> Flow {
        let since = self.heap.fork();
        let mut flow = self.block(&of.body, scope);
        if flow == Flow::Next {
            flow = self.block(&of.orelse, scope);
        }
        let written = self.heap.written(since);
        for handler in &of.handlers {
            let ExceptHandler::ExceptHandler(handler) = handler;
            let inner = self.heap.fork();
            let events = self.events.len();
            let of_handler = self.block(&handler.body, scope);
            if flow == Flow::Raise {
                // It is what happens.
                self.heap.join();
                flow = of_handler;
                break;
            }
            let others = self.heap.written(inner);
            self.heap.take_back(inner);
            self.heap.join();
            self.events.truncate(events);
            if of_handler == Flow::Raise {
                continue;
            }
            for (slot, held) in others {
                if let Some(own) = written.get(&slot).filter(|own| **own != held) {
                    self.heap.merge(&slot, own.clone(), held);
                }
            }
        }
        self.heap.join();
        match self.block(&of.finalbody, scope) {
            Flow::Next => flow,
            other => other,
        }
    }

    fn cases(&mut self, subject: &Value, cases: &'a [ruff_python_ast::MatchCase], scope: Id) -> Flow {
        for (at, case) in cases.iter().enumerate() {
            let is_met = match (&case.pattern, &case.guard) {
                (Pattern::MatchValue(of), None) => {
                    let value = self.expression(&of.value, scope);
                    self.is_equal(subject, &value)
                }
                (Pattern::MatchAs(of), None) if of.pattern.is_none() => Some(true),
                _ => None,
            };
            match is_met {
                Some(true) => return self.block(&case.body, scope),
                Some(false) => {}
                None => {
                    return self.both(
                        |machine| machine.unsure(|machine| machine.block(&case.body, scope)),
                        |machine| machine.unsure(|machine| machine.cases(subject, &cases[at + 1..], scope)),
                    );
                }
            }
        }
        Flow::Next
    }
}

/// A condition and a body of an `if`; without a condition at its end.
type Way<'a> = (Option<&'a Expr>, &'a [Stmt]);

fn ways(choice: &ruff_python_ast::StmtIf) -> Vec<Way<'_>> {
    let others = choice
        .elif_else_clauses
        .iter()
        .map(|clause| (clause.test.as_ref(), &clause.body[..]));
    std::iter::once((Some(&*choice.test), &choice.body[..]))
        .chain(others)
        .collect()
}

/// True if a way may leave the block.
fn can_end(ways: &[Way<'_>]) -> bool {
    let ends = |statement: &Stmt| {
        matches!(
            statement,
            Stmt::Return(_) | Stmt::Raise(_) | Stmt::Continue(_) | Stmt::Break(_)
        )
    };
    ways.iter().any(|(_, body)| body.last().is_some_and(ends))
}

/// True for what came of a call that ends the program.
fn is_exit(heap: &Heap<'_>, value: &Value) -> bool {
    let Value::Object(id) = value else { return false };
    let paths = ["sys.exit", "exit", "quit", "os._exit"];
    matches!(&heap.objects[*id].callee, Value::Symbol(path) if paths.contains(&&**path))
}
