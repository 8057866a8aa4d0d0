//! What was read once is kept, asked again after a day with its ETag, and usable without a network.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::stand_in::{Repo, StandIn};
use super::{SMALL, params, small};
use crate::program::finish;

const ASK: [&str; 4] = ["estimate", "someone/model", "--format", "json"];

fn entry(home: &Path) -> PathBuf {
    let folder = home.join(".cache/vramscope/models");
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("it is read").path()).collect();
    assert_eq!(paths.len(), 1, "{paths:?}");
    paths.remove(0)
}

/// Makes an entry as old as two days.
fn age(home: &Path) {
    let path = entry(home);
    let mut stored: Value =
        serde_json::from_str(&std::fs::read_to_string(&path).expect("it is read")).expect("it is JSON");
    let asked = stored["asked_secs"].as_u64().expect("a time");
    stored["asked_secs"] = json!(asked - 2 * 24 * 3600);
    std::fs::write(&path, stored.to_string()).expect("it is written");
}

#[test]
fn an_old_entry_is_asked_with_its_etag() {
    let hub = StandIn::start([("someone/model", Repo::of_config(&small()))]);
    let home = tempfile::tempdir().expect("a folder");
    assert_eq!(params(&hub.run(home.path(), &ASK)), SMALL);
    age(home.path());
    hub.take_requests();
    assert_eq!(params(&hub.run(home.path(), &ASK)), SMALL);
    let requests = hub.take_requests();
    assert!(
        requests
            .iter()
            .all(|request| request.headers.contains_key("if-none-match")),
        "{requests:?}"
    );
    assert!(
        requests.iter().all(|request| request.path.ends_with("config.json")),
        "{requests:?}"
    );
    // Now it is of today again.
    assert_eq!(params(&hub.run(home.path(), &ASK)), SMALL);
    assert!(hub.take_requests().is_empty());

    // Another file takes its place.
    let mut larger = small();
    larger["vocab_size"] = json!(2000);
    hub.put("someone/model", Repo::of_config(&larger));
    age(home.path());
    assert_eq!(params(&hub.run(home.path(), &ASK)), SMALL + 2 * 1000 * 64);
    // An old entry serves where the hub does not.
    age(home.path());
    hub.put(
        "someone/model",
        Repo::Raw("HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n".into()),
    );
    assert_eq!(params(&hub.run(home.path(), &ASK)), SMALL + 2 * 1000 * 64);
}

#[test]
fn a_broken_entry_is_asked_again() {
    let hub = StandIn::start([("someone/model", Repo::of_config(&small()))]);
    let home = tempfile::tempdir().expect("a folder");
    params(&hub.run(home.path(), &ASK));
    std::fs::write(entry(home.path()), "{\"form\": 1, ").expect("it is cut");
    assert_eq!(params(&hub.run(home.path(), &ASK)), SMALL);
}

#[test]
fn what_is_kept_is_listed_and_forgotten() {
    let hub = StandIn::start([("someone/model", Repo::of_config(&small()))]);
    let home = tempfile::tempdir().expect("a folder");
    let none = hub.run(home.path(), &["models", "--cached"]);
    assert_eq!((none.code, none.stdout.as_str()), (Some(0), "nothing is kept yet\n"));
    params(&hub.run(home.path(), &ASK));
    params(&hub.run(home.path(), &["estimate", "someone/model@v2", "--format", "json"]));
    let listed = hub.run(home.path(), &["models", "--cached"]);
    for part in ["someone/model@v2", "llama", "127.0.0.1", "today"] {
        assert!(listed.stdout.contains(part), "{part}: {}", listed.stdout);
    }
    let wrong = hub.run(home.path(), &["models", "--forget", "someone/other"]);
    assert_eq!(wrong.code, Some(2), "{}", wrong.stderr);
    assert_eq!(
        hub.run(home.path(), &["models", "--forget", "someone/model"]).code,
        Some(0)
    );
    let ran = hub.run(home.path(), &["estimate", "someone/model", "--offline"]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    let printed = hub.run(home.path(), &["models", "https://huggingface.co/someone/model"]);
    assert_eq!(
        serde_json::from_str::<Value>(&printed.stdout).expect("it is JSON"),
        small()
    );
}

#[test]
fn caches_of_other_libraries_are_used_first() {
    let hub = StandIn::start([]);
    let home = tempfile::tempdir().expect("a folder");
    let write = |folder: &str| {
        let folder = home.path().join(folder);
        std::fs::create_dir_all(&folder).expect("it is made");
        std::fs::write(folder.join("config.json"), small().to_string()).expect("it is written");
    };
    write("hf/hub/models--someone--model/snapshots/0123");
    std::fs::create_dir_all(home.path().join("hf/hub/models--someone--model/refs")).expect("it is made");
    std::fs::write(home.path().join("hf/hub/models--someone--model/refs/main"), "0123").expect("it is written");
    write(".cache/modelscope/hub/models/someone/model-1___5b");
    for (id, variable, value) in [
        ("someone/model", "HF_HOME", "hf"),
        ("someone/model", "HF_HUB_CACHE", "hf/hub"),
        ("someone/model", "HUGGINGFACE_HUB_CACHE", "hf/hub"),
        ("someone/model-1.5b", "HF_HOME", "nothing"),
    ] {
        let mut command = hub.command(home.path());
        let command = command
            .args(["estimate", id, "--format", "json"])
            .env(variable, home.path().join(value));
        let ran = finish(command, b"");
        assert_eq!(params(&ran), SMALL, "{variable}");
        assert!(ran.stderr.contains("config.json of"), "{}", ran.stderr);
    }
    assert!(hub.take_requests().is_empty());
}
