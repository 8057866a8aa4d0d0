//! Stores tokens in the user's keyring, one for each server: the keychain of macOS, the credential manager of Windows,
//! and the kernel keyring on Linux, which exists on every machine, including servers without a desktop. The kernel
//! forgets it on restart; a permanent token belongs in a file of mode 0600.

use std::sync::Arc;

use keyring_core::{CredentialStore, Entry, Error};

use super::{Destination, Token};
use crate::failure::Failure;

/// Keyring of the current user.
#[derive(Debug)]
pub struct Keyring(Arc<CredentialStore>);

/// Service name of the entries, besides the server's address.
const SERVICE: &str = "vramscope";

impl Keyring {
    /// Opens the keyring.
    ///
    /// # Errors
    /// If this system has none, or does not let this process access it.
    pub fn open() -> Result<Self, Failure> {
        native().map(Self).map_err(|error| unusable(&error))
    }

    /// The token for a server; `None` if the keyring has none or cannot be read, so that other sources are tried.
    pub fn token(&self, to: &Destination) -> Option<Token> {
        let text = self.entry(to).and_then(|entry| entry.get_password()).ok()?;
        Token::of(&text, "the keyring").ok()
    }

    /// Stores a token for a server, replacing an earlier one.
    ///
    /// # Errors
    /// If the keyring refuses it.
    pub fn keep(&self, to: &Destination, token: &Token) -> Result<(), Failure> {
        let kept = self.entry(to).and_then(|entry| entry.set_password(token.secret()));
        kept.map_err(|error| unusable(&error))
    }

    /// Removes the token for a server; returns false if there is none.
    ///
    /// # Errors
    /// If the keyring refuses to remove it.
    pub fn forget(&self, to: &Destination) -> Result<bool, Failure> {
        match self.entry(to).and_then(|entry| entry.delete_credential()) {
            Ok(()) => Ok(true),
            Err(Error::NoEntry) => Ok(false),
            Err(error) => Err(unusable(&error)),
        }
    }

    fn entry(&self, to: &Destination) -> Result<Entry, Error> {
        self.0.build(SERVICE, &to.to_string(), None)
    }
}

fn unusable(error: &Error) -> Failure {
    Failure::Broken(format!(
        "this user's keyring cannot be used: {error}; VRAMSCOPE_TOKEN or a file of mode 0600 hold a token too"
    ))
}

#[cfg(target_os = "linux")]
fn native() -> Result<Arc<CredentialStore>, Error> {
    Ok(linux_keyutils_keyring_store::Store::new()?)
}

#[cfg(target_os = "macos")]
fn native() -> Result<Arc<CredentialStore>, Error> {
    Ok(apple_native_keyring_store::keychain::Store::new()?)
}

#[cfg(windows)]
fn native() -> Result<Arc<CredentialStore>, Error> {
    Ok(windows_native_keyring_store::Store::new()?)
}

#[cfg(not(any(target_os = "linux", target_os = "macos", windows)))]
fn native() -> Result<Arc<CredentialStore>, Error> {
    Err(Error::NotSupportedByStore("none is known for this system".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_kept_for_its_server_alone() {
        let keyring = Keyring(keyring_core::mock::Store::new().expect("a store"));
        let [ours, theirs] = ["https://a.example", "https://b.example"].map(|to| to.parse().expect("a server"));
        assert!(keyring.token(&ours).is_none());
        let token = Token::of("vrs_1\n", "a test").expect("a token");
        keyring.keep(&ours, &token).expect("it is kept");
        assert_eq!(
            keyring.token(&ours).map(|t| t.header()).as_deref(),
            Some("Bearer vrs_1")
        );
        assert!(keyring.token(&theirs).is_none());
        assert_eq!(keyring.forget(&ours).ok(), Some(true));
        assert_eq!(keyring.forget(&ours).ok(), Some(false));
        assert!(keyring.token(&ours).is_none());
    }
}
