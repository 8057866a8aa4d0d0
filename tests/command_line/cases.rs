//! Tests of `estimate --cases`: one line of answer per case, in order, as soon as it is known.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use crate::program::{Ran, finish, run_on, vramscope};

const INPUT: &str = r#"{"env": {"gpu": "any"}}
{"case": {"model": "gpt2", "batch": 1, "seq": 64}, "peak_steady": 1}

{"model": "no-such-model", "batch": 1, "seq": 64}
{"model": "gpt2", "batch":
{"model": "gpt2", "batch": 0, "seq": 64}
{"model": "gpt2", "batch": 2, "seq": 64}
"#;

fn cases(input: impl AsRef<[u8]>) -> Ran {
    run_on(["estimate", "--cases", "-", "--format", "jsonl"], input)
}

#[test]
fn every_case_has_its_line_in_order_and_errors_do_not_end_the_run() {
    let ran = cases(INPUT);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let lines = ran.lines();
    let numbers: Vec<_> = lines.iter().map(|line| line["i"].as_u64()).collect();
    assert_eq!(numbers, [Some(0), Some(1), Some(2), Some(3), Some(4)]);
    assert!(
        lines[1]["error"]
            .as_str()
            .is_some_and(|error| error.contains("no-such-model"))
    );
    assert!(lines[2]["error"].as_str().is_some_and(|error| error.contains("JSON")));
}

#[test]
fn answers_on_all_threads_are_those_of_one() {
    let mut input = String::new();
    for batch in 1..=6 {
        // Long and short cases alternate, so that later ones finish first.
        for (model, seq) in [("qwen2.5-0.5b", 512), ("gpt2", 64)] {
            input += &format!("{{\"model\": \"{model}\", \"batch\": {batch}, \"seq\": {seq}}}\n");
        }
    }
    let on = |threads: &str| {
        let mut command = vramscope();
        command
            .env("RAYON_NUM_THREADS", threads)
            .args(["estimate", "--cases", "-"]);
        finish(&mut command, input.as_bytes())
    };
    let one = on("1");
    assert_eq!(one.lines().len(), 12, "{}", one.stderr);
    for threads in ["2", "7"] {
        assert_eq!(on(threads).stdout, one.stdout);
    }
}

#[test]
fn line_ends_and_the_last_line_may_be_of_any_kind() {
    let unix = cases(INPUT).stdout;
    assert_eq!(cases(INPUT.replace('\n', "\r\n")).stdout, unix);
    assert_eq!(cases(INPUT.trim_end()).stdout, unix);
}

#[test]
fn json_is_one_array_of_the_same_lines() {
    let ran = run_on(["estimate", "--cases", "-", "--format", "json"], INPUT);
    let array: Vec<serde_json::Value> = serde_json::from_str(&ran.stdout).expect("an array");
    assert_eq!(array, cases(INPUT).lines());
    assert_eq!(
        run_on(["estimate", "--cases", "-", "--format", "json"], "").stdout,
        "[]\n"
    );
}

#[test]
fn text_is_a_line_for_each_case() {
    let ran = run_on(["estimate", "--cases", "-", "--format", "text"], INPUT);
    assert_eq!(ran.stdout.lines().count(), 5, "{}", ran.stdout);
    assert!(ran.stdout.contains("no-such-model"));
}

#[test]
fn bytes_that_are_no_text_are_an_error_of_their_line() {
    let ran = cases(b"\xff\xfe\n{\"model\": \"no-such-model\"}\n");
    let lines = ran.lines();
    assert_eq!(lines.len(), 2);
    assert!(lines[0]["error"].as_str().is_some_and(|error| error.contains("UTF-8")));
}

#[test]
fn an_answer_comes_before_the_next_question() {
    let mut command = vramscope();
    command
        .args(["estimate", "--cases", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut child = command.spawn().expect("the binary starts");
    let mut stdin = child.stdin.take().expect("standard input is piped");
    let mut stdout = BufReader::new(child.stdout.take().expect("standard output is piped"));
    for i in 0..3 {
        writeln!(stdin, "{{\"model\": \"no-such-model\"}}").expect("the program reads");
        let mut line = String::new();
        stdout.read_line(&mut line).expect("the program answers");
        assert!(line.starts_with(&format!("{{\"i\":{i},")), "{line}");
    }
    drop(stdin);
    assert!(child.wait().expect("the program ends").success());
}

#[test]
fn a_reader_that_goes_away_ends_the_run_quietly() {
    let mut command = vramscope();
    command.args(["estimate", "--cases", "-"]);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("the binary starts");
    drop(child.stdout.take());
    let mut stdin = child.stdin.take().expect("standard input is piped");
    // More than a pipe holds. The program stops at its first answer, so writing may fail.
    let many = "{\"model\": \"no-such-model\"}\n".repeat(10_000);
    let _ = stdin.write_all(many.as_bytes());
    drop(stdin);
    let ran: Ran = child.wait_with_output().expect("the program ends").into();
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
}
