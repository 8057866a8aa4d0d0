//! What stands beside a dataset: images in files, and the model's tokenizer.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tokenizers::Tokenizer;
use vramscope_dataset::Look;

use super::cannot;
use crate::failure::Failure;

/// File with a tokenizer, as the hub has it.
const TOKENIZER: &str = "tokenizer.json";

/// Looks up sizes of images and counts tokens.
pub struct Beside {
    /// The dataset's folder, from which paths of images are looked for.
    folder: PathBuf,
    tokenizer: Option<Tokenizer>,
    /// Sizes of the files that were opened.
    known: HashMap<PathBuf, Option<[u32; 2]>>,
}

impl Beside {
    /// Beside a file of samples.
    ///
    /// # Errors
    /// If the tokenizer cannot be read.
    pub fn of(file: &Path, tokenizer: Option<&Path>) -> Result<Self, Failure> {
        let read = |path: &Path| Tokenizer::from_file(path).map_err(|error| cannot(path, &error));
        Ok(Self {
            folder: file.parent().unwrap_or(Path::new("")).to_owned(),
            tokenizer: tokenizer.map(read).transpose()?,
            known: HashMap::new(),
        })
    }

    /// Size of an image in a file: by its path as it is, beside the dataset, or in a folder of images there.
    fn in_file(&mut self, name: &str) -> Option<[u32; 2]> {
        let name = Path::new(name.strip_prefix("file://").unwrap_or(name));
        let places = [
            name.to_owned(),
            self.folder.join(name),
            self.folder.join("images").join(name),
        ];
        let path = places.into_iter().find(|path| path.is_file())?;
        let read = |path: &PathBuf| imagesize::size(path).ok().and_then(sides);
        *self.known.entry(path).or_insert_with_key(read)
    }
}

impl Look for Beside {
    fn image(&mut self, image: &Value) -> Option<[u32; 2]> {
        match image {
            Value::String(name) => self.in_file(name),
            Value::Object(of) => {
                let named = ["path", "image", "url", "file_name"]
                    .iter()
                    .find_map(|key| of.get(*key));
                self.in_file(named?.as_str()?)
            }
            _ => None,
        }
    }

    fn tokens(&mut self, text: &str) -> Option<u64> {
        let encoded = self.tokenizer.as_ref()?.encode_fast(text, false).ok()?;
        Some(encoded.len() as u64)
    }
}

/// Height and width of an image.
pub fn sides(size: imagesize::ImageSize) -> Option<[u32; 2]> {
    let side = |pixels: usize| {
        u32::try_from(pixels)
            .ok()
            .filter(|pixels| (1..=65_536).contains(pixels))
    };
    Some([side(size.height)?, side(size.width)?])
}

/// Finds the tokenizer in a model's folder, or beside its configuration.
pub fn tokenizer_of(model: &Path) -> Option<PathBuf> {
    let folder = if model.is_file() { model.parent()? } else { model };
    Some(folder.join(TOKENIZER)).filter(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The first bytes of a PNG of 640 × 480, which say its size.
    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x02\x80\0\0\x01\xe0\x08\x02\0\0\0";

    #[test]
    fn images_are_found_by_their_paths() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("images")).unwrap();
        std::fs::write(folder.path().join("a.png"), PNG).unwrap();
        std::fs::write(folder.path().join("images/b.png"), PNG).unwrap();
        let mut beside = Beside::of(&folder.path().join("train.jsonl"), None).unwrap();
        let whole = folder.path().join("a.png");
        for image in [
            json!("a.png"),
            json!("b.png"),
            json!(whole),
            json!(format!("file://{}", whole.display())),
            json!({"bytes": null, "path": "a.png"}),
        ] {
            assert_eq!(beside.image(&image), Some([480, 640]), "{image}");
        }
        for image in [json!("missing.png"), json!("https://example.org/a.png"), json!(7)] {
            assert_eq!(beside.image(&image), None, "{image}");
        }
    }

    #[test]
    fn a_tokenizer_stands_beside_the_configuration() {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("config.json");
        std::fs::write(&config, "{}").unwrap();
        assert_eq!(tokenizer_of(&config), None);
        let tokenizer = folder.path().join(TOKENIZER);
        std::fs::write(&tokenizer, "{}").unwrap();
        assert_eq!(tokenizer_of(&config), Some(tokenizer.clone()));
        assert_eq!(tokenizer_of(folder.path()), Some(tokenizer));
    }
}
