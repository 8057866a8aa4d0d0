//! Wraps prose into lines.

/// Character that [`wrap`] does not break at, and replaces by a plain blank.
pub const NO_BREAK: char = '\u{a0}';

/// Breaks text between words into lines of at most `width` characters; a longer word gets its own line.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut room = 0;
    for word in text.split([' ', '\n']).filter(|word| !word.is_empty()) {
        let len = word.chars().count();
        match lines.last_mut() {
            Some(line) if len < room => {
                line.push(' ');
                line.push_str(word);
                room -= len + 1;
            }
            _ => {
                lines.push(word.into());
                room = width.saturating_sub(len);
            }
        }
    }
    lines.into_iter().map(|line| line.replace(NO_BREAK, " ")).collect()
}

#[cfg(test)]
mod tests {
    use super::wrap;

    #[test]
    fn lines_break_between_words() {
        assert_eq!(wrap("one two  three", 7), ["one two", "three"]);
        assert_eq!(wrap("unbreakable it is", 4), ["unbreakable", "it", "is"]);
        assert_eq!(wrap("batch\u{a0}4 seq\u{a0}8", 9), ["batch 4", "seq 8"]);
        assert!(wrap("  ", 4).is_empty());
    }
}
