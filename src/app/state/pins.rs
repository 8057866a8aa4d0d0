//! Setups pinned for comparison with the current one.

use super::Draft;

/// Setups pinned for comparison with the current one.
///
/// Encoded as the query of each setup's own URL followed by `|`, a character that no query contains.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Pins(Vec<Draft>);

impl Pins {
    /// Maximum number of pinned setups; more do not fit beside the current one.
    pub const MOST: usize = 3;

    /// Parses the output of [`Pins::text`]; `None` if any part is invalid.
    pub fn read(text: &str) -> Option<Self> {
        if text.is_empty() {
            return Some(Self::default());
        }
        let setups = text
            .strip_suffix('|')?
            .split('|')
            .map(setup)
            .collect::<Option<Vec<_>>>()?;
        (setups.len() <= Self::MOST).then_some(Self(setups))
    }

    /// Encodes the setups as one text.
    pub fn text(&self) -> String {
        self.0.iter().map(|setup| format!("{}|", setup.to_query())).collect()
    }

    /// Returns the setups in the order in which they were pinned.
    pub fn all(&self) -> &[Draft] {
        &self.0
    }

    /// Returns true if another setup can be pinned.
    pub fn has_room(&self) -> bool {
        self.0.len() < Self::MOST
    }

    /// Pins a setup if there is room.
    pub fn add(&mut self, setup: Draft) {
        if self.has_room() {
            self.0.push(setup);
        }
    }

    /// Removes a setup.
    pub fn remove(&mut self, i: usize) {
        if i < self.0.len() {
            self.0.remove(i);
        }
    }

    /// Replaces a setup and returns the old one.
    pub fn replace(&mut self, i: usize, setup: Draft) -> Option<Draft> {
        self.0.get_mut(i).map(|pinned| std::mem::replace(pinned, setup))
    }
}

/// Parses a setup; refuses keys that do not affect a run.
fn setup(query: &str) -> Option<Draft> {
    let mut draft = Draft::default();
    let problems = draft.read_pairs(query);
    let whole = problems.is_empty() && draft.entries().all(|(key, _)| key.decides_run());
    whole.then_some(draft)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::Key;
    use proptest::prelude::*;

    fn setups() -> impl Strategy<Value = Vec<Draft>> {
        let keys: Vec<_> = Key::all().filter(|key| key.decides_run()).collect();
        let draft = prop::collection::vec((prop::sample::select(keys), ".*"), 0..6).prop_map(|entries| {
            let mut draft = Draft::default();
            for (key, text) in entries {
                draft.set(key, text);
            }
            draft
        });
        prop::collection::vec(draft, 0..=Pins::MOST)
    }

    proptest! {
        #[test]
        fn what_is_pinned_is_read_back(setups in setups()) {
            let pins = Pins(setups);
            prop_assert_eq!(Pins::read(&pins.text()), Some(pins));
        }

        #[test]
        fn anything_else_is_refused_or_read(text in ".*") {
            if let Some(pins) = Pins::read(&text) {
                prop_assert_eq!(Pins::read(&pins.text()), Some(pins));
            }
        }
    }

    #[test]
    fn setups_that_are_cut_or_hold_other_keys_are_refused() {
        for bad in ["batch=4", "speed=9|", "lang=en|", "batch=4&batch=5|", "||||"] {
            assert_eq!(Pins::read(bad), None, "{bad}");
        }
        assert_eq!(Pins::read("|").map(|p| p.all().len()), Some(1), "all at its default");
    }

    #[test]
    fn a_fourth_finds_no_room() {
        let mut pins = Pins::default();
        for _ in 0..5 {
            pins.add(Draft::default());
        }
        assert_eq!(pins.all().len(), Pins::MOST);
        pins.remove(7);
        pins.remove(0);
        assert!(pins.has_room());
    }
}
