//! A static file server on the loopback interface: enough for a built page, and nothing more.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// A server at work, until it is stopped or the process ends.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    stopped: Arc<AtomicBool>,
}

impl Server {
    /// Serves `folder` on 127.0.0.1, on a free port when `port` is 0. A file `NAME.br` is what those
    /// who take Brotli get for `NAME`.
    ///
    /// # Errors
    /// When the port is taken.
    pub fn start(folder: PathBuf, port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", port))?;
        let address = listener.local_addr()?;
        let stopped = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&stopped);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if stop.load(Ordering::SeqCst) {
                    break;
                }
                let folder = folder.clone();
                // A reader that goes away mid-answer concerns nobody else.
                thread::spawn(move || answer(stream, &folder).ok());
            }
        });
        Ok(Self { address, stopped })
    }

    /// Where the folder is served, with a slash at the end.
    pub fn origin(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Answers nobody any more.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        // One more caller, so that it looks; where the call fails, it is not there any more.
        TcpStream::connect(self.address).ok();
    }
}

/// Serves `folder` until the process ends; see [`Server::start`].
///
/// # Errors
/// When the port is taken.
pub fn start(folder: PathBuf, port: u16) -> io::Result<SocketAddr> {
    Server::start(folder, port).map(|server| server.address)
}

fn answer(mut stream: TcpStream, folder: &Path) -> io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut request = String::new();
    reader.read_line(&mut request)?;
    let takes_brotli = takes_brotli(&mut reader)?;
    let mut words = request.split_whitespace();
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let nothing = "Content-Type: text/plain\r\n";
    if method != "GET" && method != "HEAD" {
        return send(&mut stream, "405 Method Not Allowed", nothing, b"");
    }
    let file = file_for(folder, target).and_then(|path| Some((content(&path, takes_brotli)?, path)));
    let Some(((body, encoding), path)) = file else {
        return send(&mut stream, "404 Not Found", nothing, b"not found");
    };
    let headers = format!("Content-Type: {}\r\n{encoding}", content_type(&path));
    send(&mut stream, "200 OK", &headers, &body)
}

/// Reads the headers to their end.
fn takes_brotli(reader: &mut impl BufRead) -> io::Result<bool> {
    let (mut line, mut takes) = (String::new(), false);
    while reader.read_line(&mut line)? > 2 {
        line.make_ascii_lowercase();
        takes |= line.starts_with("accept-encoding:") && line.contains("br");
        line.clear();
    }
    Ok(takes)
}

/// A file's bytes, with the header that says how they are encoded.
fn content(path: &Path, takes_brotli: bool) -> Option<(Vec<u8>, &'static str)> {
    let packed = || std::fs::read(format!("{}.br", path.display())).ok();
    match takes_brotli.then(packed).flatten() {
        Some(bytes) => Some((bytes, "Content-Encoding: br\r\n")),
        None => Some((std::fs::read(path).ok()?, "")),
    }
}

fn send(stream: &mut TcpStream, status: &str, headers: &str, body: &[u8]) -> io::Result<()> {
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\n{headers}Content-Length: {length}\r\nCache-Control: no-cache\r\nConnection: close\r\n\r\n"
    )?;
    stream.write_all(body)
}

/// The file that a request means; `None` for what would leave the folder.
fn file_for(folder: &Path, target: &str) -> Option<PathBuf> {
    let path = target.split(['?', '#']).next()?.strip_prefix('/')?;
    let path = Path::new(if path.is_empty() { "index.html" } else { path });
    let inside = path.components().all(|c| matches!(c, Component::Normal(_)));
    inside.then(|| folder.join(path))
}

fn content_type(path: &Path) -> &'static str {
    match path.extension().and_then(|e| e.to_str()) {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("wasm") => "application/wasm",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("json" | "webmanifest") => "application/json",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_stays_in_the_folder() {
        let folder = Path::new("dist");
        assert_eq!(file_for(folder, "/"), Some(folder.join("index.html")));
        assert_eq!(file_for(folder, "/a/b.js?v=1"), Some(folder.join("a/b.js")));
        assert_eq!(file_for(folder, "/../Cargo.toml"), None);
        assert_eq!(file_for(folder, "//etc/passwd"), None);
        assert_eq!(file_for(folder, "no-slash"), None);
    }
}
