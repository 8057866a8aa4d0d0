//! Starts the server's binary for the tests.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A command for the binary, in an environment without this machine's settings.
pub fn vramscope(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vramscope"));
    command
        .env_clear()
        .env("LC_ALL", "C.UTF-8")
        .env("HOME", home)
        .env("RUST_BACKTRACE", "0")
        .stdin(Stdio::null());
    command
}

/// A `vramscope serve` process on a free local port, killed on drop.
pub struct Server {
    child: Child,
    pub address: SocketAddr,
    pub database: String,
}

impl Server {
    /// Starts a server without a rate limit.
    pub fn start(database: &str) -> Self {
        Self::start_with(database, &["--rate", "0"])
    }

    pub fn start_with(database: &str, args: &[&str]) -> Self {
        let mut command = vramscope(Path::new("/nonexistent"));
        command
            .args(["serve", "--listen", "127.0.0.1:0", "--database", database])
            .args(args);
        Self::spawn(command, database)
    }

    /// Starts a prepared command.
    pub fn spawn(mut command: Command, database: &str) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the binary starts");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("standard output is piped");
        BufReader::new(stdout).read_line(&mut line).expect("a line");
        let address = line
            .split_once("://")
            .and_then(|(_, rest)| rest.split('/').next()?.parse().ok());
        Self {
            child,
            address: address.unwrap_or_else(|| panic!("no address in {line:?}")),
            database: database.to_owned(),
        }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Creates a token with this role while the server runs.
    pub fn token(&self, role: &str) -> String {
        token(&self.database, role)
    }

    /// Creates a token with this role under a unique name.
    pub fn token_once(&self, role: &str) -> String {
        named_token(&self.database, role, &format!("{role}-{:?}", std::time::Instant::now()))
    }

    /// Process ID of the server.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Kills the server at once, like a power failure.
    pub fn kill(mut self) {
        self.child.kill().expect("it can be killed");
        self.child.wait().expect("it ends");
    }

    /// Asks the server to end, as a service manager does, and returns its exit code.
    #[cfg(unix)]
    pub fn terminate(mut self) -> Option<i32> {
        let pid = self.child.id().to_string();
        Command::new("kill").args(["-TERM", &pid]).status().expect("kill");
        self.child.wait().expect("it ends").code()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Creates a token with this role, named after it.
pub fn token(database: &str, role: &str) -> String {
    named_token(database, role, role)
}

fn named_token(database: &str, role: &str, name: &str) -> String {
    let mut command = vramscope(Path::new("/nonexistent"));
    let args = ["serve", "token", "add", name, "--role", role, "--database", database];
    let output = command.args(args).output().expect("the binary runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8").trim().to_owned()
}
