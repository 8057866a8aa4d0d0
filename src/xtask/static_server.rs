//! Serves a folder over HTTP on the loopback interface, with the same answers as `vramscope serve`.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::CONTENT_LENGTH;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use tokio::runtime;
use tokio::sync::oneshot;

/// A server that runs until it is stopped or the process ends.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    running: Mutex<Option<(oneshot::Sender<()>, JoinHandle<()>)>>,
    sent: Sent,
}

/// One response: the requested path, and the number of bytes of the body as sent.
pub type SentFile = (String, u64);
type Sent = Arc<Mutex<Vec<SentFile>>>;

impl Server {
    /// Serves `folder` on 127.0.0.1, on a free port if `port` is 0.
    ///
    /// # Errors
    /// If the port is in use.
    pub fn start(folder: PathBuf, port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", port))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = runtime::Builder::new_current_thread().enable_io().build()?;
        let listener = {
            let _within = runtime.enter();
            tokio::net::TcpListener::from_std(listener)?
        };
        let sent = Sent::default();
        let router = vramscope_files::router(&folder).layer(from_fn_with_state(Arc::clone(&sent), count));
        let (stop, stopped) = oneshot::channel();
        let thread = thread::spawn(move || runtime.block_on(serve(listener, router, stopped)));
        Ok(Self {
            address,
            running: Mutex::new(Some((stop, thread))),
            sent,
        })
    }

    /// URL of the folder, with a trailing slash.
    pub fn origin(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// All responses so far, in order.
    pub fn sent(&self) -> Vec<SentFile> {
        self.sent.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Stops the server and closes open connections.
    pub fn stop(&self) {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((stop, thread)) = running {
            // The server may have panicked; then it no longer answers anyway.
            stop.send(()).ok();
            thread.join().ok();
        }
    }
}

/// Serves `folder` until the process ends; see [`Server::start`].
///
/// # Errors
/// If the port is in use.
pub fn start(folder: PathBuf, port: u16) -> io::Result<SocketAddr> {
    Server::start(folder, port).map(|server| server.address)
}

/// Serves until `stopped` receives a message, or forever if its sender is dropped. The runtime ends right after and
/// closes the connections.
async fn serve(listener: tokio::net::TcpListener, router: Router, stopped: oneshot::Receiver<()>) {
    let told = async {
        if stopped.await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        _ = axum::serve(listener, router) => (),
        () = told => (),
    }
}

/// Records every response.
async fn count(State(sent): State<Sent>, request: Request, next: Next) -> Response {
    let path = request.uri().path().to_owned();
    let response = next.run(request).await;
    let length = response.headers().get(CONTENT_LENGTH);
    // A 304 has no body and no length.
    let bytes = length
        .and_then(|length| length.to_str().ok()?.parse().ok())
        .unwrap_or(0);
    sent.lock().unwrap_or_else(PoisonError::into_inner).push((path, bytes));
    response
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpStream;

    use super::*;

    /// Sends a request; returns status, headers in lower case, and the number of bytes of the body.
    fn ask(server: &Server, path: &str, headers: &str) -> (String, String, usize) {
        let mut stream = TcpStream::connect(server.address).expect("it listens");
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nHost: here\r\nConnection: close\r\n{headers}\r\n"
        )
        .expect("it reads");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("it answers");
        let end = answer.windows(4).position(|four| four == b"\r\n\r\n").expect("a head");
        let head = String::from_utf8_lossy(&answer[..end]).to_ascii_lowercase();
        let (status, headers) = head.split_once("\r\n").expect("headers");
        (
            status["http/1.1 ".len()..][..3].to_owned(),
            headers.to_owned(),
            answer.len() - end - 4,
        )
    }

    fn header<'a>(headers: &'a str, name: &str) -> Option<&'a str> {
        let lines = headers.lines().filter_map(|line| line.split_once(": "));
        lines.into_iter().find(|(key, _)| *key == name).map(|(_, value)| value)
    }

    #[test]
    fn a_file_is_sent_as_the_client_takes_it_and_not_twice() {
        let folder = std::env::temp_dir().join(format!("vramscope-static-server-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder of the test's own");
        for (name, bytes) in [("a.js", 900), ("a.js.br", 30), ("a.js.gz", 40), ("b.wasm", 7)] {
            std::fs::write(folder.join(name), vec![b'x'; bytes]).expect("a file");
        }
        let server = Server::start(folder.clone(), 0).expect("a port is free");
        let mut tags = Vec::new();
        for (accepted, encoding, bytes) in [
            ("", None, 900),
            ("Accept-Encoding: gzip, deflate, br, zstd\r\n", Some("br"), 30),
            ("Accept-Encoding: gzip\r\n", Some("gzip"), 40),
        ] {
            let (status, headers, length) = ask(&server, "/a.js", accepted);
            assert_eq!((status.as_str(), length), ("200", bytes), "{headers}");
            assert_eq!(header(&headers, "content-encoding"), encoding);
            assert_eq!(header(&headers, "content-type"), Some("text/javascript"));
            assert_eq!(header(&headers, "vary"), Some("accept-encoding"));
            let tag = header(&headers, "etag").expect("a tag").to_owned();
            assert!(!tags.contains(&tag), "two encodings share {tag}");
            let again = ask(&server, "/a.js", &format!("{accepted}If-None-Match: {tag}\r\n"));
            assert_eq!((again.0.as_str(), again.2), ("304", 0));
            assert_eq!(header(&again.1, "vary"), Some("accept-encoding"));
            tags.push(tag);
        }
        let other = ask(&server, "/a.js", &format!("If-None-Match: {}\r\n", tags[1]));
        assert_eq!((other.0.as_str(), other.2), ("200", 900), "the tag of another encoding");
        let (status, headers, _) = ask(&server, "/b.wasm", "Accept-Encoding: br\r\n");
        assert_eq!(
            (status.as_str(), header(&headers, "content-type")),
            ("200", Some("application/wasm"))
        );
        for outside in ["/none", "/../Cargo.toml", "/%2e%2e/Cargo.toml", "//etc/passwd"] {
            assert_eq!(ask(&server, outside, "").0, "404", "{outside}");
        }
        assert_eq!(server.sent()[..2], [("/a.js".into(), 900), ("/a.js".into(), 0)]);
        server.stop();
        assert!(TcpStream::connect(server.address).is_err());
        std::fs::remove_dir_all(folder).expect("it is there");
    }
}
