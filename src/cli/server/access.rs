//! Tokens: generated, shown once, and then only stored as hashes.

use sha2::{Digest, Sha256};

use crate::records::hex;

/// Prefix of every token, by which scanners recognise a leaked one.
const PREFIX: &str = "vrs_";

/// Generates a token with 256 random bits.
///
/// # Errors
/// If the system provides no random numbers.
pub fn new_token() -> Result<String, getrandom::Error> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)?;
    Ok(format!("{PREFIX}{}", hex(&bytes)))
}

/// Hash of a token for storage. A single SHA-256 is enough, since nobody can try 2²⁵⁶ tokens.
pub fn hash(token: &str) -> String {
    hex(&Sha256::digest(token))
}
