//! Tables that are kept in the repository and made anew by `cargo xtask table`.

use std::path::Path;

/// `cargo xtask table` sets it: tables are then written, not compared.
const UPDATE: &str = "UPDATE_TABLE";

/// Holds the table at `path`, from the root of the repository, to `today`'s.
///
/// # Panics
/// When they differ; the first line that does is told.
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
