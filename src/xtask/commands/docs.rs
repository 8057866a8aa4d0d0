//! `cargo xtask docs`: the manual as a site.

use crate::site::Site;
use crate::{Failure, root, target};

/// Builds the site of `docs/` with search into `target/site`; static files, which any host serves and a browser opens.
///
/// # Errors
/// If a link leads nowhere, or the folder cannot be written.
pub fn docs() -> Result<(), Failure> {
    let site = Site::read(&root())?;
    let dead = site.dead_links();
    if !dead.is_empty() {
        return Err(Failure::new(format!("dead links:\n  {}", dead.join("\n  "))));
    }
    let folder = target().join("site");
    site.write(&folder)?;
    eprintln!("{} pages in {}", site.pages(), folder.join("index.html").display());
    Ok(())
}
