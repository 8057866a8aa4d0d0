//! Sends the questions to a hub: bounded in bytes and time, redirects followed by hand so that a token stays with its host.

use std::io::Read;

use ureq::Agent;
use ureq::http::{HeaderMap, Uri};
use ureq::tls::{Certificate, RootCerts, TlsConfig};

use super::settings::Settings;
use crate::answer::{MOST_BYTES, Question, Response, Trouble};
use crate::repository::Hub;

/// Most redirects on the way to a file.
const MOST_REDIRECTS: usize = 5;

/// Client of one hub.
pub(super) struct Client<'a> {
    settings: &'a Settings,
    agent: Agent,
}

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

    /// Sends a question to a hub, and follows redirects. A token goes to the hub's own host alone, and over a plain connection to this machine alone.
    ///
    /// # Errors
    /// If there is no whole answer.
    pub fn ask(&self, hub: Hub, question: &Question) -> Result<Response, Trouble> {
        let mut address = question.address.clone();
        for _ in 0..=MOST_REDIRECTS {
            let token = self.token_for(hub, &address);
            let has_token = token.is_some();
            let mut request = self.agent.get(&address).header("Accept-Encoding", "identity");
            if let Some(token) = token {
                request = request.header("Authorization", token);
            }
            if let Some(etag) = &question.etag {
                request = request.header("If-None-Match", etag);
            }
            let mut response = request.call().map_err(|error| self.trouble(&error))?;
            let (status, headers) = (response.status().as_u16(), response.headers().clone());
            if matches!(status, 301 | 302 | 303 | 307 | 308) {
                address = target(&address, &headers)?;
                continue;
            }
            let body = self.body(&mut response)?;
            let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
            return Ok(Response {
                status,
                error_code: header("x-error-code").unwrap_or_default().to_owned(),
                retry_after: header("retry-after").and_then(|seconds| seconds.parse().ok()),
                etag: header("x-linked-etag").or(header("etag")).map(str::to_owned),
                body,
                has_token,
            });
        }
        Err(Trouble::Other(format!(
            "it redirected more than {MOST_REDIRECTS} times"
        )))
    }

    fn token_for(&self, hub: Hub, address: &str) -> Option<String> {
        let endpoint = self.settings.endpoint(hub);
        let is_own = hub == Hub::HuggingFace && origin(address) == origin(endpoint);
        let is_safe = address.starts_with("https://") || host(address).is_some_and(|host| is_this_machine(&host));
        let token = self.settings.token.as_ref().filter(|_| is_own && is_safe)?;
        Some(token.header())
    }

    /// Reads a body of at most [`MOST_BYTES`].
    fn body(&self, response: &mut ureq::http::Response<ureq::Body>) -> Result<String, Trouble> {
        let stated = response.headers().get("content-length");
        let stated: Option<u64> = stated.and_then(|value| value.to_str().ok()?.parse().ok());
        if stated.is_some_and(|bytes| bytes > MOST_BYTES) {
            return Err(Trouble::TooLarge);
        }
        let mut bytes = Vec::new();
        let read = response
            .body_mut()
            .as_reader()
            .take(MOST_BYTES + 1)
            .read_to_end(&mut bytes);
        if let Err(error) = read {
            // The client wraps its own errors, such as one of time, into errors of reading.
            return Err(match ureq::Error::from(error) {
                ureq::Error::Timeout(_) => self.late(),
                other => Trouble::Other(format!("the answer broke off: {other}")),
            });
        }
        match bytes.len() as u64 {
            len if len > MOST_BYTES => Err(Trouble::TooLarge),
            len if stated.is_some_and(|bytes| bytes > len) => Err(Trouble::BrokenOff),
            _ => String::from_utf8(bytes).map_err(|_| Trouble::NotText),
        }
    }

    const fn late(&self) -> Trouble {
        Trouble::Late {
            seconds: self.settings.timeout.as_secs(),
        }
    }

    /// An error in words; the client's own texts hold no header, so no token.
    fn trouble(&self, error: &ureq::Error) -> Trouble {
        match error {
            ureq::Error::HostNotFound => Trouble::Other("its name is not found; is there a network?".into()),
            ureq::Error::Timeout(_) => self.late(),
            ureq::Error::Io(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => {
                Trouble::Other("the connection is refused".into())
            }
            ureq::Error::Io(error) if error.kind() == std::io::ErrorKind::TimedOut => self.late(),
            other => Trouble::Other(other.to_string()),
        }
    }
}

/// Certificates of the system, and those of `SSL_CERT_FILE`; `None` if there are none, where the client's own list serves.
fn system_roots() -> Option<RootCerts> {
    let found = rustls_native_certs::load_native_certs().certs;
    let roots: Vec<Certificate<'static>> = found.iter().map(|der| Certificate::from_der(der).to_owned()).collect();
    (!roots.is_empty()).then(|| RootCerts::from(roots))
}

/// Where a redirect leads.
fn target(from: &str, headers: &HeaderMap) -> Result<String, Trouble> {
    let location = headers.get("location").and_then(|value| value.to_str().ok());
    let location = location.ok_or_else(|| Trouble::Other("it redirected to no address".into()))?;
    if location.starts_with('/') && !location.starts_with("//") {
        let origin = origin(from).unwrap_or_default();
        return Ok(format!("{origin}{location}"));
    }
    let is_downgrade = from.starts_with("https://") && !location.starts_with("https://");
    if is_downgrade || !(location.starts_with("https://") || location.starts_with("http://")) {
        return Err(Trouble::Other(
            "it redirected to an address that is not safe to follow".into(),
        ));
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
