//! Imports of the repository: crates import what docs/ARCHITECTURE.md allows them, the engine's folders only those below,
//! and no circle of files is larger than a room.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use syn::visit::{self, Visit};
use syn::{Item, UseTree, Visibility};

use super::root;

/// Largest circle of files that import each other, in one room.
const LARGEST_CIRCLE: usize = 12;

/// A module by its names from the crate's root, which has none.
type Module = Vec<String>;

/// Modules of a crate: file, names that it exports from elsewhere, and the paths that it names.
#[derive(Default)]
struct Source {
    exports: HashMap<String, Vec<String>>,
    imports: Vec<Vec<String>>,
    /// Child modules that only tests compile.
    tests: Vec<Module>,
}

/// Collects the paths of one file, relative to its module.
struct Paths<'a> {
    module: &'a [String],
    source: Source,
}

impl Paths<'_> {
    /// Makes a path absolute in its crate; `None` for one of another crate.
    fn absolute(&self, path: &[String]) -> Option<Vec<String>> {
        let mut base = self.module.to_vec();
        let mut rest = path;
        match rest.first()?.as_str() {
            "crate" => {
                base.clear();
                rest = &rest[1..];
            }
            "self" => rest = &rest[1..],
            "super" => {
                while rest.first().is_some_and(|name| name == "super") {
                    base.pop();
                    rest = &rest[1..];
                }
            }
            _ => return None,
        }
        base.extend_from_slice(rest);
        Some(base)
    }

    fn tree(&mut self, tree: &UseTree, path: &mut Vec<String>, public: bool, children: &BTreeSet<String>) {
        let (name, target) = match tree {
            UseTree::Path(part) => {
                path.push(part.ident.to_string());
                self.tree(&part.tree, path, public, children);
                path.pop();
                return;
            }
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.tree(tree, path, public, children);
                }
                return;
            }
            UseTree::Name(name) => (name.ident.to_string(), name.ident.to_string()),
            UseTree::Rename(name) => (name.rename.to_string(), name.ident.to_string()),
            UseTree::Glob(_) => ("*".to_owned(), "*".to_owned()),
        };
        let mut whole = path.clone();
        if target != "self" {
            whole.push(target);
        }
        // A path that begins with a child module is relative to this one.
        if whole.first().is_some_and(|first| children.contains(first)) {
            whole.insert(0, "self".to_owned());
        }
        let Some(whole) = self.absolute(&whole) else {
            return;
        };
        match public {
            true => {
                self.source.exports.insert(name, whole);
            }
            false => self.source.imports.push(whole),
        }
    }
}

impl<'ast> Visit<'ast> for Paths<'_> {
    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Vec<String> = path.segments.iter().map(|part| part.ident.to_string()).collect();
        if let Some(whole) = self.absolute(&names) {
            self.source.imports.push(whole);
        }
        visit::visit_path(self, path);
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !item.attrs.iter().any(is_test) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_visibility(&mut self, _: &'ast Visibility) {}
}

fn is_test(attribute: &syn::Attribute) -> bool {
    attribute.path().is_ident("cfg") && attribute.parse_args::<syn::Ident>().is_ok_and(|name| name == "test")
}

/// Files of a crate that are no tests, by module.
fn modules(folder: &Path) -> BTreeMap<Module, PathBuf> {
    let mut found = BTreeMap::new();
    let mut open = vec![(folder.to_owned(), Module::new())];
    while let Some((folder, module)) = open.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            if ["tests", "benches", "examples", "build"].contains(&name.as_str()) {
                continue;
            }
            let own = || [module.clone(), vec![name.clone()]].concat();
            if path.is_dir() {
                open.push((path.clone(), own()));
            } else if path.extension().is_some_and(|end| end == "rs") {
                let module = match name.as_str() {
                    "mod" | "lib" | "main" => module.clone(),
                    _ => own(),
                };
                // A crate with a library and a program: the library is what others import.
                if name != "main" || !folder.join("lib.rs").exists() {
                    found.insert(module, path);
                }
            }
        }
    }
    found
}

fn read(module: &Module, path: &Path, all: &BTreeMap<Module, PathBuf>) -> Source {
    let text = fs::read_to_string(path).unwrap();
    let file = syn::parse_file(&text).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    let below = all
        .keys()
        .filter(|other| other.len() == module.len() + 1 && other.starts_with(module));
    let children: BTreeSet<String> = below.map(|other| other[module.len()].clone()).collect();
    let mut paths = Paths {
        module,
        source: Source::default(),
    };
    for item in &file.items {
        match item {
            Item::Mod(item) if item.content.is_none() => {
                if item.attrs.iter().any(is_test) {
                    let child = [module.clone(), vec![item.ident.to_string()]].concat();
                    paths.source.tests.push(child);
                }
            }
            Item::Use(item) => {
                let public = !matches!(item.vis, Visibility::Inherited);
                paths.tree(&item.tree, &mut Vec::new(), public, &children);
            }
            item => paths.visit_item(item),
        }
    }
    paths.source
}

/// Module that defines what a path names, through exports of modules between.
fn defined(path: &[String], sources: &BTreeMap<Module, Source>, depth: usize) -> Module {
    let mut module = path.to_vec();
    while !sources.contains_key(&module) {
        module.pop();
    }
    let name = path.get(module.len());
    let export = name.and_then(|name| {
        let exports = &sources[&module].exports;
        exports.get(name).or_else(|| exports.get("*"))
    });
    match export {
        Some(from) if depth > 0 && from != path => defined(from, sources, depth - 1),
        _ => module,
    }
}

/// Imports between the files of a crate.
fn imports(folder: &Path) -> BTreeMap<Module, BTreeSet<Module>> {
    let all = modules(folder);
    let sources: BTreeMap<Module, Source> = all
        .iter()
        .map(|(module, path)| (module.clone(), read(module, path, &all)))
        .collect();
    let tests: Vec<&Module> = sources.values().flat_map(|source| &source.tests).collect();
    let is_tested = |module: &Module| tests.iter().any(|test| module.starts_with(test));
    let of = |module: &Module| {
        let used = sources[module].imports.iter().map(|path| defined(path, &sources, 8));
        used.filter(|other| other != module && !is_tested(other)).collect()
    };
    let kept = sources.keys().filter(|module| !is_tested(module));
    kept.map(|module| (module.clone(), of(module))).collect()
}

/// Groups of files that can all reach each other, of more than one.
fn circles(imports: &BTreeMap<Module, BTreeSet<Module>>) -> Vec<BTreeSet<Module>> {
    let reach: BTreeMap<&Module, BTreeSet<&Module>> = imports
        .keys()
        .map(|from| {
            let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
            while let Some(module) = open.pop() {
                for next in &imports[module] {
                    if seen.insert(next) {
                        open.push(next);
                    }
                }
            }
            (from, seen)
        })
        .collect();
    let mut found: Vec<BTreeSet<Module>> = Vec::new();
    for from in imports.keys().filter(|from| reach[from].contains(from)) {
        if !found.iter().any(|circle| circle.contains(from)) {
            let circle = reach[from].iter().filter(|other| reach[*other].contains(from));
            found.push(circle.map(|other| (*other).clone()).collect());
        }
    }
    found
}

/// Rows of the table under a heading of ARCHITECTURE.md: a name, and the names that it may import.
fn allowed(heading: &str) -> Vec<(String, BTreeSet<String>)> {
    let text = fs::read_to_string(root().join("docs/ARCHITECTURE.md")).unwrap();
    let (_, section) = text
        .split_once(heading)
        .unwrap_or_else(|| panic!("no section {heading}"));
    let rows = section.lines().skip_while(|line| !line.starts_with("| `"));
    let names = |cell: &str| {
        cell.split('`')
            .skip(1)
            .step_by(2)
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    rows.take_while(|line| line.starts_with("| `"))
        .map(|line| {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            (names(cells[1]).remove(0), names(cells[2]).into_iter().collect())
        })
        .collect()
}

fn crates() -> Vec<PathBuf> {
    let folders = fs::read_dir(root().join("src"))
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut all: Vec<PathBuf> = folders.filter(|folder| folder.join("Cargo.toml").exists()).collect();
    all.sort();
    all
}

#[test]
fn crates_import_what_the_architecture_allows() {
    let allowed: BTreeMap<_, _> = allowed("## Crates").into_iter().collect();
    let mut seen = BTreeSet::new();
    for folder in crates() {
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        let may = allowed
            .get(&name)
            .unwrap_or_else(|| panic!("ARCHITECTURE.md does not list {name}"));
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        let (normal, _) = manifest.split_once("[dev-dependencies]").unwrap_or((&manifest, ""));
        let used = normal.lines().filter_map(|line| line.trim().strip_prefix("vramscope-"));
        for used in used.filter_map(|line| line.split(['.', ' ', '=']).next()) {
            assert!(
                may.contains(used),
                "{name} imports {used}, which ARCHITECTURE.md does not allow"
            );
        }
        seen.insert(name);
    }
    assert!(
        seen.len() == allowed.len(),
        "ARCHITECTURE.md lists crates that are not there"
    );
}

#[test]
fn folders_of_the_engine_import_only_those_that_the_architecture_lists() {
    let allowed: BTreeMap<_, _> = allowed("## Inside the engine").into_iter().collect();
    let mut wrong = Vec::new();
    for (module, used) in imports(&root().join("src/engine")) {
        let Some(own) = module.first() else {
            continue;
        };
        let may = allowed
            .get(own)
            .unwrap_or_else(|| panic!("ARCHITECTURE.md does not list {own}"));
        for other in used
            .iter()
            .filter_map(|other| other.first())
            .filter(|other| *other != own)
        {
            if !may.contains(other) {
                wrong.push(format!("{} imports {other}", module.join("::")));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A later row may import earlier ones, so that the table has no circle.
#[test]
fn the_architecture_goes_one_way() {
    for heading in ["## Crates", "## Inside the engine"] {
        let mut below = BTreeSet::new();
        for (name, may) in allowed(heading) {
            for other in &may {
                assert!(
                    below.contains(other),
                    "{heading}: {name} may import {other}, which stands below it"
                );
            }
            below.insert(name);
        }
    }
}

#[test]
fn circles_of_files_are_small_and_within_one_folder() {
    for folder in crates() {
        for circle in circles(&imports(&folder)) {
            let names: Vec<String> = circle.iter().map(|module| module.join("::")).collect();
            assert!(
                circle.len() <= LARGEST_CIRCLE,
                "{folder:?}: {} files import each other: {}",
                circle.len(),
                names.join(", ")
            );
        }
    }
}
