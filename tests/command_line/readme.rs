//! Runs every command that README and the manual show in a shell, in order.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use vramscope_benchmark::Record;

use crate::bench::fake::{Fake, Machine};
use crate::examples;
use crate::program::Ran;

/// Documents that show commands.
const DOCUMENTS: [(&str, &str); 7] = [
    ("readme", include_str!("../../README.md")),
    ("page", include_str!("../../docs/page.md")),
    ("command-line", include_str!("../../docs/command-line.md")),
    ("server", include_str!("../../docs/server.md")),
    ("automation", include_str!("../../docs/automation.md")),
    ("skill", include_str!("../../docs/agents/SKILL.md")),
    ("exactness", include_str!("../../docs/exactness.md")),
];

/// The minimal page that `serve` accepts.
const PAGE: &str = "<!doctype html><meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'self'\">";

/// Commands that build the project itself: this test is part of the second, and runs the binary that the third
/// installs.
const BUILDS: [&str; 4] = [
    "cargo xtask serve",
    "cargo xtask test",
    "cargo install --path src/cli",
    "cargo install --path src/cli --no-default-features",
];

/// Commands in the shell blocks of a document, without comments.
fn commands(text: &str) -> Vec<String> {
    let blocks = text
        .split("```sh\n")
        .skip(1)
        .filter_map(|rest| rest.split("```").next());
    let lines = blocks.flat_map(str::lines);
    let bare = lines.map(|line| line.split(" # ").next().unwrap_or(line).trim().to_owned());
    bare.filter(|line| !line.is_empty()).collect()
}

/// A shell on a machine with a card, with its home in a temporary folder.
struct Shell {
    folder: PathBuf,
    machine: Machine,
    token: String,
    address: String,
    server: Option<Child>,
}

impl Shell {
    fn new(name: &str) -> Self {
        let folder = examples::folder(name);
        let packed = folder.join("memory_snapshot.pickle");
        std::fs::copy(folder.join("snapshot.pickle"), packed).expect("it is copied");
        std::fs::copy(folder.join("training_steps.jsonl"), folder.join("cases.jsonl")).expect("it is copied");
        for record in ["card.json", "older.json"] {
            std::fs::copy(folder.join("h200.json"), folder.join(record)).expect("it is copied");
        }
        std::fs::create_dir_all(folder.join("dist")).expect("a folder");
        std::fs::write(folder.join("dist/index.html"), PAGE).expect("a page");
        // Two cards, for commands that copy between cards.
        let all = [Fake::Driver, Fake::Nvml, Fake::Nvrtc, Fake::Nccl];
        Self {
            machine: Machine::with(name, &all).set("FAKE_CARDS", 2),
            folder,
            token: String::new(),
            address: String::new(),
            server: None,
        }
    }

    fn command(&self, line: &str) -> Command {
        let binary = Path::new(env!("CARGO_BIN_EXE_vramscope"));
        let mut shell = Command::new("/bin/sh");
        shell
            .args(["-c", line])
            .current_dir(&self.folder)
            .env_clear()
            .envs(self.machine.environment())
            .env("LC_ALL", "C.UTF-8")
            .env("HOME", &self.folder)
            .env("PATH", binary.parent().expect("the binary lies in a folder"))
            .stdin(Stdio::null());
        shell
    }

    /// Runs a line of the document, with replacements for what this shell lacks: a fixed port, the reader's token, and
    /// a person who agrees.
    fn run(&mut self, line: &str) -> Option<Ran> {
        let mut line = line
            .replace("vrs_…", &self.token)
            .replace("127.0.0.1:8080", &self.address);
        if line.contains("vramscope upload") {
            line += " --yes";
        }
        if line.starts_with("vramscope serve --") {
            self.serve(&format!("exec {line} --listen 127.0.0.1:0"));
            return None;
        }
        if line.starts_with("vramscope bench") && !["--list", "--show"].iter().any(|flag| line.contains(flag)) {
            self.begin(&line);
            return None;
        }
        let ran: Ran = self.command(&line).output().expect("a shell").into();
        if line.starts_with("vramscope serve token add") {
            let printed = format!("{}{}", ran.stdout, ran.stderr);
            let token = printed.split_whitespace().find(|word| word.starts_with("vrs_"));
            self.token = token.expect("a token is printed").to_owned();
        }
        Some(ran)
    }

    /// Runs a measurement until the record has its first result, then ends it with Ctrl-C: further kernels would take
    /// minutes and test nothing more.
    fn begin(&self, line: &str) {
        let record = "begun.json";
        let _ = std::fs::remove_file(self.folder.join(record));
        let line = match line.split_once(" -o ") {
            Some((flags, _)) => format!("exec {flags} -o {record}"),
            None => format!("exec {line} -o {record}"),
        };
        let mut command = self.command(&line);
        let mut child = command
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("a shell");
        let has_result = || {
            let text = std::fs::read_to_string(self.folder.join(record)).unwrap_or_default();
            Record::read(&text).is_ok_and(|record| !record.results.is_empty())
        };
        while !has_result() {
            let ended = child.try_wait().expect("it can be asked");
            assert!(ended.is_none(), "{line} ended before it had a result: {ended:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
        let interrupted = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
        assert!(interrupted.expect("there is a kill").success());
        let seen: Ran = child.wait_with_output().expect("it ends").into();
        assert!(
            seen.code == Some(0) || seen.stderr.contains("go on with --resume"),
            "{line}: {}",
            seen.stderr
        );
    }

    fn serve(&mut self, line: &str) {
        let mut child = self.command(line).stdout(Stdio::piped()).spawn().expect("a shell");
        let mut said = String::new();
        let stdout = child.stdout.take().expect("standard output is piped");
        BufReader::new(stdout).read_line(&mut said).expect("a line");
        self.server = Some(child);
        let address = said
            .split_once("://")
            .and_then(|(_, rest)| rest.trim().split('/').next());
        self.address = address.unwrap_or_else(|| panic!("no address in {said:?}")).to_owned();
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        if let Some(server) = &mut self.server {
            let _ = server.kill();
            let _ = server.wait();
        }
    }
}

#[test]
#[cfg(unix)]
fn every_command_that_is_shown_succeeds() {
    let mut failed = Vec::new();
    let mut all = 0;
    for (name, text) in DOCUMENTS {
        let mut shell = Shell::new(name);
        for line in commands(text) {
            all += 1;
            failed.extend(failure(&mut shell, &line));
        }
    }
    assert!(all > 20, "the manual shows how it is used");
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// Runs one line, and describes its failure if it fails.
fn failure(shell: &mut Shell, line: &str) -> Option<String> {
    if line.starts_with("cargo ") {
        assert!(BUILDS.contains(&line), "{line}");
        return None;
    }
    let ran = shell.run(line)?;
    let unexpected = ran.stderr.lines().any(|line| line.starts_with("error"));
    (ran.code != Some(0) || unexpected).then(|| format!("{line}\n  exit {:?}: {}", ran.code, ran.stderr))
}
#[test]
fn comments_are_no_part_of_a_command() {
    let text = "a\n```sh\ncargo xtask serve    # builds\n\nvramscope gpus\n```\nb\n```html\nx\n```\n";
    assert_eq!(commands(text), ["cargo xtask serve", "vramscope gpus"]);
}
