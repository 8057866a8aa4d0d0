//! Publishes files under content-hashed names, so that browsers may cache them forever.

use std::path::Path;

use super::sha256;
use crate::Failure;

/// Output folder of the page, and its HTML so far.
pub struct Published<'a> {
    dist: &'a Path,
    /// Contents of `index.html`.
    pub html: String,
}

impl<'a> Published<'a> {
    /// A page that refers to its files by plain names.
    pub fn new(dist: &'a Path, html: String) -> Self {
        Self { dist, html }
    }

    /// Writes the file that the page calls `plain`, such as `words/en.txt`, and replaces that name in the page by the
    /// hashed one.
    ///
    /// # Errors
    /// If the page does not contain the name, or the file cannot be written.
    pub fn add(&mut self, plain: &str, content: &[u8]) -> Result<(), Failure> {
        let quoted = format!("\"{plain}\"");
        if !self.html.contains(&quoted) {
            return Err(Failure::new(format!("index.html does not name {quoted}")));
        }
        let name = self.write(plain, content)?;
        self.html = self.html.replace(&quoted, &format!("\"{name}\""));
        Ok(())
    }

    /// Replaces an attribute of the page without a value, such as ` data-words`, by attributes.
    ///
    /// # Errors
    /// If the page does not contain the attribute.
    pub fn expand(&mut self, attribute: &str, attributes: &str) -> Result<(), Failure> {
        if !self.html.contains(attribute) {
            return Err(Failure::new(format!("index.html has no attribute{attribute}")));
        }
        self.html = self.html.replace(attribute, attributes);
        Ok(())
    }

    /// Writes a file and returns its hashed name.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&self, plain: &str, content: &[u8]) -> Result<String, Failure> {
        let (stem, extension) = plain.rsplit_once('.').unwrap_or((plain, ""));
        let name = format!("{stem}-{}.{extension}", digest(content));
        let path = self.dist.join(&name);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::write(path, content)?;
        Ok(name)
    }
}

/// Hash of the content for the file name: 48 bits, as Vite takes. The page names 370 files, and hashes do not compress.
fn digest(content: &[u8]) -> String {
    sha256(content)
        .iter()
        .take(6)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
