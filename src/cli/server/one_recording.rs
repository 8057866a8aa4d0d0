//! The page with one recording, for a browser on this machine.

use std::net::Ipv4Addr;
use std::time::Duration;

use axum::body::Bytes;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::routing::get;
use tokio::net::TcpListener;

use super::page::Page;
use super::{listen, routes};
use crate::failure::Failure;

/// Name of the recording beside the page, which the page fetches and shows.
const NAME: &str = "dry-run.vram.gz";

/// Time within which the head of a request must arrive.
const PATIENCE: Duration = Duration::from_secs(30);

/// Serves the page and a recording on a free port of the loopback interface, until Ctrl-C or SIGTERM. `ready` gets the
/// address at which the page shows the recording.
///
/// # Errors
/// If the loopback interface cannot be listened on.
pub async fn show(page: Page, recording: Vec<u8>, ready: impl FnOnce(&str)) -> Result<(), Failure> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .await
        .map_err(Failure::broken)?;
    let address = listener.local_addr().map_err(Failure::broken)?;
    let recording = Bytes::from(recording);
    let headers = [(CONTENT_TYPE, "application/gzip"), (CACHE_CONTROL, "no-store")];
    let file = move || async move { (headers, recording) };
    let router = routes::files(page).route(&format!("/{NAME}"), get(file));
    ready(&format!("http://{address}/#/recorded?recording={NAME}"));
    listen::serve(listener, None, router, PATIENCE).await;
    Ok(())
}
