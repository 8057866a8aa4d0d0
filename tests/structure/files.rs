//! Every file says what it holds, and the files that docs/ARCHITECTURE.md names are there.

use std::fs;

use super::{root, sources};

#[test]
fn every_file_opens_with_what_it_holds() {
    let silent: Vec<_> = sources()
        .into_iter()
        .filter(|(_, text)| !text.starts_with("//!"))
        .map(|(path, _)| path)
        .collect();
    assert!(silent.is_empty(), "no `//!` in the first line: {silent:#?}");
}

/// At most thirty files each: a walk that grows longer has strayed.
#[test]
fn the_walks_of_the_architecture_lead_through_files_that_are_there() {
    let text = fs::read_to_string(root().join("docs/ARCHITECTURE.md")).unwrap();
    let (_, after) = text.split_once("\n## Two walks\n").expect("a section");
    let (walks, _) = after.split_once("\n## ").expect("a section after it");
    let counts: Vec<usize> = walks
        .split("\n**")
        .skip(1)
        .map(|walk| {
            let files = walk.split('`').filter(|word| word.starts_with("src/"));
            files
                .inspect(|path| assert!(root().join(path).is_file(), "{path}"))
                .count()
        })
        .collect();
    assert!(
        counts.len() == 2 && counts.iter().all(|count| (20..=30).contains(count)),
        "{counts:?}"
    );
}
