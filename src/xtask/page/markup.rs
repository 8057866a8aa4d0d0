//! Minimal HTML parsing, to rewrite elements in the head of the page.

use crate::Failure;

/// An element as text: its start tag, and for scripts everything up to the end tag.
#[derive(Debug, Clone, Copy)]
pub struct Element<'a> {
    text: &'a str,
}

impl<'a> Element<'a> {
    /// Returns true if the element has this tag name.
    pub fn is(self, name: &str) -> bool {
        let rest = self.text.strip_prefix('<').and_then(|t| t.strip_prefix(name));
        rest.is_some_and(|t| t.starts_with([' ', '>', '/']))
    }

    /// Value of an attribute, which must be in double quotes.
    pub fn attribute(self, name: &str) -> Option<&'a str> {
        let (_, rest) = self.text.split_once(&format!(" {name}=\""))?;
        rest.split_once('"').map(|(value, _)| value)
    }

    /// Attributes that begin with `data-`, by the rest of their names.
    pub fn data(self) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.text.split(" data-").skip(1).filter_map(|rest| {
            let (name, rest) = rest.split_once("=\"")?;
            Some((name, rest.split_once('"')?.0))
        })
    }
}

/// Replaces elements with these tag names by the result of `replace`; `None` keeps an element unchanged.
///
/// # Errors
/// The error of `replace`, or an element without an end.
pub fn rewrite(
    html: &str,
    names: &[&str],
    mut replace: impl FnMut(Element) -> Result<Option<String>, Failure>,
) -> Result<String, Failure> {
    let mut out = String::with_capacity(html.len());
    let mut rest = html;
    while let Some(begin) = rest.find('<') {
        let (before, here) = rest.split_at(begin);
        out.push_str(before);
        let element = Element { text: here };
        let length = if names.iter().any(|name| element.is(name)) {
            let length = length(element)?;
            let element = Element { text: &here[..length] };
            out.push_str(replace(element)?.as_deref().unwrap_or(element.text));
            length
        } else {
            out.push('<');
            1
        };
        rest = &here[length..];
    }
    out.push_str(rest);
    Ok(out)
}

fn length(element: Element) -> Result<usize, Failure> {
    let end = if element.is("script") { "</script>" } else { ">" };
    match element.text.find(end) {
        Some(at) => Ok(at + end.len()),
        None => Err(Failure::new(format!("the page has an element without `{end}`"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = r#"<head><link rel="icon" href="i.svg"/><script src="b.js" data-js="a.js" data-wasm="a.wasm"></script><p>1 < 2</p>"#;

    #[test]
    fn named_elements_are_replaced_and_all_else_is_kept() {
        let out = rewrite(HEAD, &["link", "script"], |e| {
            Ok(e.is("script")
                .then(|| e.data().map(|(k, v)| format!("[{k} {v}]")).collect()))
        });
        let wanted = r#"<head><link rel="icon" href="i.svg"/>[js a.js][wasm a.wasm]<p>1 < 2</p>"#;
        assert_eq!(out.expect("it is well formed"), wanted);
    }

    #[test]
    fn attributes_are_found_by_their_whole_name() {
        let link = Element {
            text: r#"<link data-href="x" href="y">"#,
        };
        assert_eq!(link.attribute("href"), Some("y"));
        assert_eq!(link.attribute("rel"), None);
        assert!(link.is("link") && !link.is("lin"));
    }

    #[test]
    fn an_element_without_an_end_is_refused() {
        assert!(rewrite("<script src=x>", &["script"], |_| Ok(None)).is_err());
    }
}
