//! Tests that malicious or faulty requests are refused with the right status.

use std::fmt::Write as _;
use std::io::Write;
use std::net::TcpStream;

use crate::support::{EXAMPLE, Scratch, Server, get, id_of, is_closed_after, post, raw, request};

struct Fixture {
    _scratch: Scratch,
    server: Server,
    write: String,
}

fn start(args: &[&str]) -> Fixture {
    let scratch = Scratch::new();
    let database = scratch.path("results.db");
    let server = Server::start_with(database.to_str().expect("UTF-8"), args);
    let write = server.token("write");
    Fixture {
        _scratch: scratch,
        server,
        write,
    }
}

fn head(token: &str, more: &str) -> String {
    format!(
        "POST /api/records HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/json\r\n{more}\r\n"
    )
}

/// Resident memory of a process in KiB.
fn resident_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("Linux");
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM"))
        .expect("peak memory");
    line.split_whitespace()
        .nth(1)
        .and_then(|kib| kib.parse().ok())
        .expect("KiB")
}

#[test]
fn a_gigabyte_is_refused_at_once_and_never_held() {
    let Fixture { server, write, .. } = &start(&["--rate", "0"]);
    raw(server.address, head(write, "Content-Length: 1073741824\r\n").as_bytes())
        .expect("an answer")
        .is(413);
    // Do the same without stating the length.
    let mut stream = TcpStream::connect(server.address).expect("a connection");
    let reading = stream.try_clone().expect("a second handle");
    let sender = std::thread::spawn({
        let begin = head(write, "Transfer-Encoding: chunked\r\n");
        move || {
            let chunk = format!("10000\r\n{}\r\n", "[".repeat(0x10000));
            let _ = stream.write_all(begin.as_bytes());
            (0..16_384)
                .take_while(|_| stream.write_all(chunk.as_bytes()).is_ok())
                .count()
        }
    });
    let mut answer = String::new();
    let _ = std::io::Read::read_to_string(&mut { reading }, &mut answer);
    let sent = sender.join().expect("the sender ends");
    assert!(sent < 1000, "{sent} chunks of 64 KiB were taken");
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 413"), "{answer}");
    if cfg!(target_os = "linux") {
        assert!(resident_kib(server.pid()) < 200 << 10);
    }
    get(server.address, "/healthz", None).is(200);
}

#[test]
fn whoever_is_slow_is_let_go() {
    let Fixture { server, write, .. } = &start(&["--rate", "0", "--patience", "1"]);
    raw(
        server.address,
        format!("{}{{", head(write, "Content-Length: 100\r\n")).as_bytes(),
    )
    .expect("an answer")
    .is(408);
    // An unfinished request head gets no response.
    assert!(is_closed_after(server.address, b"GET /healthz HTTP/1.1\r\nHost: te"));
    get(server.address, "/healthz", None).is(200);
}

#[test]
fn what_is_no_record_is_refused_with_the_reason() {
    let Fixture { server, write, .. } = &start(&["--rate", "0"]);
    let deep = format!("{{\"schema_version\":1,\"tool\":{}", "[".repeat(100_000));
    for no_json in [deep.as_str(), "", "{", "\u{0}", "nul"] {
        post(server.address, write, no_json).is(400);
    }
    let no_utf8 = [
        head(write, "Content-Length: 4\r\nConnection: close\r\n").as_bytes(),
        b"\"\xff\xff\"",
    ]
    .concat();
    raw(server.address, &no_utf8).expect("an answer").is(400);
    let unmeasured = EXAMPLE.replace("\"m\": 8192,", "");
    let named = EXAMPLE.replacen("\"tool\"", "\"user\": \"alice\", \"tool\"", 1);
    let newer = EXAMPLE.replace("\"schema_version\": 1", "\"schema_version\": 9");
    for (text, why) in [
        ("{}", "`variant` is missing"),
        ("[]", ""),
        ("1", ""),
        ("{\"attention\": []}", "no results"),
        (&unmeasured, "does not state its `m`"),
        (&named, "does not know: user;"),
        (&newer, "schema_version 9"),
    ] {
        let answer = post(server.address, write, text).is(422);
        assert!(
            answer.json()["detail"]
                .as_str()
                .is_some_and(|detail| detail.contains(why)),
            "{}",
            answer.body
        );
    }
    let large = format!("{EXAMPLE}{}", " ".repeat(5 << 20));
    post(server.address, write, &large).is(413);
    let form = head(write, "Content-Length: 2\r\nConnection: close\r\n").replace("application/json", "text/plain");
    raw(server.address, format!("{form}{{}}").as_bytes())
        .expect("an answer")
        .is(415);
}

#[test]
fn tokens_and_paths_that_are_made_up_find_nothing() {
    let Fixture { server, write, .. } = &start(&["--rate", "0"]);
    let address = server.address;
    // Tokens are random, so the last letter is changed to one that it is not.
    let (start, last) = write.split_at(write.len() - 1);
    let flipped = format!("{start}{}", if last == "0" { "1" } else { "0" });
    for token in ["", "x", "' OR 1=1 --", &flipped, &"a".repeat(8000)] {
        post(address, token, EXAMPLE).is(401);
        get(address, "/api/records", Some(token)).is(401);
    }
    raw(
        address,
        b"POST /api/records HTTP/1.1\r\nHost: t\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
    )
    .expect("an answer")
    .is(401);
    let basic = b"GET /api/records HTTP/1.1\r\nHost: t\r\nConnection: close\r\nAuthorization: Basic YTpi\r\n\r\n";
    raw(address, basic).expect("an answer").is(401);
    let id = "0".repeat(64);
    for path in [
        "/",
        "/index.html",
        "/../etc/passwd",
        "/api",
        "/api/",
        "/api/none",
        "/api/records/",
        "/api/records/x",
        "/api/records/..%2f..%2fetc%2fpasswd",
        "/api/records/%00",
        "/api/records/' OR 1=1",
        "/%2e%2e/%2e%2e/etc/passwd",
        &format!("/api/records/{id}"),
        &format!("/api/records/{}", id.replace('0', "A")),
    ] {
        let path = path.replace(' ', "%20");
        get(address, &path, None).is(404);
    }
    for broken in [
        &b"GET / HTTP/9.9\r\n\r\n"[..],
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"GET /\xff HTTP/1.1\r\n\r\n",
    ] {
        let answer = raw(address, broken);
        assert!(answer.is_none_or(|answer| matches!(answer.status, 400 | 404 | 505)));
    }
    let mut many = String::from("GET /healthz HTTP/1.1\r\nHost: t\r\n");
    (0..5000).for_each(|n| write!(many, "X-{n}: {n}\r\n").expect("a string"));
    assert_eq!(
        raw(address, format!("{many}\r\n").as_bytes()).map(|answer| answer.status),
        Some(431)
    );
    for method in ["PUT", "DELETE", "PATCH", "TRACE", "BREW"] {
        request(address, method, "/api/records", Some(write), None).is(405);
    }
    get(address, "/healthz", None).is(200);
}

#[test]
fn whoever_asks_too_often_is_told_when_to_come_back() {
    let Fixture { server, write, .. } = &start(&["--rate", "6"]);
    let statuses: Vec<u16> = (0..8)
        .map(|_| get(server.address, "/api/records", None).status)
        .collect();
    assert_eq!(statuses, [200, 200, 200, 200, 200, 200, 429, 429]);
    let refused = get(server.address, "/api/records", None).is(429);
    let wait: u64 = refused
        .header("retry-after")
        .and_then(|text| text.parse().ok())
        .expect("seconds");
    assert!((1..=11).contains(&wait), "{wait}");
    // Health checks and documentation are not counted.
    get(server.address, "/healthz", None).is(200);
    get(server.address, "/api/openapi.json", None).is(200);
    assert!(write.starts_with("vrs_"));
}

#[test]
fn no_text_of_a_record_is_ever_a_document() {
    let Fixture { server, write, .. } = &start(&["--rate", "0"]);
    let script = EXAMPLE.replace("NVIDIA H200", "<script>alert(1)</script>");
    let id = id_of(&post(server.address, write, &script).is(201).json());
    for path in [format!("/api/records/{id}"), "/api/records".to_owned()] {
        let answer = get(server.address, &path, None).is(200);
        assert_eq!(answer.header("content-type"), Some("application/json"));
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        assert!(
            answer
                .header("content-security-policy")
                .is_some_and(|policy| policy.contains("default-src 'none'"))
        );
    }
    let steering = EXAMPLE.replace("NVIDIA H200", "\\u001b]0;mine\\u0007");
    post(server.address, write, &steering).is(422);
}
