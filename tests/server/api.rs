//! Tests that the API behaves as its document describes, on both databases.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::support::{EXAMPLE, Server, get, id_of, on_both, post, record, request, vramscope};

on_both! {
    fn a_record_is_stored_once_and_read_as_it_was(database: &str) {
        let server = Server::start(database);
        let token = server.token("write");
        let first = post(server.address, &token, EXAMPLE).is(201);
        assert_eq!(first.json()["status"], "stored");
        let id = id_of(&first.json());
        let again = post(server.address, &token, &record(566_231_040)).is(200);
        assert_eq!((id_of(&again.json()), again.json()["status"].as_str()), (id.clone(), Some("known")));

        let read = get(server.address, &format!("/api/records/{id}"), None).is(200);
        let given: Value = serde_json::from_str(EXAMPLE).expect("JSON");
        for field in ["tool", "device", "conditions", "run", "date"] {
            assert_eq!(read.json()[field], given[field], "{field}");
        }
        assert_eq!(read.json()["results"].as_array().map(Vec::len), Some(6));
        assert_eq!(read.header("etag"), Some(format!("\"{id}\"").as_str()));

        // After a restart existing tables remain.
        assert_eq!(server.terminate(), Some(0));
        let server = Server::start(database);
        get(server.address, &format!("/api/records/{id}"), None).is(200);
        assert_eq!(get(server.address, "/api/records", None).is(200).json()["records"].as_array().map(Vec::len), Some(1));
    }
}

on_both! {
    fn lists_are_filtered_and_read_page_by_page(database: &str) {
        let server = Server::start(database);
        let token = server.token("write");
        let mut sent = Vec::new();
        for number in 0..7 {
            let text = match number % 2 {
                0 => record(number),
                _ => record(number).replace("NVIDIA H200", "Some Other Card"),
            };
            sent.push(id_of(&post(server.address, &token, &text).is(201).json()));
        }
        let list = |path: &str| {
            let list = get(server.address, path, None).is(200).json();
            let ids: Vec<String> = list["records"].as_array().expect("a list").iter().map(id_of).collect();
            (ids, list["next"].as_i64())
        };
        let (mut all, mut next) = list("/api/records?limit=3");
        while let Some(before) = next {
            let (more, then) = list(&format!("/api/records?limit=3&before={before}"));
            all.extend(more);
            next = then;
        }
        sent.reverse();
        assert_eq!(all, sent, "newest first, each once");
        assert_eq!(list("/api/records?device=nvidia%20h200").0.len(), 4);
        assert_eq!(list("/api/records?device=some+other+card&backend=cuda").0.len(), 3);
        assert_eq!(list("/api/records?complete=true").0.len(), 0);
        assert_eq!(list("/api/records?complete=false&backend=vulkan").0.len(), 0);
        let entry = &get(server.address, "/api/records?limit=1", None).is(200).json()["records"][0];
        assert_eq!((&entry["device"], &entry["results"], &entry["measured"]), (&"NVIDIA H200".into(), &6.into(), &2.into()));
        for wrong in ["limit=0", "limit=10001", "limit=x", "before=x", "no_such=1", "device=a&device=b"] {
            get(server.address, &format!("/api/records?{wrong}"), None).is(400);
        }
    }
}

on_both! {
    fn what_cannot_be_waits_until_somebody_has_looked_at_it(database: &str) {
        let server = Server::start(database);
        let (write, admin) = (server.token("write"), server.token("admin"));
        let faster = EXAMPLE.replace("\"NVIDIA H200\"", "\"NVIDIA A100-SXM4-80GB\"");
        let answer = post(server.address, &write, &faster).is(201).json();
        let id = id_of(&answer);
        assert_eq!(answer["status"], "quarantined");
        assert!(answer["reason"].as_str().expect("a reason").contains("TFLOP/s in bf16; the peak of"), "{answer}");
        assert_eq!(post(server.address, &write, &faster).is(200).json()["reason"], answer["reason"]);

        let path = format!("/api/records/{id}");
        get(server.address, &path, Some(&write)).is(404);
        get(server.address, &path, Some(&admin)).is(200);
        assert_eq!(get(server.address, "/api/records", None).is(200).json()["records"], Value::Array(vec![]));
        get(server.address, "/api/records?quarantined=true", Some(&write)).is(403);
        get(server.address, "/api/records?quarantined=true", None).is(401);
        let doubted = get(server.address, "/api/records?quarantined=true", Some(&admin)).is(200).json();
        assert_eq!((id_of(&doubted["records"][0]["record"]), &doubted["records"][0]["reason"]), (id.clone(), &answer["reason"]));
        let listed = vramscope(std::path::Path::new("/nonexistent"))
            .args(["serve", "quarantine", "list", "--database", database])
            .output()
            .expect("the binary runs");
        assert!(String::from_utf8_lossy(&listed.stdout).contains(&id));

        let release = format!("{path}/release");
        request(server.address, "POST", &release, Some(&write), None).is(403);
        assert_eq!(request(server.address, "POST", &release, Some(&admin), None).is(200).json()["released"], true);
        assert_eq!(request(server.address, "POST", &release, Some(&admin), None).is(200).json()["released"], false);
        get(server.address, &path, None).is(200);
    }
}

on_both! {
    fn roles_allow_what_they_say(database: &str) {
        let server = Server::start_with(database, &["--closed", "--rate", "0"]);
        let (read, write) = (server.token("read"), server.token("write"));
        let id = id_of(&post(server.address, &write, EXAMPLE).is(201).json());
        post(server.address, &read, EXAMPLE).is(403);
        for path in ["/api/records".to_owned(), format!("/api/records/{id}"), "/metrics".to_owned()] {
            get(server.address, &path, None).is(401);
            get(server.address, &path, Some("vrs_guessed")).is(401);
            assert_eq!(get(server.address, &path, Some(&read)).status, 200, "{path}");
            assert_eq!(get(server.address, &path, Some(&write)).status, 200, "{path}");
        }
        assert_eq!(get(server.address, "/api/records", None).header("www-authenticate"), Some("Bearer"));
        get(server.address, "/healthz", None).is(200);
        let metrics = get(server.address, "/metrics", Some(&read)).body;
        for line in ["vramscope_records 1\n", "vramscope_uploads_total{outcome=\"stored\"} 1\n"] {
            assert!(metrics.contains(line), "{metrics}");
        }
        // A token is only stored as its hash, and can be revoked.
        let tokens = |args: &[&str]| {
            let mut command = vramscope(std::path::Path::new("/nonexistent"));
            command.args(["serve", "token"]).args(args).args(["--database", database]);
            command.output().expect("the binary runs")
        };
        let list = String::from_utf8(tokens(&["list"]).stdout).expect("UTF-8");
        assert!(list.contains("write") && !list.contains(&write), "{list}");
        assert_eq!(tokens(&["add", "read", "--role", "admin"]).status.code(), Some(2), "the name is taken");
        assert_eq!(tokens(&["remove", "write"]).status.code(), Some(0));
        assert_eq!(tokens(&["remove", "write"]).status.code(), Some(2));
        std::thread::sleep(std::time::Duration::from_secs(6));
        post(server.address, &write, EXAMPLE).is(401);
    }
}

#[test]
fn the_document_names_every_route_and_every_status() {
    let scratch = crate::support::Scratch::new();
    let server = Server::start(scratch.path("results.db").to_str().expect("UTF-8"));
    let document = get(server.address, "/api/openapi.json", None).is(200).json();
    let source = include_str!("../../src/cli/server/routes/mod.rs");
    let routed: BTreeSet<&str> = source
        .split(".route(\"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .filter(|path| !path.contains('*'))
        .collect();
    let described: BTreeSet<&str> = document["paths"]
        .as_object()
        .expect("paths")
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(routed, described);
    for (path, methods) in document["paths"].as_object().expect("paths") {
        let stated_path = path;
        let path = path.replace("{id}", &"0".repeat(64)).replace("{name}", "0.json");
        for method in methods.as_object().expect("methods").keys() {
            let answer = request(server.address, &method.to_uppercase(), &path, None, None);
            let stated = &document["paths"][stated_path][method]["responses"];
            assert!(
                stated.get(answer.status.to_string()).is_some(),
                "{method} {path}: {}",
                answer.status
            );
        }
        request(server.address, "DELETE", &path, None, None).is(405);
    }
    let schema = get(server.address, "/api/record.schema.json", None).is(200).json();
    assert_eq!(schema["title"], "A record of `vramscope bench`");
}
