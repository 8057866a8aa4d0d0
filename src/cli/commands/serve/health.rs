//! `vramscope serve health`: asks a running server, for containers and service managers.

use std::time::Duration;

use clap::Args;

use crate::failure::Failure;
use crate::output;

/// Longest wait for the answer.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Ask a server whether it can handle requests; exit code 1 if not
#[derive(Debug, Args)]
pub struct Health {
    /// The server's address
    #[arg(default_value = "http://127.0.0.1:8080")]
    url: String,
}

impl Health {
    /// Asks, and writes the answer.
    ///
    /// # Errors
    /// If the server does not answer, or answers that it cannot.
    pub fn run(self) -> Result<(), Failure> {
        let agent: ureq::Agent = ureq::Agent::config_builder()
            .timeout_global(Some(TIMEOUT))
            .build()
            .into();
        let address = format!("{}/healthz", self.url.trim_end_matches('/'));
        let failed = |error: ureq::Error| Failure::Broken(format!("{address}: {error}"));
        let mut answer = agent.get(&address).call().map_err(failed)?;
        let text = answer
            .body_mut()
            .with_config()
            .limit(64 << 10)
            .read_to_string()
            .map_err(failed)?;
        output::print(&format!("{text}\n"))
    }
}
