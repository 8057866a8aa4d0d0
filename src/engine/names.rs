//! Names that the program itself gives, such as those of autograd's nodes, read back after they
//! crossed from one side of the program to the other.

use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Deserializer};

/// A name that is part of the program.
pub type Name = &'static str;

/// Reads a name. There are few, and each is kept once, for as long as the program runs.
pub fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Name, D::Error> {
    static KNOWN: Mutex<Vec<Name>> = Mutex::new(Vec::new());
    let text = String::deserialize(deserializer)?;
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    match known.binary_search(&text.as_str()) {
        Ok(at) => Ok(known[at]),
        Err(at) => {
            let name: Name = text.leak();
            known.insert(at, name);
            Ok(name)
        }
    }
}
