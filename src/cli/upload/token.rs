//! Reads the token for sending records, which is never on the command line, where every process can read it.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy;

use super::{Destination, Keyring};
use crate::failure::Failure;

/// A token, without `Debug`, so that it cannot end up in a log.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    /// Finds the token for a server: in `VRAMSCOPE_TOKEN`, else in the given file, else in the keyring, else in the
    /// default file; `None` if there is none.
    ///
    /// # Errors
    /// If a file cannot be read, or others may read it too.
    pub fn find(to: &Destination, file: Option<&Path>) -> Result<Option<Self>, Failure> {
        match env::var("VRAMSCOPE_TOKEN") {
            Ok(text) if !text.trim().is_empty() => return Self::of(&text, "VRAMSCOPE_TOKEN").map(Some),
            _ => {}
        }
        if let Some(file) = file {
            return from_file(file).map(Some);
        }
        // A keyring that cannot be opened contains no token.
        if let Some(token) = Keyring::open().ok().and_then(|keyring| keyring.token(to)) {
            return Ok(Some(token));
        }
        let usual = usual_file().filter(|path| path.is_file());
        usual.map(|path| from_file(&path)).transpose()
    }

    pub(super) fn of(text: &str, source: &str) -> Result<Self, Failure> {
        let token = text.trim();
        match token.bytes().all(|b| b.is_ascii_graphic()) && !token.is_empty() {
            true => Ok(Self(token.to_owned())),
            false => Err(Failure::Input(format!(
                "{source} holds no token; one is a line of letters and digits"
            ))),
        }
    }

    /// The token itself, for the keyring.
    pub(super) fn secret(&self) -> &str {
        &self.0
    }

    /// Value of the authorization header.
    pub fn header(&self) -> String {
        format!("Bearer {}", self.0)
    }
}

/// Default file: `vramscope/token` in the user's configuration folder.
fn usual_file() -> Option<PathBuf> {
    let base = etcetera::choose_base_strategy().ok()?;
    Some(base.config_dir().join("vramscope").join("token"))
}

fn from_file(path: &Path) -> Result<Token, Failure> {
    let unreadable = |error: std::io::Error| Failure::Input(format!("{}: {error}", path.display()));
    #[cfg(unix)]
    {
        let mode = std::os::unix::fs::MetadataExt::mode(&fs::metadata(path).map_err(unreadable)?);
        if mode & 0o077 != 0 {
            return Err(Failure::Input(format!(
                "others can read {path}; `chmod 600 {path}` keeps the token to you",
                path = path.display()
            )));
        }
    }
    let text = fs::read_to_string(path).map_err(unreadable)?;
    Token::of(&text, &path.display().to_string())
}
