//! Values of expressions.

use ruff_python_ast::{
    BoolOp, CmpOp, Comprehension, Expr, InterpolatedStringElement, Number, Operator, Parameters, UnaryOp,
};
use ruff_text_size::Ranged;

use super::heap::{Arguments, Body, Dict, Function, Id, UNKNOWN, Value, Why};
use super::machine::Machine;

/// Names of Python that need no import and mean something here.
const BUILTINS: [&str; 40] = [
    "print",
    "len",
    "range",
    "int",
    "float",
    "str",
    "bool",
    "list",
    "dict",
    "tuple",
    "set",
    "min",
    "max",
    "sum",
    "abs",
    "round",
    "sorted",
    "reversed",
    "enumerate",
    "zip",
    "isinstance",
    "getattr",
    "setattr",
    "hasattr",
    "any",
    "all",
    "open",
    "type",
    "map",
    "filter",
    "exit",
    "quit",
    "super",
    "object",
    "vars",
    "frozenset",
    "iter",
    "next",
    "callable",
    "repr",
];

impl<'a> Machine<'a> {
    pub(super) fn expression(&mut self, of: &'a Expr, scope: Id) -> Value {
        if !self.step(1) || !self.enter() {
            return UNKNOWN;
        }
        let value = self.value_of(of, scope);
        self.leave();
        value
    }

    #[expect(clippy::too_many_lines, reason = "one arm for each kind of expression")]
    fn value_of(&mut self, of: &'a Expr, scope: Id) -> Value {
        match of {
            Expr::NoneLiteral(_) => Value::None,
            Expr::BooleanLiteral(of) => Value::Bool(of.value),
            Expr::NumberLiteral(of) => match &of.value {
                Number::Int(number) => number.as_i64().map_or(UNKNOWN, Value::Int),
                Number::Float(number) => Value::Float(*number),
                Number::Complex { .. } => UNKNOWN,
            },
            Expr::StringLiteral(of) => Value::text(of.value.to_str()),
            Expr::FString(of) => {
                let mut out = String::new();
                for part in &of.value {
                    match part {
                        ruff_python_ast::FStringPart::Literal(literal) => out.push_str(literal.as_str()),
                        ruff_python_ast::FStringPart::FString(inner) => {
                            for element in &inner.elements {
                                match element {
                                    InterpolatedStringElement::Literal(literal) => out.push_str(&literal.value),
                                    InterpolatedStringElement::Interpolation(of) => {
                                        let value = self.expression(&of.expression, scope);
                                        match self.shown(&value).filter(|_| of.format_spec.is_none()) {
                                            Some(text) => out.push_str(&text),
                                            None => return UNKNOWN,
                                        }
                                    }
                                }
                            }
                        }
                    }
                    self.step(out.len() / 64);
                }
                Value::text(&out)
            }
            Expr::Name(of) => self.name(of.id.as_str(), scope),
            Expr::Attribute(of) => {
                let owner = self.expression(&of.value, scope);
                self.attribute(&owner, of.attr.as_str())
            }
            Expr::Subscript(of) => {
                let owner = self.expression(&of.value, scope);
                if let Expr::Slice(slice) = &*of.slice {
                    let mut bound = |of: &'a Option<Box<Expr>>| of.as_ref().map(|of| self.expression(of, scope));
                    let (lower, upper, step) = (bound(&slice.lower), bound(&slice.upper), bound(&slice.step));
                    return self.slice(&owner, [lower, upper, step]);
                }
                let key = self.expression(&of.slice, scope);
                self.item(&owner, &key)
            }
            Expr::Call(of) => {
                // A method of a text, a list or a dictionary; or of what is not known.
                let mut plain = None;
                let callee = match &*of.func {
                    Expr::Attribute(of) => {
                        let owner = self.expression(&of.value, scope);
                        let name = of.attr.as_str();
                        match owner {
                            Value::Str(_) | Value::List(_) | Value::Tuple(_) | Value::Dict(_) => {
                                plain = Some((owner, name));
                                UNKNOWN
                            }
                            Value::Unknown(_) | Value::Cut(_) => Value::Symbol(format!("?.{name}").into()),
                            owner => self.attribute(&owner, name),
                        }
                    }
                    func => self.expression(func, scope),
                };
                let mut arguments = Arguments::default();
                for value in &of.arguments.args {
                    match value {
                        Expr::Starred(of) => {
                            let value = self.expression(&of.value, scope);
                            match self.elements(&value) {
                                Some(items) => arguments.places.extend(items),
                                None => arguments.is_open = true,
                            }
                        }
                        value => {
                            let value = self.expression(value, scope);
                            arguments.places.push(value);
                        }
                    }
                }
                for keyword in &of.arguments.keywords {
                    let value = self.expression(&keyword.value, scope);
                    match (&keyword.arg, &value) {
                        (Some(name), _) => arguments.names.push((name.as_str().to_owned(), value)),
                        (None, Value::Dict(id)) => {
                            let dict = self.heap.dicts[*id].clone();
                            arguments.is_open |= dict.is_open;
                            self.step(dict.items.len());
                            arguments
                                .names
                                .extend(dict.items.into_iter().filter_map(|(key, value)| match key {
                                    Value::Str(key) => Some((key.to_string(), value)),
                                    _ => None,
                                }));
                        }
                        (None, _) => arguments.is_open = true,
                    }
                }
                self.stand_at(of.range().start());
                let place = self.place;
                if let Some((owner, name)) = plain {
                    return self.method_of_plain(&owner, name, &arguments).unwrap_or(UNKNOWN);
                }
                let is_of_unknown = matches!(&callee, Value::Symbol(path) if path.starts_with("?."));
                let value = self.call(callee, arguments, place);
                if is_of_unknown { UNKNOWN } else { value }
            }
            Expr::BinOp(of) => {
                let left = self.expression(&of.left, scope);
                let right = self.expression(&of.right, scope);
                self.binary(of.op, &left, &right)
            }
            Expr::UnaryOp(of) => {
                let value = self.expression(&of.operand, scope);
                match (of.op, &value) {
                    (UnaryOp::Not, Value::Unknown(why)) => Value::Unknown(*why),
                    (UnaryOp::Not, value) => self.truth(value).map_or(UNKNOWN, |truth| Value::Bool(!truth)),
                    (UnaryOp::USub, Value::Int(number)) => number.checked_neg().map_or(UNKNOWN, Value::Int),
                    (UnaryOp::USub, Value::Float(number)) => Value::Float(-number),
                    (UnaryOp::UAdd, Value::Int(_) | Value::Float(_)) => value,
                    (UnaryOp::Invert, Value::Int(number)) => Value::Int(!number),
                    _ => UNKNOWN,
                }
            }
            Expr::BoolOp(of) => self.either(of.op, &of.values, scope),
            Expr::Compare(of) => self.compare(of, scope),
            Expr::If(of) => {
                let test = self.expression(&of.test, scope);
                match self.truth(&test) {
                    Some(true) => self.expression(&of.body, scope),
                    Some(false) => self.expression(&of.orelse, scope),
                    None => {
                        let one = self.expression(&of.body, scope);
                        let other = self.expression(&of.orelse, scope);
                        let why = match test {
                            Value::Unknown(why) => why,
                            _ => Why::Computed,
                        };
                        if one == other { one } else { Value::Unknown(why) }
                    }
                }
            }
            Expr::Named(of) => {
                let value = self.expression(&of.value, scope);
                self.assign(&of.target, value.clone(), scope);
                value
            }
            Expr::Lambda(of) => {
                let parameters: Option<&'a Parameters> = of.parameters.as_deref();
                let all = parameters.map(|of| of.posonlyargs.iter().chain(&of.args).chain(&of.kwonlyargs));
                let defaults: Vec<Option<&'a Expr>> =
                    all.map_or_else(Vec::new, |all| all.map(|of| of.default.as_deref()).collect());
                let defaults = defaults
                    .into_iter()
                    .map(|default| default.map(|value| self.expression(value, scope)));
                let defaults = defaults.collect();
                self.heap.function(Function {
                    body: Body::Expression(parameters, &of.body),
                    scope,
                    defaults,
                    decorators: Vec::new(),
                    unit: self.unit,
                })
            }
            Expr::List(of) => self.collected(&of.elts, scope, false),
            Expr::Set(of) => self.collected(&of.elts, scope, false),
            Expr::Tuple(of) => self.collected(&of.elts, scope, true),
            Expr::Dict(of) => {
                let mut dict = Dict::default();
                for item in &of.items {
                    let value = self.expression(&item.value, scope);
                    match &item.key {
                        Some(key) => {
                            let key = self.expression(key, scope);
                            dict.is_open |= key.is_unknown();
                            let length = dict.items.len();
                            self.step(length);
                            dict.put(key, value);
                        }
                        None => self.take_in(&mut dict, &value),
                    }
                }
                self.heap.dict(dict)
            }
            Expr::ListComp(of) => self.comprehended(&of.elt, &of.generators, scope),
            Expr::SetComp(of) => self.comprehended(&of.elt, &of.generators, scope),
            Expr::Generator(of) => self.comprehended(&of.elt, &of.generators, scope),
            Expr::DictComp(of) => {
                let inner = self.heap.scope(Some(scope));
                let mut pairs = Vec::new();
                let is_whole = self.for_each_element(&of.generators, inner, &mut |machine| {
                    let key = of.key.as_ref().map_or(UNKNOWN, |key| machine.expression(key, inner));
                    let value = machine.expression(&of.value, inner);
                    pairs.push((key, value));
                });
                let mut dict = Dict {
                    items: Vec::new(),
                    is_open: !is_whole,
                };
                for (key, value) in pairs {
                    dict.is_open |= key.is_unknown();
                    let length = dict.items.len();
                    self.step(length);
                    dict.put(key, value);
                }
                self.heap.dict(dict)
            }
            Expr::Await(of) => self.expression(&of.value, scope),
            Expr::Starred(of) => self.expression(&of.value, scope),
            Expr::Yield(of) => {
                if let Some(value) = &of.value {
                    self.expression(value, scope);
                }
                UNKNOWN
            }
            Expr::YieldFrom(_)
            | Expr::TString(_)
            | Expr::BytesLiteral(_)
            | Expr::EllipsisLiteral(_)
            | Expr::Slice(_)
            | Expr::IpyEscapeCommand(_) => UNKNOWN,
        }
    }

    /// Puts the items of a dictionary into another, as `**` does.
    pub(super) fn take_in(&mut self, dict: &mut Dict, value: &Value) {
        match value {
            Value::Dict(id) => {
                let other = self.heap.dicts[*id].clone();
                dict.is_open |= other.is_open;
                for (key, value) in other.items {
                    let length = dict.items.len();
                    self.step(length);
                    dict.put(key, value);
                }
            }
            _ => dict.is_open = true,
        }
    }

    fn name(&mut self, name: &str, scope: Id) -> Value {
        let mut at = Some(scope);
        while let Some(scope) = at {
            let of = &self.heap.scopes[scope];
            if let Some(value) = of.names.get(name) {
                return value.clone();
            }
            at = of.parent;
        }
        match BUILTINS.contains(&name) {
            true => Value::Symbol(name.into()),
            false => UNKNOWN,
        }
    }

    fn collected(&mut self, elements: &'a [Expr], scope: Id, is_tuple: bool) -> Value {
        let mut items = Vec::new();
        let mut is_open = false;
        for element in elements {
            match element {
                Expr::Starred(of) => {
                    let value = self.expression(&of.value, scope);
                    match self.elements(&value) {
                        Some(inner) => items.extend(inner),
                        None => is_open = true,
                    }
                }
                element => {
                    let value = self.expression(element, scope);
                    items.push(value);
                }
            }
        }
        match is_tuple && !is_open {
            true => self.heap.tuple(items),
            false => self.heap.list(items, is_open),
        }
    }

    fn comprehended(&mut self, element: &'a Expr, generators: &'a [Comprehension], scope: Id) -> Value {
        let inner = self.heap.scope(Some(scope));
        let mut items = Vec::new();
        let is_whole = self.for_each_element(generators, inner, &mut |machine| {
            items.push(machine.expression(element, inner))
        });
        // Of elements that are not known one stands for all.
        match (is_whole, generators, items.first()) {
            (false, [_], Some(first)) => {
                let first = first.clone();
                self.heap.list(vec![first], true)
            }
            _ => self.heap.list(items, !is_whole),
        }
    }

    /// Runs `body` for each element of a comprehension; returns false if not all of them are known. Where none is, it runs once,
    /// for an element that stands for all.
    fn for_each_element(
        &mut self,
        generators: &'a [Comprehension],
        scope: Id,
        body: &mut dyn FnMut(&mut Self),
    ) -> bool {
        let Some((first, others)) = generators.split_first() else {
            body(self);
            return true;
        };
        let iterated = self.expression(&first.iter, scope);
        let known = self.elements(&iterated);
        let mut is_whole = known.is_some();
        let elements = known.unwrap_or_else(|| vec![self.heap.member(&iterated, "[]")]);
        for element in elements {
            if self.is_spent() {
                return false;
            }
            self.assign(&first.target, element, scope);
            let mut is_taken = Some(true);
            for test in &first.ifs {
                let value = self.expression(test, scope);
                is_taken = match (is_taken, self.truth(&value)) {
                    (Some(false), _) | (_, Some(false)) => Some(false),
                    (Some(true), Some(true)) => Some(true),
                    _ => None,
                };
            }
            is_whole &= is_taken.is_some();
            if is_taken != Some(false) {
                is_whole &= self.for_each_element(others, scope, body);
            }
        }
        is_whole
    }

    /// Value of `and` and `or`.
    fn either(&mut self, op: BoolOp, values: &'a [Expr], scope: Id) -> Value {
        let mut out = UNKNOWN;
        let mut is_known = true;
        for (at, value) in values.iter().enumerate() {
            let value = self.expression(value, scope);
            match (op, self.truth(&value)) {
                (BoolOp::And, Some(false)) => return if is_known { value } else { Value::Bool(false) },
                (BoolOp::Or, Some(true)) => return if is_known { value } else { UNKNOWN },
                (_, Some(_)) if is_known || at + 1 < values.len() => {}
                (_, Some(_)) => return out,
                (_, None) => {
                    if is_known {
                        out = match value {
                            Value::Unknown(why) => Value::Unknown(why),
                            // What is no plain value stays it where nothing else may come of it.
                            ref other if at + 1 == values.len() => other.clone(),
                            _ => UNKNOWN,
                        };
                    }
                    is_known = false;
                    continue;
                }
            }
            if is_known {
                out = value;
            }
        }
        out
    }

    fn compare(&mut self, of: &'a ruff_python_ast::ExprCompare, scope: Id) -> Value {
        let mut left = self.expression(&of.left, scope);
        let mut all = Some(true);
        let mut why = Why::Computed;
        for (op, right) in std::iter::zip(&of.ops, &of.comparators) {
            let right = self.expression(right, scope);
            if let Value::Unknown(Why::Card) = left {
                why = Why::Card;
            }
            all = match (all, self.holds(*op, &left, &right)) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), Some(true)) => Some(true),
                _ => None,
            };
            left = right;
        }
        all.map_or(Value::Unknown(why), Value::Bool)
    }

    fn holds(&mut self, op: CmpOp, left: &Value, right: &Value) -> Option<bool> {
        Some(match op {
            CmpOp::Eq | CmpOp::Is => self.is_equal(left, right)?,
            CmpOp::NotEq | CmpOp::IsNot => !self.is_equal(left, right)?,
            CmpOp::In => self.contains(right, left)?,
            CmpOp::NotIn => !self.contains(right, left)?,
            CmpOp::Lt | CmpOp::LtE | CmpOp::Gt | CmpOp::GtE => {
                let order = match (left, right) {
                    (Value::Str(left), Value::Str(right)) => left.cmp(right),
                    _ => number(left)?.partial_cmp(&number(right)?)?,
                };
                match op {
                    CmpOp::Lt => order.is_lt(),
                    CmpOp::LtE => order.is_le(),
                    CmpOp::Gt => order.is_gt(),
                    _ => order.is_ge(),
                }
            }
        })
    }

    /// True if two values are the same; `None` if that is not known.
    pub(super) fn is_equal(&mut self, left: &Value, right: &Value) -> Option<bool> {
        match (left, right) {
            (Value::Unknown(_) | Value::Cut(_) | Value::Member(_), _)
            | (_, Value::Unknown(_) | Value::Cut(_) | Value::Member(_)) => None,
            // What a call made is something, and of no plain type, or not known.
            (Value::Object(one), Value::Object(other)) => (one == other).then_some(true),
            (Value::Object(_), Value::None) | (Value::None, Value::Object(_)) => Some(false),
            (Value::Object(_), _) | (_, Value::Object(_)) => None,
            (Value::List(one) | Value::Tuple(one), Value::List(other) | Value::Tuple(other)) => {
                let [one, other] = [one, other].map(|id| self.heap.sequences[*id].clone());
                if one.is_open || other.is_open || one.items.len() > 64 {
                    return None;
                }
                if one.items.len() != other.items.len() {
                    return Some(false);
                }
                let mut all = Some(true);
                for (one, other) in std::iter::zip(&one.items, &other.items) {
                    // Lists within lists are not compared.
                    match (one, other) {
                        (Value::List(_) | Value::Tuple(_), _) => all = None,
                        _ => {
                            let is_same = self.is_equal(one, other);
                            if is_same != Some(true) {
                                return is_same;
                            }
                        }
                    }
                }
                all
            }
            (Value::Dict(one), Value::Dict(other)) => (one == other).then_some(true),
            (Value::Symbol(one), Value::Symbol(other)) if one == other => Some(true),
            // A constant of something imported may be anything.
            (Value::Symbol(_), _) | (_, Value::Symbol(_)) => None,
            _ => match (number(left), number(right)) {
                (Some(one), Some(other)) => Some(one == other),
                _ => Some(left == right),
            },
        }
    }

    pub(super) fn contains(&mut self, all: &Value, one: &Value) -> Option<bool> {
        match (all, one) {
            (Value::Str(text), Value::Str(part)) => Some(text.contains(&**part)),
            (Value::List(id) | Value::Tuple(id), _) => {
                let sequence = self.heap.sequences[*id].clone();
                let mut is_sure = !sequence.is_open;
                for item in &sequence.items {
                    match self.is_equal(item, one) {
                        Some(true) => return Some(true),
                        Some(false) => {}
                        None => is_sure = false,
                    }
                }
                is_sure.then_some(false)
            }
            (Value::Dict(id), Value::Str(key)) => {
                let dict = &self.heap.dicts[*id];
                match dict.get(key) {
                    Some(_) => Some(true),
                    // Nothing tells that a variable of the environment is set.
                    None if *all == self.environ => Some(false),
                    None => (!dict.is_open).then_some(false),
                }
            }
            _ => None,
        }
    }

    /// The truth of a value; `None` if it is not known.
    pub(super) fn truth(&self, value: &Value) -> Option<bool> {
        Some(match value {
            Value::None => false,
            Value::Bool(truth) => *truth,
            Value::Int(number) => *number != 0,
            Value::Float(number) => *number != 0.0,
            Value::Str(text) => !text.is_empty(),
            Value::List(id) | Value::Tuple(id) => {
                let sequence = &self.heap.sequences[*id];
                match (sequence.items.is_empty(), sequence.is_open) {
                    (true, true) => return None,
                    (is_empty, _) => !is_empty,
                }
            }
            Value::Dict(id) => {
                let dict = &self.heap.dicts[*id];
                match (dict.items.is_empty(), dict.is_open) {
                    (true, true) => return None,
                    (is_empty, _) => !is_empty,
                }
            }
            Value::Function(_) | Value::Bound(..) | Value::Class(_) | Value::Module(_) => true,
            Value::Object(_) | Value::Unknown(_) | Value::Cut(_) | Value::Symbol(_) | Value::Member(_) => return None,
        })
    }

    #[expect(clippy::too_many_lines, reason = "one arm for each kind of expression")]
    pub(super) fn binary(&mut self, op: Operator, left: &Value, right: &Value) -> Value {
        use Operator::{Add, BitAnd, BitOr, BitXor, Div, FloorDiv, LShift, Mod, Mult, Pow, RShift, Sub};
        match (op, left, right) {
            (_, Value::Unknown(Why::Card), _) | (_, _, Value::Unknown(Why::Card)) => return Value::Unknown(Why::Card),
            (Add, Value::Str(left), Value::Str(right)) => return Value::text(&format!("{left}{right}")),
            // Paths.
            (Div, Value::Str(left), Value::Str(right)) => {
                return Value::text(&format!("{}/{right}", left.trim_end_matches('/')));
            }
            (Mod, Value::Str(text), _) => return self.percent(text, right),
            (Mult, Value::Str(text), Value::Int(times)) => {
                let times = usize::try_from(*times).unwrap_or_default();
                return match text.len().saturating_mul(times) < 4096 {
                    true => Value::text(&text.repeat(times)),
                    false => UNKNOWN,
                };
            }
            (Add, Value::Cut(one), Value::Cut(other)) => return one.checked_add(*other).map_or(UNKNOWN, Value::Cut),
            (Add, Value::List(one), Value::List(other)) => {
                let (one, other) = (self.heap.sequences[*one].clone(), self.heap.sequences[*other].clone());
                let items = [one.items, other.items].concat();
                self.step(items.len());
                return self.heap.list(items, one.is_open || other.is_open);
            }
            (Add, Value::Cut(cut), Value::List(id)) | (Add, Value::List(id), Value::Cut(cut)) => {
                let list = &self.heap.sequences[*id];
                let length = i64::try_from(list.items.len()).ok().filter(|_| !list.is_open);
                return length
                    .and_then(|length| cut.checked_add(length))
                    .map_or(UNKNOWN, Value::Cut);
            }
            (Mult, Value::List(id), Value::Int(times)) => {
                let list = self.heap.sequences[*id].clone();
                let times = usize::try_from(*times).unwrap_or_default();
                return match list.items.len().saturating_mul(times) <= 256 {
                    true => {
                        let items: Vec<Value> = (0..times).flat_map(|_| list.items.clone()).collect();
                        self.step(items.len());
                        self.heap.list(items, list.is_open)
                    }
                    false => self.heap.list(Vec::new(), true),
                };
            }
            (BitOr, Value::Dict(_), Value::Dict(_)) => {
                let mut dict = Dict::default();
                self.take_in(&mut dict, left);
                self.take_in(&mut dict, right);
                return self.heap.dict(dict);
            }
            _ => {}
        }
        if let (Some(left), Some(right)) = (whole(left), whole(right)) {
            let small = || u32::try_from(right).ok();
            let number = match op {
                Add => left.checked_add(right),
                Sub => left.checked_sub(right),
                Mult => left.checked_mul(right),
                FloorDiv => floor_div(left, right),
                Mod => floor_div(left, right).and_then(|of| left.checked_sub(of.checked_mul(right)?)),
                Pow if right >= 0 => small().and_then(|power| left.checked_pow(power)),
                LShift => small()
                    .filter(|by| *by < 62)
                    .and_then(|by| left.checked_mul(1_i64 << by)),
                RShift => small().and_then(|by| left.checked_shr(by)),
                BitAnd => Some(left & right),
                BitOr => Some(left | right),
                BitXor => Some(left ^ right),
                _ => None,
            };
            if let Some(number) = number {
                return Value::Int(number);
            }
        }
        let (Some(left), Some(right)) = (number(left), number(right)) else {
            return UNKNOWN;
        };
        let out = match op {
            Add => left + right,
            Sub => left - right,
            Mult => left * right,
            Div if right != 0.0 => left / right,
            FloorDiv if right != 0.0 => (left / right).floor(),
            Mod if right != 0.0 => left - right * (left / right).floor(),
            _ => return UNKNOWN,
        };
        if out.is_finite() { Value::Float(out) } else { UNKNOWN }
    }

    /// `text % values`, with plain gaps alone.
    fn percent(&mut self, text: &str, values: &Value) -> Value {
        let values = match values {
            Value::Tuple(_) => self.elements(values),
            other => Some(vec![other.clone()]),
        };
        let parts: Vec<&str> = text.split("%s").flat_map(|part| part.split("%d")).collect();
        let Some(values) = values.filter(|values| values.len() + 1 == parts.len() && !parts.concat().contains('%'))
        else {
            return UNKNOWN;
        };
        let mut out = parts[0].to_owned();
        for (value, part) in std::iter::zip(&values, &parts[1..]) {
            let Some(value) = self.shown(value) else { return UNKNOWN };
            out += &value;
            out += part;
        }
        Value::text(&out)
    }

    /// Text of a value as `str` makes it.
    pub(super) fn shown(&self, value: &Value) -> Option<String> {
        Some(match value {
            Value::None => "None".to_owned(),
            Value::Bool(true) => "True".to_owned(),
            Value::Bool(false) => "False".to_owned(),
            Value::Int(number) => number.to_string(),
            Value::Float(number) => format!("{number:?}"),
            Value::Str(text) => text.to_string(),
            Value::Symbol(path) if path.starts_with("torch.") => path.to_string(),
            _ => return None,
        })
    }

    fn slice(&mut self, owner: &Value, [lower, upper, step]: [Option<Value>; 3]) -> Value {
        let is_first = matches!(lower, None | Some(Value::None | Value::Int(0)));
        let is_plain = matches!(step, None | Some(Value::None | Value::Int(1)));
        let upper_number = match upper {
            Some(Value::Int(upper)) => Some(upper),
            _ => None,
        };
        if !is_plain {
            return UNKNOWN;
        }
        let bounds = |length: usize| -> Option<(usize, usize)> {
            let length_of = i64::try_from(length).ok()?;
            let clamp = |at: i64| usize::try_from(if at < 0 { at + length_of } else { at }.clamp(0, length_of)).ok();
            let from = match &lower {
                None | Some(Value::None) => 0,
                Some(Value::Int(at)) => clamp(*at)?,
                _ => return None,
            };
            let to = match &upper {
                None | Some(Value::None) => length,
                Some(Value::Int(at)) => clamp(*at)?,
                _ => return None,
            };
            Some((from, to.max(from)))
        };
        match owner {
            Value::List(id) | Value::Tuple(id) if !self.heap.sequences[*id].is_open => {
                let items = self.heap.sequences[*id].items.clone();
                match bounds(items.len()) {
                    Some((from, to)) => {
                        self.step(items.len());
                        self.heap.list(items[from..to].to_vec(), false)
                    }
                    None => UNKNOWN,
                }
            }
            Value::Str(text) if text.is_ascii() => match bounds(text.len()) {
                Some((from, to)) => Value::text(&text[from..to]),
                None => UNKNOWN,
            },
            // The first so many of what is not known.
            Value::Cut(_) | Value::Unknown(_) | Value::Member(_) | Value::Object(_) | Value::List(_) => {
                match (is_first, upper_number, owner) {
                    (true, Some(upper), Value::Cut(most)) if upper > 0 => Value::Cut(upper.min(*most)),
                    (true, Some(upper), _) if upper > 0 => Value::Cut(upper),
                    (_, _, Value::Cut(most)) => Value::Cut(*most),
                    _ => UNKNOWN,
                }
            }
            _ => UNKNOWN,
        }
    }

    pub(super) fn item(&mut self, owner: &Value, key: &Value) -> Value {
        match (owner, key) {
            (Value::Dict(id), _) => {
                let items = &self.heap.dicts[*id].items;
                let found = items.iter().find(|(own, _)| own == key);
                found.map_or(UNKNOWN, |(_, value)| value.clone())
            }
            (Value::List(id) | Value::Tuple(id), Value::Int(at)) => {
                let sequence = &self.heap.sequences[*id];
                let length = i64::try_from(sequence.items.len()).unwrap_or_default();
                let place = if *at < 0 && !sequence.is_open { at + length } else { *at };
                let item = usize::try_from(place).ok().and_then(|at| sequence.items.get(at));
                item.cloned().unwrap_or(UNKNOWN)
            }
            (Value::Object(_) | Value::Member(_), Value::Str(key)) => {
                let name = format!("[{key:?}]");
                self.heap.member(owner, &name)
            }
            (Value::Object(_) | Value::Member(_), Value::Int(at)) => {
                let name = format!("[{at}]");
                self.heap.member(owner, &name)
            }
            // Type arguments: `list[int]`.
            (Value::Symbol(_) | Value::Class(_), _) => owner.clone(),
            _ => UNKNOWN,
        }
    }
}

pub(super) fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Bool(truth) => Some(f64::from(u8::from(*truth))),
        Value::Int(number) => Some(*number as f64),
        Value::Float(number) => Some(*number),
        _ => None,
    }
}

fn whole(value: &Value) -> Option<i64> {
    match value {
        Value::Bool(truth) => Some(i64::from(*truth)),
        Value::Int(number) => Some(*number),
        _ => None,
    }
}

fn floor_div(left: i64, right: i64) -> Option<i64> {
    let of = left.checked_div(right)?;
    let is_exact = left.checked_rem(right)? == 0;
    Some(if !is_exact && (left < 0) != (right < 0) {
        of - 1
    } else {
        of
    })
}
