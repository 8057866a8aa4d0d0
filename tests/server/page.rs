//! The page's files beside the API.

use crate::support::{Scratch, Server, get, vramscope};

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
        // A worker is held to the policy of its script.
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
