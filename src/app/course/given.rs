//! Values entered in the fields of a page of the course.

use serde_json::Value;
use vramscope_course::{List, Unit, draw, read_number, write_number};

use super::book::{Block, items, text};

/// Values entered in the fields of a page. The URL encodes them as `figure.input:value`, separated by `;`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Given(Vec<(String, String)>);

impl Given {
    /// Parses the URL encoding.
    pub fn read(text: &str) -> Self {
        let pairs = text.split(';').filter_map(|pair| pair.split_once(':'));
        Self(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }

    /// Formats the URL encoding.
    pub fn write(&self) -> String {
        let pairs: Vec<_> = self.0.iter().map(|(name, value)| format!("{name}:{value}")).collect();
        pairs.join(";")
    }

    /// Sets a value; `None` restores the course's own.
    pub fn set(&mut self, block: &str, input: &str, value: Option<&str>) {
        let name = format!("{block}.{input}");
        self.0.retain(|(known, _)| *known != name);
        let clean = value.map(|value| value.replace([';', ':'], " "));
        self.0.extend(clean.map(|value| (name, value)));
    }

    fn get(&self, block: &str, input: &str) -> Option<&str> {
        let name = format!("{block}.{input}");
        self.0
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, value)| value.as_str())
    }
}

/// A field of a figure or exercise, with its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Input {
    /// Name in formulas.
    pub name: String,
    /// Text in the field.
    pub text: String,
    /// Values in the unit's base unit.
    pub value: List,
    /// Unit shown after the field.
    pub unit: Unit,
    /// True if the field holds several numbers.
    pub is_list: bool,
    /// True if the value is the course's own.
    pub is_own: bool,
}

/// Returns the inputs of a block; with a seed, an exercise draws its numbers.
pub fn inputs(block: Block, given: &Given, seed: Option<u64>) -> Vec<Input> {
    let seed = seed.filter(|_| block.kind == "exercise");
    read_inputs(block.data, block.name, given, seed)
}

fn read_inputs(block: &Value, name: &str, given: &Given, seed: Option<u64>) -> Vec<Input> {
    let all = items(block.get("inputs")).iter().enumerate();
    let input = |(place, input): (usize, &Value)| {
        let own = text(input, "value");
        let is_list = input.get("list").is_some();
        let unit = Unit::named(text(input, "unit")).unwrap_or(Unit::COUNT);
        let choices = items(input.get("draw"));
        let drawn = seed.and_then(|seed| choices.get(draw(seed, place as u64, choices.len()))?.as_str());
        let start = drawn.unwrap_or(own);
        let input_name = text(input, "name");
        let entered = given
            .get(name, input_name)
            .and_then(|text| Some((text, values(text, is_list, unit)?)));
        let (text, value) = match entered {
            Some((text, value)) => (text, value),
            None => (start, values(start, is_list, unit).unwrap_or_default()),
        };
        Input {
            name: input_name.to_owned(),
            text: text.to_owned(),
            value,
            unit,
            is_list,
            is_own: text == own,
        }
    };
    all.map(input).collect()
}

/// Parses a field; `None` if it is invalid.
fn values(text: &str, is_list: bool, unit: Unit) -> Option<List> {
    let parts = text.split(|c: char| is_list && (c.is_whitespace() || matches!(c, ',' | '，' | '、')));
    let parts = parts.map(str::trim).filter(|part| !part.is_empty());
    let numbers: Option<Vec<f64>> = parts.map(|part| Some(read_number(part)? * unit.size)).collect();
    // Limited to what a page can draw.
    numbers.map(List).filter(|list| (1..=64).contains(&list.0.len()))
}

/// Formats a result in its unit; several numbers are separated by commas.
pub fn amount(value: &List, unit: Unit, decimals: usize) -> String {
    let numbers: Vec<_> = value.0.iter().map(|v| write_number(v / unit.size, decimals)).collect();
    let space = if unit.name.is_empty() { "" } else { "\u{a0}" };
    match unit.name {
        "%" | "×" | "×10⁶" | "×10⁹" => format!("{}{}", numbers.join(", "), unit.name),
        name => format!("{}{space}{name}", numbers.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_survives_the_address() {
        let mut given = Given::read("scores.seq:4096;pad.sizes:1, 2");
        assert_eq!(Given::read(&given.write()), given);
        given.set("scores", "seq", Some("8;1:92"));
        assert_eq!(given.get("scores", "seq"), Some("8 1 92"));
        given.set("pad", "sizes", None);
        assert_eq!(given.write(), "scores.seq:8 1 92");
    }

    #[test]
    fn a_seed_draws_and_an_entry_counts_more() {
        let block = serde_json::json!({"exercise": "e", "inputs": [
            {"name": "n", "value": "7", "unit": "GB", "draw": ["7", "8", "9"]}]});
        let of = |given: &str, seed| read_inputs(&block, "e", &Given::read(given), seed)[0].text.clone();
        assert_eq!(of("", None), "7");
        let drawn: Vec<_> = (0..20).map(|seed| of("", Some(seed))).collect();
        assert!(["7", "8", "9"].iter().all(|n| drawn.contains(&(*n).to_owned())));
        assert_eq!(of("e.n:5", Some(1)), "5");
        assert_eq!(of("e.n:much", None), "7", "what cannot be used is as if not entered");
        let bytes = &read_inputs(&block, "e", &Given::default(), None)[0].value;
        assert_eq!(*bytes, List(vec![7e9]));
    }
}
