//! Builds HTML from text.

/// Escapes text for HTML.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c => out.push(c),
        }
    }
    out
}

/// Converts text with `code` and **strong** markup to HTML.
pub fn inline(text: &str) -> String {
    let mut out = String::new();
    for (i, piece) in text.split('`').enumerate() {
        if i % 2 == 1 {
            out += &format!("<code>{}</code>", escape(piece));
            continue;
        }
        for (j, words) in piece.split("**").enumerate() {
            let words = escape(words);
            out += &if j % 2 == 1 {
                format!("<strong>{words}</strong>")
            } else {
                words
            };
        }
    }
    out
}

/// Wraps HTML in an element.
pub fn element(name: &str, class: &str, inner: &str) -> String {
    let class = if class.is_empty() {
        String::new()
    } else {
        format!(" class=\"{class}\"")
    };
    format!("<{name}{class}>{inner}</{name}>")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_be_markup_is_escaped() {
        assert_eq!(inline("a < `b & \"c\"`"), "a &lt; <code>b &amp; &quot;c&quot;</code>");
        assert_eq!(inline("**yes**, no"), "<strong>yes</strong>, no");
    }
}
