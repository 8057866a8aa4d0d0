//! Tokens: made, shown once, and known by their hash from then on.

use sha2::{Digest, Sha256};

use crate::records::hex;

/// What every token begins with, so that a leaked one is recognised.
const PREFIX: &str = "vrs_";

/// A new token of 256 random bits.
///
/// # Errors
/// When the system gives no random numbers.
pub fn new_token() -> Result<String, getrandom::Error> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)?;
    Ok(format!("{PREFIX}{}", hex(&bytes)))
}

/// What is stored of a token. One hash is enough: nobody can go through 2²⁵⁶ tokens.
pub fn hash(token: &str) -> String {
    hex(&Sha256::digest(token))
}
