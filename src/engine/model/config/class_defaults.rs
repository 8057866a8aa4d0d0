//! Sizes that a `config.json` leaves to transformers' configuration classes.

use std::cell::RefCell;

/// Sizes that a configuration does not state.
///
/// Only keys that [`Section::size`](super::section::Section::size) and
/// [`Section::size_of_class`](super::section::Section::size_of_class) read count: the ones that define the model, such as
/// widths, layers, heads and experts. Others, such as the length of a convolution, hardly ever differ within a family.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClassDefaults {
    /// Path of each key that is absent, and the class's default, in the order in which they are read.
    pub sizes: Vec<(String, u64)>,
    /// Sections that state none of their sizes; `config.json` is the whole file.
    pub sections: Vec<&'static str>,
}

/// Notes which sizes are stated while a configuration is read.
#[derive(Debug, Default)]
pub(crate) struct SizeLog {
    taken: RefCell<Vec<(&'static str, String, u64)>>,
    stated: RefCell<Vec<&'static str>>,
}

impl SizeLog {
    /// Notes that a section states a size.
    pub fn state(&self, section: &'static str) {
        let mut stated = self.stated.borrow_mut();
        if !stated.contains(&section) {
            stated.push(section);
        }
    }

    /// Notes that a section leaves the size at `path` to its class.
    pub fn take(&self, section: &'static str, path: String, default: u64) {
        let mut taken = self.taken.borrow_mut();
        if !taken.iter().any(|(_, known, _)| *known == path) {
            taken.push((section, path, default));
        }
    }

    /// What was left out.
    pub fn into_defaults(self) -> ClassDefaults {
        let (taken, stated) = (self.taken.into_inner(), self.stated.into_inner());
        let mut sections = Vec::new();
        for (section, ..) in &taken {
            let name = if section.is_empty() { "config.json" } else { *section };
            if !stated.contains(section) && !sections.contains(&name) {
                sections.push(name);
            }
        }
        ClassDefaults {
            sizes: taken.into_iter().map(|(_, path, default)| (path, default)).collect(),
            sections,
        }
    }
}
