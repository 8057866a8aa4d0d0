//! Tests of what whoever runs a server does: backups, retention, read-only copies, health, upgrades.

use std::path::Path;
use std::process::Output;

use crate::support::{EXAMPLE, Postgres, Scratch, Server, get, id_of, on_both, post, record, vramscope};

fn serve(args: &[&str]) -> Output {
    vramscope(Path::new("/nonexistent"))
        .arg("serve")
        .args(args)
        .output()
        .expect("the binary runs")
}

fn done(args: &[&str]) -> String {
    let output = serve(args);
    assert!(
        output.status.success(),
        "{args:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn listed(server: &Server) -> Vec<String> {
    let list = get(server.address, "/api/records", None).is(200).json();
    list["records"].as_array().expect("a list").iter().map(id_of).collect()
}

on_both! {
    /// Into the other kind of database where there is one: SQLite's backup is PostgreSQL's and the other way round.
    fn a_backup_is_restored_anywhere(database: &str) {
        let scratch = Scratch::new();
        let file = scratch.path("results.backup.gz");
        let file = file.to_str().expect("UTF-8");
        let server = Server::start(database);
        let token = server.token("write");
        let quarantined = EXAMPLE.replace("\"NVIDIA H200\"", "\"NVIDIA A100-SXM4-80GB\"");
        for number in 0..5 {
            post(server.address, &token, &record(number)).is(201);
        }
        assert_eq!(post(server.address, &token, &quarantined).is(201).json()["status"], "quarantined");
        let before = listed(&server);
        assert_eq!(done(&["backup", file, "--database", database]), format!("6 records are in {file}\n"));

        let other = Postgres::start().filter(|_| !database.starts_with("postgres"));
        let target = match &other {
            Some(postgres) => postgres.url(),
            None => scratch.path("restored.db").to_str().expect("UTF-8").to_owned(),
        };
        assert_eq!(done(&["restore", file, "--database", &target]), "6 of 6 records and 1 of 1 tokens are new\n");
        assert_eq!(done(&["restore", file, "--database", &target]), "0 of 6 records and 0 of 1 tokens are new\n");
        let restored = Server::start(&target);
        assert_eq!(listed(&restored), before, "in the same order, without the one in quarantine");
        for id in &before {
            let path = format!("/api/records/{id}");
            let both = [&server, &restored].map(|server| get(server.address, &path, None).is(200).json());
            assert_eq!(both[0], both[1]);
        }
        // The token of the old server sends to the new one; what is known there is known.
        assert_eq!(post(restored.address, &token, &record(0)).is(200).json()["status"], "known");
        assert!(post(restored.address, &token, &quarantined).is(200).json()["reason"].is_string());
    }
}

#[test]
fn a_backup_that_was_cut_restores_nothing() {
    let scratch = Scratch::new();
    let (database, file) = (scratch.path("a.db"), scratch.path("a.backup.gz"));
    let [database, file] = [&database, &file].map(|path| path.to_str().expect("UTF-8"));
    let server = Server::start(database);
    let token = server.token("write");
    post(server.address, &token, EXAMPLE).is(201);
    done(&["backup", file, "--database", database]);
    let whole = std::fs::read(file).expect("the backup");
    let target = scratch.path("b.db");
    let target = target.to_str().expect("UTF-8");
    for bytes in [whole.len() / 2, whole.len() - 9, 0] {
        std::fs::write(file, &whole[..bytes]).expect("it is written");
        let output = serve(&["restore", file, "--database", target]);
        assert_eq!(output.status.code(), Some(2), "{bytes} of {} bytes", whole.len());
    }
    std::fs::write(file, "no backup").expect("it is written");
    assert_eq!(serve(&["restore", file, "--database", target]).status.code(), Some(2));
    assert_eq!(listed(&Server::start(target)), Vec::<String>::new());
}

on_both! {
    /// A server that runs beside learns of it, though it keeps its lists.
    fn old_records_go_from_lists_of_a_running_server(database: &str) {
        let scratch = Scratch::new();
        let server = Server::start(database);
        let token = server.token("write");
        post(server.address, &token, EXAMPLE).is(201);
        let id = listed(&server).pop().expect("a record");
        assert_eq!(done(&["prune", "--older-than", "1", "--database", database]), "0 records were removed\n");
        assert_eq!(listed(&server).len(), 1);
        // A record of two days ago comes by a backup whose time was changed.
        let file = scratch.path("old.backup.gz");
        let file = file.to_str().expect("UTF-8");
        done(&["backup", file, "--database", database]);
        let old = scratch.path("old.db");
        let old = old.to_str().expect("UTF-8");
        age(file);
        done(&["restore", file, "--database", old]);
        let aged = Server::start(old);
        assert_eq!(listed(&aged), std::slice::from_ref(&id));
        assert_eq!(done(&["prune", "--older-than", "1", "--database", old]), "1 records were removed\n");
        assert_eq!(listed(&aged), Vec::<String>::new(), "the list of the running server");
        get(aged.address, &format!("/api/records/{id}"), None).is(404);
        // It may be sent again.
        post(aged.address, &token, EXAMPLE).is(201);
        drop(aged);
        // A server that keeps records for a day removes them when it starts.
        let again = scratch.path("again.db");
        let again = again.to_str().expect("UTF-8");
        done(&["restore", file, "--database", again]);
        let server = Server::start_with(again, &["--keep-days", "1"]);
        let gone = || listed(&server).is_empty();
        assert!((0..100).any(|_| gone() || { std::thread::sleep(std::time::Duration::from_millis(50)); false }));
    }
}

/// Makes all records of a backup two days older.
fn age(file: &str) {
    use std::io::{Read, Write};
    let mut text = String::new();
    let packed = std::fs::File::open(file).expect("the backup");
    flate2::read::GzDecoder::new(packed)
        .read_to_string(&mut text)
        .expect("it is unpacked");
    let aged = |line: &str| {
        let mut line: serde_json::Value = serde_json::from_str(line).expect("JSON");
        if let Some(at) = line["record"]["received_ms"].as_i64() {
            line["record"]["received_ms"] = (at - 2 * 24 * 60 * 60 * 1000).into();
        }
        format!("{line}\n")
    };
    let lines: String = text.lines().map(aged).collect();
    let out = std::fs::File::create(file).expect("the backup");
    let mut packed = flate2::write::GzEncoder::new(out, flate2::Compression::fast());
    packed.write_all(lines.as_bytes()).expect("it is written");
    packed.finish().expect("it is written");
}

on_both! {
    fn a_read_only_server_gives_and_takes_nothing(database: &str) {
        let writing = Server::start(database);
        let (write, admin) = (writing.token("write"), writing.token("admin"));
        post(writing.address, &write, EXAMPLE).is(201);
        let copy = Server::start_with(database, &["--read-only", "--rate", "0"]);
        assert_eq!(listed(&copy), listed(&writing));
        let refused = post(copy.address, &write, &record(7)).is(403).json();
        assert!(refused["detail"].as_str().expect("a reason").contains("read-only"), "{refused}");
        let id = listed(&copy).pop().expect("a record");
        let release = crate::support::request(copy.address, "POST", &format!("/api/records/{id}/release"), Some(&admin), Some("{}"));
        release.is(403);
        assert_eq!(get(copy.address, "/healthz", None).is(200).json()["read_only"], true);
        assert_eq!(listed(&writing).len(), 1);
    }
}

#[test]
fn health_is_an_exit_code() {
    let scratch = Scratch::new();
    let server = Server::start(scratch.path("results.db").to_str().expect("UTF-8"));
    let url = server.url();
    let said: serde_json::Value = serde_json::from_str(&done(&["health", &url])).expect("JSON");
    assert_eq!(
        (&said["status"], &said["version"]),
        (&"ok".into(), &env!("CARGO_PKG_VERSION").into())
    );
    server.kill();
    assert_eq!(serve(&["health", &url]).status.code(), Some(1));
}

/// `data/databases` keeps a file of each version of the tables, as that version's program wrote it.
#[test]
fn a_database_of_an_older_version_is_upgraded() {
    let scratch = Scratch::new();
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/databases");
    let mut versions = 0;
    for entry in std::fs::read_dir(kept).expect("a folder").flatten() {
        let path = entry.path();
        if path.extension().is_none_or(|end| end != "db") {
            continue;
        }
        let database = scratch.path(entry.file_name().to_str().expect("UTF-8"));
        std::fs::copy(&path, &database).expect("it is copied");
        let server = Server::start(database.to_str().expect("UTF-8"));
        let ids = listed(&server);
        assert_eq!(ids.len(), 1, "{}", path.display());
        get(server.address, &format!("/api/records/{}", ids[0]), None).is(200);
        let token = server.token("write");
        assert_eq!(post(server.address, &token, EXAMPLE).is(200).json()["status"], "known");
        post(server.address, &token, &record(3)).is(201);
        versions += 1;
    }
    assert!(versions >= 1);
}
