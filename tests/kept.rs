//! Compares tables with those in the repository, which `cargo xtask table` rewrites.

use std::path::Path;

/// Environment variable that `cargo xtask table` sets to write tables instead of comparing them.
const UPDATE: &str = "UPDATE_TABLE";

/// Compares the table at `path`, relative to the repository's root, with `today`.
///
/// # Panics
/// If they differ; the message shows the first different line.
pub fn hold(path: &str, today: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path);
    if std::env::var_os(UPDATE).is_some() {
        std::fs::write(&file, today).expect("the repository can be written");
        return;
    }
    let kept = std::fs::read_to_string(&file).unwrap_or_default();
    let changed = kept.lines().zip(today.lines()).find(|(kept, today)| kept != today);
    assert!(
        kept == today,
        "{path} is not today's: run `cargo xtask table` and look at the difference. First: {changed:#?}"
    );
}
