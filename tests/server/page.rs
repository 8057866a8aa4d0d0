//! Tests of serving the page's files.

use crate::support::{Scratch, Server, get, raw, vramscope};

const INDEX: &str = "<!doctype html><meta http-equiv=\"Content-Security-Policy\" \
                     content=\"default-src 'none'; script-src 'self'\"><title>page</title>";

#[test]
fn the_page_is_served_with_its_own_policy_and_nothing_beside_it() {
    let scratch = Scratch::new();
    scratch.file("secret.txt", "secret");
    scratch.file("page/index.html", INDEX);
    scratch.file("page/boot.js", "1");
    scratch.file("page/app.wasm", "1");
    let (database, page) = (scratch.path("results.db"), scratch.path("page"));
    let args = ["--page", page.to_str().expect("UTF-8")];
    let server = Server::start_with(database.to_str().expect("UTF-8"), &args);
    for path in ["/", "/index.html"] {
        let answer = get(server.address, path, None).is(200);
        assert_eq!(
            answer.header("content-security-policy"),
            Some("default-src 'none'; script-src 'self'")
        );
        assert!(answer.body.contains("<title>page"));
    }
    for (path, kind) in [("/boot.js", "text/javascript"), ("/app.wasm", "application/wasm")] {
        let answer = get(server.address, path, None).is(200);
        assert_eq!(answer.header("content-type"), Some(kind));
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        let policy = answer.header("content-security-policy").expect("a policy");
        // A worker is subject to the policy of its script.
        assert_eq!(
            policy.contains("script-src 'self'"),
            path.ends_with(".js"),
            "{path}: {policy}"
        );
    }
    for path in [
        "/../secret.txt",
        "/%2e%2e/secret.txt",
        "/..%2fsecret.txt",
        "/page/../../secret.txt",
        "//etc/passwd",
    ] {
        let answer = get(server.address, path, None);
        assert!(matches!(answer.status, 400 | 404), "{path}: {}", answer.status);
    }
    get(server.address, "/api/none", None).is(404);
    get(server.address, "/healthz", None).is(200);
}

#[test]
fn files_are_sent_as_the_client_takes_them_and_not_twice() {
    let scratch = Scratch::new();
    // The server sends the built files unchanged, whatever they contain; letters in a text are easy to count.
    let files = [
        ("index.html", INDEX.to_owned()),
        ("app.wasm", "w".repeat(900)),
        ("app.wasm.br", "b".repeat(30)),
    ];
    for (name, content) in files.into_iter().chain([("app.wasm.gz", "g".repeat(40))]) {
        scratch.file(&format!("page/{name}"), &content);
    }
    let (database, page) = (scratch.path("results.db"), scratch.path("page"));
    let args = ["--page", page.to_str().expect("UTF-8")];
    let server = Server::start_with(database.to_str().expect("UTF-8"), &args);
    let ask = |path: &str, headers: &str| {
        let text = format!("GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n{headers}\r\n");
        raw(server.address, text.as_bytes()).expect("an answer")
    };
    let mut tags = Vec::new();
    for (accepted, encoding, letters) in [
        ("", None, "w".repeat(900)),
        (
            "Accept-Encoding: gzip, deflate, br, zstd\r\n",
            Some("br"),
            "b".repeat(30),
        ),
        ("Accept-Encoding: gzip\r\n", Some("gzip"), "g".repeat(40)),
        ("Accept-Encoding: br;q=0, gzip;q=0\r\n", None, "w".repeat(900)),
    ] {
        let answer = ask("/app.wasm", accepted).is(200);
        assert_eq!(answer.body, letters, "{accepted}");
        assert_eq!(answer.header("content-encoding"), encoding);
        assert_eq!(
            answer.header("content-length"),
            Some(letters.len().to_string().as_str())
        );
        let tag = answer.header("etag").expect("a tag").to_owned();
        let again = ask("/app.wasm", &format!("{accepted}If-None-Match: {tag}\r\n")).is(304);
        assert_eq!((again.body.as_str(), again.header("etag")), ("", Some(tag.as_str())));
        for answer in [answer, again] {
            let header = |name| answer.header(name);
            assert_eq!(header("vary"), Some("accept-encoding"));
            assert_eq!(header("cache-control"), Some("no-cache"));
            assert_eq!(header("content-security-policy"), Some("default-src 'none'"));
            assert_eq!(header("referrer-policy"), Some("no-referrer"));
            assert_eq!(header("cross-origin-resource-policy"), Some("cross-origin"));
        }
        tags.push(tag);
    }
    let of_brotli = format!("Accept-Encoding: gzip\r\nIf-None-Match: {}\r\n", tags[1]);
    assert_eq!(
        ask("/app.wasm", &of_brotli).is(200).body,
        "g".repeat(40),
        "the tag of another encoding"
    );
    assert_eq!(tags[0], tags[3]);
    tags.sort();
    tags.dedup();
    assert_eq!(tags.len(), 3, "each encoding has a tag of its own");
    let none = ask("/none.wasm", "Accept-Encoding: br\r\n");
    assert_eq!((none.status, none.body.as_str()), (404, ""));
}

#[test]
fn a_folder_without_a_page_is_refused() {
    let scratch = Scratch::new();
    for folder in [scratch.folder().to_owned(), scratch.path("none")] {
        let mut command = vramscope(scratch.folder());
        let output = command
            .args(["serve", "--page"])
            .arg(&folder)
            .output()
            .expect("the binary runs");
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).starts_with("error: "));
    }
}
