//! Sends records to a server, with retries.

use std::io::Read;
use std::time::Duration;

use serde::Deserialize;
use ureq::Agent;
use ureq::http::{HeaderMap, StatusCode};
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig};

use super::{Destination, Token, Waiting};
use crate::failure::Failure;

/// Client of one server.
pub struct Client {
    agent: Agent,
    to: Destination,
    token: Option<Token>,
    retries: u32,
}

/// Response of a server that has the record.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Acknowledged {
    id: String,
    /// Status: `stored`, `known` or `quarantined`.
    pub status: String,
    /// Reason for quarantine.
    pub reason: Option<String>,
}

/// Reason why a record was not acknowledged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trouble {
    /// The server will never accept this record, but may accept others.
    Record(String),
    /// The server currently fails for every record.
    Server(String),
}

/// Result of one attempt.
enum Tried {
    Acknowledged(Acknowledged),
    Trouble(Trouble),
    /// Worth retrying, after this time if the server states one.
    Again(String, Option<Duration>),
}

/// Delay before the first retry; it doubles with each further one.
const FIRST_WAIT: Duration = Duration::from_millis(500);
/// Longest delay; if a server asks for more, the record waits for the next upload.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// Largest response in bytes; an acknowledgement is one line.
const LONGEST_ANSWER: u64 = 64 << 10;

impl Client {
    /// Creates a client with this timeout for each response, which trusts the given certificates in addition to the
    /// usual authorities.
    ///
    /// # Errors
    /// If the file of certificates cannot be read.
    pub fn new(
        to: Destination,
        token: Option<Token>,
        retries: u32,
        timeout: Duration,
        authorities: Option<&std::path::Path>,
    ) -> Result<Self, Failure> {
        let mut config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .timeout_connect(Some(timeout.min(Duration::from_secs(10))))
            .timeout_global(Some(timeout))
            .user_agent(concat!("vramscope/", env!("CARGO_PKG_VERSION")));
        if let Some(path) = authorities {
            config = config.tls_config(TlsConfig::builder().root_certs(roots(path)?).build());
        }
        Ok(Self {
            agent: config.build().into(),
            to,
            token,
            retries,
        })
    }

    /// Sends a record until it is acknowledged, and reports each failed attempt.
    ///
    /// # Errors
    /// If it is not acknowledged; see [`Trouble`].
    pub fn send(&self, record: &Waiting, told: impl Fn(&str)) -> Result<Acknowledged, Trouble> {
        let mut wait = FIRST_WAIT;
        for left in (0..=self.retries).rev() {
            let (why, named) = match self.try_once(record) {
                Tried::Acknowledged(acknowledged) => return Ok(acknowledged),
                Tried::Trouble(trouble) => return Err(trouble),
                Tried::Again(why, named) => (why, named),
            };
            let pause = named.unwrap_or_else(|| with_jitter(wait));
            if left == 0 || pause > LONGEST_WAIT {
                return Err(Trouble::Server(why));
            }
            told(&format!("{why}; trying again in {:.1} s", pause.as_secs_f64()));
            std::thread::sleep(pause);
            wait *= 2;
        }
        unreachable!("the last try returns")
    }

    fn try_once(&self, record: &Waiting) -> Tried {
        let url = self.to.path("/api/records");
        let mut request = self.agent.post(&url).header("Content-Type", "application/json");
        if let Some(token) = &self.token {
            request = request.header("Authorization", token.header());
        }
        let mut response = match request.send(&record.text) {
            Ok(response) => response,
            Err(error) => return of_error(&self.to, &error),
        };
        let (status, headers) = (response.status(), response.headers().clone());
        let mut body = String::new();
        let read = response
            .body_mut()
            .as_reader()
            .take(LONGEST_ANSWER)
            .read_to_string(&mut body);
        if let Err(error) = read {
            return Tried::Again(format!("{}: the answer broke off: {error}", self.to), None);
        }
        self.of_answer(record, status, &headers, &body)
    }

    fn of_answer(&self, record: &Waiting, status: StatusCode, headers: &HeaderMap, body: &str) -> Tried {
        let to = &self.to;
        let said = detail(body);
        match status.as_u16() {
            200 | 201 => match serde_json::from_str::<Acknowledged>(body) {
                Ok(acknowledged) if acknowledged.id == record.id => Tried::Acknowledged(acknowledged),
                _ => Tried::Trouble(Trouble::Server(format!(
                    "{to} answered with something that is no acknowledgement of this record; is it a VRAMscope server?"
                ))),
            },
            401 | 403 => Tried::Trouble(Trouble::Server(format!(
                "{to} does not take records with this token ({status}{said}); put one into VRAMSCOPE_TOKEN"
            ))),
            400 | 413 | 422 => Tried::Trouble(Trouble::Record(format!("{to} refuses the record ({status}{said})"))),
            408 | 429 | 500..=599 => Tried::Again(format!("{to} answered {status}{said}"), retry_after(headers)),
            _ => Tried::Trouble(Trouble::Server(format!(
                "{to} answered {status}{said}; is it a VRAMscope server?"
            ))),
        }
    }
}

fn of_error(to: &Destination, error: &ureq::Error) -> Tried {
    let why = format!("{to}: {error}");
    match error {
        // Retrying cannot fix any of these.
        ureq::Error::BadUri(_) | ureq::Error::Tls(_) | ureq::Error::Rustls(_) | ureq::Error::Pem(_) => {
            Tried::Trouble(Trouble::Server(why))
        }
        _ => Tried::Again(why, None),
    }
}

/// Detail of the server's problem, shortened and without control characters.
fn detail(body: &str) -> String {
    let problem: Option<serde_json::Value> = serde_json::from_str(body).ok();
    let detail = problem.as_ref().and_then(|problem| problem.get("detail")?.as_str());
    let shown: String = detail
        .unwrap_or_default()
        .chars()
        .filter(|c| !c.is_control())
        .take(500)
        .collect();
    if shown.is_empty() { shown } else { format!(": {shown}") }
}

/// Seconds in Retry-After. Its other form, a date, is ignored, and the usual delay applies.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get("retry-after")?.to_str().ok()?;
    text.trim().parse().ok().map(Duration::from_secs)
}

/// Random delay between half of `wait` and all of it, so that clients do not retry simultaneously.
fn with_jitter(wait: Duration) -> Duration {
    let mut byte = [0];
    // Without random numbers all clients wait equally long.
    let _ = getrandom::fill(&mut byte);
    wait / 2 + wait / 2 * u32::from(byte[0]) / 255
}

fn roots(path: &std::path::Path) -> Result<RootCerts, Failure> {
    let wrong = |error: &dyn std::fmt::Display| Failure::Input(format!("{}: {error}", path.display()));
    let text = std::fs::read(path).map_err(|error| wrong(&error))?;
    let items = ureq::tls::parse_pem(&text)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| wrong(&error))?;
    let certificate = |item| match item {
        PemItem::Certificate(certificate) => Some(certificate),
        _ => None,
    };
    let certificates: Vec<Certificate<'static>> = items.into_iter().filter_map(certificate).collect();
    match certificates.is_empty() {
        true => Err(wrong(&"holds no certificate; wanted a PEM file")),
        false => Ok(RootCerts::new_with_certs(&certificates)),
    }
}
