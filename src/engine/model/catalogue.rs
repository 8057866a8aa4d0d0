//! Models known by name, as `config.json` files embedded in the program.

use super::facts::{Entry, Name};
use super::families;
use super::lazy::LazyGroup;

/// Names of all entries, in the order of menus.
const MENU: &str = include_str!("menu.txt");

/// Names of all entries, in the order of menus.
pub(super) fn menu() -> Vec<&'static str> {
    MENU.lines().collect()
}

/// Finds a model by name, and the group of families that its file needs.
pub(super) fn known(name: &str) -> Option<(Option<LazyGroup>, Name)> {
    families::model_names().find(|(_, known)| known.name == name)
}

/// Finds the entry of a name; `None` too if the code of its family is not there.
pub(super) fn entry(name: &str) -> Option<&'static Entry> {
    let (group, _) = known(name)?;
    families::entries(group).find(|entry| entry.name == name)
}

/// Returns the hub's id of a catalogue model; `None` if the hub does not have it or the name is unknown.
pub fn hub_id(name: &str) -> Option<&str> {
    let (_, known) = known(name)?;
    known.checkpoint.or(known.name.contains('/').then_some(known.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Model, Setup, simulate};

    /// Names without an exact checkpoint, and those that the hub does not have.
    const UNPUBLISHED: [&str; 6] = [
        "tinyllava-1.5b",
        "internvl3-1b",
        "internvl3-2b",
        "r3d_18",
        "mc3_18",
        "r2plus1d_18",
    ];

    #[test]
    fn the_menu_lists_every_entry_once() {
        let mut listed = menu();
        let mut entries: Vec<&str> = families::model_names().map(|(_, known)| known.name).collect();
        listed.sort_unstable();
        entries.sort_unstable();
        assert_eq!(listed, entries, "menu.txt and the families' catalogues differ");
    }

    #[test]
    fn every_published_name_has_an_id_that_the_catalogue_knows() {
        for name in menu() {
            match hub_id(name) {
                Some(id) => assert!(id.contains('/') && entry(id).is_some(), "{name}: {id}"),
                None => assert!(UNPUBLISHED.contains(&name), "{name}"),
            }
        }
        assert_eq!(hub_id("my-own/model"), None);
    }

    /// Vocabularies differ by some rows, because a short name's configuration uses the defaults of its class.
    #[test]
    fn a_short_name_is_as_large_as_its_checkpoint() {
        let params = |name: &str| {
            let model = Model::from_catalogue(name).unwrap_or_else(|e| panic!("{name}: {e}"));
            let setup = Setup {
                seq: model.default_seq(),
                ..Setup::default()
            };
            simulate(&model, &setup)
                .unwrap_or_else(|e| panic!("{name}: {e}"))
                .params as f64
        };
        for (_, Name { name, checkpoint }) in families::model_names() {
            let Some(id) = checkpoint else {
                continue;
            };
            let off = params(name) / params(id) - 1.0;
            assert!(off.abs() < 0.005, "{name} against {id}: {:+.2}%", 100.0 * off);
        }
    }
}
