//! Arguments and results of operations.

use std::fmt;

use serde::de::{Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::fault::Fault;
use super::number;
use crate::dtype::DType;

/// Argument or result of an operation.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    /// Value of a polynomial, if the recording covers all sizes.
    Varied(u32),
    Dtype(DType),
    Tensor(TensorRef),
    List(Vec<Value>),
    /// Value that no rule uses.
    Other,
}

/// Reference to a tensor: its storage and its layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TensorRef {
    /// Number of the storage; `None` on the host.
    pub storage: Option<u32>,
    /// Number of the layout.
    pub meta: u32,
}

impl Value {
    /// Visits every tensor in the value.
    pub fn tensors(&self, visit: &mut impl FnMut(&TensorRef)) {
        match self {
            Self::Tensor(tensor) => visit(tensor),
            Self::List(all) => all.iter().for_each(|value| value.tensors(visit)),
            _ => {}
        }
    }

    /// Returns true if a number in the value varies with the sizes.
    pub fn varies(&self) -> bool {
        match self {
            Self::Varied(_) => true,
            Self::List(all) => all.iter().any(Self::varies),
            _ => false,
        }
    }

    /// Returns the value with its varying numbers replaced by `numbers`.
    pub fn at(&self, numbers: &[i64]) -> Result<Self, Fault> {
        Ok(match self {
            Self::Varied(polynomial) => Self::Int(number::varied(*polynomial, numbers)?),
            Self::List(all) => Self::List(all.iter().map(|value| value.at(numbers)).collect::<Result<_, _>>()?),
            other => other.clone(),
        })
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an argument")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Int(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(i64::try_from(value).map_or(Value::Other, Value::Int))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Float(value))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        of_text(text).ok_or_else(|| {
            let shown: String = text.chars().take(40).collect();
            E::custom(format_args!("\"{shown}\" is no argument"))
        })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut all: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = all.next_element()? {
            values.push(value);
        }
        Ok(Value::List(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut all: A) -> Result<Value, A::Error> {
        while all.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Value::Other)
    }
}

/// Parses a string whose first character gives its type.
pub(super) fn of_text(text: &str) -> Option<Value> {
    let rest = text.get(1..)?;
    Some(match text.as_bytes()[0] {
        b'#' => Value::Tensor(tensor(rest)?),
        b'$' => Value::Varied(number::polynomial(text)?),
        b'%' => dtype(rest).map_or(Value::Other, Value::Dtype),
        b'~' => Value::Float(match rest {
            "inf" => f64::INFINITY,
            "-inf" => f64::NEG_INFINITY,
            "nan" => f64::NAN,
            _ => return None,
        }),
        b'@' | b'=' | b'?' => Value::Other,
        _ => return None,
    })
}

/// Parses a tensor, `S:M` or `S:M:O`.
fn tensor(text: &str) -> Option<TensorRef> {
    let (storage, rest) = match text.as_bytes() {
        [b'h', rest @ ..] => (None, rest),
        text => {
            let (id, rest) = number::digits(text)?;
            (Some(u32::try_from(id).ok()?), rest)
        }
    };
    let (meta, rest) = number::digits(rest.strip_prefix(b":")?)?;
    let rest = match rest {
        [b':', offset @ ..] => number::digits(offset)?.1,
        rest => rest,
    };
    let meta = u32::try_from(meta).ok()?;
    rest.is_empty().then_some(TensorRef { storage, meta })
}

/// Parses the short name of a dtype.
fn dtype(name: &str) -> Option<DType> {
    use serde::de::IntoDeserializer;
    let name: serde::de::value::StrDeserializer<'_, serde::de::value::Error> = name.into_deserializer();
    DType::deserialize(name).ok()
}
