//! Every file says what it holds.

use super::sources;

#[test]
fn every_file_opens_with_what_it_holds() {
    let silent: Vec<_> = sources()
        .into_iter()
        .filter(|(_, text)| !text.starts_with("//!"))
        .map(|(path, _)| path)
        .collect();
    assert!(silent.is_empty(), "no `//!` in the first line: {silent:#?}");
}
