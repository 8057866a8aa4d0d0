//! Nearest names, for messages about unknown ones.

use crate::order::sort_short_by_key;

/// Returns the names nearest to `given`, nearest first, at most five: those that contain it or are contained in it, and
/// those within two edits or a third of its length.
pub fn suggest<'a>(given: &str, names: &[&'a str]) -> Vec<&'a str> {
    const MOST: usize = 5;
    let wanted: Vec<char> = given.to_ascii_lowercase().chars().take(100).collect();
    if wanted.is_empty() {
        return Vec::new();
    }
    let text: String = wanted.iter().collect();
    let mut ranked: Vec<(usize, &'a str)> = Vec::new();
    for &name in names {
        let lower = name.to_ascii_lowercase();
        let distance = edit_distance(&wanted, &lower.chars().collect::<Vec<_>>());
        let contained = text.len() >= 3 && (lower.contains(&text) || text.contains(&lower));
        if contained || distance <= (wanted.len() / 3).max(2) {
            ranked.push((distance, name));
        }
    }
    sort_short_by_key(&mut ranked, |&suggest| suggest);
    ranked.into_iter().take(MOST).map(|(_, name)| name).collect()
}

/// Levenshtein distance.
fn edit_distance(a: &[char], b: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_counts_edits() {
        let chars = |s: &str| s.chars().collect::<Vec<_>>();
        assert_eq!(edit_distance(&chars("kitten"), &chars("sitting")), 3);
        assert_eq!(edit_distance(&chars(""), &chars("abc")), 3);
    }

    #[test]
    fn nearest_comes_first() {
        let names = ["gpt2-medium", "gpt2", "llama3.2-1b"];
        assert_eq!(suggest("gtp2", &names), ["gpt2"]);
        assert_eq!(suggest("gpt2-medum", &names), ["gpt2-medium", "gpt2"]);
        assert!(suggest("zzzzzz", &names).is_empty());
    }
}
