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
    page.add(SHEET, sheets.as_bytes())
}
