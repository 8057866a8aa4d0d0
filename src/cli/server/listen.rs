//! Accepts connections, with TLS if configured, and shuts down gracefully.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tower::ServiceExt;

use super::gate::Peer;
use crate::failure::Failure;

/// Largest number of concurrent connections; further ones wait.
const CONNECTIONS: usize = 1024;
/// Time for running requests to finish after the process is told to stop.
const LAST_REQUESTS: Duration = Duration::from_secs(10);

/// Loads the certificate chain and key from two PEM files.
///
/// # Errors
/// If they cannot be read or do not match.
pub fn tls(chain: &Path, key: &Path) -> Result<TlsAcceptor, Failure> {
    let unreadable = |path: &Path, error: &dyn std::fmt::Display| {
        Failure::Input(format!("{}: {error}; wanted a PEM file", path.display()))
    };
    let certificates = CertificateDer::pem_file_iter(chain)
        .and_then(Iterator::collect)
        .map_err(|error| unreadable(chain, &error))?;
    let private = PrivateKeyDer::from_pem_file(key).map_err(|error| unreadable(key, &error))?;
    let mut config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(certificates, private)
        .map_err(|error| Failure::Input(format!("{}: {error}", chain.display())))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// Serves until the process is told to stop, then lets running requests finish.
pub async fn serve(listener: TcpListener, tls: Option<TlsAcceptor>, router: Router, patience: Duration) {
    let graceful = Arc::new(GracefulShutdown::new());
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let mut stop = std::pin::pin!(told_to_stop());
    loop {
        let place = tokio::select! {
            place = Arc::clone(&places).acquire_owned() => place,
            () = &mut stop => break,
        };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut stop => break,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // The process ran out of file descriptors, or the client disconnected: neither affects the next
                // connection.
                anstream::eprintln!("failed to accept a connection: {error}");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let connection = Connection {
            peer,
            router: router.clone(),
            patience,
            watcher: graceful.watcher(),
        };
        let tls = tls.clone();
        tokio::spawn(async move {
            connection.answer(stream, tls).await;
            drop(place);
        });
    }
    drop((listener, router));
    let Some(graceful) = Arc::into_inner(graceful) else {
        return;
    };
    if tokio::time::timeout(LAST_REQUESTS, graceful.shutdown()).await.is_err() {
        anstream::eprintln!("some requests did not end in {} s", LAST_REQUESTS.as_secs());
    }
}

struct Connection {
    peer: SocketAddr,
    router: Router,
    patience: Duration,
    watcher: hyper_util::server::graceful::Watcher,
}

impl Connection {
    async fn answer(self, stream: TcpStream, tls: Option<TlsAcceptor>) {
        // Responses are small and should be sent at once; a failure only delays them slightly.
        let _ = stream.set_nodelay(true);
        match tls {
            None => self.talk(stream).await,
            Some(tls) => {
                // Clients that do not speak TLS receive a TLS alert.
                if let Ok(Ok(stream)) = tokio::time::timeout(self.patience, tls.accept(stream)).await {
                    self.talk(stream).await;
                }
            }
        }
    }

    async fn talk(self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        let peer = Peer(self.peer.ip());
        let router = self.router;
        let service = service_fn(move |request: Request<Incoming>| {
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(peer);
            let router = router.clone();
            async move { Ok::<_, Infallible>(router.oneshot(request).await.unwrap_or_else(|never| match never {})) }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.patience)
            .serve_connection(TokioIo::new(stream), service);
        // Clients may disconnect at any time; complete requests have been stored.
        let _ = self.watcher.watch(connection).await;
    }
}

/// Waits for Ctrl-C or SIGTERM.
async fn told_to_stop() {
    let interrupted = async {
        // If no handler can be installed, the system's default ends the process.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    #[cfg(unix)]
    let terminated = async {
        match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
            Ok(mut signal) => drop(signal.recv().await),
            Err(_) => std::future::pending::<()>().await,
        }
    };
    #[cfg(not(unix))]
    let terminated = std::future::pending::<()>();
    tokio::select! {
        () = interrupted => {}
        () = terminated => {}
    }
}
