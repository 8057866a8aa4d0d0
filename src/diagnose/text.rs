//! Helpers for reading text that was formatted for people.

/// Collapses each run of blanks and line breaks to one blank, since mail programs and terminals break lines anywhere.
pub(super) fn one_line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for word in text.split_ascii_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
    }
    out
}

/// At most `len` bytes of a text from `from` on, ending at a character boundary.
pub(super) fn window(text: &str, from: usize, len: usize) -> &str {
    let mut end = text.len().min(from.saturating_add(len));
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(from..end).unwrap_or_default()
}

/// Number of the line, from 1, that contains byte `at`.
pub(super) fn line_of(text: &str, at: usize) -> usize {
    text.as_bytes()[..at].iter().filter(|&&b| b == b'\n').count() + 1
}

/// Splits a table row into cells: at bars if it has any, else at tabs, else at runs of two or more blanks.
pub(super) fn cells(line: &str) -> Vec<&str> {
    let trimmed = line.trim();
    let split: Vec<&str> = if trimmed.contains('|') {
        trimmed.trim_matches('|').split('|').collect()
    } else if trimmed.contains('\t') {
        trimmed.split('\t').collect()
    } else {
        trimmed.split("  ").filter(|cell| !cell.trim().is_empty()).collect()
    };
    split.into_iter().map(str::trim).collect()
}

/// Returns true if a line is only a rule between parts of a table.
pub(super) fn is_rule(line: &str) -> bool {
    let trimmed = line.trim();
    trimmed.len() >= 3
        && trimmed
            .bytes()
            .all(|b| matches!(b, b'-' | b'=' | b'+' | b'|' | b' ' | b':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_found_in_every_kind_of_table() {
        assert_eq!(cells("| a | b c |  |"), ["a", "b c", ""]);
        assert_eq!(cells("  a b    c   d"), ["a b", "c", "d"]);
        assert_eq!(cells("a b\tc"), ["a b", "c"]);
    }

    #[test]
    fn a_window_keeps_whole_characters() {
        assert_eq!(window("aé", 0, 2), "a");
        assert_eq!(window("aé", 9, 2), "");
    }
}
