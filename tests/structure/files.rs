//! Every file says what it holds, and none is long. Clippy holds the length of functions.

use super::sources;

const MOST_LINES: usize = 400;

#[test]
fn every_file_opens_with_what_it_holds() {
    let silent: Vec<_> = sources()
        .into_iter()
        .filter(|(_, text)| !text.starts_with("//!"))
        .map(|(path, _)| path)
        .collect();
    assert!(silent.is_empty(), "no `//!` in the first line: {silent:#?}");
}

#[test]
fn no_file_is_long() {
    let long: Vec<_> = sources()
        .into_iter()
        .map(|(path, text)| (path, text.lines().count()))
        .filter(|(_, lines)| *lines > MOST_LINES)
        .collect();
    assert!(long.is_empty(), "more than {MOST_LINES} lines: {long:#?}");
}
