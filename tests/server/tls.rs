//! Tests of HTTPS from end to end, with a generated certificate.

use crate::support::{EXAMPLE, Scratch, Server, raw, vramscope};

#[test]
fn a_record_goes_over_https_to_whom_the_certificate_names() {
    let scratch = Scratch::new();
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
    let chain = scratch.file("chain.pem", &made.cert.pem());
    let key = scratch.file("key.pem", &made.signing_key.serialize_pem());
    let file = scratch.file("h200.json", EXAMPLE);
    let database = scratch.path("results.db");
    let (chain, key) = (chain.to_str().expect("UTF-8"), key.to_str().expect("UTF-8"));
    let args = ["--tls-cert", chain, "--tls-key", key];
    let server = Server::start_with(database.to_str().expect("UTF-8"), &args);
    let token = server.token("write");
    let upload = |host: &str, trusted: &[&str]| {
        let to = format!("https://{host}:{}", server.address.port());
        let mut command = vramscope(scratch.folder());
        command
            .args(["upload", "--yes", "--retries", "0", "--to", &to])
            .arg(&file)
            .args(trusted);
        command
            .env("VRAMSCOPE_TOKEN", &token)
            .output()
            .expect("the binary runs")
    };
    let sent = upload("localhost", &["--ca", chain]);
    assert!(String::from_utf8_lossy(&sent.stdout).contains("… stored"), "{sent:?}");
    for (host, trusted) in [("localhost", &[][..]), ("127.0.0.1", &["--ca", chain])] {
        let refused = upload(host, trusted);
        assert_eq!(refused.status.code(), Some(1), "{refused:?}");
        assert!(
            String::from_utf8_lossy(&refused.stderr).contains("certificate"),
            "{refused:?}"
        );
    }
    // Clients that do not speak TLS receive no response.
    assert!(raw(server.address, b"GET /healthz HTTP/1.1\r\nHost: t\r\n\r\n").is_none());
}

#[test]
fn a_certificate_that_is_none_is_refused_at_the_start() {
    let scratch = Scratch::new();
    let file = scratch.file("chain.pem", "none");
    let mut command = vramscope(scratch.folder());
    command
        .args(["serve", "--listen", "127.0.0.1:0", "--tls-cert"])
        .arg(&file)
        .arg("--tls-key")
        .arg(&file);
    let output = command.output().expect("the binary runs");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("PEM file"),
        "{output:?}"
    );
}
