//! A stand-in of a model hub on loopback: paths, headers, redirects and ETags as the Hugging Face Hub's API documents them.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};

/// Token that tests send; no output may hold it.
pub const TOKEN: &str = "hf_TokenOfATestThatNobodyMaySee";

/// How the hub answers for a repository.
#[derive(Debug, Clone)]
pub enum Repo {
    /// Files by name, and what the API says beside them.
    Files(BTreeMap<String, String>, Value),
    /// An answer for each of its files, as it stands: status line, headers, body.
    Raw(String),
    /// The headers and the beginning of an answer, then silence.
    Silent,
    /// Headers of an answer of a gigabyte.
    Huge,
    /// An answer without a length that does not end.
    Endless,
}

impl Repo {
    /// A repository with a `config.json`.
    pub fn of_config(config: &Value) -> Self {
        Self::of_files([("config.json", config.clone())], json!({}))
    }

    /// A repository with these files.
    pub fn of_files<const N: usize>(files: [(&str, Value); N], info: Value) -> Self {
        let files = files.map(|(name, value)| (name.to_owned(), value.to_string()));
        Self::Files(files.into(), info)
    }
}

/// A request as it came: its line and its headers, in lower case.
#[derive(Debug, Clone)]
pub struct Request {
    pub path: String,
    pub headers: BTreeMap<String, String>,
}

/// A connection to a client.
pub trait Connection: Read + Write {}

impl<T: Read + Write> Connection for T {}

/// A running stand-in.
pub struct StandIn {
    port: u16,
    repos: Arc<Mutex<BTreeMap<String, Repo>>>,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl StandIn {
    pub fn start<const N: usize>(repos: [(&str, Repo); N]) -> Self {
        let repos = repos.map(|(id, repo)| (id.to_owned(), repo));
        Self::serve(repos.into_iter().collect())
    }

    pub fn serve(repos: BTreeMap<String, Repo>) -> Self {
        Self::serve_over(repos, |stream| Some(Box::new(stream)))
    }

    /// Serves what `open` makes of each connection; `None` if it is no use.
    pub fn serve_over(
        repos: BTreeMap<String, Repo>,
        open: impl Fn(TcpStream) -> Option<Box<dyn Connection>> + Send + Sync + 'static,
    ) -> Self {
        let open = Arc::new(open);
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("it has an address").port();
        let repos = Arc::new(Mutex::new(repos));
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (of_thread, seen) = (Arc::clone(&repos), Arc::clone(&requests));
        // The thread ends with the test's process.
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (repos, seen, open) = (Arc::clone(&of_thread), Arc::clone(&seen), Arc::clone(&open));
                thread::spawn(move || {
                    if let Some(mut stream) = open(stream) {
                        answer(&mut *stream, &repos, &seen);
                    }
                });
            }
        });
        Self { port, repos, requests }
    }

    pub const fn port(&self) -> u16 {
        self.port
    }

    pub fn address(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Replaces a repository.
    pub fn put(&self, id: &str, repo: Repo) {
        self.repos.lock().expect("no thread failed").insert(id.to_owned(), repo);
    }

    /// Requests so far, which are forgotten.
    pub fn take_requests(&self) -> Vec<Request> {
        std::mem::take(&mut self.requests.lock().expect("no thread failed"))
    }
}

/// Headers by which the hub lets pages of other hosts read its answers, and which headers of them.
const CORS: &str = "Access-Control-Allow-Origin: *\r\nAccess-Control-Expose-Headers: X-Repo-Commit,X-Error-Code,ETag,\
                    X-Linked-ETag\r\n";

/// Commit of every repository.
const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

fn answer(stream: &mut dyn Connection, repos: &Mutex<BTreeMap<String, Repo>>, seen: &Mutex<Vec<Request>>) {
    let Some(request) = read(stream) else {
        return;
    };
    seen.lock().expect("no thread failed").push(request.clone());
    let said = respond(&request, &repos.lock().expect("no thread failed").clone());
    match said {
        Said::Whole(text) => drop(stream.write_all(text.as_bytes()).and_then(|()| stream.flush())),
        Said::Silent => {
            let head = format!("HTTP/1.1 200 OK\r\n{CORS}Content-Length: 100\r\n\r\n{{\"mod");
            let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.flush());
            // Until the client, who waits no longer, closes.
            let _ = stream.read(&mut [0; 16]);
        }
        Said::Endless => {
            let head = format!("HTTP/1.1 200 OK\r\n{CORS}Connection: close\r\n\r\n{{\"a\": \"");
            let _ = stream.write_all(head.as_bytes());
            while stream.write_all(&[b'a'; 1 << 16]).is_ok() {}
        }
    }
}

fn read(stream: &mut dyn Connection) -> Option<Request> {
    Request::parse(&head(stream)?)
}

/// The head of a request, with the empty line at its end.
pub fn head(stream: &mut dyn Connection) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    String::from_utf8(head).ok()
}

impl Request {
    pub fn parse(head: &str) -> Option<Self> {
        let mut lines = head.lines();
        let path = lines.next()?.split(' ').nth(1)?.to_owned();
        let headers = lines.filter_map(|line| {
            let (name, value) = line.split_once(": ")?;
            Some((name.to_ascii_lowercase(), value.to_owned()))
        });
        Some(Self {
            path,
            headers: headers.collect(),
        })
    }
}

enum Said {
    Whole(String),
    Silent,
    Endless,
}

fn whole(status: &str, headers: &str, body: &str) -> Said {
    let length = body.len();
    Said::Whole(format!(
        "HTTP/1.1 {status}\r\n{CORS}Content-Length: {length}\r\nConnection: close\r\n{headers}\r\n{body}"
    ))
}

fn refused(status: &str, code: &str) -> Said {
    whole(status, &format!("X-Error-Code: {code}\r\n"), "{\"error\": \"refused\"}")
}

fn respond(request: &Request, repos: &BTreeMap<String, Repo>) -> Said {
    let path = request.path.split('?').next().unwrap_or_default();
    let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    match parts.as_slice() {
        // ModelScope's own.
        ["api", "v1", "models", owner, name, "repo"] => {
            let file = request.path.split("FilePath=").nth(1).unwrap_or_default();
            match repos.get(&format!("{owner}/{name}")) {
                Some(Repo::Files(files, _)) if files.contains_key(file) => whole("200 OK", "", &files[file]),
                _ => whole("404 Not Found", "", "{\"Code\": 10010205001, \"Success\": false}"),
            }
        }
        ["api", "resolve-cache", "models", owner, name, _, file] => match repos.get(&format!("{owner}/{name}")) {
            Some(Repo::Files(files, _)) => of_file(request, &files[*file]),
            _ => refused("404 Not Found", "EntryNotFound"),
        },
        ["api", "models", owner, name, ..] => match repos.get(&format!("{owner}/{name}")) {
            Some(Repo::Files(_, info)) => {
                let mut info = info.clone();
                info["sha"] = COMMIT.into();
                whole("200 OK", "Content-Type: application/json\r\n", &info.to_string())
            }
            _ => refused("404 Not Found", "RepoNotFound"),
        },
        [owner, name, "resolve", revision, file] => match repos.get(&format!("{owner}/{name}")) {
            // To someone without access the hub says of a repository that is not there what it says of a private one.
            None => refused("401 Unauthorized", "RepoNotFound"),
            Some(Repo::Raw(text)) => Said::Whole(text.replacen("\r\n", &format!("\r\n{CORS}"), 1)),
            Some(Repo::Silent) => Said::Silent,
            Some(Repo::Huge) => Said::Whole(format!("HTTP/1.1 200 OK\r\n{CORS}Content-Length: 1073741824\r\n\r\n{{")),
            Some(Repo::Endless) => Said::Endless,
            Some(Repo::Files(..)) if !["main", "v2", COMMIT].contains(revision) => {
                refused("404 Not Found", "RevisionNotFound")
            }
            Some(Repo::Files(files, _)) if !files.contains_key(*file) => refused("404 Not Found", "EntryNotFound"),
            Some(Repo::Files(..)) => {
                let to = format!("/api/resolve-cache/models/{owner}/{name}/{COMMIT}/{file}");
                whole(
                    "307 Temporary Redirect",
                    &format!("Location: {to}\r\nX-Repo-Commit: {COMMIT}\r\n"),
                    "",
                )
            }
        },
        _ => refused("404 Not Found", "RepoNotFound"),
    }
}

fn of_file(request: &Request, text: &str) -> Said {
    let sum = text
        .bytes()
        .fold(0u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    let etag = format!("\"{sum:x}\"");
    if request.headers.get("if-none-match") == Some(&etag) {
        return Said::Whole(format!(
            "HTTP/1.1 304 Not Modified\r\n{CORS}ETag: {etag}\r\nConnection: close\r\n\r\n"
        ));
    }
    whole("200 OK", &format!("ETag: {etag}\r\nContent-Type: text/plain\r\n"), text)
}
