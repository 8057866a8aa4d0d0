//! Settings of the environment: those of Hugging Face's and ModelScope's own libraries, under their names.

use std::env;
use std::path::{Path, PathBuf};
use std::time::Duration;

use etcetera::BaseStrategy;

use crate::{HUGGING_FACE, Hub, MODELSCOPE};

/// Longest wait for an answer as a whole, unless `HF_HUB_DOWNLOAD_TIMEOUT` says otherwise.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Token for a hub; no form of it is printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(…)")
    }
}

impl Token {
    /// Takes a token without the white space around it; `None` if nothing is left, or it could not stand in a header.
    fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        let is_token = !text.is_empty() && text.chars().all(|c| c.is_ascii_graphic());
        is_token.then(|| Self(text.to_owned()))
    }

    /// Value of the header `Authorization`.
    pub(super) fn header(&self) -> String {
        format!("Bearer {}", self.0)
    }
}

/// Where models are looked for.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Address of the Hugging Face Hub or its mirror (`HF_ENDPOINT`), without a slash at its end.
    pub hugging_face: String,
    /// Address of ModelScope (`MODELSCOPE_ENDPOINT`).
    pub modelscope: String,
    /// Token for the Hugging Face Hub (`HF_TOKEN`, or the file that `hf auth login` writes).
    pub token: Option<Token>,
    /// True if nothing is asked of the network (`HF_HUB_OFFLINE`, `TRANSFORMERS_OFFLINE`).
    pub is_offline: bool,
    /// Longest wait for an answer.
    pub timeout: Duration,
    /// Cache of Hugging Face's libraries (`HF_HUB_CACHE`, `HF_HOME`).
    pub hugging_face_cache: Option<PathBuf>,
    /// Cache of ModelScope's library (`MODELSCOPE_CACHE`).
    pub modelscope_cache: Option<PathBuf>,
    /// This crate's own cache.
    pub cache: Option<PathBuf>,
}

impl Settings {
    /// Reads the environment.
    pub fn of_environment() -> Self {
        let home = etcetera::home_dir().ok();
        let cache_home = variable("XDG_CACHE_HOME")
            .map(PathBuf::from)
            .or_else(|| Some(home.as_ref()?.join(".cache")));
        let hf_home = folder("HF_HOME", home.as_deref()).or_else(|| Some(cache_home.as_ref()?.join("huggingface")));
        let hugging_face_cache = ["HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"]
            .into_iter()
            .find_map(|name| folder(name, home.as_deref()))
            .or_else(|| Some(hf_home.as_ref()?.join("hub")));
        let modelscope_cache = folder("MODELSCOPE_CACHE", home.as_deref())
            .or_else(|| Some(home.as_ref()?.join(".cache").join("modelscope")));
        let seconds = variable("HF_HUB_DOWNLOAD_TIMEOUT").and_then(|text| text.parse().ok());
        Self {
            hugging_face: address("HF_ENDPOINT").unwrap_or_else(|| HUGGING_FACE.to_owned()),
            modelscope: address("MODELSCOPE_ENDPOINT").unwrap_or_else(|| MODELSCOPE.to_owned()),
            token: token(hf_home.as_deref(), home.as_deref()),
            is_offline: ["HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"].into_iter().any(is_on),
            timeout: seconds.map_or(TIMEOUT, |seconds: u64| Duration::from_secs(seconds.clamp(1, 600))),
            hugging_face_cache,
            modelscope_cache,
            cache: etcetera::choose_base_strategy()
                .ok()
                .map(|base| base.cache_dir().join("vramscope").join("models")),
        }
    }

    /// Address of a hub.
    pub(super) fn endpoint(&self, hub: Hub) -> &str {
        match hub {
            Hub::HuggingFace => &self.hugging_face,
            Hub::ModelScope => &self.modelscope,
        }
    }
}

/// A variable that is set to something.
fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.trim().is_empty())
}

/// Returns true for the values that Hugging Face's libraries take for on.
fn is_on(name: &str) -> bool {
    variable(name).is_some_and(|value| ["1", "ON", "YES", "TRUE"].contains(&value.to_ascii_uppercase().as_str()))
}

fn folder(name: &str, home: Option<&Path>) -> Option<PathBuf> {
    let value = variable(name)?;
    match (value.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => Some(home.join(rest)),
        _ => Some(value.into()),
    }
}

fn address(name: &str) -> Option<String> {
    let value = variable(name)?;
    let value = value.trim().trim_end_matches('/');
    let has_scheme = value.starts_with("http://") || value.starts_with("https://");
    Some(if has_scheme {
        value.to_owned()
    } else {
        format!("https://{value}")
    })
}

fn token(hf_home: Option<&Path>, home: Option<&Path>) -> Option<Token> {
    let given = ["HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"].into_iter().find_map(variable);
    if let Some(given) = given {
        return Token::new(&given);
    }
    if is_on("HF_HUB_DISABLE_IMPLICIT_TOKEN") {
        return None;
    }
    let path = folder("HF_TOKEN_PATH", home).or_else(|| Some(hf_home?.join("token")))?;
    Token::new(&std::fs::read_to_string(path).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_not_printed() {
        let token = Token::new(" hf_secret\n").expect("it is one");
        assert_eq!(token.header(), "Bearer hf_secret");
        assert!(!format!("{token:?}").contains("secret"));
        for none in ["", " ", "two words", "é"] {
            assert_eq!(Token::new(none), None);
        }
    }
}
