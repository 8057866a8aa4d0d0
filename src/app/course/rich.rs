//! Texts with `code` and **strong** words.

/// Words of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Span<'a> {
    /// Words without markup.
    Plain(&'a str),
    /// Words between backquotes.
    Code(&'a str),
    /// Words between pairs of asterisks.
    Strong(&'a str),
}

/// Splits a text at its markup; inside `code`, asterisks have no meaning.
pub fn spans(text: &str) -> Vec<Span<'_>> {
    let mut out = Vec::new();
    for (i, piece) in text.split('`').enumerate() {
        match i % 2 {
            0 => out.extend(piece.split("**").enumerate().map(|(i, words)| match i % 2 {
                0 => Span::Plain(words),
                _ => Span::Strong(words),
            })),
            _ => out.push(Span::Code(piece)),
        }
    }
    out.retain(|(Span::Plain(words) | Span::Code(words) | Span::Strong(words))| !words.is_empty());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_is_split_from_words() {
        assert_eq!(spans("a < `b & \"c\"`"), [Span::Plain("a < "), Span::Code("b & \"c\"")]);
        assert_eq!(spans("**yes**, no"), [Span::Strong("yes"), Span::Plain(", no")]);
        assert_eq!(spans("`a ** b`"), [Span::Code("a ** b")]);
    }
}
