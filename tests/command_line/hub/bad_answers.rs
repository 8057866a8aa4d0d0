//! Answers of a hub that are no configuration: one sentence each, what to do, nothing kept, and no token anywhere.

use std::path::Path;

use serde_json::json;

use super::stand_in::{Repo, StandIn, TOKEN};
use super::{SMALL, params, small};
use crate::program::{Ran, finish};

fn html() -> String {
    let page = "<!DOCTYPE html><html>Log in to the network</html>";
    let length = page.len();
    format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: text/html\r\nContent-Length: {length}\r\n\r\n{page}")
}

fn raw(head: &str) -> Repo {
    Repo::Raw(format!(
        "HTTP/1.1 {head}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    ))
}

/// Every file below a folder.
fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let paths = entries.map(|entry| entry.expect("it is read").path());
    paths
        .flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] })
        .collect()
}

/// Asks with a token for what a repository answers; nothing may be kept, and nothing may hold the token.
fn refused(repo: Repo, code: i32, parts: &[&str]) -> Ran {
    let hub = StandIn::start([("someone/model", repo)]);
    let home = tempfile::tempdir().expect("a folder");
    let mut command = hub.command(home.path());
    let ran = finish(command.args(["estimate", "someone/model"]).env("HF_TOKEN", TOKEN), b"");
    assert_eq!(ran.code, Some(code), "{}", ran.stderr);
    assert_eq!(ran.stderr.trim_end().lines().count(), 1, "{}", ran.stderr);
    for part in parts {
        assert!(ran.stderr.contains(part), "{part}: {}", ran.stderr);
    }
    assert!(!ran.stderr.contains(TOKEN) && ran.stdout.is_empty(), "{}", ran.stderr);
    assert_eq!(files(home.path()), Vec::<std::path::PathBuf>::new());
    assert!(hub.take_requests()[0].headers["authorization"].ends_with(TOKEN));
    ran
}

#[test]
fn an_answer_that_does_not_end_is_given_up() {
    refused(
        Repo::Silent,
        1,
        &["no whole answer within 2 s", "--config", "HF_ENDPOINT"],
    );
    let cut = "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{\"model_type\"".to_owned();
    refused(Repo::Raw(cut), 1, &["broke off", "--config"]);
}

#[test]
fn a_file_of_a_gigabyte_is_not_read() {
    refused(Repo::Huge, 1, &["more than 4 MiB"]);
    refused(Repo::Endless, 1, &["more than 4 MiB"]);
}

#[test]
fn a_repository_that_is_closed_says_how_it_opens() {
    let gated = raw("403 Forbidden\r\nX-Error-Code: GatedRepo");
    refused(
        gated,
        2,
        &["accept its terms at", "/someone/model", "to the owner of this token"],
    );
    let unauthorised = raw("401 Unauthorized\r\nX-Error-Code: GatedRepo");
    refused(unauthorised, 2, &["HF_TOKEN"]);
    let many = raw("429 Too Many Requests\r\nRetry-After: 300");
    refused(many, 1, &["429", "for 300 s", "HF_TOKEN"]);
    refused(raw("503 Service Unavailable"), 1, &["status 503", "--config"]);
}

#[test]
fn what_is_no_configuration_is_named() {
    refused(
        Repo::Raw(html()),
        2,
        &["an HTML page", "/someone/model/resolve/main/config.json"],
    );
    let body = "version https://git-lfs.github.com/spec/v1\noid sha256:0\n";
    let pointer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    refused(Repo::Raw(pointer), 2, &["Git LFS"]);
    let list = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]".to_owned();
    refused(Repo::Raw(list), 2, &["JSON that is no object"]);
    refused(
        Repo::of_files([("README.md", json!(""))], json!({})),
        2,
        &["has no config.json", "--config"],
    );
}

#[test]
fn what_nobody_knows_is_recorded() {
    let hub = StandIn::start([
        ("someone/new", Repo::of_config(&json!({"model_type": "never_seen"}))),
        (
            "someone/own",
            Repo::of_config(&json!({"model_type": "own", "auto_map": {"AutoModel": "modeling_own.Own"}})),
        ),
    ]);
    let home = tempfile::tempdir().expect("a folder");
    let ran = hub.run(home.path(), &["estimate", "someone/new"]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("never_seen") && ran.stderr.contains("vramscope record --model someone/new"),
        "{}",
        ran.stderr
    );
    let ran = hub.run(home.path(), &["estimate", "someone/own"]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    for part in ["brings its own code (modeling_own.py)", "dry-run"] {
        assert!(ran.stderr.contains(part), "{part}: {}", ran.stderr);
    }
}

#[test]
fn a_name_that_is_not_there_has_its_nearest() {
    let hub = StandIn::start([("someone/model", Repo::of_config(&small()))]);
    let home = tempfile::tempdir().expect("a folder");
    let ran = hub.run(home.path(), &["estimate", "Qwen/Qwen3-VL-8B-Instrct"]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("did you mean: Qwen/Qwen3-VL-8B-Instruct"),
        "{}",
        ran.stderr
    );
    let ran = hub.run(home.path(), &["estimate", "someone/model@v9"]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("no revision v9 of someone/model"), "{}", ran.stderr);
}

#[test]
fn no_network_leaves_ways_on() {
    let home = tempfile::tempdir().expect("a folder");
    let hub = StandIn::start([]);
    // A port where nothing listens.
    let closed = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = closed.local_addr().expect("it has an address").port();
    drop(closed);
    let mut command = hub.command(home.path());
    command.env("HF_ENDPOINT", format!("http://127.0.0.1:{port}"));
    let ran = finish(command.args(["estimate", "someone/model"]), b"");
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    for part in [
        "gave no answer",
        "refused",
        "HTTPS_PROXY",
        "someone/model/resolve/main/config.json",
    ] {
        assert!(ran.stderr.contains(part), "{part}: {}", ran.stderr);
    }
    let ran = hub.run(home.path(), &["estimate", "someone/model", "--offline"]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("--offline"), "{}", ran.stderr);
    assert!(hub.take_requests().is_empty());
}

#[test]
fn a_token_stays_with_its_host() {
    let other = StandIn::start([("someone/model", Repo::of_config(&small()))]);
    let away = format!(
        "302 Found\r\nLocation: {}/someone/model/resolve/main/config.json",
        other.address()
    );
    let hub = StandIn::start([("someone/model", raw(&away))]);
    let home = tempfile::tempdir().expect("a folder");
    let mut command = hub.command(home.path());
    let ran = finish(
        command
            .args(["estimate", "someone/model", "--format", "json"])
            .env("HF_TOKEN", TOKEN),
        b"",
    );
    assert_eq!(params(&ran), SMALL);
    assert!(hub.take_requests()[0].headers["authorization"].ends_with(TOKEN));
    let theirs = other.take_requests();
    assert!(!theirs.is_empty());
    assert!(
        theirs
            .iter()
            .all(|request| !request.headers.contains_key("authorization"))
    );

    let endless = "302 Found\r\nLocation: /someone/model/resolve/main/config.json";
    refused(raw(endless), 1, &["redirected more than"]);
    refused(
        raw("302 Found\r\nLocation: file:///etc/passwd"),
        1,
        &["not safe to follow"],
    );
    refused(raw("302 Found"), 1, &["redirected to no address"]);
}

#[test]
fn the_token_of_a_login_is_sent() {
    let hub = StandIn::start([("someone/model", Repo::of_config(&small()))]);
    let home = tempfile::tempdir().expect("a folder");
    std::fs::create_dir_all(home.path().join(".cache/huggingface")).expect("it is made");
    std::fs::write(home.path().join(".cache/huggingface/token"), format!("{TOKEN}\n")).expect("it is written");
    assert_eq!(
        params(&hub.run(home.path(), &["estimate", "someone/model", "--format", "json"])),
        SMALL
    );
    assert!(hub.take_requests()[0].headers["authorization"].ends_with(TOKEN));
}
