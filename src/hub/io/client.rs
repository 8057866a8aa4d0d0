//! Asks a hub for small files: bounded in bytes and time, redirects followed by hand so that a token stays with its host.

use std::io::Read;

use serde_json::Value;
use ureq::Agent;
use ureq::http::{HeaderMap, Uri};
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use vramscope_engine::python_json;

use super::error::HubError;
use super::settings::Settings;
use crate::nearest;
use crate::repository::{Hub, Repository};

/// Largest answer that is read, in bytes: the largest config.json of a public model, with a list of layers that are kept
/// in 16 bits, has some hundred kilobytes.
pub(super) const MOST_BYTES: u64 = 4 << 20;
/// Most redirects on the way to a file.
const MOST_REDIRECTS: usize = 5;

/// What a hub answered for a file.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Answer {
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

/// Client of one hub.
pub(super) struct Client<'a> {
    settings: &'a Settings,
    agent: Agent,
}

/// A response with what is needed of it.
struct Response {
    status: u16,
    headers: HeaderMap,
    body: String,
    has_token: bool,
}

/// Why there is no response: one clause.
struct Broken(String);

impl<'a> Client<'a> {
    pub fn new(settings: &'a Settings) -> Self {
        let mut config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .timeout_connect(Some(settings.timeout))
            .timeout_global(Some(settings.timeout))
            .user_agent(concat!("vramscope/", env!("CARGO_PKG_VERSION")));
        if let Some(roots) = system_roots() {
            config = config.tls_config(TlsConfig::builder().root_certs(roots).build());
        }
        Self {
            settings,
            agent: config.build().into(),
        }
    }

    /// Asks for a file of a repository; `etag` is that of a copy that is stored.
    ///
    /// # Errors
    /// If there is no answer, or none that is a JSON object.
    pub fn file(&self, of: &Repository, name: &str, etag: Option<&str>) -> Result<Answer, HubError> {
        self.ask(of, name, &self.address(of, name), etag)
    }

    /// Asks the hub's API for what it knows of a repository; `None` if it does not say, which is no failure: mirrors of files
    /// have no API.
    pub fn info(&self, of: &Repository) -> Option<Value> {
        if of.hub != Hub::HuggingFace {
            return None;
        }
        let mut address = format!("{}/api/models/{}", self.settings.endpoint(of.hub), of.id);
        if let Some(revision) = &of.revision {
            address.push_str("/revision/");
            address.push_str(&escaped(revision));
        }
        address.push_str("?expand[]=safetensors&expand[]=cardData&expand[]=sha");
        match self.ask(of, "its description", &address, None) {
            Ok(Answer::File { value, .. }) => Some(value),
            _ => None,
        }
    }

    /// Address of a file.
    pub fn address(&self, of: &Repository, file: &str) -> String {
        let endpoint = self.settings.endpoint(of.hub);
        let revision = of.revision.as_deref();
        match of.hub {
            Hub::HuggingFace => {
                let revision = escaped(revision.unwrap_or("main"));
                format!("{endpoint}/{}/resolve/{revision}/{file}", of.id)
            }
            // As ModelScope's library asks for a file (`file_download.py`).
            Hub::ModelScope => {
                let revision = escaped(revision.unwrap_or("master"));
                format!(
                    "{endpoint}/api/v1/models/{}/repo?Revision={revision}&FilePath={file}",
                    of.id
                )
            }
        }
    }

    /// Host that is asked, for messages.
    pub fn host(&self, hub: Hub) -> String {
        host_of(self.settings, hub)
    }

    fn ask(&self, of: &Repository, name: &str, address: &str, etag: Option<&str>) -> Result<Answer, HubError> {
        let host = self.host(of.hub);
        let response = self
            .follow(of.hub, address, etag)
            .map_err(|Broken(why)| HubError::NoAnswer {
                repository: of.clone().into(),
                host: host.clone(),
                why,
                address: address.to_owned(),
            })?;
        let header = |name: &str| response.headers.get(name).and_then(|value| value.to_str().ok());
        let code = header("x-error-code").unwrap_or_default();
        match (response.status, code) {
            (304, _) if etag.is_some() => Ok(Answer::Unchanged),
            (200, _) => self.parsed(of, name, address, &response),
            (_, "EntryNotFound") => Ok(Answer::Missing),
            (_, "RevisionNotFound") => Err(HubError::NoRevision {
                repository: of.clone().into(),
                host,
            }),
            // To one without a token the hub says of a repository that is not there what it says of a private one: 401.
            (401, "RepoNotFound") | (404, "RepoNotFound") => Err(self.no_repository(of, host)),
            // A hub without these codes: ModelScope, mirrors.
            (404, _) if name != "config.json" => Ok(Answer::Missing),
            (404, _) => Err(self.no_repository(of, host)),
            (401 | 403, _) => Err(HubError::Gated {
                repository: of.clone().into(),
                host,
                address: format!("{}/{}", self.settings.endpoint(of.hub), of.id),
                has_token: response.has_token,
            }),
            (429, _) => Err(HubError::TooMany {
                repository: of.clone().into(),
                host,
                seconds: header("retry-after").and_then(|seconds| seconds.parse().ok()),
            }),
            (status, _) => Err(HubError::NoAnswer {
                repository: of.clone().into(),
                host,
                why: format!("it answered with status {status}"),
                address: address.to_owned(),
            }),
        }
    }

    fn no_repository(&self, of: &Repository, host: String) -> HubError {
        HubError::NoRepository {
            repository: of.clone().into(),
            host,
            near: nearest(&of.id),
        }
    }

    /// Reads an answer as a JSON object.
    fn parsed(&self, of: &Repository, name: &str, address: &str, response: &Response) -> Result<Answer, HubError> {
        let wrong = |what: String| HubError::WrongAnswer {
            repository: of.clone().into(),
            host: self.host(of.hub),
            file: name.to_owned(),
            what,
            address: address.to_owned(),
        };
        let value = match python_json::read(&response.body) {
            Ok(value @ Value::Object(_)) => value,
            Ok(_) => return Err(wrong("JSON that is no object".into())),
            Err(_) if response.body.trim_start().starts_with('<') => return Err(wrong("an HTML page".into())),
            Err(_) if response.body.starts_with("version https://git-lfs") => {
                return Err(wrong("a pointer of Git LFS, not the file".into()));
            }
            Err(error) => return Err(wrong(format!("something that is no JSON ({error})"))),
        };
        // ModelScope answers for a missing file with an object of its own.
        if of.hub == Hub::ModelScope && value.get("Success") == Some(&Value::Bool(false)) {
            return Ok(Answer::Missing);
        }
        let etag = ["x-linked-etag", "etag"]
            .iter()
            .find_map(|name| response.headers.get(*name));
        Ok(Answer::File {
            text: response.body.clone(),
            value,
            etag: etag.and_then(|value| value.to_str().ok()).map(str::to_owned),
        })
    }

    /// Follows redirects. A token goes to the hub's own host alone, and over a plain connection to this machine alone.
    fn follow(&self, hub: Hub, address: &str, etag: Option<&str>) -> Result<Response, Broken> {
        let mut address = address.to_owned();
        for _ in 0..=MOST_REDIRECTS {
            let token = self.token_for(hub, &address);
            let has_token = token.is_some();
            let mut request = self.agent.get(&address).header("Accept-Encoding", "identity");
            if let Some(token) = token {
                request = request.header("Authorization", token);
            }
            if let Some(etag) = etag {
                request = request.header("If-None-Match", etag);
            }
            let mut response = request.call().map_err(|error| Broken(self.clause(&error)))?;
            let (status, headers) = (response.status().as_u16(), response.headers().clone());
            if matches!(status, 301 | 302 | 303 | 307 | 308) {
                address = target(&address, &headers)?;
                continue;
            }
            let body = self.body(&mut response)?;
            return Ok(Response {
                status,
                headers,
                body,
                has_token,
            });
        }
        Err(Broken(format!("it redirected more than {MOST_REDIRECTS} times")))
    }

    fn token_for(&self, hub: Hub, address: &str) -> Option<String> {
        let endpoint = self.settings.endpoint(hub);
        let is_own = hub == Hub::HuggingFace && origin(address) == origin(endpoint);
        let is_safe = address.starts_with("https://") || host(address).is_some_and(|host| is_this_machine(&host));
        let token = self.settings.token.as_ref().filter(|_| is_own && is_safe)?;
        Some(token.header())
    }

    /// Reads a body of at most [`MOST_BYTES`].
    fn body(&self, response: &mut ureq::http::Response<ureq::Body>) -> Result<String, Broken> {
        let too_large = || Broken(format!("the file has more than {} MiB", MOST_BYTES >> 20));
        let stated = response.headers().get("content-length");
        let stated: Option<u64> = stated.and_then(|value| value.to_str().ok()?.parse().ok());
        if stated.is_some_and(|bytes| bytes > MOST_BYTES) {
            return Err(too_large());
        }
        let mut bytes = Vec::new();
        let read = response
            .body_mut()
            .as_reader()
            .take(MOST_BYTES + 1)
            .read_to_end(&mut bytes);
        if let Err(error) = read {
            // The client wraps its own errors, such as one of time, into errors of reading.
            let clause = match ureq::Error::from(error) {
                ureq::Error::Timeout(_) => self.late(),
                other => format!("the answer broke off: {other}"),
            };
            return Err(Broken(clause));
        }
        match bytes.len() as u64 {
            len if len > MOST_BYTES => Err(too_large()),
            len if stated.is_some_and(|bytes| bytes > len) => Err(Broken("the answer broke off".into())),
            _ => String::from_utf8(bytes).map_err(|_| Broken("the file is not UTF-8".into())),
        }
    }

    fn late(&self) -> String {
        format!(
            "no whole answer within {} s (HF_HUB_DOWNLOAD_TIMEOUT)",
            self.settings.timeout.as_secs()
        )
    }

    /// An error in words; the client's own texts hold no header, so no token.
    fn clause(&self, error: &ureq::Error) -> String {
        match error {
            ureq::Error::HostNotFound => "its name is not found; is there a network?".into(),
            ureq::Error::Timeout(_) => self.late(),
            ureq::Error::Io(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => {
                "the connection is refused".into()
            }
            ureq::Error::Io(error) if error.kind() == std::io::ErrorKind::TimedOut => self.late(),
            other => other.to_string(),
        }
    }
}

/// Host of a hub.
pub(super) fn host_of(settings: &Settings, hub: Hub) -> String {
    let endpoint = settings.endpoint(hub);
    host(endpoint).unwrap_or_else(|| endpoint.to_owned())
}

/// Certificates of the system, and those of `SSL_CERT_FILE`; `None` if there are none, where the client's own list serves.
fn system_roots() -> Option<RootCerts> {
    let found = rustls_native_certs::load_native_certs().certs;
    let roots: Vec<Certificate<'static>> = found.iter().map(|der| Certificate::from_der(der).to_owned()).collect();
    (!roots.is_empty()).then(|| RootCerts::from(roots))
}

/// Where a redirect leads.
fn target(from: &str, headers: &HeaderMap) -> Result<String, Broken> {
    let location = headers.get("location").and_then(|value| value.to_str().ok());
    let location = location.ok_or_else(|| Broken("it redirected to no address".into()))?;
    if location.starts_with('/') && !location.starts_with("//") {
        let origin = origin(from).unwrap_or_default();
        return Ok(format!("{origin}{location}"));
    }
    let is_downgrade = from.starts_with("https://") && !location.starts_with("https://");
    if is_downgrade || !(location.starts_with("https://") || location.starts_with("http://")) {
        return Err(Broken("it redirected to an address that is not safe to follow".into()));
    }
    Ok(location.to_owned())
}

/// Scheme, host and port of an address.
fn origin(address: &str) -> Option<String> {
    let uri: Uri = address.parse().ok()?;
    Some(format!("{}://{}", uri.scheme_str()?, uri.authority()?))
}

fn host(address: &str) -> Option<String> {
    let uri: Uri = address.parse().ok()?;
    Some(uri.host()?.to_owned())
}

fn is_this_machine(host: &str) -> bool {
    matches!(host, "localhost" | "127.0.0.1" | "[::1]")
}

/// A revision in an address: branches have slashes.
fn escaped(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC)
        .to_string()
        .replace("%2D", "-")
        .replace("%2E", ".")
        .replace("%5F", "_")
}
