//! Sends randomly damaged requests: every one is answered, never with a server error.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::support::{EXAMPLE, Scratch, Server, get, raw};

const ROUTES: [&str; 10] = [
    "/api/records",
    "/api/records?limit=5&before=9&device=x&backend=cuda&complete=true&quarantined=false",
    "/api/records/0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
    "/api/records/0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef/release",
    "/api/record.schema.json",
    "/api/openapi.json",
    "/data/records.json?before=9",
    "/data/records/0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef.json",
    "/healthz",
    "/metrics",
];

/// Position, operation, and byte.
type Damage = (prop::sample::Index, u8, u8);

fn damaged(mut bytes: Vec<u8>, damages: &[Damage]) -> Vec<u8> {
    for (place, kind, byte) in damages {
        if bytes.is_empty() {
            break;
        }
        let place = place.index(bytes.len());
        match kind % 4 {
            0 => bytes[place] = *byte,
            1 => drop(bytes.remove(place)),
            2 => bytes.insert(place, *byte),
            _ => bytes.truncate(place.max(1)),
        }
    }
    bytes
}

fn damages(most: usize) -> impl Strategy<Value = Vec<Damage>> {
    prop::collection::vec(any::<Damage>(), 0..most)
}

#[test]
fn damaged_requests_are_answered_without_a_fault() {
    let scratch = Scratch::new();
    let database = scratch.path("results.db");
    let server = Server::start_with(database.to_str().expect("UTF-8"), &["--rate", "0", "--patience", "1"]);
    let admin = server.token("admin");
    let mut runner = TestRunner::new(Config {
        cases: 150,
        failure_persistence: None,
        ..Config::default()
    });
    let what = (damages(6), 0..ROUTES.len(), damages(4), any::<bool>());
    let outcome = runner.run(&what, |(of_body, route, of_path, post)| {
        let body = damaged(EXAMPLE.as_bytes().to_vec(), &of_body);
        let path = damaged(ROUTES[route].as_bytes().to_vec(), &of_path);
        let (method, length) = if post { ("POST", body.len()) } else { ("GET", 0) };
        let mut request = format!("{method} ").into_bytes();
        request.extend(path.iter().filter(|byte| byte.is_ascii_graphic()));
        request.extend(
            format!(
                " HTTP/1.1\r\nHost: t\r\nConnection: close\r\nAuthorization: Bearer {admin}\r\n\
                 Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
            )
            .bytes(),
        );
        request.extend(&body[..length]);
        let status = raw(server.address, &request).map(|answer| answer.status);
        prop_assert!(
            status.is_none_or(|status| status < 500),
            "{status:?}: {}",
            String::from_utf8_lossy(&request)
        );
        Ok(())
    });
    outcome.expect("every request is answered");
    get(server.address, "/healthz", None).is(200);
}
