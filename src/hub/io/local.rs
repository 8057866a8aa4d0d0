//! Models on this machine: a `config.json`, or a folder that has one.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::answer::MOST_BYTES;
use crate::error::HubError;

/// Longest header of a safetensors file (`SAFETENSORS_MAX_HEADER_LENGTH`).
const MOST_HEADER_BYTES: u64 = 25_000_000;
/// Types of safetensors in which one element is one parameter.
const UNPACKED: [&str; 4] = ["F64", "F32", "F16", "BF16"];

/// A path as it stands, and relative to each folder, where something is there.
pub(super) fn existing(given: &str, folders: &[PathBuf], home: Option<&Path>) -> Option<PathBuf> {
    let of_home = given.strip_prefix("~/").and_then(|rest| Some(home?.join(rest)));
    let given = Path::new(given);
    let relative = folders.iter().map(|folder| folder.join(given));
    of_home
        .into_iter()
        .chain(relative)
        .chain([given.to_owned()])
        .find(|path| path.exists())
}

/// Reads a file of a bounded size.
///
/// # Errors
/// If it cannot be read, is larger than any configuration, or is not UTF-8.
pub(super) fn read(path: &Path) -> Result<String, HubError> {
    let failed = |why: String| HubError::Local {
        path: path.display().to_string(),
        why,
    };
    let file = fs::File::open(path).map_err(|error| failed(format!("it cannot be read: {error}")))?;
    let mut bytes = Vec::new();
    file.take(MOST_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| failed(format!("it cannot be read: {error}")))?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(failed(format!(
            "it has more than {} MiB; a config.json has a few KiB",
            MOST_BYTES >> 20
        )));
    }
    String::from_utf8(bytes).map_err(|_| failed("it is not UTF-8, so no config.json".into()))
}

/// Parameters of the safetensors in a folder, from their headers; `None` if there are none, one is broken, or some are packed.
pub(super) fn parameters(folder: &Path) -> Option<u64> {
    let entries = fs::read_dir(folder).ok()?;
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut all = 0u64;
    // Mistral's repositories hold the same weights twice.
    let is_of_model = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.ends_with(".safetensors") && !name.starts_with("consolidated") && !name.starts_with("adapter")
    };
    for path in paths.filter(is_of_model) {
        all = all.checked_add(of_header(&path)?)?;
    }
    (all > 0).then_some(all)
}

/// Parameters of one file: eight bytes with the length of the header, then the header as JSON.
fn of_header(path: &Path) -> Option<u64> {
    let mut file = fs::File::open(path).ok()?;
    let mut length = [0; 8];
    file.read_exact(&mut length).ok()?;
    let length = u64::from_le_bytes(length);
    let mut header = Vec::new();
    file.take(length.min(MOST_HEADER_BYTES)).read_to_end(&mut header).ok()?;
    let header: Value = serde_json::from_slice(&header).ok()?;
    let mut all = 0u64;
    for (name, tensor) in header.as_object()? {
        if name == "__metadata__" {
            continue;
        }
        if !UNPACKED.contains(&tensor.get("dtype")?.as_str()?) {
            return None;
        }
        let shape = tensor.get("shape")?.as_array()?;
        let elements = shape
            .iter()
            .try_fold(1u64, |product, side| product.checked_mul(side.as_u64()?))?;
        all = all.checked_add(elements)?;
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_counted_from_headers() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, header: &str| {
            let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
            bytes.extend(header.as_bytes());
            fs::write(folder.path().join(name), bytes).expect("it is written");
        };
        assert_eq!(parameters(folder.path()), None);
        write(
            "model-00001-of-00002.safetensors",
            r#"{"__metadata__": {"format": "pt"}, "a": {"dtype": "BF16", "shape": [3, 4], "data_offsets": [0, 24]}}"#,
        );
        write(
            "model-00002-of-00002.safetensors",
            r#"{"b": {"dtype": "F32", "shape": [], "data_offsets": [0, 4]}}"#,
        );
        write(
            "adapter_model.safetensors",
            r#"{"b": {"dtype": "F32", "shape": [9], "data_offsets": [0, 4]}}"#,
        );
        assert_eq!(parameters(folder.path()), Some(13));
        write(
            "model-00002-of-00002.safetensors",
            r#"{"b": {"dtype": "U8", "shape": [9], "data_offsets": [0, 9]}}"#,
        );
        assert_eq!(parameters(folder.path()), None);
        fs::write(folder.path().join("model-00002-of-00002.safetensors"), "cut").expect("it is written");
        assert_eq!(parameters(folder.path()), None);
    }
}
