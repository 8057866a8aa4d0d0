//! Asks a hub for what describes a model.

use serde_json::Value;

use super::client::{Answer, Client};
use super::error::HubError;
use super::object;
use super::store::Stored;
use crate::repository::Repository;
use crate::repository_info::RepositoryInfo;

/// Asks a hub for what describes a model; what did not change since it was stored is taken from there.
///
/// # Errors
/// If the hub does not answer, or does not show the repository.
pub(super) fn fetch(client: &Client<'_>, of: &Repository, stored: Option<&Stored>) -> Result<Stored, HubError> {
    let host = client.host(of.hub);
    let etag = stored
        .filter(|stored| stored.file == "config.json")
        .and_then(|stored| stored.etag.as_deref());
    let mut fetched = match client.file(of, "config.json", etag)? {
        Answer::Unchanged => {
            let mut same = stored.cloned().unwrap_or_else(|| unreachable!("its ETag was sent"));
            same.touch();
            return Ok(same);
        }
        Answer::File { text, etag, .. } => Stored::new(of, host, "config.json", text, etag),
        Answer::Missing => match client.file(of, "adapter_config.json", None)? {
            Answer::File { text, etag, .. } => Stored::new(of, host, "adapter_config.json", text, etag),
            Answer::Missing | Answer::Unchanged => Stored::new(of, host, "", "{}".into(), None),
        },
    };
    fetched.info = client.info(of).as_ref().map(RepositoryInfo::read).unwrap_or_default();
    if fetched.file == "config.json" && object(&fetched.text).contains_key("vision_config") {
        let files = ["preprocessor_config.json", "processor_config.json"];
        fetched.max_pixels = files.iter().find_map(|file| match client.file(of, file, None) {
            Ok(Answer::File { value, .. }) => max_pixels(&value),
            _ => None,
        });
    }
    Ok(fetched)
}

/// Largest image of a processor, where it says pixels (`max_pixels`, or `size.longest_edge` of Qwen's, which is pixels too).
fn max_pixels(config: &Value) -> Option<u64> {
    let inner = config.get("image_processor").unwrap_or(config);
    let is_of_qwen = inner.get("patch_size").is_some() && inner.get("merge_size").is_some();
    let edge = || inner.pointer("/size/longest_edge").filter(|_| is_of_qwen);
    inner.get("max_pixels").or_else(edge)?.as_u64()
}
