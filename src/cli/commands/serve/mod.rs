//! `vramscope serve` and the administrative commands beside it.

mod backup;
mod database;
mod health;
mod quarantine;
mod token;

use std::future::Future;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use crate::commands::examples;
use crate::failure::Failure;
use crate::server::{self, Options};
pub use database::Where;

/// Serve the page and a team's records
///
/// One process gives the page, the API under /api (described by /api/openapi.json), /healthz and /metrics,
/// and keeps the records in a file of SQLite or in PostgreSQL. Sending records needs a token; reading them
/// needs one only with --closed. Ctrl-C or SIGTERM ends it after the requests that were begun.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, after_help = examples(EXAMPLES))]
pub struct Serve {
    #[command(subcommand)]
    beside: Option<Beside>,
    #[command(flatten)]
    database: Where,
    /// Address and port
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// Folder of the built page (cargo xtask build leaves it in dist/); without it there is only the API
    #[arg(long, value_name = "DIR")]
    page: Option<PathBuf>,
    /// Let nobody read without a token
    #[arg(long)]
    closed: bool,
    /// Take no records, and let nothing be changed: for a copy, or while the database is moved
    #[arg(long)]
    read_only: bool,
    /// Remove records that were received more than so many days ago, when it starts and every day [default: keep all]
    #[arg(long, value_name = "DAYS", conflicts_with = "read_only", value_parser = clap::value_parser!(u32).range(1..))]
    keep_days: Option<u32>,
    /// Largest record that is taken, in MiB
    #[arg(long, value_name = "MIB", default_value = "4", value_parser = clap::value_parser!(u32).range(1..=256))]
    max_record: u32,
    /// Requests a minute of one token, or of one address without; 0: as many as come
    #[arg(long, value_name = "N", default_value = "600")]
    rate: u32,
    /// Seconds that a request may take to arrive
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = clap::value_parser!(u32).range(1..=3600))]
    patience: u32,
    /// Certificate chain, as a PEM file: then it speaks HTTPS
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The certificate's private key, as a PEM file
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Beside {
    #[command(subcommand)]
    Token(token::Token),
    #[command(subcommand)]
    Quarantine(quarantine::Quarantine),
    Backup(backup::Backup),
    Restore(backup::Restore),
    Prune(backup::Prune),
    Health(health::Health),
}

const EXAMPLES: &str = "  vramscope serve token add ci --role write
      a token for whoever sends records; it is shown once
  vramscope serve --page dist
      the page and the records on this machine alone
  vramscope serve --listen 0.0.0.0:443 --tls-cert chain.pem --tls-key key.pem
      for everybody, encrypted
  vramscope serve --database postgres://vramscope@db/vramscope --closed
      records in PostgreSQL, for holders of a token
  vramscope serve quarantine list
      records with values that their card cannot reach
  vramscope serve backup results.backup.gz
      all that the database keeps, for `vramscope serve restore`, into SQLite or PostgreSQL

VRAMSCOPE_DATABASE stands in for --database: a password there is in no process list.";

impl Serve {
    /// Serves until the process is told to stop.
    ///
    /// # Errors
    /// If the database, the page, the certificate or the address cannot be used.
    pub fn run(self) -> Result<(), Failure> {
        match self.beside {
            Some(Beside::Token(command)) => return command.run(),
            Some(Beside::Quarantine(command)) => return command.run(),
            Some(Beside::Backup(command)) => return command.run(),
            Some(Beside::Restore(command)) => return command.run(),
            Some(Beside::Prune(command)) => return command.run(),
            Some(Beside::Health(command)) => return command.run(),
            None => {}
        }
        let options = Options {
            listen: self.listen,
            database: self.database.get()?,
            page: self.page,
            closed: self.closed,
            read_only: self.read_only,
            keep_days: self.keep_days,
            max_record_bytes: self.max_record as usize * (1 << 20),
            per_minute: NonZeroU32::new(self.rate),
            patience: Duration::from_secs(self.patience.into()),
            tls: self.tls_cert.zip(self.tls_key),
        };
        wait_for(server::run(options))
    }
}

/// Runs a future to its end on a multi-threaded runtime.
///
/// # Errors
/// Returns the errors of the future, or an error if the system gives no threads.
pub fn wait_for<T>(future: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.map_err(Failure::broken)?.block_on(future)
}
