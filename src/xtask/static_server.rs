//! A static file server on the loopback interface: enough for a built page, and nothing more.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Component, Path, PathBuf};
use std::thread;

/// Serves `folder` on 127.0.0.1, on a free port when `port` is 0, until the process ends.
///
/// # Errors
/// When the port is taken.
pub fn start(folder: PathBuf, port: u16) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(("127.0.0.1", port))?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let folder = folder.clone();
            // A reader that goes away mid-answer concerns nobody else.
            thread::spawn(move || answer(stream, &folder).ok());
        }
    });
    Ok(address)
}

fn answer(stream: TcpStream, folder: &Path) -> io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut request = String::new();
    reader.read_line(&mut request)?;
    skip_headers(&mut reader)?;
    let mut words = request.split_whitespace();
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    match file_for(folder, target).and_then(|path| Some((std::fs::read(&path).ok()?, path))) {
        _ if method != "GET" && method != "HEAD" => send(stream, "405 Method Not Allowed", "text/plain", b""),
        Some((body, path)) => send(stream, "200 OK", content_type(&path), &body),
        None => send(stream, "404 Not Found", "text/plain", b"not found"),
    }
}

fn skip_headers(reader: &mut impl BufRead) -> io::Result<()> {
    let mut line = String::new();
    while reader.read_line(&mut line)? > 2 {
        line.clear();
    }
    Ok(())
}

fn send(mut stream: TcpStream, status: &str, kind: &str, body: &[u8]) -> io::Result<()> {
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nCache-Control: no-cache\r\nConnection: close\r\n\r\n"
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
