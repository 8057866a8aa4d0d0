//! Asks a Python something, and waits for what it prints.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Interval at which a running program is asked whether it has ended.
const POLL: Duration = Duration::from_millis(50);

/// Runs a program to its end, or until it has taken too long; returns what it printed.
///
/// # Errors
/// If it does not start, fails, or does not end in time; the text is the last line that it printed of its fault.
pub fn answer(command: &mut Command, longest: Duration) -> Result<String, String> {
    let pipes = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = pipes
        .spawn()
        .map_err(|error| format!("Python does not start: {error}"))?;
    // Read while it runs: a full pipe would stop it.
    let out = child.stdout.take().map(read);
    let errors = child.stderr.take().map(read);
    let ended = wait(&mut child, longest);
    let text = |reader: Option<thread::JoinHandle<String>>| reader.and_then(|r| r.join().ok()).unwrap_or_default();
    let (out, errors) = (text(out), text(errors));
    match ended {
        Some(true) => Ok(out),
        Some(false) => Err(errors.lines().last().unwrap_or("Python ended with an error").to_owned()),
        None => Err(format!("Python did not end within {} s", longest.as_secs())),
    }
}

fn read(mut pipe: impl Read + Send + 'static) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // What was read before an error is still worth showing.
        let _ = pipe.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Returns true if the program succeeded; `None` if it was ended for taking too long.
fn wait(child: &mut Child, longest: Duration) -> Option<bool> {
    let begin = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status.success()),
            Ok(None) if begin.elapsed() < longest => thread::sleep(POLL),
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                return None;
            }
        }
    }
}
