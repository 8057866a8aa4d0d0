//! Tests of help texts and completions.

use crate::program::run;

#[test]
fn help_shows_examples() {
    for command in [&["--help"][..], &["estimate", "--help"], &["completions", "--help"]] {
        let ran = run(command);
        assert_eq!(ran.code, Some(0));
        assert!(
            ran.stdout.contains("Examples:\n  vramscope "),
            "{command:?}: {}",
            ran.stdout
        );
    }
}

#[test]
fn help_is_ascii_and_no_wider_than_the_terminal() {
    let ran = run(["estimate", "--help"]);
    assert!(ran.stdout.is_ascii());
    for line in ran.stdout.lines().filter(|line| !line.starts_with("  vramscope")) {
        assert!(line.len() <= 100, "{line}");
    }
}

#[test]
fn nothing_asked_is_answered_with_help() {
    let ran = run([""; 0]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("Usage: vramscope"), "{}", ran.stderr);
}

#[test]
fn every_shell_gets_its_completions() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ran = run(["completions", shell]);
        assert_eq!(ran.code, Some(0), "{shell}");
        assert!(ran.stdout.contains("lora-dropout"), "{shell} completes --lora-dropout");
    }
}

#[test]
fn the_version_is_the_packages() {
    assert_eq!(
        run(["--version"]).stdout,
        format!("vramscope {}\n", env!("CARGO_PKG_VERSION"))
    );
}

#[test]
fn cards_are_listed_for_people_and_for_scripts() {
    let text = run(["gpus"]);
    let cards = run(["gpus", "--format", "jsonl"]).lines();
    assert!(cards.len() > 10);
    for card in cards {
        assert!(text.stdout.contains(card["name"].as_str().expect("a name")));
        assert!(card["usable"].as_u64().is_some_and(|bytes| bytes > 4 << 30), "{card}");
    }
}

#[test]
fn a_models_config_is_a_start_for_a_model_of_ones_own() {
    let config = run(["models", "gpt2"]).stdout;
    let parsed: serde_json::Value = serde_json::from_str(&config).expect("a config.json");
    assert_eq!(parsed["model_type"], "gpt2");
}

#[test]
fn models_are_listed_for_people_and_for_scripts() {
    let text = run(["models"]);
    let names = run(["models", "--format", "jsonl"]).lines();
    assert!(names.len() > 10);
    for entry in names {
        let name = entry["name"].as_str().expect("a name");
        assert!(text.stdout.contains(name), "{name}");
    }
}
