//! Numbers that vary with the sizes, and references to declarations.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer};

use super::fault::Fault;

/// Nonnegative number: the same at all sizes, or the value of a polynomial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Count {
    Fixed(u64),
    /// Value of polynomial `$k`.
    Varied(u32),
}

impl Count {
    /// Returns the number, given the values of the polynomials.
    pub fn at(self, numbers: &[i64]) -> Result<u64, Fault> {
        match self {
            Self::Fixed(number) => Ok(number),
            Self::Varied(polynomial) => {
                let value = varied(polynomial, numbers)?;
                u64::try_from(value).map_err(|_| Fault::Json(format!("counts {value} at these sizes")))
            }
        }
    }
}

/// Returns the value of a polynomial.
pub(super) fn varied(polynomial: u32, numbers: &[i64]) -> Result<i64, Fault> {
    let value = numbers.get(polynomial as usize);
    value.copied().ok_or(Fault::Undeclared("polynomial", polynomial.into()))
}

/// Parses the decimal digits that a text begins with, and returns the rest; `None` without digits, or beyond 64 bits.
pub(super) fn digits(text: &[u8]) -> Option<(u64, &[u8])> {
    let length = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, rest) = text.split_at(length);
    let value = digits.iter().try_fold(0u64, |value, digit| {
        value.checked_mul(10)?.checked_add(u64::from(digit - b'0'))
    })?;
    (length > 0).then_some((value, rest))
}

/// Parses `$k`, the number of a polynomial.
pub(super) fn polynomial(text: &str) -> Option<u32> {
    let digits = text.strip_prefix('$')?;
    digits
        .bytes()
        .all(|b| b.is_ascii_digit())
        .then(|| digits.parse().ok())?
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(CountVisitor)
    }
}

struct CountVisitor;

impl Visitor<'_> for CountVisitor {
    type Value = Count;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a count")
    }

    fn visit_u64<E>(self, value: u64) -> Result<Count, E> {
        Ok(Count::Fixed(value))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Count, E> {
        let found = polynomial(text).map(Count::Varied);
        found.ok_or_else(|| E::custom("a text stands where a count belongs"))
    }
}

/// Reference to a declaration by number, or its full text if nothing declares it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reference<'a> {
    Number(u64),
    Spelled(Cow<'a, str>),
}

impl Default for Reference<'_> {
    fn default() -> Self {
        Self::Number(0)
    }
}

impl Reference<'_> {
    /// Returns the number of the declaration.
    pub fn number(&self) -> Result<u64, Fault> {
        match self {
            Self::Number(number) => Ok(*number),
            Self::Spelled(text) => {
                let shown: String = text.chars().take(40).collect();
                Err(Fault::Json(format!("\"{shown}\" stands where a number belongs")))
            }
        }
    }

    /// Copies borrowed text, so that the reference outlives its source.
    pub fn into_owned(self) -> Reference<'static> {
        match self {
            Self::Number(number) => Reference::Number(number),
            Self::Spelled(text) => Reference::Spelled(Cow::Owned(text.into_owned())),
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Reference<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ReferenceVisitor)
    }
}

struct ReferenceVisitor;

impl<'de> Visitor<'de> for ReferenceVisitor {
    type Value = Reference<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number")
    }

    fn visit_u64<E>(self, value: u64) -> Result<Reference<'de>, E> {
        Ok(Reference::Number(value))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Reference<'de>, E> {
        Ok(Reference::Spelled(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Reference<'de>, E> {
        Ok(Reference::Spelled(Cow::Owned(text.to_owned())))
    }
}
