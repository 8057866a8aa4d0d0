//! HTTPS: a hub whose certificate is of a company's own authority, over a proxy.

use std::io::Write;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use tempfile::TempDir;

use super::stand_in::{Repo, Request, StandIn, TOKEN, head};
use super::{SMALL, params, small};
use crate::program::{Ran, finish};

/// Name of the hub, which no resolver knows: its proxy alone does.
const HUB: &str = "hub.test";

/// A hub over HTTPS, the authority of its certificate as a file, and a home for the client.
struct Secure {
    hub: StandIn,
    authority: PathBuf,
    home: TempDir,
}

impl Secure {
    fn start(repo: Repo) -> Self {
        let mut of_authority = CertificateParams::new(Vec::new()).expect("no names");
        of_authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let authority_pem = of_authority.self_signed(&key).expect("it is signed").pem();
        let issuer = Issuer::new(of_authority, key);
        let key = KeyPair::generate().expect("a key");
        let names = vec![HUB.to_owned(), "127.0.0.1".to_owned()];
        let certificate = CertificateParams::new(names).expect("names");
        let pem = certificate.signed_by(&key, &issuer).expect("it is signed").pem();

        let home = tempfile::tempdir().expect("a folder");
        let authority = home.path().join("authority.pem");
        std::fs::write(&authority, authority_pem).expect("it is written");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("the provider's versions")
            .with_no_client_auth()
            .with_single_cert(
                vec![CertificateDer::from_pem_slice(pem.as_bytes()).expect("a certificate")],
                PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes()).expect("a key"),
            )
            .expect("they belong together");
        let config = Arc::new(config);
        let repos = [("someone/model".to_owned(), repo)].into();
        let hub = StandIn::serve_over(repos, move |stream| {
            let connection = ServerConnection::new(Arc::clone(&config)).ok()?;
            Some(Box::new(StreamOwned::new(connection, stream)))
        });
        Self { hub, authority, home }
    }

    /// A command that asks it by this address.
    fn command(&self, address: &str) -> Command {
        let mut command = self.hub.command(self.home.path());
        command
            .args(["estimate", "someone/model", "--format", "json"])
            .env("HF_ENDPOINT", address)
            .env("HF_TOKEN", TOKEN);
        command
    }

    fn address(&self) -> String {
        format!("https://127.0.0.1:{}", self.hub.port())
    }
}

/// A proxy that opens tunnels to one port of this machine, whatever host is asked for, and what it was asked.
struct Proxy {
    port: u16,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    fn start(to: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("it has an address").port();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&asked);
        // The thread ends with the test's process.
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let Some(head) = head(&mut stream) else { continue };
                seen.lock().expect("no thread failed").push(head);
                let Ok(hub) = TcpStream::connect(("127.0.0.1", to)) else {
                    continue;
                };
                if stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").is_ok() {
                    tunnel(stream, hub);
                }
            }
        });
        Self { port, asked }
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().expect("no thread failed").clone()
    }
}

/// Copies both ways until both ends are closed.
fn tunnel(client: TcpStream, hub: TcpStream) {
    let copy = |mut from: TcpStream, mut to: TcpStream| {
        thread::spawn(move || {
            let _ = std::io::copy(&mut from, &mut to);
            let _ = to.shutdown(Shutdown::Write);
        });
    };
    copy(
        client.try_clone().expect("a handle"),
        hub.try_clone().expect("a handle"),
    );
    copy(hub, client);
}

fn has_no_token(ran: &Ran) {
    assert!(
        !ran.stderr.contains(TOKEN) && !ran.stdout.contains(TOKEN),
        "{}",
        ran.stderr
    );
}

#[test]
fn the_systems_certificates_are_trusted_and_no_other() {
    let secure = Secure::start(Repo::of_config(&small()));
    let ran = finish(&mut secure.command(&secure.address()), b"");
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("gave no answer") && ran.stderr.contains("certificate"),
        "{}",
        ran.stderr
    );
    assert_eq!(ran.stderr.trim_end().lines().count(), 1, "{}", ran.stderr);
    has_no_token(&ran);
    assert!(secure.hub.take_requests().is_empty(), "nothing is said to a stranger");

    let mut command = secure.command(&secure.address());
    let ran = finish(command.env("SSL_CERT_FILE", &secure.authority), b"");
    assert_eq!(params(&ran), SMALL);
    let requests = secure.hub.take_requests();
    assert!(
        requests
            .iter()
            .all(|request| request.headers["authorization"].ends_with(TOKEN))
    );
    has_no_token(&ran);
}

#[test]
fn a_proxy_leads_to_the_hub_and_hears_no_token() {
    let secure = Secure::start(Repo::of_config(&small()));
    let proxy = Proxy::start(secure.hub.port());
    let mut command = secure.command(&format!("https://{HUB}"));
    command
        .env("SSL_CERT_FILE", &secure.authority)
        .env("HTTPS_PROXY", format!("http://127.0.0.1:{}", proxy.port));
    let ran = finish(&mut command, b"");
    assert_eq!(params(&ran), SMALL);
    assert!(ran.stderr.contains(HUB), "{}", ran.stderr);
    let asked = proxy.asked();
    assert!(!asked.is_empty());
    for head in &asked {
        assert!(head.starts_with(&format!("CONNECT {HUB}:443 ")), "{head}");
        assert!(!head.contains(TOKEN), "{head}");
    }
    let requests = secure.hub.take_requests();
    assert!(
        requests
            .iter()
            .all(|request: &Request| request.headers["authorization"].ends_with(TOKEN))
    );
}

#[test]
fn a_proxy_that_does_not_answer_is_named_without_its_password() {
    let closed = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = closed.local_addr().expect("it has an address").port();
    drop(closed);
    let secure = Secure::start(Repo::of_config(&small()));
    let mut command = secure.command(&format!("https://{HUB}"));
    let ran = finish(
        command.env("HTTPS_PROXY", format!("http://someone:opensesame@127.0.0.1:{port}")),
        b"",
    );
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("gave no answer") && ran.stderr.contains("HTTPS_PROXY"),
        "{}",
        ran.stderr
    );
    assert!(!ran.stderr.contains("opensesame"), "{}", ran.stderr);
    has_no_token(&ran);
}

#[test]
fn a_redirect_to_another_host_carries_no_token_and_never_leaves_https() {
    let other = StandIn::start([("someone/model", Repo::of_config(&small()))]);
    let away = |address: &str| {
        Repo::Raw(format!(
            "HTTP/1.1 302 Found\r\nLocation: {address}/someone/model/resolve/main/config.json\r\nContent-Length: 0\r\n\
             Connection: close\r\n\r\n"
        ))
    };
    let secure = Secure::start(away(&other.address()));
    let mut command = secure.command(&secure.address());
    let ran = finish(command.env("SSL_CERT_FILE", &secure.authority), b"");
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains("not safe to follow"), "{}", ran.stderr);
    assert!(other.take_requests().is_empty());

    // Another port is another host.
    let target = Secure::start(Repo::of_config(&small()));
    let first = Secure::start(away(&target.address()));
    let both = first.home.path().join("both.pem");
    let authorities =
        [&first.authority, &target.authority].map(|path| std::fs::read_to_string(path).expect("it is read"));
    std::fs::write(&both, authorities.concat()).expect("it is written");
    let mut command = first.command(&first.address());
    let ran = finish(command.env("SSL_CERT_FILE", &both), b"");
    assert_eq!(params(&ran), SMALL);
    let theirs = target.hub.take_requests();
    assert!(!theirs.is_empty());
    assert!(
        theirs
            .iter()
            .all(|request| !request.headers.contains_key("authorization"))
    );
    has_no_token(&ran);
}
