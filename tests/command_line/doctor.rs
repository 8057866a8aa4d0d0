//! Tests of `doctor`, of manual pages and of completions in a shell.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::bench::fake::{Fake, Machine};
use crate::program::{finish, run, vramscope};

fn folder(name: &str) -> std::path::PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

#[test]
fn what_is_missing_comes_with_what_to_do() {
    let home = folder("doctor-nothing");
    let ran = finish(
        vramscope()
            .args(["doctor", "--format", "json"])
            .env("HOME", &home)
            .env("PATH", ""),
        b"",
    );
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let answer: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!(answer["vramscope"]["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(answer["hub"]["is_offline"], true);
    assert!(
        answer.get("python").is_none() && answer.get("card").is_none(),
        "{answer}"
    );
    let missing = answer["missing"].as_array().expect("a list");
    assert_eq!(missing.len(), 2, "a card and a Python: {answer}");
    for one in missing {
        assert!(
            ["what", "stops", "remedy"]
                .iter()
                .all(|key| one[key].as_str().is_some_and(|text| text.len() > 10)),
            "{one}"
        );
    }
    let schema: Value = serde_json::from_str(&run(["schema", "doctor"]).stdout).expect("a schema");
    assert!(jsonschema::is_valid(&schema, &answer), "{answer}");
}

#[test]
fn a_card_and_a_python_are_described() {
    let home = folder("doctor-card");
    // A Python that answers as the recorder's own module does.
    let python = home.join("venv/bin/python");
    std::fs::create_dir_all(python.parent().expect("a folder")).expect("a folder");
    let said = r#"{"version": "3.11.7", "implementation": "CPython", "libraries": {"torch": "2.11.0", "trl": "1.16.0"},
        "pytorch": {"cuda": "13.0", "sees_cuda": false, "cards": []}, "recorder": "0.1.0", "recorder_fails": null}"#;
    let script = format!(
        "#!/bin/sh\necho 'a library greets'\necho '{}'\n",
        said.replace('\n', " ")
    );
    std::fs::write(&python, script).expect("it is written");
    let mode = Command::new("chmod").arg("+x").arg(&python).status();
    assert!(mode.expect("there is a chmod").success());
    let machine = Machine::with("doctor", &[Fake::Driver, Fake::Nvml, Fake::Nvrtc]);
    let mut command = vramscope();
    command
        .env_clear()
        .envs(machine.environment())
        .env("LC_ALL", "C.UTF-8")
        .env("HOME", &home);
    let venv = home.join("venv");
    let ran = finish(command.arg("doctor").arg("--python").arg(&venv), b"");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    for words in [
        "compute capability",
        "CPython 3.11.7, ~/venv/bin/python",
        "torch 2.11.0, trl 1.16.0",
        "a PyTorch that sees the card",
    ] {
        let flat = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(words), "{words}: {}", ran.stdout);
    }
}

#[test]
fn tokens_are_not_shown() {
    let home = folder("doctor-token");
    let ran = finish(
        vramscope()
            .arg("doctor")
            .env("HOME", &home)
            .env("HF_TOKEN", "hf_secret"),
        b"",
    );
    assert!(
        ran.stdout.contains("with a token") && !ran.stdout.contains("secret"),
        "{}",
        ran.stdout
    );
}

#[test]
fn every_command_has_a_manual_page() {
    let pages = folder("man");
    let ran = run([std::ffi::OsStr::new("man"), pages.as_os_str()]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let help = run(["--help"]).stdout;
    let commands = help
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty());
    let names = commands.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names: Vec<&str> = names
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect();
    assert!(names.len() > 12, "{names:?}");
    for name in names {
        let page = std::fs::read_to_string(pages.join(format!("vramscope-{name}.1"))).unwrap_or_default();
        assert!(
            page.contains(".SH SYNOPSIS") && page.contains(".SH OPTIONS"),
            "{name}: {page}"
        );
    }
    let first = std::fs::read_to_string(pages.join("vramscope.1")).expect("a page");
    assert!(first.contains("vramscope\\-check(1)"), "{first}");
}

#[test]
#[cfg(unix)]
fn bash_completes_commands_flags_and_values() {
    let folder = folder("completed");
    std::fs::write(folder.join("of_bash"), run(["completions", "bash"]).stdout).expect("it is written");
    let complete = |words: &[&str]| {
        let (last, list) = (
            words.len() - 1,
            words
                .iter()
                .map(|word| format!("'{word}'"))
                .collect::<Vec<_>>()
                .join(" "),
        );
        let script = format!(
            "source ./of_bash; COMP_WORDS=({list}); COMP_CWORD={last}; _vramscope vramscope '{}' '{}'; echo \"${{COMPREPLY[@]}}\"",
            words[last],
            words[last - 1]
        );
        let done = Command::new("bash")
            .args(["--norc", "-c", &script])
            .current_dir(&folder)
            .output()
            .expect("bash");
        String::from_utf8_lossy(&done.stdout).into_owned()
    };
    assert!(complete(&["vramscope", "che"]).contains("check"));
    assert!(complete(&["vramscope", "check", "--bud"]).contains("--budget"));
    assert!(complete(&["vramscope", "check", "--format", "ju"]).contains("junit"));
}
