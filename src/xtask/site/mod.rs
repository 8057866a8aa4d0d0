//! The manual as a site: each document of the repository that README and `docs/` lead to, with search, and without a link that
//! leads nowhere.

mod page;
mod search;
mod write;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use crate::Failure;
use page::Page;

/// The first page.
const FIRST: &str = "README.md";

/// The manual in the order in which it is read; what else is found comes behind it.
const MANUAL: [&str; 14] = [
    "README.md",
    "docs/tasks.md",
    "docs/page.md",
    "docs/command-line.md",
    "docs/automation.md",
    "docs/any-model.md",
    "docs/server.md",
    "docs/exactness.md",
    "docs/ledger.md",
    "docs/recording.md",
    "docs/glossary.md",
    "docs/ARCHITECTURE.md",
    "docs/CONTRIBUTING.md",
    "CHANGELOG.md",
];

/// All pages, by their paths in the repository, and the other files that they lead to.
pub struct Site {
    root: PathBuf,
    pages: BTreeMap<String, Page>,
    files: BTreeSet<String>,
    folders: BTreeSet<String>,
}

/// Where a link leads.
enum Target {
    /// Out of the repository.
    Outside,
    /// To a path of the repository, and a heading of it.
    Inside(String, Option<String>),
}

impl Site {
    /// Reads the manual, and what it leads to, from a repository.
    ///
    /// # Errors
    /// If a document of the manual cannot be read.
    pub fn read(root: &Path) -> Result<Self, Failure> {
        let mut site = Self {
            root: root.to_owned(),
            pages: BTreeMap::new(),
            files: BTreeSet::new(),
            folders: BTreeSet::new(),
        };
        let mut waiting: Vec<String> = MANUAL.map(str::to_owned).to_vec();
        waiting.extend(site.documents("docs")?);
        while let Some(path) = waiting.pop() {
            if site.pages.contains_key(&path) {
                continue;
            }
            let text =
                std::fs::read_to_string(root.join(&path)).map_err(|error| Failure::new(format!("{path}: {error}")))?;
            let page = Page::read(&text);
            for link in &page.links {
                let Target::Inside(to, _) = target(&path, link) else {
                    continue;
                };
                let file = root.join(&to);
                match () {
                    () if file.is_dir() => {
                        site.folders.insert(to.clone());
                        site.files.extend(files_of(root, &to)?);
                    }
                    () if !file.is_file() => {}
                    () if is_document(&to) => waiting.push(to),
                    () => {
                        site.files.insert(to);
                    }
                }
            }
            site.pages.insert(path, page);
        }
        Ok(site)
    }

    /// Documents in a folder and those in it.
    fn documents(&self, folder: &str) -> Result<Vec<String>, Failure> {
        let mut found = Vec::new();
        for entry in std::fs::read_dir(self.root.join(folder))? {
            let entry = entry?;
            let path = format!("{folder}/{}", entry.file_name().to_string_lossy());
            match entry.path().is_dir() {
                true => found.extend(self.documents(&path)?),
                false if is_document(&path) => found.push(path),
                false => {}
            }
        }
        found.sort();
        Ok(found)
    }

    /// Number of pages.
    pub fn pages(&self) -> usize {
        self.pages.len()
    }

    /// Links that lead nowhere, each with its page.
    pub fn dead_links(&self) -> Vec<String> {
        let mut dead = Vec::new();
        for (path, page) in &self.pages {
            for link in &page.links {
                if let Some(why) = self.is_dead(path, link) {
                    dead.push(format!("{path}: {link}: {why}"));
                }
            }
        }
        dead
    }

    fn is_dead(&self, from: &str, link: &str) -> Option<&'static str> {
        let Target::Inside(to, heading) = target(from, link) else {
            // A link without a scheme of its own would be one of the repository.
            return None;
        };
        match (self.pages.get(&to), heading) {
            (Some(page), Some(heading)) if !page.anchors.contains(&heading) => Some("there is no such heading"),
            (Some(_), _) => None,
            (None, _) if self.files.contains(&to) || self.folders.contains(&to) => None,
            (None, _) => Some("there is no such file"),
        }
    }
}

/// Files of a folder itself.
fn files_of(root: &Path, folder: &str) -> Result<Vec<String>, Failure> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(root.join(folder))? {
        let entry = entry?;
        if entry.path().is_file() {
            files.push(format!("{folder}/{}", entry.file_name().to_string_lossy()));
        }
    }
    files.sort();
    Ok(files)
}

fn is_document(path: &str) -> bool {
    Path::new(path).extension().is_some_and(|end| end == "md")
}

/// Resolves a link of a document.
fn target(from: &str, link: &str) -> Target {
    let has_scheme = link.split(['/', '#']).next().is_some_and(|start| start.contains(':'));
    if has_scheme || link.starts_with("//") {
        return Target::Outside;
    }
    let (path, heading) = match link.split_once('#') {
        Some((path, heading)) => (path, Some(heading.to_owned())),
        None => (link, None),
    };
    if path.is_empty() {
        return Target::Inside(from.to_owned(), heading);
    }
    let mut parts: Vec<String> = Path::new(from).parent().map(parts_of).unwrap_or_default();
    for part in Path::new(path).components() {
        match part {
            Component::ParentDir => {
                parts.pop();
            }
            Component::Normal(name) => parts.push(name.to_string_lossy().into_owned()),
            _ => {}
        }
    }
    Target::Inside(parts.join("/"), heading)
}

fn parts_of(path: &Path) -> Vec<String> {
    path.components()
        .map(|part| part.as_os_str().to_string_lossy().into_owned())
        .collect()
}

/// The site's path of a document or a folder of the repository.
fn address(path: &str, is_folder: bool) -> String {
    match path.strip_suffix(".md") {
        _ if path == FIRST => "index.html".to_owned(),
        Some(name) => format!("{name}.html"),
        None if is_folder => format!("{path}/index.html"),
        None => path.to_owned(),
    }
}

/// The way from one path of the site to another.
fn way(from: &str, to: &str) -> String {
    let depth = from.matches('/').count();
    format!("{}{to}", "../".repeat(depth))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manual_has_no_dead_link() {
        let site = Site::read(&crate::root()).expect("the manual is read");
        assert_eq!(site.dead_links(), Vec::<String>::new());
        assert!(site.pages() > MANUAL.len());
    }

    #[test]
    fn a_link_that_leads_nowhere_is_found() {
        let mut site = Site::read(&crate::root()).expect("the manual is read");
        let text = "# A title\n\n[a](#a-title) [b](docs/server.md#a-teams-server) [c](docs) [d](https://example.org/x)\n\n\
                    [e](#none) [f](docs/server.md#none) [g](docs/none.md)";
        site.pages.insert("x.md".into(), Page::read(text));
        let dead: Vec<String> = site
            .dead_links()
            .into_iter()
            .filter(|dead| dead.starts_with("x.md"))
            .collect();
        let of: Vec<&str> = dead.iter().filter_map(|dead| dead.split(": ").nth(1)).collect();
        // No page leads to the folder of the manual, so it is not part of the site.
        assert_eq!(of, ["docs", "#none", "docs/server.md#none", "docs/none.md"]);
    }

    #[test]
    fn the_site_stands_on_its_own_and_is_the_same_each_time() {
        let site = Site::read(&crate::root()).expect("the manual is read");
        let folders = ["one", "two"]
            .map(|name| std::env::temp_dir().join(format!("vramscope-site-{name}-{}", std::process::id())));
        for folder in &folders {
            site.write(folder).expect("it is written");
        }
        let read = |at: usize, name: &str| std::fs::read_to_string(folders[at].join(name)).expect("a page");
        for name in ["index.html", "docs/server.html", "search.js"] {
            assert_eq!(read(0, name), read(1, name));
        }
        let page = read(0, "docs/server.html");
        assert!(
            page.contains("<h1 id=\"a-teams-server\">") && page.contains("src=\"../search.js\""),
            "{page}"
        );
        assert!(!page.contains("src=\"http"), "it loads nothing from elsewhere");
        assert!(read(0, "index.html").contains("href=\"docs/command-line.html\""));
        assert!(read(0, "search.js").contains("docs/server.html#a-teams-server"));
        for folder in folders {
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}
