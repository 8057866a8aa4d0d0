//! Joins the style sheets into one file, which compresses better and needs only one request.

use super::markup::rewrite;
use super::published::Published;
use crate::{Failure, root};

/// Name of the joined sheet in the page.
const SHEET: &str = "style.css";

/// Joins the sheets that the page names, in their order, and replaces the first one's name by that of the joined sheet.
///
/// # Errors
/// If a sheet cannot be read.
pub fn join(page: &mut Published) -> Result<(), Failure> {
    let mut sheets = String::new();
    page.html = rewrite(&page.html, &["link"], |link| {
        if link.attribute("rel") != Some("stylesheet") {
            return Ok(None);
        }
        let is_first = sheets.is_empty();
        let path = root().join(link.attribute("href").unwrap_or_default());
        sheets.push_str(&std::fs::read_to_string(path)?);
        let one = format!("<link rel=\"stylesheet\" href=\"{SHEET}\">");
        Ok(Some(if is_first { one } else { String::new() }))
    })?;
    page.add(SHEET, without_comments(&sheets).as_bytes())
}

/// A sheet without its comments, which are a tenth of its download.
fn without_comments(sheet: &str) -> String {
    let (mut kept, mut rest) = (String::with_capacity(sheet.len()), sheet);
    while let Some(at) = rest.find(['"', '\'', '/']) {
        let (before, from) = rest.split_at(at);
        kept.push_str(before);
        let after = if let Some(comment) = from.strip_prefix("/*") {
            comment.find("*/").map_or("", |end| comment[end + 2..].trim_start())
        } else {
            // A string, in which nothing is a comment, or a slash.
            let end = match from.as_bytes()[0] {
                b'/' => 1,
                quote => from[1..].find(char::from(quote)).map_or(from.len(), |end| end + 2),
            };
            kept.push_str(&from[..end]);
            &from[end..]
        };
        rest = after;
    }
    kept + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_go_and_strings_stay() {
        let sheet =
            "/* first */\n.a { margin: 1px / 2; } /* a\n b */ .b::before { content: \"/* kept */\"; }\n/* last */\n";
        let without = ".a { margin: 1px / 2; } .b::before { content: \"/* kept */\"; }\n";
        assert_eq!(without_comments(sheet), without);
        assert_eq!(without_comments("a { --b: '/*'; } /* open"), "a { --b: '/*'; } ");
    }
}
