//! Functions, classes and modules of a program that is read: what a definition holds, what an import brings, and what a call
//! of the program's own functions returns.

use ruff_python_ast::{Expr, Stmt, StmtClassDef, StmtFunctionDef};

use super::heap::{Arguments, Body, Class, Dict, Function, Id, UNKNOWN, Value};
use super::machine::{Flow, Machine};

/// Calls within one another, at most: each takes a few frames for each expression around it.
const MOST_CALLS: usize = 12;

impl<'a> Machine<'a> {
    pub(super) fn function(&mut self, def: &'a StmtFunctionDef, scope: Id) {
        let decorators: Vec<Value> = def
            .decorator_list
            .iter()
            .map(|decorator| self.expression(&decorator.expression, scope))
            .collect();
        let parameters = &def.parameters;
        let all = parameters
            .posonlyargs
            .iter()
            .chain(&parameters.args)
            .chain(&parameters.kwonlyargs);
        let defaults = all
            .map(|of| of.default.as_ref().map(|value| self.expression(value, scope)))
            .collect();
        let value = self.heap.function(Function {
            body: Body::Statements(def),
            scope: self.around(scope),
            defaults,
            decorators,
            unit: self.unit,
        });
        self.set(def.name.as_str(), value, scope);
    }

    /// Scope in which functions of a scope look for names: that of a class is passed over.
    fn around(&self, scope: Id) -> Id {
        let is_class = self.heap.classes.iter().any(|class| class.scope == scope);
        match self.heap.scopes[scope].parent {
            Some(parent) if is_class => parent,
            _ => scope,
        }
    }

    pub(super) fn class(&mut self, def: &'a StmtClassDef, scope: Id) {
        let arguments = def.arguments.as_deref();
        let bases = arguments.map_or(&[][..], |arguments| &arguments.args);
        let bases: Vec<Value> = bases.iter().map(|base| self.expression(base, scope)).collect();
        let mut is_dataclass = false;
        for decorator in &def.decorator_list {
            let value = self.expression(&decorator.expression, scope);
            let path = self.path(&value).unwrap_or_default();
            is_dataclass |= path.ends_with("dataclass");
        }
        let inherits = bases.iter().any(|base| match base {
            Value::Class(id) => self.heap.classes[*id].is_dataclass,
            other => self.path(other).is_some_and(|path| path.ends_with("BaseModel")),
        });
        let own = self.heap.scope(Some(scope));
        let id = self.heap.classes.len();
        self.heap.classes.push(Class {
            def,
            bases,
            scope: own,
            is_dataclass: is_dataclass || inherits,
            fields: Vec::new(),
        });
        self.block(&def.body, own);
        let fields = def.body.iter().filter_map(|statement| match statement {
            Stmt::AnnAssign(of) => Some(of.target.as_name_expr()?.id.as_str()),
            _ => None,
        });
        self.heap.classes[id].fields = fields.collect();
        self.set(def.name.as_str(), Value::Class(id), scope);
    }

    /// What a path of an import stands for: another file of the program, or something that is not read.
    pub(super) fn import(&mut self, path: &str) -> Value {
        let last = path.rsplit('.').next().unwrap_or(path);
        let Some((unit, scope)) = self.modules.get(last).copied() else {
            return Value::Symbol(path.into());
        };
        if let Some(scope) = scope {
            return Value::Module(scope);
        }
        let scope = self.heap.scope(None);
        self.modules.insert(last.to_owned(), (unit, Some(scope)));
        self.heap.set_name(scope, "__name__", Value::text(last));
        if self.calls < MOST_CALLS {
            let (own, place) = (self.unit, self.place);
            self.calls += 1;
            self.unit = unit;
            self.block(&self.units[unit].body, scope);
            self.calls -= 1;
            (self.unit, self.place) = (own, place);
        }
        Value::Module(scope)
    }

    pub(super) fn import_all(&mut self, module: &Value, scope: Id) {
        if let Value::Module(from) = module {
            let names: Vec<(String, Value)> = self.heap.scopes[*from].names.clone().into_iter().collect();
            for (name, value) in names {
                if !name.starts_with('_') {
                    self.set(&name, value, scope);
                }
            }
        }
    }

    /// Calls a function of the program.
    pub(super) fn run(&mut self, id: Id, arguments: Arguments) -> Value {
        if self.calls >= MOST_CALLS || !self.step(1) {
            return UNKNOWN;
        }
        let function = &self.heap.functions[id];
        let (body, around, unit) = (function.body, function.scope, function.unit);
        let defaults = function.defaults.clone();
        let scope = self.heap.scope(Some(around));
        let parameters = match body {
            Body::Statements(def) => Some(&*def.parameters),
            Body::Expression(parameters, _) => parameters,
        };
        if let Some(parameters) = parameters {
            self.bind(parameters, &defaults, arguments, scope);
        }
        let (own, place) = (self.unit, self.place);
        self.unit = unit;
        self.calls += 1;
        let out = match body {
            Body::Statements(def) => match self.block(&def.body, scope) {
                Flow::Return(value) => value,
                Flow::Next => Value::None,
                _ => UNKNOWN,
            },
            Body::Expression(_, body) => self.expression(body, scope),
        };
        self.calls -= 1;
        (self.unit, self.place) = (own, place);
        match body {
            Body::Statements(def) if is_generator(&def.body) => UNKNOWN,
            _ => out,
        }
    }

    fn bind(
        &mut self,
        parameters: &'a ruff_python_ast::Parameters,
        defaults: &[Option<Value>],
        arguments: Arguments,
        scope: Id,
    ) {
        let by_place = parameters.posonlyargs.len() + parameters.args.len();
        let all = parameters
            .posonlyargs
            .iter()
            .chain(&parameters.args)
            .chain(&parameters.kwonlyargs);
        let mut names = arguments.names.clone();
        for (at, of) in all.enumerate() {
            let name = of.parameter.name.as_str();
            let named = names
                .iter()
                .rposition(|(own, _)| own == name)
                .map(|at| names.remove(at).1);
            let given = named.or_else(|| arguments.places.get(at).filter(|_| at < by_place).cloned());
            let default = defaults.get(at).cloned().flatten();
            let value = match (given, default) {
                (Some(value), _) => value,
                (None, _) if arguments.is_open => UNKNOWN,
                (None, Some(value)) => value,
                (None, None) => UNKNOWN,
            };
            self.heap.set_name(scope, name, value);
        }
        if let Some(rest) = &parameters.vararg {
            let items = arguments.places.get(by_place..).unwrap_or_default().to_vec();
            let list = self.heap.list(items, arguments.is_open);
            self.heap.set_name(scope, rest.name.as_str(), list);
        }
        if let Some(rest) = &parameters.kwarg {
            let items = names.into_iter().map(|(name, value)| (Value::text(&name), value));
            let dict = Dict {
                items: items.collect(),
                is_open: arguments.is_open,
            };
            let dict = self.heap.dict(dict);
            self.heap.set_name(scope, rest.name.as_str(), dict);
        }
    }
}

/// True if one of these statements yields, so that a call makes a generator.
fn is_generator(body: &[Stmt]) -> bool {
    body.iter().any(|statement| match statement {
        Stmt::Expr(of) => matches!(*of.value, Expr::Yield(_) | Expr::YieldFrom(_)),
        Stmt::For(of) => is_generator(&of.body),
        Stmt::While(of) => is_generator(&of.body),
        Stmt::If(of) => is_generator(&of.body),
        Stmt::With(of) => is_generator(&of.body),
        _ => false,
    })
}
