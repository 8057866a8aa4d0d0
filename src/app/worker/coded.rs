//! Values sent as bytes and decoded only where they are used.

use std::marker::PhantomData;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// A value that is sent as bytes and decoded where it is used, so that its serialization code stays in one chunk of the
/// program instead of in every message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Coded<T> {
    bytes: Vec<u8>,
    of: PhantomData<T>,
}

impl<T> Coded<T> {
    /// Serializes a value.
    pub fn of(item: &T) -> Self
    where
        T: Serialize,
    {
        Self {
            // Serializing plain data into a growing buffer cannot fail.
            bytes: postcard::to_allocvec(item).unwrap_or_default(),
            of: PhantomData,
        }
    }

    /// Deserializes the value. Both sides are the same program, so the format always matches.
    pub fn open(&self) -> Option<T>
    where
        T: DeserializeOwned,
    {
        postcard::from_bytes(&self.bytes).ok()
    }
}
