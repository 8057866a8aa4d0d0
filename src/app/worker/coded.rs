use std::marker::PhantomData;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Something that crosses over as bytes and is read where it is needed: the code that writes and reads it
/// belongs to a chunk of the program, not to every message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Coded<T> {
    bytes: Vec<u8>,
    of: PhantomData<T>,
}

impl<T> Coded<T> {
    /// Writes it.
    pub fn of(item: &T) -> Self
    where
        T: Serialize,
    {
        Self {
            // Plain data into a growing buffer: nothing can fail.
            bytes: postcard::to_allocvec(item).unwrap_or_default(),
            of: PhantomData,
        }
    }

    /// Reads it; both sides are one program, so it is what was written.
    pub fn open(&self) -> Option<T>
    where
        T: DeserializeOwned,
    {
        postcard::from_bytes(&self.bytes).ok()
    }
}
