//! Measures a server's throughput of durable records, the latency of each, and the latency of lists:
//!
//! ```sh
//! cargo build --release -p vramscope
//! cargo run --release -p vramscope --example load -- target/release/vramscope [DATABASE] [SECONDS] [RECORD.json]
//! ```
//!
//! 64 connections each send a record, wait for its acknowledgement, and send the next. Client and server share the
//! machine.

#![allow(clippy::disallowed_methods, reason = "runs natively only")]

use std::error::Error;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

type Fallible<T> = Result<T, Box<dyn Error + Send + Sync>>;

const CONNECTIONS: usize = 64;
/// Number of records in the database when lists are measured.
const LISTED: u64 = 10_000;
const EXAMPLE: &str = include_str!("../data/records/example.json");

fn main() -> Fallible<()> {
    let mut args = std::env::args().skip(1);
    let binary = args
        .next()
        .ok_or("wanted: PATH-OF-VRAMSCOPE [DATABASE] [SECONDS] [RECORD.json]")?;
    let scratch = tempfile::tempdir()?;
    let usual = scratch.path().join("results.db").display().to_string();
    let database = args.next().filter(|text| text != "-").unwrap_or(usual);
    let seconds = args.next().map_or(Ok(20), |text| text.parse())?;
    let template = args.next().map_or(Ok(EXAMPLE.to_owned()), std::fs::read_to_string)?;
    let template: serde_json::Value = serde_json::from_str(&template)?;
    println!(
        "record of {} bytes, {} connections, {seconds} s",
        template.to_string().len(),
        CONNECTIONS
    );
    println!("load of the machine before: {}", load());

    let token = token(&binary, &database)?;
    let mut server = Running::start(&binary, &database)?;
    let (sent, mut times) = upload(server.address, &token, &template, Duration::from_secs(seconds))?;
    times.sort_unstable();
    println!(
        "uploads: {:.0}/s acknowledged after their sync; p50 {}, p99 {}, longest {}",
        sent as f64 / seconds as f64,
        ms(&times, 50),
        ms(&times, 99),
        ms(&times, 100)
    );
    println!("server's highest memory: {} MB", server.highest_memory_mb());

    let missing = LISTED.saturating_sub(sent);
    if missing > 0 {
        upload_some(server.address, &token, &template, missing)?;
    }
    for (what, path, changes) in [
        ("100 of the records", "/api/records", false),
        ("1000 of the records", "/api/records?limit=1000", false),
        ("10000 records", "/api/records?limit=10000", false),
        ("10000 records, changed before each", "/api/records?limit=10000", true),
    ] {
        let mut connection = Connection::open(server.address)?;
        let mut text = Varied::new(&template);
        let mut times = Vec::new();
        for number in 0..100 {
            if changes {
                connection.post(&token, text.number(2_000_000_000 + number))?;
            }
            times.push(get(server.address, path)?);
        }
        times.sort_unstable();
        println!("list of {what}: p50 {}, p99 {}", ms(&times, 50), ms(&times, 99));
    }
    println!("server's highest memory: {} MB", server.highest_memory_mb());
    println!("load of the machine after: {}", load());
    server.child.kill()?;
    server.child.wait()?;
    Ok(())
}

fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').take(1).collect()
}

fn ms(sorted: &[Duration], percent: usize) -> String {
    let place = (sorted.len() * percent).div_ceil(100).clamp(1, sorted.len().max(1)) - 1;
    sorted
        .get(place)
        .map_or("none".into(), |time| format!("{:.1} ms", time.as_secs_f64() * 1e3))
}

fn token(binary: &str, database: &str) -> Fallible<String> {
    let name = format!("load-{}", std::process::id());
    let args = [
        "serve",
        "token",
        "add",
        &name,
        "--role",
        "write",
        "--database",
        database,
    ];
    let output = Command::new(binary).args(args).stderr(Stdio::inherit()).output()?;
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

struct Running {
    child: Child,
    address: SocketAddr,
}

impl Running {
    fn start(binary: &str, database: &str) -> Fallible<Self> {
        let args = [
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--rate",
            "0",
            "--database",
            database,
        ];
        let mut child = Command::new(binary).args(args).stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().ok_or("no output")?).read_line(&mut line)?;
        let address = line
            .split_once("://")
            .and_then(|(_, rest)| rest.split('/').next()?.parse().ok());
        let address = address.ok_or_else(|| format!("no address in {line:?}"))?;
        Ok(Self { child, address })
    }

    fn highest_memory_mb(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let line = status
            .lines()
            .find(|line| line.starts_with("VmHWM"))
            .unwrap_or_default();
        let kib: u64 = line
            .split_whitespace()
            .nth(1)
            .and_then(|text| text.parse().ok())
            .unwrap_or(0);
        kib * 1024 / 1_000_000
    }
}

fn upload(
    address: SocketAddr,
    token: &str,
    template: &serde_json::Value,
    time: Duration,
) -> Fallible<(u64, Vec<Duration>)> {
    let number = Arc::new(AtomicU64::new(0));
    let end = Instant::now() + time;
    let senders: Vec<_> = (0..CONNECTIONS)
        .map(|_| {
            let (number, token, mut text) = (Arc::clone(&number), token.to_owned(), Varied::new(template));
            thread::spawn(move || -> Fallible<Vec<Duration>> {
                let mut connection = Connection::open(address)?;
                let mut times = Vec::new();
                while Instant::now() < end {
                    let body = text.number(number.fetch_add(1, Ordering::Relaxed));
                    times.push(connection.post(&token, body)?);
                }
                Ok(times)
            })
        })
        .collect();
    let mut times = Vec::new();
    for sender in senders {
        times.extend(sender.join().map_err(|_| "a sender broke")??);
    }
    Ok((times.len() as u64, times))
}

fn upload_some(address: SocketAddr, token: &str, template: &serde_json::Value, records: u64) -> Fallible<()> {
    let mut connection = Connection::open(address)?;
    let mut text = Varied::new(template);
    for number in 0..records {
        connection.post(token, text.number(1_000_000_000 + number))?;
    }
    Ok(())
}

/// A record with a number that changes, without serializing it again.
struct Varied {
    before: String,
    after: String,
    text: String,
}

impl Varied {
    fn new(template: &serde_json::Value) -> Self {
        const MARK: u64 = 123_456_789_987_654_321;
        let mut record = template.clone();
        record["conditions"]["taken_bytes"] = MARK.into();
        let text = record.to_string();
        let (before, after) = text.split_once(&MARK.to_string()).unwrap_or((&text, ""));
        Self {
            before: before.to_owned(),
            after: after.to_owned(),
            text: String::new(),
        }
    }

    fn number(&mut self, number: u64) -> &str {
        self.text = format!("{}{number}{}", self.before, self.after);
        &self.text
    }
}

struct Connection {
    stream: TcpStream,
    reader: BufReader<TcpStream>,
}

impl Connection {
    fn open(address: SocketAddr) -> Fallible<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        let reader = BufReader::new(stream.try_clone()?);
        Ok(Self { stream, reader })
    }

    /// Sends a record and returns the time until it is acknowledged.
    fn post(&mut self, token: &str, body: &str) -> Fallible<Duration> {
        let request = format!(
            "POST /api/records HTTP/1.1\r\nHost: load\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let begun = Instant::now();
        self.stream.write_all(request.as_bytes())?;
        let (status, body) = self.answer()?;
        match status {
            201 => Ok(begun.elapsed()),
            _ => Err(format!("{status}: {}", String::from_utf8_lossy(&body)).into()),
        }
    }

    fn answer(&mut self) -> Fallible<(u16, Vec<u8>)> {
        let (mut line, mut status, mut length) = (String::new(), 0, 0);
        loop {
            line.clear();
            if self.reader.read_line(&mut line)? == 0 {
                return Err("the server is gone".into());
            }
            if let Some(rest) = line.strip_prefix("HTTP/1.1 ") {
                status = rest.split(' ').next().unwrap_or_default().parse()?;
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse()?;
            }
            if line == "\r\n" {
                break;
            }
        }
        let mut body = vec![0; length];
        self.reader.read_exact(&mut body)?;
        Ok((status, body))
    }
}

fn get(address: SocketAddr, path: &str) -> Fallible<Duration> {
    let mut connection = Connection::open(address)?;
    let begun = Instant::now();
    connection
        .stream
        .write_all(format!("GET {path} HTTP/1.1\r\nHost: load\r\n\r\n").as_bytes())?;
    match connection.answer()?.0 {
        200 => Ok(begun.elapsed()),
        status => Err(format!("{status} for {path}").into()),
    }
}
