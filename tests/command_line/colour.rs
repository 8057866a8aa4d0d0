//! Tests of colour: off in pipes by default, otherwise as the person chooses.

use crate::program::{finish, vramscope};

const ESCAPE: char = '\u{1b}';

/// Returns true if standard error is coloured with these variables and arguments.
fn coloured(env: &[(&str, &str)], args: &[&str]) -> bool {
    let mut command = vramscope();
    let ran = finish(
        command
            .envs(env.iter().copied())
            .args(["estimate", "no-such-model"])
            .args(args),
        b"",
    );
    assert_eq!(ran.code, Some(2));
    ran.stderr.contains(ESCAPE)
}

#[test]
fn a_pipe_gets_none() {
    assert!(!coloured(&[], &[]));
    assert!(!coloured(&[("TERM", "xterm-256color")], &[]));
}

#[test]
fn the_environment_can_force_or_forbid_it() {
    assert!(coloured(&[("CLICOLOR_FORCE", "1")], &[]));
    assert!(!coloured(&[("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1")], &[]));
}

#[test]
fn the_flag_has_the_last_word() {
    assert!(coloured(&[("NO_COLOR", "1")], &["--color", "always"]));
    assert!(!coloured(&[("CLICOLOR_FORCE", "1")], &["--color", "never"]));
}
