//! Runs the binary.

use std::ffi::OsStr;
use std::io::Write;
use std::process::{Command, Output, Stdio};

/// Result of a run.
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

/// A command for the binary, in an environment without this machine's settings.
pub fn vramscope() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vramscope"));
    command
        .env_clear()
        .env("LC_ALL", "C.UTF-8")
        .env("COLUMNS", "80")
        .env("RUST_BACKTRACE", "0")
        // No test asks a hub of the world; those of `hub` name a stand-in.
        .env("HF_HUB_OFFLINE", "1");
    command
}

/// Runs the binary to its end, with empty standard input.
pub fn run<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Ran {
    finish(vramscope().args(args), b"")
}

/// Runs the binary to its end with this standard input.
pub fn run_on<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>, stdin: impl AsRef<[u8]>) -> Ran {
    finish(vramscope().args(args), stdin.as_ref())
}

/// Runs a prepared command to its end.
pub fn finish(command: &mut Command, stdin: &[u8]) -> Ran {
    let command = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("the binary starts");
    let mut input = child.stdin.take().expect("standard input is piped");
    // Write from another thread: the program may answer before it has read everything.
    let given = stdin.to_vec();
    let writer = std::thread::spawn(move || input.write_all(&given));
    let output = child.wait_with_output().expect("the binary ends");
    // The program may end without reading: a closed pipe does not fail the test.
    let _ = writer.join().expect("the writer ends");
    output.into()
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("output is UTF-8");
        Self {
            code: output.status.code(),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }
}

impl Ran {
    /// The JSON objects of standard output, one per line.
    pub fn lines(&self) -> Vec<serde_json::Value> {
        let parse = |line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        self.stdout.lines().map(parse).collect()
    }

    /// Asserts that the run refused its input as all commands do, and returns the message.
    pub fn refused(&self) -> &str {
        assert_eq!(self.code, Some(2), "stdout {:?}, stderr {:?}", self.stdout, self.stderr);
        assert!(self.stdout.is_empty(), "{}", self.stdout);
        assert!(self.stderr.starts_with("error: "), "{}", self.stderr);
        assert!(!self.stderr.contains("panicked"), "{}", self.stderr);
        &self.stderr
    }
}
