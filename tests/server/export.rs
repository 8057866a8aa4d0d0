//! Tests of static files that replace a server.

use serde_json::Value;

use crate::support::{EXAMPLE, Scratch, Server, get, id_of, on_both, post, record, vramscope};

fn read(path: &std::path::Path) -> Value {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).expect("JSON")
}

on_both! {
    fn the_files_are_what_the_server_says(database: &str) {
        let scratch = Scratch::new();
        let server = Server::start(database);
        let token = server.token("write");
        for number in 0..3 {
            post(server.address, &token, &record(number)).is(201);
        }
        let doubted = EXAMPLE.replace("\"NVIDIA H200\"", "\"NVIDIA A100-SXM4-80GB\"");
        let doubted = id_of(&post(server.address, &token, &doubted).is(201).json());
        let dir = scratch.path("data");
        scratch.file(&format!("data/records/{}.json", "0".repeat(64)), "{}");
        scratch.file("data/records/mine.json", "{}");
        let mut command = vramscope(scratch.folder());
        let output = command.arg("export").arg(&dir).args(["--database", database]).output().expect("the binary runs");
        assert!(output.status.success(), "{output:?}");

        let list = read(&dir.join("records.json"));
        assert_eq!(list, get(server.address, "/api/records", None).is(200).json());
        for entry in list["records"].as_array().expect("a list") {
            let id = id_of(entry);
            let record = get(server.address, &format!("/api/records/{id}"), None).is(200).json();
            assert_eq!(read(&dir.join(format!("records/{id}.json"))), record);
        }
        let mut files: Vec<_> = std::fs::read_dir(dir.join("records")).expect("a folder").collect();
        assert_eq!(files.len(), 4, "three records, and the file that is none");
        files.retain(|file| file.as_ref().is_ok_and(|file| file.file_name().to_string_lossy().contains(&doubted)));
        assert!(files.is_empty(), "what is doubted is not published");
    }
}

#[test]
fn files_need_no_server() {
    let scratch = Scratch::new();
    let files = [
        scratch.file("a.json", EXAMPLE),
        scratch.file("b.json", &record(1)),
        scratch.file("c.json", EXAMPLE),
    ];
    let dir = scratch.path("data");
    let output = vramscope(scratch.folder())
        .arg("export")
        .arg(&dir)
        .args(&files)
        .output()
        .expect("the binary runs");
    assert!(output.status.success(), "{output:?}");
    assert_eq!(
        read(&dir.join("records.json"))["records"].as_array().map(Vec::len),
        Some(2)
    );
    let broken = scratch.file("d.json", "{}");
    let output = vramscope(scratch.folder())
        .arg("export")
        .arg(&dir)
        .arg(broken)
        .output()
        .expect("the binary runs");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("d.json: "));
}
