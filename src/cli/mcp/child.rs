//! A command of this program in a process of its own.

use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::questions::Asked;

/// Interval at which a command is asked whether it has ended.
const POLL: Duration = Duration::from_millis(10);

/// What a command has printed.
#[derive(Debug)]
pub struct Said {
    /// Its exit code; `None` if it was ended from outside.
    pub code: Option<i32>,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub errors: String,
}

/// Runs a command to its end, or until `is_cancelled`.
///
/// # Errors
/// If it does not start.
pub fn run(asked: &Asked, may_ask_network: bool, is_cancelled: impl Fn() -> bool) -> Result<Said, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    command
        .args(&asked.args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    if !may_ask_network {
        command.env("HF_HUB_OFFLINE", "1");
    }
    in_own_group(&mut command);
    let mut child = command
        .spawn()
        .map_err(|error| format!("vramscope does not start: {error}"))?;
    // Read and written while it runs: a full pipe would stop it.
    let (out, errors) = (child.stdout.take().map(read), child.stderr.take().map(read));
    let (stdin, text) = (child.stdin.take(), asked.stdin.clone());
    let writer = thread::spawn(move || stdin.map(|mut pipe| pipe.write_all(text.as_bytes())));
    let code = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status.code(),
            Ok(None) if !is_cancelled() => thread::sleep(POLL),
            _ => {
                end(&mut child);
                break None;
            }
        }
    };
    // A command that did not read all closed its end, which is no fault.
    let _ = writer.join();
    let text = |reader: Option<JoinHandle<String>>| reader.and_then(|reader| reader.join().ok()).unwrap_or_default();
    Ok(Said {
        code,
        out: text(out),
        errors: text(errors),
    })
}

fn read(mut pipe: impl Read + Send + 'static) -> JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // What was read before an error is still worth showing.
        let _ = pipe.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Starts the command in a group of processes of its own, which can be ended with all that it starts.
fn in_own_group(command: &mut Command) {
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(command, 0);
    #[cfg(not(unix))]
    let _ = command;
}

/// Ends a command: as Ctrl-C does, so that a dry run takes away what it has made, and what it starts with it.
fn end(child: &mut Child) {
    let group = format!("-{}", child.id());
    let asked = cfg!(unix)
        && Command::new("kill")
            .args(["-INT", "--", &group])
            .status()
            .is_ok_and(|done| done.success());
    if !asked {
        let _ = child.kill();
    }
    let _ = child.wait();
}
