//! Files under names that change with their content: a browser may keep them for ever.

use std::path::Path;

use super::sha256;
use crate::Failure;

/// The folder of the page, and the page as far as it is written.
pub struct Published<'a> {
    dist: &'a Path,
    /// What `index.html` will say.
    pub html: String,
}

impl<'a> Published<'a> {
    /// A page that names its files plainly.
    pub fn new(dist: &'a Path, html: String) -> Self {
        Self { dist, html }
    }

    /// Writes what the page calls `plain`, such as `words/en.txt`, and has the page name what was written.
    ///
    /// # Errors
    /// When the page does not name it, or it cannot be written.
    pub fn add(&mut self, plain: &str, content: &[u8]) -> Result<(), Failure> {
        let quoted = format!("\"{plain}\"");
        if !self.html.contains(&quoted) {
            return Err(Failure::new(format!("index.html does not name {quoted}")));
        }
        let name = self.write(plain, content)?;
        self.html = self.html.replace(&quoted, &format!("\"{name}\""));
        Ok(())
    }

    /// Writes a file, and gives the name that it got.
    ///
    /// # Errors
    /// When it cannot be written.
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

/// What distinguishes a content in a file's name.
fn digest(content: &[u8]) -> String {
    sha256(content)
        .iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
