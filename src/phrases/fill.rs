//! Gaps of phrases: `{{ name }}` stands for a value.

/// Splits a phrase at its gaps: the text before each gap with the gap's name, then the text after the last one.
pub(crate) fn pieces(phrase: &str) -> (impl Iterator<Item = (&str, &str)>, &str) {
    let last = phrase.rfind("}}").map_or(0, |end| end + 2);
    let pieces = phrase[..last].split("}}").filter_map(|piece| piece.split_once("{{"));
    (pieces.map(|(text, name)| (text, name.trim())), &phrase[last..])
}

/// Returns the names of a phrase's gaps, in alphabetical order.
pub fn gaps(phrase: &str) -> Vec<&str> {
    let mut names: Vec<_> = pieces(phrase).0.map(|(_, name)| name).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Fills the gaps `a`, `b`, `c`, … of a phrase with values; a gap without a value stays.
///
/// ```
/// use vramscope_phrases::fill;
///
/// assert_eq!(fill("{{ b }} of {{ a }}", &["24 GiB", "7 GiB"]), "7 GiB of 24 GiB");
/// ```
pub fn fill(phrase: &str, values: &[&str]) -> String {
    let (pieces, last) = pieces(phrase);
    let mut out = String::new();
    for (text, name) in pieces {
        out += text;
        let place = ('a'..='z').position(|letter| name.chars().eq([letter]));
        match place.and_then(|place| values.get(place)) {
            Some(value) => out += value,
            None => out += &format!("{{{{ {name} }}}}"),
        }
    }
    out + last
}

/// Fills the gaps of a phrase with values by name; a gap without a value is empty.
///
/// ```
/// use vramscope_phrases::fill_by_name;
///
/// assert_eq!(fill_by_name("{{ room }} of {{ card }}", &[("card", "24 GiB"), ("room", "7 GiB")]), "7 GiB of 24 GiB");
/// ```
pub fn fill_by_name(phrase: &str, values: &[(&str, &str)]) -> String {
    let (pieces, last) = pieces(phrase);
    let mut out = String::new();
    for (text, name) in pieces {
        out += text;
        let value = values.iter().find(|(known, _)| *known == name);
        out += value.map_or("", |(_, value)| value);
    }
    out + last
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_not_searched_for_gaps() {
        assert_eq!(fill("{{ a }}, {{b}}.", &["{{ b }}", "}}"]), "{{ b }}, }}.");
        assert_eq!(fill("no gap", &["a"]), "no gap");
        assert_eq!(fill("{{ a }}{{ c }}", &["x"]), "x{{ c }}");
    }

    #[test]
    fn gaps_are_named_once() {
        assert_eq!(gaps("{{ b }} {{ a }} {{ b }}"), ["a", "b"]);
        assert!(gaps("none").is_empty());
    }
}
