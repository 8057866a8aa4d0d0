//! Interned names, kept for as long as the program runs: those of the program itself, such as autograd's nodes, read
//! back after serialization, and those in recordings.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Deserializer};

/// An interned name.
pub type Name = &'static str;

/// Deserializes a name and interns it.
pub fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Name, D::Error> {
    String::deserialize(deserializer).map(|text| keep(&text))
}

/// Interns a name; equal texts share one copy.
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
