//! Converts text for terminals that only support ASCII.

/// Replaces characters outside ASCII. Those used in columns keep their width.
pub fn fold(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            c if c.is_ascii() => out.push(c),
            '█' | '▉' | '▊' | '▋' => out.push('#'),
            '▌' | '▍' | '▎' | '▏' => out.push('-'),
            '▇' | '▆' | '▅' | '▄' => out.push('#'),
            '▃' | '▂' | '▁' => out.push('_'),
            '░' | '·' | '•' => out.push('.'),
            '│' => out.push('|'),
            '◀' => out.push('<'),
            '─' | '–' | '—' | '−' => out.push('-'),
            '×' => out.push('x'),
            '²' => out.push_str("^2"),
            '≤' => out.push_str("<="),
            '≥' => out.push_str(">="),
            '≈' => out.push('~'),
            '→' => out.push_str("->"),
            '…' => out.push_str("..."),
            '‘' | '’' => out.push('\''),
            '“' | '”' => out.push('"'),
            '\u{a0}' => out.push(' '),
            _ => out.push('?'),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::fold;

    #[test]
    fn folded_text_is_ascii_and_bars_keep_their_width() {
        let folded = fold("weights ███▌ ◀ peak · 336² × 4");
        assert_eq!(folded, "weights ###- < peak . 336^2 x 4");
        assert!(fold("猫").is_ascii());
    }
}
