//! Parses enum values by their serde names, so that a new precision or optimizer of the engine needs no line in the
//! command line.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde::de::value::{Error, StrDeserializer};
use serde::de::{self, Deserializer, IntoDeserializer, Visitor};
use serde::{Deserialize, Serialize};

/// A clap parser for a unit enum, by its serde names.
pub fn of<T>() -> impl TypedValueParser<Value = T>
where
    T: for<'de> Deserialize<'de> + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(names::<T>()).try_map(|name| {
        let name: StrDeserializer<'_, Error> = name.as_str().into_deserializer();
        T::deserialize(name)
    })
}

/// The serde name of a value, such as `amp-bf16`.
pub fn name<T: Serialize>(value: &T) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(name)) => name,
        // Unit enums never reach this; JSON is still a faithful name.
        other => other.map(|value| value.to_string()).unwrap_or_default(),
    }
}

/// The serde names of a unit enum's variants, in order of declaration.
fn names<T: for<'de> Deserialize<'de>>() -> &'static [&'static str] {
    let mut found: &'static [&'static str] = &[];
    // Deserialisation always fails; only the names in the request matter.
    let _ = T::deserialize(Asker(&mut found));
    found
}

/// A deserializer without a value that records the expected variants.
struct Asker<'a>(&'a mut &'static [&'static str]);

impl<'de> Deserializer<'de> for Asker<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(de::Error::custom("not an enum"))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Error> {
        *self.0 = variants;
        Err(de::Error::custom("only asked for its variants"))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit
        unit_struct newtype_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vramscope_engine::setup::{Freeze, Precision};

    #[test]
    fn names_are_those_of_the_case_vocabulary() {
        assert_eq!(names::<Precision>(), ["fp32", "bf16", "amp-bf16", "amp-fp16"]);
        assert_eq!(
            names::<Freeze>(),
            ["none", "vision", "all-but-connector", "lora", "qlora"]
        );
    }
}
