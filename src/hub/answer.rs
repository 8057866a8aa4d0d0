//! Reads a hub's answer to a request for a file, as its API documents it. Callers send the request: the command line with an
//! HTTP client, a page through its browser.

use std::fmt;

use serde_json::Value;
use vramscope_engine::python_json;

use super::error::HubError;
use super::known::nearest;
use super::repository::{Hub, Repository};

/// Largest answer that is read, in bytes: the largest config.json of a public model, with a list of layers that are kept
/// in 16 bits, has some hundred kilobytes.
pub const MOST_BYTES: u64 = 4 << 20;

/// A request to a hub for a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// Address of the file.
    pub address: String,
    /// ETag of a copy that is stored.
    pub etag: Option<String>,
}

/// A hub's answer, not yet interpreted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Response {
    /// HTTP status.
    pub status: u16,
    /// `x-error-code`; empty if there is none.
    pub error_code: String,
    /// `retry-after` in seconds.
    pub retry_after: Option<u64>,
    /// `x-linked-etag`, which names the file itself where the answer is a redirect, or else `etag`.
    pub etag: Option<String>,
    /// The body.
    pub body: String,
    /// True if a token was sent.
    pub has_token: bool,
}

/// Why there is no answer; as text, a clause of an error message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trouble {
    /// No whole answer came in time.
    Late {
        /// Seconds that were waited.
        seconds: u64,
    },
    /// A status that the hub's API does not define.
    Status(u16),
    /// More than [`MOST_BYTES`].
    TooLarge,
    /// The connection ended before the whole body came.
    BrokenOff,
    /// The body is not UTF-8.
    NotText,
    /// Another error, in the words of the HTTP client.
    Other(String),
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Late { seconds } => write!(f, "no whole answer within {seconds} s (HF_HUB_DOWNLOAD_TIMEOUT)"),
            Self::Status(status) => write!(f, "it answered with status {status}"),
            Self::TooLarge => write!(f, "the file has more than {} MiB", MOST_BYTES >> 20),
            Self::BrokenOff => f.write_str("the answer broke off"),
            Self::NotText => f.write_str("the file is not UTF-8"),
            Self::Other(why) => f.write_str(why),
        }
    }
}

/// What came in place of a JSON object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wrong {
    /// JSON of another kind.
    NotObject,
    /// An HTML page.
    Html,
    /// The pointer that Git keeps in place of a large file.
    Pointer,
    /// Something else, with what the parser says.
    NotJson(String),
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotObject => f.write_str("JSON that is no object"),
            Self::Html => f.write_str("an HTML page"),
            Self::Pointer => f.write_str("a pointer of Git LFS, not the file"),
            Self::NotJson(why) => write!(f, "something that is no JSON ({why})"),
        }
    }
}

/// What an answer means.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Answer {
    /// The file, parsed, with its text and ETag.
    File {
        text: String,
        value: Value,
        etag: Option<String>,
    },
    /// It is as it was when its ETag was stored.
    Unchanged,
    /// The repository has no such file.
    Missing,
}

/// Where a file was asked for, for messages.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub repository: &'a Repository,
    /// Address of the hub.
    pub endpoint: &'a str,
    /// Name of the file.
    pub file: &'a str,
    pub question: &'a Question,
}

impl Asked<'_> {
    fn host(self) -> String {
        host_of(self.endpoint)
    }

    /// Reads an answer, or the reason for having none.
    ///
    /// # Errors
    /// If there is none, or none that is a JSON object.
    pub fn read(self, response: Result<Response, Trouble>) -> Result<Answer, HubError> {
        let no_answer = |why: Trouble| HubError::NoAnswer {
            repository: self.repository.clone().into(),
            host: self.host(),
            why,
            address: self.question.address.clone(),
        };
        let response = response.map_err(no_answer)?;
        let repository = || self.repository.clone().into();
        match (response.status, response.error_code.as_str()) {
            (304, _) if self.question.etag.is_some() => Ok(Answer::Unchanged),
            (200, _) => self.parsed(response),
            (_, "EntryNotFound") => Ok(Answer::Missing),
            (_, "RevisionNotFound") => Err(HubError::NoRevision {
                repository: repository(),
                host: self.host(),
            }),
            // Without a token, the hub answers 401 for a repository that does not exist, as it does for a private one.
            (401 | 404, "RepoNotFound") => Err(self.no_repository()),
            // Hubs without error codes, such as ModelScope and mirrors, do not tell a missing file from a missing repository:
            // without its config.json, a repository is taken not to exist.
            (404, _) if self.file != "config.json" => Ok(Answer::Missing),
            (404, _) => Err(self.no_repository()),
            (401 | 403, _) => Err(HubError::Gated {
                repository: repository(),
                host: self.host(),
                address: format!("{}/{}", self.endpoint, self.repository.id),
                has_token: response.has_token,
            }),
            (429, _) => Err(HubError::TooMany {
                repository: repository(),
                host: self.host(),
                seconds: response.retry_after,
            }),
            (status, _) => Err(no_answer(Trouble::Status(status))),
        }
    }

    fn no_repository(self) -> HubError {
        HubError::NoRepository {
            repository: self.repository.clone().into(),
            host: self.host(),
            near: nearest(&self.repository.id),
        }
    }

    /// Reads an answer as a JSON object.
    fn parsed(self, response: Response) -> Result<Answer, HubError> {
        let wrong = |what: Wrong| HubError::WrongAnswer {
            repository: self.repository.clone().into(),
            host: self.host(),
            file: self.file.to_owned(),
            what,
            address: self.question.address.clone(),
        };
        let value = match python_json::read(&response.body) {
            Ok(value @ Value::Object(_)) => value,
            Ok(_) => return Err(wrong(Wrong::NotObject)),
            Err(_) if response.body.trim_start().starts_with('<') => return Err(wrong(Wrong::Html)),
            Err(_) if response.body.starts_with("version https://git-lfs") => {
                return Err(wrong(Wrong::Pointer));
            }
            Err(error) => return Err(wrong(Wrong::NotJson(error.to_string()))),
        };
        // ModelScope answers for a missing file with an object of its own.
        if self.repository.hub == Hub::ModelScope && value.get("Success") == Some(&Value::Bool(false)) {
            return Ok(Answer::Missing);
        }
        Ok(Answer::File {
            text: response.body,
            value,
            etag: response.etag,
        })
    }
}

/// Host in the address of a hub.
pub(crate) fn host_of(endpoint: &str) -> String {
    let (_, rest) = endpoint.split_once("://").unwrap_or(("", endpoint));
    let authority = rest.split('/').next().unwrap_or(rest);
    let authority = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    match authority.rsplit_once(':') {
        Some((host, port)) if port.chars().all(|c| c.is_ascii_digit()) => host.to_owned(),
        _ => authority.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_stands_without_its_port() {
        for (address, host) in [
            ("https://huggingface.co", "huggingface.co"),
            ("http://127.0.0.1:8080/hf", "127.0.0.1"),
            ("http://[::1]:80", "[::1]"),
            ("https://user:secret@mirror.example/hf", "mirror.example"),
        ] {
            assert_eq!(host_of(address), host);
        }
    }
}
