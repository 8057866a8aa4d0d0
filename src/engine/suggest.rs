//! Nearest names, for messages about unknown ones.

use strsim::levenshtein;

use crate::order::sort_short_by_key;

/// Returns the names nearest to `given`, nearest first, at most five: those that contain it or are contained in it,
/// those within two edits or a third of its length, and those that begin as it does, with or without an owner before `/`.
pub fn suggest<'a>(given: &str, names: &[&'a str]) -> Vec<&'a str> {
    const MOST: usize = 5;
    let wanted: String = given.to_ascii_lowercase().chars().take(100).collect();
    if wanted.is_empty() {
        return Vec::new();
    }
    let edits = (wanted.chars().count() / 3).max(2);
    let mut ranked: Vec<(usize, &'a str)> = Vec::new();
    for &name in names {
        let lower = name.to_ascii_lowercase();
        let distance = levenshtein(&wanted, &lower);
        let contained = wanted.len() >= 3 && (lower.contains(&wanted) || wanted.contains(&lower));
        let own = lower.rsplit('/').next().unwrap_or(&lower);
        let begins = [lower.as_str(), own].map(|name| same_beginning(&wanted, name));
        let is_alike = begins
            .into_iter()
            .any(|same| same >= 4 && same * 2 >= wanted.chars().count());
        if contained || distance <= edits || is_alike {
            ranked.push((distance, name));
        }
    }
    sort_short_by_key(&mut ranked, |&suggest| suggest);
    ranked.into_iter().take(MOST).map(|(_, name)| name).collect()
}

/// Number of characters with which both begin.
fn same_beginning(one: &str, other: &str) -> usize {
    one.chars().zip(other.chars()).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_edits_or_a_third_of_the_length_are_near() {
        assert_eq!(suggest("kit", &["sit", "sat", "sad"]), ["sit", "sat"]);
        assert_eq!(
            suggest("kitten", &["sitten", "sittin", "sitting"]),
            ["sitten", "sittin"]
        );
        assert_eq!(suggest("kitten-cat", &["sitting-cat", "sitting-cot"]), ["sitting-cat"]);
    }

    #[test]
    fn nearest_comes_first() {
        let names = ["gpt2-medium", "gpt2", "llama3.2-1b"];
        assert_eq!(suggest("gtp2", &names), ["gpt2"]);
        assert_eq!(suggest("gpt2-medum", &names), ["gpt2-medium", "gpt2"]);
        assert!(suggest("zzzzzz", &names).is_empty());
        assert_eq!(suggest("llama-9b", &names), ["llama3.2-1b"]);
    }
}
