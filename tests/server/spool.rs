//! Tests of `upload` with servers that are gone, slow, broken or something else: no record is lost, and the message
//! says why.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use crate::support::{EXAMPLE, Scratch, Server, get, vramscope};

/// A server that gives each of these responses in turn, and then repeats the last one.
fn answering<const N: usize>(answers: [&str; N]) -> SocketAddr {
    let answers = answers.map(str::to_owned);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for (n, stream) in listener.incoming().flatten().enumerate() {
            take_request(&stream);
            let answer = answers[n.min(N - 1)].clone();
            if answer == "nothing" {
                std::thread::spawn(move || {
                    std::thread::sleep(Duration::from_secs(600));
                    drop(stream);
                });
                continue;
            }
            let _ = (&stream).write_all(answer.as_bytes());
        }
    });
    address
}

fn take_request(mut stream: &TcpStream) {
    let (mut all, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        let text = String::from_utf8_lossy(&all).to_ascii_lowercase();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .split_once("content-length:")
                .and_then(|(_, rest)| rest.lines().next()?.trim().parse().ok());
            if body.len() >= length.unwrap_or(0) {
                return;
            }
        }
        match stream.read(&mut buffer) {
            Ok(n) if n > 0 => all.extend(&buffer[..n]),
            _ => return,
        }
    }
}

fn upload(home: &Path, to: &str, more: &[&str]) -> Command {
    let mut command = vramscope(home);
    command
        .args(["upload", "--to", to])
        .args(more)
        .env("VRAMSCOPE_TOKEN", "vrs_test");
    command
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn waiting(home: &Path) -> usize {
    let folder = home.join(".local/share/vramscope/spool");
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    files
        .filter(|file| file.path().extension().is_some_and(|extension| extension == "json"))
        .count()
}

/// Uploads the example, and asserts that it fails with these words and waits in the spool.
fn fails(to: &str, more: &[&str], words: &[&str]) -> Scratch {
    let scratch = Scratch::new();
    let file = scratch.file("h200.json", EXAMPLE);
    let mut command = upload(scratch.folder(), to, more);
    let output = command.arg(&file).arg("--yes").output().expect("the binary runs");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    for word in words.iter().chain(&["wait in", "go with the next upload"]) {
        assert!(said(&output).contains(word), "{word}: {}", said(&output));
    }
    assert_eq!(waiting(scratch.folder()), 1);
    scratch
}

#[test]
fn what_could_not_be_sent_goes_with_the_next_upload() {
    let port = TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .expect("a port");
    let to = format!("http://{port}");
    let home = fails(&to, &["--retries", "1"], &["trying again in"]);

    let database = home.path("results.db");
    let database = database.to_str().expect("UTF-8");
    let mut serve = vramscope(home.folder());
    serve.args(["serve", "--listen", &port.to_string(), "--database", database]);
    let server = Server::spawn(serve, database);
    let mut command = upload(home.folder(), &to, &["--yes"]);
    let output = command
        .env("VRAMSCOPE_TOKEN", server.token("write"))
        .output()
        .expect("the binary runs");
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("and 1 that could not be sent earlier"));
    assert_eq!(waiting(home.folder()), 0);
    assert_eq!(
        get(server.address, "/api/records", None).json()["records"]
            .as_array()
            .map(Vec::len),
        Some(1)
    );
    let output = upload(home.folder(), &to, &["--yes"])
        .output()
        .expect("the binary runs");
    assert!(
        String::from_utf8_lossy(&output.stdout).contains("nothing waits"),
        "{output:?}"
    );
}

#[test]
fn a_server_in_trouble_is_asked_again() {
    let address = answering([
        "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 3600\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
    ]);
    fails(
        &format!("http://{address}"),
        &[],
        &[
            "answered 500",
            "trying again in",
            "answered 503",
            "trying again in 1.0 s",
            "answered 429",
        ],
    );
}

#[test]
fn garbage_is_no_acknowledgement() {
    let ok = "HTTP/1.1 200 OK\r\nContent-Length: 15\r\nConnection: close\r\n\r\n<html>hi</html>";
    fails(
        &format!("http://{}", answering([ok])),
        &[],
        &["no acknowledgement of this record"],
    );
    let other =
        "HTTP/1.1 201 Created\r\nContent-Length: 28\r\nConnection: close\r\n\r\n{\"id\":\"00\",\"status\":\"stored\"}";
    fails(
        &format!("http://{}", answering([other])),
        &[],
        &["no acknowledgement of this record"],
    );
    let elsewhere =
        "HTTP/1.1 302 Found\r\nLocation: https://a.example\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    fails(&format!("http://{}", answering([elsewhere])), &[], &["answered 302"]);
    fails(
        &format!("http://{}", answering(["\u{1}\u{2}\u{3}\r\n\r\n"])),
        &["--retries", "0"],
        &["http://127.0.0.1"],
    );
    let forbidden = "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    fails(
        &format!("http://{}", answering([forbidden])),
        &[],
        &["this token", "VRAMSCOPE_TOKEN"],
    );
}

#[test]
fn a_server_that_says_nothing_is_left() {
    fails(
        &format!("http://{}", answering(["nothing"])),
        &["--timeout", "1", "--retries", "0"],
        &["timeout"],
    );
}

#[test]
fn a_record_that_the_server_refuses_is_put_aside() {
    let refused = "HTTP/1.1 422 Unprocessable Entity\r\nContent-Type: application/problem+json\r\nContent-Length: 26\r\n\
                   Connection: close\r\n\r\n{\"detail\":\"too \\u001bold\"}";
    let address = answering([refused]);
    let scratch = Scratch::new();
    let file = scratch.file("h200.json", EXAMPLE);
    let mut command = upload(scratch.folder(), &format!("http://{address}"), &["--yes"]);
    let output = command.arg(&file).output().expect("the binary runs");
    assert_eq!(output.status.code(), Some(1));
    assert!(
        said(&output).contains("too old") && said(&output).contains("it is kept as"),
        "{}",
        said(&output)
    );
    assert_eq!(waiting(scratch.folder()), 0);
    assert_eq!(
        std::fs::read_dir(scratch.path(".local/share/vramscope/spool/refused"))
            .expect("a folder")
            .count(),
        1
    );
}

#[test]
fn a_client_that_is_killed_loses_nothing() {
    let address = answering(["nothing"]);
    let scratch = Scratch::new();
    let file = scratch.file("h200.json", EXAMPLE);
    let mut command = upload(scratch.folder(), &format!("http://{address}"), &["--yes"]);
    let mut child = command
        .arg(&file)
        .stdout(Stdio::null())
        .spawn()
        .expect("the binary starts");
    while waiting(scratch.folder()) == 0 {
        assert!(
            child.try_wait().expect("it can be asked").is_none(),
            "it ended before it kept the record"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().expect("it can be killed");
    child.wait().expect("it ends");
    assert_eq!(waiting(scratch.folder()), 1);
    let mut again = upload(
        scratch.folder(),
        &format!("http://{address}"),
        &["--yes", "--timeout", "1", "--retries", "0"],
    );
    let output = again.output().expect("the binary runs");
    assert!(said(&output).contains("1 of 1 records wait"), "{}", said(&output));
}

#[test]
fn nothing_is_sent_unasked_and_everything_is_shown() {
    let scratch = Scratch::new();
    let file = scratch.file("h200.json", EXAMPLE);
    let mut command = upload(scratch.folder(), "http://127.0.0.1:9", &[]);
    let output = command.arg(&file).output().expect("the binary runs");
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("--yes"), "{}", said(&output));
    assert_eq!(waiting(scratch.folder()), 0);

    let mut command = upload(scratch.folder(), "http://127.0.0.1:9", &["--dry-run"]);
    let output = command.arg(&file).output().expect("the binary runs");
    let sent: serde_json::Value = serde_json::from_slice(&output.stdout).expect("the record");
    assert_eq!(
        sent,
        serde_json::from_str::<serde_json::Value>(EXAMPLE).expect("JSON"),
        "all that is there is shown"
    );
    assert_eq!(waiting(scratch.folder()), 0);

    let token = scratch.file("token", "vrs_x");
    let mut command = vramscope(scratch.folder());
    command
        .args(["upload", "--yes", "--to", "http://127.0.0.1:9", "--token-file"])
        .arg(&token)
        .arg(&file);
    let output = command.output().expect("the binary runs");
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("chmod 600"), "{}", said(&output));
}
