//! Paths as scripts write them, without the folders that are not known.

use super::{CLOSE, plain};

/// Parts of a path behind what is not known of it, without `.` and `..`.
pub(super) fn parts(path: &str) -> Vec<String> {
    let known = path.rsplit(CLOSE).next().unwrap_or_default();
    let mut out: Vec<String> = Vec::new();
    for part in plain(known).split(['/', '\\']) {
        match part {
            "" | "." | "~" => {}
            ".." => _ = out.pop(),
            part => out.push(part.to_owned()),
        }
    }
    out
}

/// A path within a folder, without `.` and `..`.
pub(crate) fn within(folder: &str, path: &str) -> String {
    let is_absolute = path.starts_with(['/', '~']) || path.contains(CLOSE);
    let joined = if is_absolute || folder.is_empty() {
        parts(path)
    } else {
        parts(&format!("{folder}/{path}"))
    };
    joined.join("/")
}

/// Of some paths the index of the one that is meant by a path: it ends as the other does, and has most parts of it.
pub(crate) fn fitting<'a>(paths: impl Iterator<Item = &'a str>, wanted: &str) -> Option<usize> {
    let wanted = parts(wanted);
    let common = |path: &str| {
        let own = parts(path);
        let common = std::iter::zip(own.iter().rev(), wanted.iter().rev())
            .take_while(|(a, b)| a == b)
            .count();
        (common > 0 && common == own.len().min(wanted.len())).then_some(common)
    };
    let found = paths.enumerate().filter_map(|(at, path)| Some((common(path)?, at)));
    let best = found.max_by_key(|(common, at)| (*common, std::cmp::Reverse(*at)));
    best.map(|(_, at)| at)
}

/// Folder of a path, `.` for one without.
pub(super) fn folder(path: &str) -> String {
    match path.trim_end_matches('/').rsplit_once('/') {
        Some(("", _)) => "/".to_owned(),
        Some((folder, _)) => folder.to_owned(),
        None => ".".to_owned(),
    }
}

/// Last part of a path.
pub(super) fn file_name(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::super::open;
    use super::*;

    #[test]
    fn files_are_found_by_the_ends_of_their_paths() {
        let given = ["job.sh", "a/x.sh", "b/x.sh", "/home/me/conf/two.json"];
        let find = |path: &str| fitting(given.iter().copied(), path);
        assert_eq!(find("./b/x.sh"), Some(2));
        assert_eq!(find("x.sh"), Some(1));
        assert_eq!(find("conf/two.json"), Some(3));
        assert_eq!(find("../other/job.sh"), Some(0));
        assert_eq!(find("c/x.sh"), None);
        assert_eq!(find(&format!("{}/conf/two.json", open("$HERE"))), Some(3));
        assert_eq!(find(""), None);
        assert_eq!(within("src/own", "../b/./c"), "src/b/c");
        assert_eq!(within("src", "/b"), "b");
    }
}
