//! Tests a database that cannot grow: requests fail with the right status, and no acknowledged record is lost.

use std::path::Path;
use std::process::Command;

use crate::support::{Scratch, Server, get, id_of, post, record, vramscope};

/// The binary with a limit on file size in blocks of 512 bytes; further writes fail, as on a full disk.
fn limited(blocks: u64, home: &Path) -> Command {
    let mut command = Command::new("/bin/sh");
    let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"");
    command.args(["-c", &script]).arg(env!("CARGO_BIN_EXE_vramscope"));
    command.env_clear().env("LC_ALL", "C.UTF-8").env("HOME", home);
    command
}

#[test]
fn a_full_database_refuses_and_keeps_what_it_has() {
    let scratch = Scratch::new();
    let database = scratch.path("results.db");
    let database = database.to_str().expect("UTF-8");
    let write = {
        let server = Server::start(database);
        let token = server.token("write");
        assert_eq!(server.terminate(), Some(0));
        token
    };
    let mut command = limited(1200, scratch.folder());
    command.args([
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--rate",
        "0",
        "--database",
        database,
    ]);
    let server = Server::spawn(command, database);
    let mut acknowledged = Vec::new();
    let refused = (0..2000).find_map(|number| {
        let answer = post(server.address, &write, &record(number));
        match answer.status {
            201 => {
                acknowledged.push(id_of(&answer.json()));
                None
            }
            _ => Some(answer),
        }
    });
    let refused = refused.expect("600 KB do not hold 2000 records").is(507);
    assert!(refused.header("retry-after").is_some());
    assert!(
        refused.json()["detail"].as_str().expect("a detail").contains("no room"),
        "{}",
        refused.body
    );
    assert!(acknowledged.len() > 10);
    // Reading still works, and once there is space writing does again.
    get(server.address, "/api/records", None).is(200);
    server.kill();
    let server = Server::start(database);
    for id in &acknowledged {
        get(server.address, &format!("/api/records/{id}"), None).is(200);
    }
    post(server.address, &write, &record(5000)).is(201);
}

#[test]
fn a_spool_without_room_says_so_and_sends_nothing() {
    let scratch = Scratch::new();
    let file = scratch.file("h200.json", crate::support::EXAMPLE);
    let mut command = limited(0, scratch.folder());
    command
        .arg("upload")
        .arg(&file)
        .args(["--to", "http://127.0.0.1:9", "--yes", "--retries", "0"]);
    let output = command.output().expect("the binary runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("spool") && said.contains("nothing was uploaded"),
        "{said}"
    );
    assert!(file.is_file());
    // No partially written record waits.
    let mut again = vramscope(scratch.folder());
    let output = again
        .args(["upload", "--to", "http://127.0.0.1:9", "--yes"])
        .output()
        .expect("the binary runs");
    assert!(
        String::from_utf8_lossy(&output.stdout).contains("nothing waits"),
        "{output:?}"
    );
}
