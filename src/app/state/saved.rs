//! Setups that this browser keeps: those with names, and the latest.

use serde::{Deserialize, Serialize};

use super::{Draft, Key, Scope};

/// Most of the latest setups.
const RECENT: usize = 24;

/// A setup with a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Named {
    /// Name; no two are the same.
    pub name: String,
    /// The setup as the query of its link.
    pub query: String,
}

/// Setups with names, the newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Saved(Vec<Named>);

impl Saved {
    /// Reads what was written; what is no such list, or no setup, is left out.
    pub fn read(text: &str) -> Self {
        let all: Vec<Named> = serde_json::from_str(text).unwrap_or_default();
        let mut saved = Self::default();
        for named in all.into_iter().rev() {
            saved.save(&named.name, &named.query);
        }
        saved
    }

    /// Writes the list, for this browser or a file.
    pub fn write(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    /// The setups, the newest first.
    pub fn all(&self) -> &[Named] {
        &self.0
    }

    /// Keeps a setup under a name, in place of the one that had it. A name that is blank keeps nothing.
    pub fn save(&mut self, name: &str, query: &str) {
        let name = name.trim();
        if name.is_empty() || setup_of(query).is_none() {
            return;
        }
        self.remove(name);
        let (name, query) = (name.to_owned(), query.to_owned());
        self.0.insert(0, Named { name, query });
    }

    /// Gives a setup another name, unless that is blank; one that had it gives way.
    pub fn rename(&mut self, from: &str, to: &str) {
        let to = to.trim();
        if to.is_empty() || from == to {
            return;
        }
        self.remove(to);
        if let Some(named) = self.0.iter_mut().find(|named| named.name == from) {
            to.clone_into(&mut named.name);
        }
    }

    /// Forgets a setup.
    pub fn remove(&mut self, name: &str) {
        self.0.retain(|named| named.name != name);
    }

    /// Adds the setups of a file; returns how many there are in it.
    pub fn add(&mut self, text: &str) -> usize {
        let other = Self::read(text);
        for Named { name, query } in other.0.iter().rev() {
            self.save(name, query);
        }
        other.0.len()
    }
}

/// Returns true if an entry belongs to a setup that is kept.
pub fn is_of_setup(key: Key) -> bool {
    matches!(key.scope(), Scope::Run | Scope::Time)
}

/// Reads a setup; `None` if a part of it cannot be used.
pub fn setup_of(query: &str) -> Option<Draft> {
    let mut draft = Draft::default();
    let problems = draft.read_pairs(query);
    (problems.is_empty() && draft.entries().all(|(key, _)| is_of_setup(key))).then_some(draft)
}

/// The latest setups, a line each, with a new one in front: in place of the last if it continues that one.
pub fn with_latest(lines: &str, query: &str, continues: bool) -> String {
    let earlier = lines.lines().skip(usize::from(continues));
    let earlier = earlier.filter(|line| *line != query);
    let all = [query].into_iter().chain(earlier).take(RECENT);
    all.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn names(saved: &Saved) -> Vec<&str> {
        saved.all().iter().map(|named| &*named.name).collect()
    }

    #[test]
    fn a_name_is_of_one_setup() {
        let mut saved = Saved::default();
        saved.save(" a ", "model=gpt2");
        saved.save("b", "batch=4");
        saved.save("a", "batch=8");
        saved.save("", "batch=9");
        saved.save("c", "theme=dark");
        assert_eq!(names(&saved), ["a", "b"]);
        assert_eq!(saved.all()[0].query, "batch=8");
        saved.rename("b", "a");
        assert_eq!((names(&saved), &*saved.all()[0].query), (vec!["a"], "batch=4"));
        saved.rename("a", " ");
        saved.rename("nobody", "x");
        assert_eq!(names(&saved), ["a"]);
        saved.remove("a");
        assert_eq!(saved, Saved::default());
    }

    #[test]
    fn a_file_adds_to_what_is_kept() {
        let mut saved = Saved::default();
        saved.save("a", "batch=2");
        let file = "[{\"name\": \"a\", \"query\": \"batch=3\"}, {\"name\": \"b\", \"query\": \"speed=9\"}, {\"name\": \"c\", \"query\": \"\"}]";
        assert_eq!(saved.add(file), 2);
        assert_eq!((names(&saved), &*saved.all()[0].query), (vec!["a", "c"], "batch=3"));
        assert_eq!(saved.add("{}"), 0);
    }

    #[test]
    fn the_latest_stand_first_and_once() {
        let mut lines = String::new();
        for (query, continues) in [("a", false), ("b", false), ("b2", true), ("a", false)] {
            lines = with_latest(&lines, query, continues);
        }
        assert_eq!(lines, "a\nb2");
        for i in 0..100 {
            lines = with_latest(&lines, &i.to_string(), false);
        }
        assert_eq!(lines.lines().count(), RECENT);
    }

    proptest! {
        #[test]
        fn any_text_is_read_and_what_is_written_is_read_back(text in ".*", names in prop::collection::vec(".{1,9}", 0..6)) {
            Saved::read(&text);
            let mut saved = Saved::default();
            names.iter().for_each(|name| saved.save(name, "batch=2"));
            prop_assert_eq!(Saved::read(&saved.write()), saved);
        }
    }
}
