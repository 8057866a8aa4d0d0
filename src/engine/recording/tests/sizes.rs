//! Tests on recordings of all sizes, written by hand: values between recorded sizes, and errors.

use super::super::{Opened, RecordingError, Sizes, open, report};

/// Returns two steps of a linear layer of 1,024 × 1,024 with varying batch: `$0` bytes of the output, `$1` samples.
fn text() -> String {
    let header = super::text::header([9, 0]).replace(
        r#""format":"vramscope-recording","version":1,"#,
        r#""format":"vramscope-sizes","version":1,"sizes":["batch"],"vary":["batch=--batch-size:2,3,4"],"#,
    );
    let structure = r#"{"t":"structure","ranges":{"batch":[2,8]},"points":[[2],[4],[8]],"basis":[[0],[1]],"polynomials":[["0","4096"],["0","1"]],"checked":[[8]],"lines":9}"#;
    let mut lines = vec![header, structure.to_owned()];
    for (step, [x, out]) in [[1, 2], [3, 4]].into_iter().enumerate() {
        if step == 0 {
            lines.push(op("aten.empty.memory_format", "", 0, ("[1024,1024]", "4194304")));
        }
        lines.push(format!(r#"{{"t":"mark","at":"step","step":{step}}}"#));
        lines.push(op("aten.randn.default", "[$1,1024]", x, ("[$1,1024]", "$0")));
        lines.push(r#"{"t":"mark","at":"forward"}"#.into());
        let arguments = format!(r##""#{x}:f32[[$1,1024],null]","#0:f32[[1024,1024],null]""##);
        lines.push(op("aten.mm.default", &arguments, out, ("[$1,1024]", "$0")));
        for mark in ["forward_end", "backward", "backward_end", "optimizer", "optimizer_end"] {
            lines.push(format!(r#"{{"t":"mark","at":"{mark}"}}"#));
        }
        lines.push(format!(r#"{{"t":"free","s":[{x},{out}]}}"#));
        lines.push(format!(r#"{{"t":"mark","at":"step_end","step":{step}}}"#));
    }
    lines.join("\n") + "\n{\"t\":\"end\"}\n"
}

fn op(name: &str, arguments: &str, storage: u64, (shape, bytes): (&str, &str)) -> String {
    format!(
        r##"{{"t":"op","f":"{name}","a":[{arguments}],"o":["#{storage}:f32[{shape},null]"],"n":[[{storage},{bytes}]]}}"##
    )
}

fn opened(text: &str) -> Result<Sizes, RecordingError> {
    match open(text.as_bytes(), None)? {
        Opened::Sizes(sizes) => Ok(*sizes),
        Opened::Run(_) => panic!("one run"),
    }
}

#[test]
fn numbers_are_those_of_the_size() {
    let all = opened(&text()).unwrap();
    assert_eq!((all.names(), all.first()), (&["batch".to_owned()][..], &[2][..]));
    for batch in [2, 5, 8] {
        let run = all.at(&[batch], None).unwrap();
        assert_eq!(super::born(&run), [4096 * batch, 4096 * batch]);
        let played = report(run).unwrap();
        assert_eq!(played.about.at.unwrap().exact, [("batch".to_owned(), [2, 8])]);
    }
}

#[test]
fn sizes_outside_are_refused_with_the_command_that_records_them() {
    let all = opened(&text()).unwrap();
    for batch in [0, 1, 9, u64::MAX] {
        let refused = all.at(&[batch], None).err().unwrap().to_string();
        let command = "`vramscope record --vary batch=--batch-size:";
        for words in ["valid is batch 2 to 8", command, "train.py`"] {
            assert!(refused.contains(words), "{words:?}: {refused}");
        }
    }
}

/// Sizes between two structures are unknown, unless one of them recorded these.
#[test]
fn sizes_between_two_structures_are_refused() {
    let text = text();
    let (begin, _) = text.split_at(text.len() - "{\"t\":\"end\"}\n".len());
    let (_, second) = begin.split_once('\n').unwrap();
    let second = second.replace("[[2],[4],[8]]", "[[3],[7]]").replace("[2,8]", "[3,7]");
    let all = opened(&format!("{begin}{second}{{\"t\":\"end\"}}\n")).unwrap();
    for batch in [2, 3, 4, 7, 8] {
        assert!(all.at(&[batch], None).is_ok(), "{batch}");
    }
    let refused = all.at(&[5], None).err().unwrap().to_string();
    assert!(refused.contains("two structures"), "{refused}");
}

#[test]
fn what_is_not_as_the_format_says_is_refused_by_line() {
    let text = text();
    for (from, to, words) in [
        (r#""sizes":["batch"]"#, r#""sizes":[]"#, "line 1"),
        (r#""sizes":["batch"]"#, r#""sizes":["batch","batch"]"#, "line 1"),
        (r#""ranges":{"batch":[2,8]}"#, r#""ranges":{"seq":[2,8]}"#, "no range"),
        (r#""ranges":{"batch":[2,8]}"#, r#""ranges":{"batch":[8,2]}"#, "no range"),
        ("[[2],[4],[8]]", "[[2],[4],[9]]", "outside of its ranges"),
        ("[[2],[4],[8]]", "[]", "outside of its ranges"),
        (r#"["0","4096"]"#, r#"["0"]"#, "polynomial"),
        (r#"["0","4096"]"#, r#"["0","1/0"]"#, "polynomial"),
        ("[[0],[1]]", "[[0],[99]]", "basis"),
        ("f32[[$1,1024],null]", "f99[[$1,1024],null]", "no layout"),
        (
            r#"{"t":"end"}"#,
            r#"{"t":"fn","id":0,"name":"x"}"#,
            "stands where no such line can",
        ),
        ("{\"t\":\"end\"}\n", "", "cut"),
        (r#""version":1"#, r#""version":2"#, "version 2"),
    ] {
        let damaged = text.replacen(from, to, 1);
        assert_ne!(damaged, text, "{from}");
        let error = opened(&damaged)
            .err()
            .map(|error| error.to_string())
            .unwrap_or_default();
        assert!(error.contains(words), "{from} → {to}: {error:?}");
    }
    let unknown = text.replace("[1024,1024],null]\"],\"n\"", "[1024,$7],null]\"],\"n\"");
    let refused = opened(&unknown).unwrap().at(&[2], None).err().unwrap().to_string();
    assert!(refused.contains("polynomial 7"), "{refused}");
    let fraction = text.replace(r#"["0","1"]"#, r#"["0","1/2"]"#);
    let all = opened(&fraction).unwrap();
    assert!(all.at(&[4], None).is_ok() && all.at(&[5], None).is_err());
}

/// A reader of single runs refuses a file that covers all sizes.
#[test]
fn a_reader_of_one_run_says_that_this_is_another_file() {
    let error = super::refused(&text()).to_string();
    assert!(error.contains("tells all sizes"), "{error}");
}
