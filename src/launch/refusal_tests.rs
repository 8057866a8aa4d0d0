//! What cannot be read is refused, whatever it is.

use proptest::prelude::*;

use super::*;

#[test]
fn what_is_no_launch_file_is_refused_with_the_reason() {
    let error = |text: &str| read(&[Source { name: "x.yaml", text }]).unwrap_err().to_string();
    assert!(
        error("a: 1\n").contains("of no tool that is known; known are transformers"),
        "{}",
        error("a: 1\n")
    );
    assert!(
        error("a: [1\n").contains("x.yaml can't be read"),
        "{}",
        error("a: [1\n")
    );
    assert!(error("{\"a\": }").contains("line 1"), "{}", error("{\"a\": }"));
    assert!(error(&"#".repeat(MOST_BYTES + 1)).contains("at most"));
    assert_eq!(read(&[]), Err(LaunchError::Nothing));
}

proptest! {
    /// Any text is read or refused.
    #[test]
    fn no_text_breaks_the_reader(text in "(stage: sft\n)?((cutoff_len|bf16|optim|deepspeed|lora_target|x)[:=] ?[-a-z0-9.\\[\\]{}\"*&!|,' ]{0,12}\n){0,6}(swift sft --[a-z_]{1,8} [a-z0-9'\"=]{0,8})?") {
        if let Ok(launch) = read(&[Source { name: "x", text: &text }]) {
            prop_assert!(launch.lines.iter().all(|line| line.entry.line >= 1));
        }
    }
}
