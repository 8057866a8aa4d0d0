//! Tests of `record`: its choice of Python, the arguments that it passes, and its errors if no Python can record.
//! `tests/recorder` tests real recordings.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::program::{Ran, finish, vramscope};

/// Script that prints its path and arguments, and exits with 7.
const TELLS: &str = "#!/bin/sh\necho \"$0\"; for word in \"$@\"; do echo \"<$word>\"; done; echo said >&2; exit 7\n";

/// Returns an empty folder for one test.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("record").join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder");
    folder
}

/// Writes an executable program.
fn program(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().expect("it lies in a folder")).expect("a folder");
    fs::write(path, text).expect("it is written");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("it may run");
}

/// Returns `vramscope record` with these arguments, in an isolated environment.
fn record(home: &Path, words: &[&str]) -> Command {
    let mut command = vramscope();
    command
        .arg("record")
        .args(words)
        .env("HOME", home)
        .env("XDG_CACHE_HOME", home.join("cache"))
        .env("PATH", home.join("path"));
    command
}

fn ran(command: &mut Command) -> Ran {
    finish(command, b"")
}

/// Writes a `python3` that runs the machine's own without its packages but with those of a folder.
fn bare_python(home: &Path, packages: &Path) {
    let path = std::env::var("PATH").expect("there is a PATH");
    let text = format!(
        "#!/bin/sh\nPATH='{path}' PYTHONPATH='{}' exec python3 -S \"$@\"\n",
        packages.display()
    );
    program(&home.join("path/python3"), &text);
}

#[test]
fn words_reach_the_recorder_and_its_end_is_the_commands() {
    let home = folder("words");
    program(&home.join("path/python3"), TELLS);
    let seen = ran(&mut record(
        &home,
        &["--steps", "2", "train.py", "--python", "x", "--help", "-o", "a b"],
    ));
    assert_eq!((seen.code, seen.stderr.as_str()), (Some(7), "said\n"));
    let lines: Vec<&str> = seen.stdout.lines().collect();
    let given = [
        "<--steps>",
        "<2>",
        "<train.py>",
        "<--python>",
        "<x>",
        "<--help>",
        "<-o>",
        "<a b>",
    ];
    assert_eq!(lines[2..], given);
    let sources = Path::new(lines[1].trim_matches(['<', '>']));
    assert!(
        sources.starts_with(home.join("cache/vramscope")),
        "{}",
        sources.display()
    );
    let carried = fs::read_to_string(sources.join("vramscope/record/session.py")).expect("it was unpacked");
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../recorder/vramscope/record/session.py");
    assert_eq!(carried, fs::read_to_string(own).expect("the recorder is there"));
}

#[test]
fn changed_sources_are_replaced() {
    let home = folder("changed");
    program(&home.join("path/python3"), TELLS);
    let unpacked = || {
        let seen = ran(&mut record(&home, &["train.py"]));
        PathBuf::from(seen.stdout.lines().nth(1).expect("a folder").trim_matches(['<', '>']))
    };
    let file = unpacked().join("vramscope/record/cards.py");
    let carried = fs::read_to_string(&file).expect("it was unpacked");
    fs::write(&file, "broken").expect("it is changed");
    assert_eq!(unpacked().join("vramscope/record/cards.py"), file);
    assert_eq!(fs::read_to_string(&file).expect("it is there"), carried);
}

#[test]
fn a_python_is_found_as_other_tools_find_it() {
    let home = folder("found");
    let run = |command: &mut Command| ran(command).stdout.lines().next().map(PathBuf::from);
    assert_eq!(run(&mut record(&home, &["train.py"])), None);
    for place in [
        "path/python",
        "path/python3",
        "conda/bin/python",
        "venv/bin/python",
        "named/bin/python",
    ] {
        program(&home.join(place), TELLS);
        let mut command = record(&home, &["train.py"]);
        match place.split('/').next() {
            Some("conda") => drop(command.env("CONDA_PREFIX", home.join("conda"))),
            Some("venv") => drop(
                command
                    .env("CONDA_PREFIX", home.join("conda"))
                    .env("VIRTUAL_ENV", home.join("venv")),
            ),
            Some("named") => {
                let named = home.join("named");
                command = record(&home, &["--python", named.to_str().expect("UTF-8"), "train.py"]);
                command.env("VIRTUAL_ENV", home.join("venv"));
            }
            _ => {}
        }
        assert_eq!(run(&mut command), Some(home.join(place)));
    }
}

#[test]
fn no_python_is_said() {
    let home = folder("none");
    let seen = ran(&mut record(&home, &["train.py"]));
    assert!(seen.refused().contains("there is no Python here"), "{}", seen.stderr);
    assert!(seen.stderr.contains("--python PATH"), "{}", seen.stderr);
    let seen = ran(&mut record(&home, &["--python", "/nowhere/python", "train.py"]));
    assert!(seen.refused().contains("--python /nowhere/python"), "{}", seen.stderr);
    fs::write(home.join("text"), "no program").expect("it is written");
    let text = home.join("text");
    let seen = ran(&mut record(
        &home,
        &["--python", text.to_str().expect("UTF-8"), "train.py"],
    ));
    assert_eq!(seen.code, Some(1));
    assert!(seen.stderr.contains("does not start"), "{}", seen.stderr);
}

#[test]
fn a_python_without_pytorch_or_with_an_old_one_is_said() {
    let home = folder("torch");
    let packages = home.join("packages");
    bare_python(&home, &packages);
    let seen = ran(&mut record(&home, &["train.py"]));
    assert_eq!(seen.code, Some(2), "{}", seen.stderr);
    assert!(seen.stderr.contains("has no PyTorch"), "{}", seen.stderr);
    let old = packages.join("torch-2.4.1.dist-info");
    fs::create_dir_all(&old).expect("a folder");
    fs::write(
        old.join("METADATA"),
        "Metadata-Version: 2.1\nName: torch\nVersion: 2.4.1\n",
    )
    .expect("it is written");
    let seen = ran(&mut record(&home, &["train.py"]));
    assert_eq!(seen.code, Some(2), "{}", seen.stderr);
    assert!(
        seen.stderr.contains("PyTorch 2.8 or newer is needed"),
        "{}",
        seen.stderr
    );
    assert!(seen.stderr.contains("has 2.4.1"), "{}", seen.stderr);
}

#[test]
fn the_recorders_help_needs_no_pytorch() {
    let home = folder("help");
    bare_python(&home, &home.join("packages"));
    let seen = ran(&mut record(&home, &["--help"]));
    assert_eq!((seen.code, seen.stderr.as_str()), (Some(0), ""));
    for flag in ["--gpu", "--vary", "--model", "--steps"] {
        assert!(seen.stdout.contains(flag), "{}", seen.stdout);
    }
}
