//! `vramscope serve`: the page, the results' API and their store in one process.
//!
//! A request passes [`gate`] (who asks, how often), a route of [`routes`], and for an upload the
//! [`writer`], which puts all that wait into one transaction and acknowledges after its commit.

pub mod access;
mod answer;
mod gate;
mod listen;
mod lists;
mod metrics;
mod page;
mod plausible;
mod routes;
pub mod store;
mod writer;

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use crate::failure::Failure;
use gate::Gate;
use lists::Lists;
use metrics::Metrics;
use page::Page;
use store::{Database, Store};
use writer::Writer;

/// How the server is run.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where it listens.
    pub listen: SocketAddr,
    /// Where it keeps records.
    pub database: Database,
    /// A built page to serve.
    pub page: Option<PathBuf>,
    /// Reading needs a token too.
    pub closed: bool,
    /// Largest record that is taken, in bytes.
    pub max_record_bytes: usize,
    /// Requests a minute of one token, or of one address without; `None`: as many as come.
    pub per_minute: Option<NonZeroU32>,
    /// How long a request's head, and its body, may take to arrive.
    pub patience: Duration,
    /// Certificate chain and key, as PEM files.
    pub tls: Option<(PathBuf, PathBuf)>,
}

/// What every route sees.
#[derive(Debug, Clone)]
struct App(Arc<Parts>);

#[derive(Debug)]
struct Parts {
    store: Store,
    writer: Writer,
    gate: Gate,
    lists: Lists,
    metrics: Metrics,
    max_record_bytes: usize,
    patience: Duration,
    /// Kibibytes of bodies that are held at a time, so that many large ones do not fill the memory.
    body_kib: Semaphore,
}

/// Bodies that are held at a time, in KiB.
const BODY_KIB: usize = 64 << 10;

impl std::ops::Deref for App {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}

/// Runs until the process is told to stop, then finishes what was begun.
///
/// # Errors
/// When the database, the page, the certificate or the address cannot be used.
pub async fn run(options: Options) -> Result<(), Failure> {
    let tls = options
        .tls
        .as_ref()
        .map(|(chain, key)| listen::tls(chain, key))
        .transpose()?;
    let page = options.page.as_deref().map(Page::open).transpose()?;
    let store = options.database.open().await.map_err(Failure::broken)?;
    let tokens = store.tokens().await.map_err(Failure::broken)?;
    let listener = TcpListener::bind(options.listen).await.map_err(|error| {
        Failure::Broken(format!(
            "cannot listen on {}: {error}; choose another with --listen",
            options.listen
        ))
    })?;
    let address = listener.local_addr().map_err(Failure::broken)?;

    let metrics = Metrics::new();
    let (writer, writing) = Writer::start(store.clone(), metrics.clone());
    let app = App(Arc::new(Parts {
        store: store.clone(),
        writer,
        gate: Gate::new(options.closed, options.per_minute),
        lists: Lists::default(),
        metrics,
        max_record_bytes: options.max_record_bytes,
        patience: options.patience,
        body_kib: Semaphore::new(BODY_KIB.max(options.max_record_bytes / 1024 + 1)),
    }));
    let router = routes::router(app, page);

    let scheme = if tls.is_some() { "https" } else { "http" };
    crate::output::print(&format!(
        "listening on {scheme}://{address}/, records in {}\n",
        options.database
    ))?;
    if tokens.is_empty() {
        anstream::eprintln!(
            "no token yet, so nobody can send records; make one with `vramscope serve token add NAME --role write`"
        );
    }
    listen::serve(listener, tls, router, options.patience).await;
    // The router is gone, and with it the last sender: the writer ends after what it was given.
    writing.await.map_err(Failure::broken)?;
    store.close().await;
    Ok(())
}
