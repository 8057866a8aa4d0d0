//! The style sheets as one file: they pack better together, and are one request.

use std::path::Path;

use super::markup::rewrite;
use super::{PAGE, digest};
use crate::Failure;

/// Joins the sheets that the page names, in their order, and names the one in the place of the first.
pub fn join(dist: &Path) -> Result<(), Failure> {
    const PLACE: &str = "<!-- style -->";
    let html = std::fs::read_to_string(dist.join(PAGE))?;
    let mut sheets = String::new();
    let html = rewrite(&html, &["link"], |link| {
        if link.attribute("rel") != Some("stylesheet") {
            return Ok(None);
        }
        let path = dist.join(link.attribute("href").unwrap_or_default());
        let is_first = sheets.is_empty();
        sheets.push_str(&std::fs::read_to_string(&path)?);
        std::fs::remove_file(&path)?;
        Ok(Some(if is_first { PLACE.to_owned() } else { String::new() }))
    })?;
    let name = format!("style-{}.css", digest(&sheets));
    std::fs::write(dist.join(&name), sheets)?;
    let link = format!("<link rel=\"stylesheet\" href=\"./{name}\">");
    std::fs::write(dist.join(PAGE), html.replacen(PLACE, &link, 1))?;
    Ok(())
}
