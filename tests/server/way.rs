//! Follows a record from its file through `upload` and `serve`, and back.

use serde_json::Value;

use crate::support::{EXAMPLE, Scratch, Server, get, id_of, on_both, vramscope};

on_both! {
    fn a_record_goes_from_a_file_to_whoever_reads(database: &str) {
        let scratch = Scratch::new();
        let server = Server::start(database);
        let file = scratch.file("h200.json", EXAMPLE);
        let upload = || {
            let mut command = vramscope(scratch.folder());
            command.arg("upload").arg(&file).args(["--to", &server.url(), "--yes"]);
            command.env("VRAMSCOPE_TOKEN", server.token_once("write"));
            command.output().expect("the binary runs")
        };
        let sent = upload();
        let said = String::from_utf8_lossy(&sent.stdout).into_owned();
        assert!(sent.status.success(), "{}", String::from_utf8_lossy(&sent.stderr));
        for shown in ["\"name\": \"NVIDIA H200\"", "3 attention", "--dry-run", "… stored\n"] {
            assert!(said.contains(shown), "{shown}: {said}");
        }
        assert!(String::from_utf8_lossy(&upload().stdout).contains("… known\n"));

        let list = get(server.address, "/api/records", None).is(200).json();
        let id = id_of(&list["records"][0]);
        let read = get(server.address, &format!("/api/records/{id}"), None).is(200).json();
        let given: Value = serde_json::from_str(EXAMPLE).expect("JSON");
        assert_eq!(read["results"][0]["outcome"], given["results"][0]["outcome"]);
        assert_eq!(list["records"].as_array().map(Vec::len), Some(1));
    }
}

/// Runs only if the system lets a test access its user's keyring; some containers do not.
#[test]
fn a_kept_token_is_used_and_can_be_forgotten() {
    let scratch = Scratch::new();
    let database = scratch.path("results.db");
    let server = Server::start(database.to_str().expect("UTF-8"));
    let file = scratch.file("h200.json", EXAMPLE);
    let upload = |args: &[&str], token: Option<&str>| {
        let mut command = vramscope(scratch.folder());
        command
            .args(["upload", "--to", &server.url(), "--yes", "--retries", "0"])
            .args(args);
        command.envs(token.map(|token| ("VRAMSCOPE_TOKEN", token)));
        command.output().expect("the binary runs")
    };
    let kept = upload(&["--keep-token"], Some(&server.token("write")));
    if !kept.status.success() {
        let said = String::from_utf8_lossy(&kept.stderr).into_owned();
        assert!(
            said.contains("keyring cannot be used") && said.contains("mode 0600"),
            "{said}"
        );
        return eprintln!("skipped: {said}");
    }
    let file = file.to_str().expect("UTF-8");
    let sent = upload(&[file], None);
    assert!(String::from_utf8_lossy(&sent.stdout).contains("… stored\n"), "{sent:?}");
    assert!(upload(&["--forget-token"], None).status.success());
    let refused = upload(&[file], None);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("401"), "{refused:?}");
}

#[test]
fn bench_sends_its_record_where_it_is_told_to() {
    let scratch = Scratch::new();
    let database = scratch.path("results.db");
    let server = Server::start(database.to_str().expect("UTF-8"));
    let file = scratch.file("h200.json", EXAMPLE);
    let mut command = vramscope(scratch.folder());
    command
        .args(["bench", "--upload", &server.url(), "--yes", "--show"])
        .arg(&file);
    let sent = command
        .env("VRAMSCOPE_TOKEN", server.token("write"))
        .output()
        .expect("the binary runs");
    assert!(String::from_utf8_lossy(&sent.stdout).contains("… stored\n"), "{sent:?}");
    assert_eq!(
        get(server.address, "/api/records", None).json()["records"]
            .as_array()
            .map(Vec::len),
        Some(1)
    );
}
