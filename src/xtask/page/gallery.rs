//! Publishes the gallery: packed recordings and their list, each under a name that contains a hash of its content.

use serde_json::Value;

use super::published::Published;
use crate::commands::gallery_folder;
use crate::{Failure, root};

/// Writes the recordings, then the list, in which `file` is the hashed name of each. The page's HTML names only the
/// list.
///
/// # Errors
/// If the list is not as `cargo xtask gallery` writes it, or a recording is missing.
pub fn write(page: &mut Published) -> Result<(), Failure> {
    let folder = root().join(gallery_folder());
    let text = std::fs::read_to_string(folder.join("index.json"))?;
    let unreadable = || Failure::new("index.json of the gallery cannot be read: run `cargo xtask gallery --index`");
    let mut index: Value = serde_json::from_str(&text).map_err(|_| unreadable())?;
    for model in index["models"].as_array_mut().ok_or_else(unreadable)? {
        let id = model["id"].as_str().ok_or_else(unreadable)?.to_owned();
        let recording = std::fs::read(folder.join(format!("{id}.vram")))?;
        if let Some(keys) = model.as_object_mut() {
            // The digest is for a test of the recorder, and the recording itself names its versions.
            keys.retain(|key, _| key != "digest" && key != "versions");
        }
        model["file"] = page.write(&format!("data/gallery/{id}.vram"), &recording)?.into();
    }
    page.add("data/gallery.json", index.to_string().as_bytes())
}
