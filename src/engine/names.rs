//! Names that the program itself gives, such as those of autograd's nodes, read back after they
//! crossed from one side of the program to the other.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Deserializer};

/// A name that is part of the program.
pub type Name = &'static str;

/// Reads a name. There are few, and each is kept once, for as long as the program runs.
pub fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Name, D::Error> {
    static KNOWN: Mutex<BTreeSet<Name>> = Mutex::new(BTreeSet::new());
    let text = String::deserialize(deserializer)?;
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(name) = known.get(text.as_str()) {
        return Ok(name);
    }
    let name: Name = text.leak();
    known.insert(name);
    Ok(name)
}
