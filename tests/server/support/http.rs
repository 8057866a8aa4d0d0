//! Sends raw HTTP requests, including ones that no library would send.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// A response.
#[derive(Debug, Clone)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(':'));
        lines
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.trim())
    }

    /// Asserts the status, and that an error has problem details.
    pub fn is(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}\n{}", self.head, self.body);
        if status >= 400 {
            assert_eq!(self.header("content-type"), Some("application/problem+json"));
            assert_eq!(self.json()["status"], status);
            assert!(!self.json()["detail"].as_str().expect("a detail").is_empty());
        }
        self
    }
}

/// Longest silence of a server: far longer than any response takes on a busy machine.
const SILENCE: Duration = Duration::from_secs(120);

/// Sends these bytes and reads until the server closes the connection or is silent for long.
pub fn raw(address: SocketAddr, bytes: &[u8]) -> Option<Answer> {
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(SILENCE)).expect("a time limit");
    // The server may respond and close before it has read everything.
    let _ = stream.write_all(bytes);
    read(stream)
}

/// Sends these bytes; returns true if the server closes the connection instead of keeping it open in silence.
pub fn is_closed_after(address: SocketAddr, bytes: &[u8]) -> bool {
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(SILENCE)).expect("a time limit");
    let _ = stream.write_all(bytes);
    stream.read_to_end(&mut Vec::new()).is_ok()
}

fn read(mut stream: TcpStream) -> Option<Answer> {
    let mut all = Vec::new();
    let _ = stream.read_to_end(&mut all);
    let text = String::from_utf8_lossy(&all);
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
    Some(Answer {
        status,
        head: head.to_owned(),
        body: if chunked { without_chunks(body) } else { body.to_owned() },
    })
}

fn without_chunks(mut rest: &str) -> String {
    let mut body = String::new();
    while let Some((size, after)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size.trim(), 16).unwrap_or(0);
        if size == 0 || size > after.len() {
            break;
        }
        body += &after[..size];
        rest = after[size..].trim_start_matches("\r\n");
    }
    body
}

/// Sends one request on its own connection.
pub fn request(address: SocketAddr, method: &str, path: &str, token: Option<&str>, body: Option<&str>) -> Answer {
    let mut text = format!("{method} {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n");
    if let Some(token) = token {
        text += &format!("Authorization: Bearer {token}\r\n");
    }
    if let Some(body) = body {
        text += &format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len());
    }
    text += "\r\n";
    text += body.unwrap_or_default();
    raw(address, text.as_bytes()).unwrap_or_else(|| panic!("no answer to {method} {path}"))
}

pub fn get(address: SocketAddr, path: &str, token: Option<&str>) -> Answer {
    request(address, "GET", path, token, None)
}

/// Sends a record.
pub fn post(address: SocketAddr, token: &str, record: &str) -> Answer {
    request(address, "POST", "/api/records", Some(token), Some(record))
}
