//! Nearest names, for messages about unknown ones.

use strsim::osa_distance;

use crate::order::sort_short_by_key;

/// Returns the names nearest to `given`, nearest first, at most five: those that contain it as a word or are contained in
/// it so, those within an edit or a third of its length (two neighbours swapped are one edit), and those that begin as it
/// does, with or without an owner before `/`.
pub fn suggest<'a>(given: &str, names: &[&'a str]) -> Vec<&'a str> {
    const MOST: usize = 5;
    let wanted: String = given.to_ascii_lowercase().chars().take(100).collect();
    if wanted.is_empty() {
        return Vec::new();
    }
    let edits = (wanted.chars().count() / 3).max(1);
    let mut ranked: Vec<(usize, &'a str)> = Vec::new();
    for &name in names {
        let lower = name.to_ascii_lowercase();
        let distance = osa_distance(&wanted, &lower);
        let contained = wanted.len() >= 3 && (has_word(&lower, &wanted) || has_word(&wanted, &lower));
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

/// Returns true if a text contains another that begins a word of it: `llava` holds `lava`, and not as one.
fn has_word(text: &str, word: &str) -> bool {
    let begins = |at: usize| !text[..at].ends_with(|c: char| c.is_alphanumeric());
    text.match_indices(word).any(|(at, _)| begins(at))
}

/// Number of characters with which both begin.
fn same_beginning(one: &str, other: &str) -> usize {
    one.chars().zip(other.chars()).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edit_or_a_third_of_the_length_is_near() {
        assert_eq!(suggest("kit", &["sit", "sat", "sad"]), ["sit"]);
        assert_eq!(
            suggest("kitten", &["sitten", "sittin", "sitting"]),
            ["sitten", "sittin"]
        );
        assert_eq!(suggest("kitten-cat", &["sitting-cat", "sitting-cot"]), ["sitting-cat"]);
    }

    /// `aria` was said to be near `marian`, which is a translator.
    #[test]
    fn a_name_within_a_word_of_another_is_not_near() {
        assert!(suggest("aria", &["marian", "mariana", "bart"]).is_empty());
        assert_eq!(suggest("vl", &["qwen2_vl"]), Vec::<&str>::new());
        assert_eq!(suggest("qwen2", &["qwen2_vl", "superqwen2"]), ["qwen2_vl"]);
        assert_eq!(suggest("meta-llama/llama-4", &["llama"]), ["llama"]);
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
