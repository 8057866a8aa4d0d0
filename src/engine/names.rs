//! Names that are kept for as long as the program runs: those that the program itself gives, such as those of
//! autograd's nodes, read back after they crossed from one side of the program to the other, and those in recordings.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Deserializer};

/// A name that is kept.
pub type Name = &'static str;

/// Reads a name.
pub fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Name, D::Error> {
    String::deserialize(deserializer).map(|text| keep(&text))
}

/// Keeps a name; the same text is kept once.
pub fn keep(text: &str) -> Name {
    static KNOWN: Mutex<BTreeSet<Name>> = Mutex::new(BTreeSet::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    match known.get(text) {
        Some(name) => name,
        None => {
            let name: Name = String::from(text).leak();
            known.insert(name);
            name
        }
    }
}
