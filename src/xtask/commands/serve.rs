//! `cargo xtask serve`: builds and serves the page.

use std::process::Stdio;
use std::thread;

use crate::process::{find, program};
use crate::{Failure, dist, static_server};

/// Builds the page, serves it on the loopback interface and opens it in the browser.
///
/// # Errors
/// If the build fails or the port is in use.
pub fn serve(args: &[String]) -> Result<(), Failure> {
    let port = port(args)?;
    super::build(super::Build::Local)?;
    let address = static_server::start(dist(), port).map_err(|e| {
        Failure::new(format!(
            "port {port} on 127.0.0.1: {e}; give another: cargo xtask serve 8081"
        ))
    })?;
    let url = format!("http://{address}/");
    println!("VRAMscope is at {url} (Ctrl-C ends it)");
    open(&url);
    loop {
        thread::park();
    }
}

fn port(args: &[String]) -> Result<u16, Failure> {
    match args {
        [] => Ok(8080),
        [port] => port
            .parse()
            .map_err(|_| Failure::usage(format!("`{port}` is not a port (0 to 65535)"))),
        _ => Err(Failure::usage("serve takes at most one argument, the port")),
    }
}

/// Opens the address in the desktop's browser; failures are ignored, since the address is printed too.
fn open(url: &str) {
    let Some(opener) = find(&["xdg-open", "open"]) else {
        return;
    };
    let quiet = program(opener)
        .arg(url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    drop(quiet);
}
