//! The bill of materials: each crate that the lock file names, with the checksum of its source, as CycloneDX 1.5 has it.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::Failure;

/// Writes the bill of the repository's lock file.
///
/// # Errors
/// If the lock file cannot be read.
pub fn of(root: &Path, version: &str) -> Result<String, Failure> {
    let lock = fs::read_to_string(root.join("Cargo.lock"))?;
    let bill = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": {"type": "application", "name": "vramscope", "version": version}},
        "components": components(&lock),
    });
    serde_json::to_string_pretty(&bill).map_err(|error| Failure::new(error.to_string()))
}

/// Crates of a lock file that come from elsewhere.
fn components(lock: &str) -> Vec<Value> {
    let packages = lock.split("[[package]]").skip(1);
    packages.filter_map(component).collect()
}

fn component(package: &str) -> Option<Value> {
    let value = |key: &str| {
        let line = package
            .lines()
            .find_map(|line| line.strip_prefix(&format!("{key} = ")))?;
        Some(line.trim_matches('"').to_owned())
    };
    // Those of the repository itself have no source.
    value("source")?;
    let (name, version) = (value("name")?, value("version")?);
    let mut component = json!({
        "type": "library",
        "name": name,
        "version": version,
        "purl": format!("pkg:cargo/{name}@{version}"),
    });
    if let Some(sum) = value("checksum") {
        component["hashes"] = json!([{"alg": "SHA-256", "content": sum}]);
    }
    Some(component)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_crate_from_elsewhere_is_in_it_with_its_checksum() {
        let bill: Value = serde_json::from_str(&of(&crate::root(), "1.2.3").expect("a bill")).expect("JSON");
        let lock = fs::read_to_string(crate::root().join("Cargo.lock")).expect("the lock file");
        let components = bill["components"].as_array().expect("a list");
        assert_eq!(components.len(), lock.matches("\nsource = ").count());
        assert!(
            components
                .iter()
                .all(|one| one["hashes"][0]["content"].as_str().is_some_and(|sum| sum.len() == 64))
        );
        assert!(!components.iter().any(|one| one["name"] == "vramscope-engine"));
        assert_eq!(bill["metadata"]["component"]["version"], "1.2.3");
    }
}
