//! Publishes the benchmark records of the repository beside the page, as `vramscope export` would.

use std::path::Path;

use serde_json::Value;

use crate::{Failure, root};

/// List of records that the page loads; `vramscope export` rewrites it.
pub const LISTED: &str = "data/records.json";
/// The list, which `vramscope export` made of [`FILES`]; a test compares them.
const LIST: &str = "src/app/data/records.json";
/// The records, in the order of the list.
const FILES: [&str; 2] = ["tests/data/records/h100.json", "tests/data/records/h200.json"];

/// Prices of cards for an hour, which a team publishes in place of this file; none is built in.
const PRICES: &str = "data/prices.json";

/// Writes the list and the records, and an empty list of prices.
///
/// # Errors
/// If a file is missing, or the list has not as many records.
pub fn write(dist: &Path) -> Result<(), Failure> {
    let text = std::fs::read_to_string(root().join(LIST))?;
    let unlike = || Failure::new(format!("{LIST} does not list {FILES:?}"));
    let list: Value = serde_json::from_str(&text).map_err(|_| unlike())?;
    let ids: Vec<&str> = list["records"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|entry| entry["id"].as_str())
        .collect();
    if ids.len() != FILES.len() {
        return Err(unlike());
    }
    std::fs::create_dir_all(dist.join("data/records"))?;
    for (id, file) in ids.iter().zip(FILES) {
        std::fs::copy(root().join(file), dist.join(format!("data/records/{id}.json")))?;
    }
    std::fs::write(dist.join(LISTED), text)?;
    std::fs::write(dist.join(PRICES), "[]\n")?;
    Ok(())
}
