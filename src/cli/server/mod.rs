//! `vramscope serve`: the page, the API for results and their database in one process.
//!
//! A request passes [`gate`] (authentication, rate limits) and a route of [`routes`]. Uploads also pass the [`writer`],
//! which commits all waiting records in one transaction and acknowledges them afterwards.

pub mod access;
mod answer;
mod gate;
mod listen;
mod lists;
mod metrics;
mod one_recording;
mod page;
mod plausible;
mod retention;
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
pub use one_recording::show;
pub use page::Page;
use store::{Database, Store};
use writer::Writer;

/// Options of the server.
#[derive(Debug, Clone)]
pub struct Options {
    /// Address to listen on.
    pub listen: SocketAddr,
    /// Database for the records.
    pub database: Database,
    /// Built page to serve, if any.
    pub page: Option<PathBuf>,
    /// True if reading requires a token too.
    pub closed: bool,
    /// True if nothing may be written.
    pub read_only: bool,
    /// Days that records are kept; `None` for all.
    pub keep_days: Option<u32>,
    /// Largest accepted record in bytes.
    pub max_record_bytes: usize,
    /// Requests per minute for one token, or for one address without a token; `None` for no limit.
    pub per_minute: Option<NonZeroU32>,
    /// Time within which a request's head, and its body, must arrive.
    pub patience: Duration,
    /// Certificate chain and key as PEM files, for TLS.
    pub tls: Option<(PathBuf, PathBuf)>,
}

/// State that all routes share.
#[derive(Debug, Clone)]
struct App(Arc<Parts>);

#[derive(Debug)]
struct Parts {
    store: Store,
    writer: Writer,
    gate: Gate,
    lists: Lists,
    metrics: Metrics,
    read_only: bool,
    max_record_bytes: usize,
    patience: Duration,
    /// Semaphore of kibibytes for request bodies, so that many large ones do not exhaust memory.
    body_kib: Semaphore,
}

/// KiB of request bodies in memory at a time.
const BODY_KIB: usize = 64 << 10;

impl std::ops::Deref for App {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}

/// Runs until the process is told to stop, then finishes running requests.
///
/// # Errors
/// If the database, the page, the certificate or the address cannot be used.
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
        read_only: options.read_only,
        max_record_bytes: options.max_record_bytes,
        patience: options.patience,
        body_kib: Semaphore::new(BODY_KIB.max(options.max_record_bytes / 1024 + 1)),
    }));
    let router = routes::router(app, page);
    let pruning = options
        .keep_days
        .map(|days| tokio::spawn(retention::keep(store.clone(), days)));

    let scheme = if tls.is_some() { "https" } else { "http" };
    crate::output::print(&format!(
        "listening on {scheme}://{address}/, records in {}\n",
        options.database
    ))?;
    if tokens.is_empty() && !options.read_only {
        anstream::eprintln!(
            "no token yet, so nobody can send records; make one with `vramscope serve token add NAME --role write`"
        );
    }
    listen::serve(listener, tls, router, options.patience).await;
    // The router is dropped, and with it the last sender: the writer ends after the remaining records.
    writing.await.map_err(Failure::broken)?;
    if let Some(pruning) = pruning {
        pruning.abort();
    }
    store.close().await;
    Ok(())
}
