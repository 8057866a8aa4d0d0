//! Tests that the OpenAPI document is valid, and that the server's responses match it.

use serde_json::{Value, json};

use crate::support::{EXAMPLE, Scratch, Server, get, id_of, post, record, request};

/// Published schema of OpenAPI 3.1 documents; `tests/data/openapi/README.md` states its source.
const OPENAPI: &str = include_str!("../data/openapi/3.1.schema.json");
/// Base of relative references; any URL works.
const HERE: &str = "https://vramscope.example";

fn text(at: &str) -> Value {
    serde_json::from_str(at).expect("JSON")
}

/// Errors of validating a value against a schema of the document.
fn faults(document: &Value, schema: &str, value: &Value) -> Vec<String> {
    let mut record = text(include_str!("../../src/benchmark/schema.json"));
    record["$id"] = format!("{HERE}/api/record.schema.json").into();
    let whole = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": format!("{HERE}/api/openapi.json"),
        "$ref": format!("#/components/schemas/{schema}"),
        "$defs": { "record": record },
        "components": document["components"],
    });
    let validator = jsonschema::validator_for(&whole).expect("the document's schemas can be read");
    validator.iter_errors(value).map(|error| error.to_string()).collect()
}

#[test]
fn the_document_is_valid_openapi() {
    let document = text(include_str!("../../src/cli/server/routes/openapi.json"));
    let validator = jsonschema::validator_for(&text(OPENAPI)).expect("the schema can be read");
    let found: Vec<String> = validator
        .iter_errors(&document)
        .map(|error| error.to_string())
        .collect();
    assert_eq!(found, Vec::<String>::new());
    // Check that the validator does detect an invalid document.
    let mut broken = document.clone();
    broken["paths"]["/api/records"]["get"]["parameters"][0]["in"] = "nowhere".into();
    assert!(!validator.is_valid(&broken));
    // Every reference has a target.
    let mut references = Vec::new();
    collect(&document, &mut references);
    assert!(references.len() > 20);
    for reference in references.iter().filter_map(|reference| reference.strip_prefix('#')) {
        assert!(document.pointer(reference).is_some(), "{reference}");
    }
}

fn collect(value: &Value, references: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            references.extend(fields.get("$ref").and_then(Value::as_str).map(str::to_owned));
            fields.values().for_each(|value| collect(value, references));
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, references)),
        _ => {}
    }
}

#[test]
fn what_the_server_answers_is_what_the_document_says() {
    let scratch = Scratch::new();
    let server = Server::start(scratch.path("results.db").to_str().expect("UTF-8"));
    let document = get(server.address, "/api/openapi.json", None).is(200).json();
    let (write, admin) = (server.token("write"), server.token("admin"));
    let valid = |schema: &str, value: &Value| {
        assert_eq!(
            faults(&document, schema, value),
            Vec::<String>::new(),
            "{schema}: {value}"
        );
    };
    let stored = post(server.address, &write, EXAMPLE).is(201).json();
    valid("Acknowledgement", &stored);
    valid("Acknowledgement", &post(server.address, &write, EXAMPLE).is(200).json());
    let faster = EXAMPLE.replace("\"NVIDIA H200\"", "\"NVIDIA A100-SXM4-80GB\"");
    valid("Acknowledgement", &post(server.address, &write, &faster).is(201).json());
    let id = id_of(&stored);
    valid(
        "Record",
        &get(server.address, &format!("/api/records/{id}"), None).is(200).json(),
    );
    for path in ["/api/records", "/data/records.json", "/api/records?limit=1"] {
        valid("List", &get(server.address, path, None).is(200).json());
    }
    let doubted = get(server.address, "/api/records?quarantined=true", Some(&admin))
        .is(200)
        .json();
    assert_eq!(doubted["records"].as_array().map(Vec::len), Some(1));
    valid("List", &doubted);
    for problem in [
        get(server.address, "/api/none", None),
        get(server.address, "/api/records?limit=0", None),
        post(server.address, "", EXAMPLE),
        post(server.address, &write, "{"),
        post(server.address, &write, "{}"),
    ] {
        assert!(problem.status >= 400);
        valid("Problem", &problem.json());
    }
    assert!(!faults(&document, "Record", &json!({})).is_empty(), "it can fail");
    assert!(!faults(&document, "List", &json!({ "records": [{}], "next": null })).is_empty());
}

#[test]
fn the_page_finds_records_where_export_would_put_them() {
    let scratch = Scratch::new();
    let server = Server::start(scratch.path("results.db").to_str().expect("UTF-8"));
    let token = server.token("write");
    let id = id_of(&post(server.address, &token, EXAMPLE).is(201).json());
    let list = get(server.address, "/data/records.json", None).is(200);
    assert_eq!(list.json(), get(server.address, "/api/records", None).json());
    let file = get(server.address, &format!("/data/records/{id}.json"), None).is(200);
    assert_eq!(
        file.json(),
        get(server.address, &format!("/api/records/{id}"), None).json()
    );
    for wrong in [id.as_str(), "x.json", ".json", "..%2f..%2fetc%2fpasswd.json"] {
        get(server.address, &format!("/data/records/{wrong}"), None).is(404);
    }
    request(
        server.address,
        "POST",
        "/data/records.json",
        Some(&token),
        Some(EXAMPLE),
    )
    .is(405);
}

#[test]
fn a_list_is_sent_again_only_once_it_has_changed() {
    let scratch = Scratch::new();
    let server = Server::start(scratch.path("results.db").to_str().expect("UTF-8"));
    let (write, admin) = (server.token("write"), server.token("admin"));
    let path = "/api/records?limit=1000";
    let asked = |tag: &str| {
        let text = format!("GET {path} HTTP/1.1\r\nHost: t\r\nConnection: close\r\nIf-None-Match: {tag}\r\n\r\n");
        crate::support::raw(server.address, text.as_bytes())
            .expect("an answer")
            .status
    };
    let tag = || {
        get(server.address, path, None)
            .is(200)
            .header("etag")
            .expect("a tag")
            .to_owned()
    };
    let count = || {
        get(server.address, path, None).json()["records"]
            .as_array()
            .map(Vec::len)
    };
    let mut before = tag();
    for number in 0..3 {
        assert_eq!(asked(&before), 304);
        post(server.address, &write, &record(number)).is(201);
        assert_eq!((asked(&before), count()), (200, Some(number as usize + 1)));
        before = tag();
    }
    // A record in quarantine appears in no list until it is released.
    let faster = EXAMPLE.replace("\"NVIDIA H200\"", "\"NVIDIA A100-SXM4-80GB\"");
    let id = id_of(&post(server.address, &write, &faster).is(201).json());
    assert_eq!((asked(&before), count()), (304, Some(3)));
    request(
        server.address,
        "POST",
        &format!("/api/records/{id}/release"),
        Some(&admin),
        None,
    )
    .is(200);
    assert_eq!((asked(&before), count()), (200, Some(4)));
}
