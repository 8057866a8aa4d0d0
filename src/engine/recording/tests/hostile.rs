//! Tests of recordings that are cut, wrong, hostile or too large.

use std::io::{BufReader, Cursor, Read};

use proptest::prelude::*;

use super::super::limits::MOST_STORAGES;
use super::super::reader::read_at_most;
use super::text::{Text, header, step};
use super::{RecordingError, read, refused, run};
use crate::tape::Gpu;

/// Name of an operation, its arguments other than tensors, and dtypes and shapes of its results.
type Operation<'a> = (&'a str, &'a str, &'a [(&'a str, &'a [u64])]);

const QUERIES: &[u64] = &[2, 8, 16, 64];

/// Operations with rules, on tensors by number: 0 to 6 as in [`varied`].
const OPERATIONS: [Operation<'_>; 19] = [
    ("_scaled_dot_product_cudnn_attention", "0,0,0,0,0", &[("bf16", QUERIES)]),
    (
        "_scaled_dot_product_flash_attention",
        "0,0,0,~0.0",
        &[("bf16", QUERIES)],
    ),
    ("_scaled_dot_product_efficient_attention", "0,0,0", &[("bf16", QUERIES)]),
    (
        "_scaled_dot_product_cudnn_attention_backward",
        "0,0,0,0,0",
        &[("bf16", QUERIES); 3],
    ),
    (
        "_scaled_dot_product_flash_attention_backward",
        "0,0,0,0,0",
        &[("bf16", QUERIES); 3],
    ),
    (
        "_scaled_dot_product_efficient_attention_backward",
        "0,0,0,0,0",
        &[("bf16", QUERIES); 3],
    ),
    ("mm", "1,1", &[]),
    ("addmm", "1,1,1", &[]),
    ("sum", "0,[~0,~-1]", &[("bf16", &[8, 16])]),
    ("max", "0,~1", &[("bf16", &[2, 16, 64]), ("i64", &[2, 16, 64])]),
    ("cumsum", "2,~0", &[("i64", &[5000])]),
    ("nonzero", "4", &[("i64", &[9, 1])]),
    ("index", "1,[4]", &[("bf16", &[9, 64])]),
    ("index_put_", "1,[2],3,~true", &[]),
    ("embedding_dense_backward", "3,2,~99,~-1,~false", &[("f32", &[99, 64])]),
    (
        "convolution",
        "5,6,~null,[~16,~16],[~0,~0],[~1,~1],~false,[~0,~0],~1",
        &[("f32", &[2, 256, 2, 2])],
    ),
    ("_softmax", "0,~-1,~false", &[("bf16", QUERIES)]),
    ("_foreach_norm", "[0,1]", &[("f32", &[]), ("f32", &[])]),
    ("bucketize", "3,2", &[("i64", &[5000, 64])]),
];

/// Returns a step with one operation of each kind that has rules.
fn varied() -> Text {
    step(|text| {
        let tensors: [(&str, &[u64]); 7] = [
            ("bf16", QUERIES),
            ("bf16", &[32, 64]),
            ("i64", &[5000]),
            ("f32", &[5000, 64]),
            ("bool", &[32]),
            ("f32", &[2, 3, 32, 32]),
            ("f32", &[256, 3, 16, 16]),
        ];
        let tensors = tensors.map(|(dtype, shape)| text.tensor(dtype, shape));
        for (name, arguments, results) in OPERATIONS {
            let argument = |word: &str| {
                let (open, rest) = word.split_at(usize::from(word.starts_with('[')));
                let (word, close) = rest.split_at(rest.len() - usize::from(rest.ends_with(']')));
                let value = match word.strip_prefix('~') {
                    Some(plain) => plain,
                    None => &tensors[word.parse::<usize>().unwrap()].name,
                };
                format!("{open}{value}{close}")
            };
            let arguments: Vec<String> = arguments.split(',').map(argument).collect();
            text.op(
                &format!("aten.{name}.default"),
                &arguments.join(","),
                r#","b":1,"st":7"#,
                results,
            );
        }
        text.line(r#"{"t":"node","id":0,"name":"MulBackward0"}"#);
        text.line(r#"{"t":"why","s":0,"is":"saved","v":0}"#);
        text.line(r#"{"t":"why","s":1,"is":"held","name":"out.logits"}"#);
        text.line(r#"{"t":"triton","name":"_kernel","grid":[1,1,1],"a":["=text","~inf","%f8e4m3","@cuda:0",{"x":1}]}"#);
        text.line(r#"{"t":"assumed","what":"topk","how":"balanced","count":3}"#);
        text.free(&[&tensors[5], &tensors[6]]);
    })
}

fn line(text: &str) -> (u64, String) {
    match refused(text) {
        RecordingError::Line { number, why } => (number, why),
        other => panic!("{other}"),
    }
}

#[test]
fn what_is_no_recording_is_refused() {
    for text in [
        "",
        "\n",
        "{}",
        "[1,2]",
        "\u{1f}\u{8b}",
        r#"{"t":"op"}"#,
        r#"{"t":"header","format":"other","version":1}"#,
    ] {
        assert_eq!(refused(text), RecordingError::NotARecording, "{text}");
    }
    assert!(matches!(
        read(&[0xff, 0xfe, b'\n'][..], None),
        Err(RecordingError::NotARecording)
    ));
}

#[test]
fn a_newer_version_is_refused_by_name() {
    let newer = header([9, 0]).replace(r#""version":1"#, r#""version":2"#);
    assert_eq!(refused(&newer), RecordingError::Version("2".into()));
    let other = r#"{"t":"header","format":"vramscope-recording","version":{"major":3}}"#;
    assert!(matches!(refused(other), RecordingError::Version(_)));
}

#[test]
fn a_cut_recording_says_where_it_stops() {
    let text = varied();
    let lines = text.without_end().lines().count() as u64;
    assert_eq!(refused(&text.without_end()), RecordingError::Cut { lines });
}

#[test]
fn a_recording_without_a_whole_step_is_refused() {
    assert_eq!(refused(&Text::new().all()), RecordingError::NoStep);
    let mut begun = Text::new();
    begun.marks(&["step", "forward", "backward"]);
    assert_eq!(refused(&begun.all()), RecordingError::NoStep);
}

#[test]
fn another_card_needs_a_recording_of_its_own() {
    let older = Gpu {
        sms: 128,
        threads_per_sm: 1536,
        capability: (8, 9),
    };
    let error = read(varied().all().as_bytes(), Some(older)).err().unwrap();
    assert!(error.to_string().contains("record again with `--gpu`"), "{error}");
    let same = Gpu { sms: 78, ..Gpu::H200 };
    assert!(read(varied().all().as_bytes(), Some(same)).is_ok());
}

#[test]
fn wrong_lines_are_named() {
    let wrong = |extra: &str| {
        let mut text = Text::new();
        text.tensor("f32", &[4]);
        text.line(extra);
        line(&text.all())
    };
    for (extra, words) in [
        ("{", "is not as the format says"),
        ("[]", "is not as the format says"),
        (
            r#"{"t":"op","f":9}"#,
            "uses function 9, which no line before it declares",
        ),
        (r##"{"t":"op","f":0,"a":["#7:0"]}"##, "uses storage 7"),
        (r##"{"t":"op","f":0,"a":["#0:7"]}"##, "uses meta 7"),
        (r##"{"t":"op","f":0,"a":["x"]}"##, "is no argument"),
        (r#"{"t":"op","f":0,"mod":0}"#, "uses module 0"),
        (r#"{"t":"op","f":0,"v":1}"#, "uses node 1"),
        (r#"{"t":"op","f":0,"l":1}"#, "uses line 1"),
        (
            r#"{"t":"op","f":0,"n":[[5,8]]}"#,
            "declares storage 5 where 1 comes next",
        ),
        (
            r#"{"t":"op","f":0,"n":[[1,18446744073709551615]]}"#,
            "more bytes in a storage",
        ),
        (r#"{"t":"op","f":0,"n":[[1,-1]]}"#, "is not as the format says"),
        (r#"{"t":"free","s":[1]}"#, "uses storage 1"),
        (r#"{"t":"free","s":[0,0]}"#, "after it was freed"),
        (
            r#"{"t":"fn","id":4,"name":"x"}"#,
            "declares function 4 where 1 comes next",
        ),
        (
            r#"{"t":"meta","id":1,"dtype":"f12","shape":[]}"#,
            "unknown variant `f12`",
        ),
        (
            r#"{"t":"meta","id":1,"dtype":"f32","shape":[4294967296,4294967296]}"#,
            "more elements",
        ),
        (
            r#"{"t":"meta","id":1,"dtype":"f32","shape":[2,2],"strides":[1]}"#,
            "strides",
        ),
        (
            r#"{"t":"meta","id":1,"dtype":"f32","shape":[2],"strides":[9223372036854775807]}"#,
            "more elements",
        ),
        (r#"{"t":"why","s":0,"is":"saved","v":3}"#, "uses node 3"),
        (r#"{"t":"mark","at":"step_end"}"#, "marks \"step_end\""),
        (&header([9, 0]), "stands where no such line can"),
    ] {
        let (number, why) = wrong(extra);
        assert!(why.contains(words), "{extra}: {why}");
        assert_eq!(number, 5, "{extra}");
    }
}

#[test]
fn lines_that_are_not_known_are_skipped() {
    let text = step(|text| {
        text.line(r#"{"t":"weather","is":[{"deep":{}}]}"#);
        let x = text.tensor("f32", &[4]);
        text.op(
            "aten.relu.default",
            &x.name.clone(),
            r#","later":true"#,
            &[("f32", &[4])],
        );
    });
    assert_eq!(super::born(&run(&text)), [16, 16]);
}

#[test]
fn impossible_cards_are_refused() {
    for (from, to) in [
        ("\"sms\":132", "\"sms\":0"),
        ("[9,0]", "[4000,0]"),
        ("\"world\":1", "\"world\":0"),
    ] {
        let text = varied().all().replace(from, to);
        assert!(refused(&text).to_string().contains("a card that cannot be"), "{to}");
    }
}

#[test]
fn more_bytes_than_a_recording_has_are_refused_without_being_kept() {
    let begin = varied().without_end();
    let filler = BufReader::new(Cursor::new(begin).chain(std::io::repeat(b'\n')));
    assert!(matches!(read(filler, None), Err(RecordingError::Line { .. })));
    let line = b"{\"t\":\"later\",\"x\":\"................................................................\"}\n";
    let lines = line.iter().copied().cycle().take(1 << 20).collect::<Vec<u8>>();
    let input = BufReader::new(Cursor::new(varied().without_end()).chain(Cursor::new(lines)));
    let error = read_at_most(input, None, 1 << 19).err();
    assert_eq!(error, Some(RecordingError::TooLarge { most: 1 << 19 }));
    let endless = BufReader::new(std::io::repeat(b'{'));
    assert_eq!(read(endless, None).err(), Some(RecordingError::NotARecording));
}

#[test]
fn more_memory_than_any_run_makes_is_refused() {
    const EACH: usize = 1 << 12;
    let mut text = Text::new();
    text.function("aten.empty.memory_format");
    for line in 0..=MOST_STORAGES / EACH {
        let new: Vec<String> = (0..EACH).map(|i| format!("[{},1]", line * EACH + i)).collect();
        text.line(format!(r#"{{"t":"op","f":0,"n":[{}]}}"#, new.join(",")));
    }
    let (_, why) = line(&text.all());
    assert!(why.contains("more storages"), "{why}");
}

/// Reads any bytes, and replays them if they are a recording.
fn attempt(bytes: &[u8]) {
    if let Ok(run) = read(bytes, None) {
        let _ = super::super::report(run);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_recording_cut_anywhere_is_refused(part in 0.0..1.0f64) {
        let text = varied().all();
        let at = (text.len() as f64 * part) as usize;
        prop_assert!(read(&text.as_bytes()[..at.min(text.len() - 2)], None).is_err());
    }

    #[test]
    fn no_change_of_bytes_stops_the_reader(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6)) {
        let mut bytes = varied().all().into_bytes();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        attempt(&bytes);
    }

    #[test]
    fn no_number_stops_the_reader(changes in prop::collection::vec((any::<prop::sample::Index>(), 0usize..NUMBERS.len()), 1..8)) {
        let mut text = varied().all();
        for (at, number) in changes {
            text = with_number(&text, at, NUMBERS[number]);
        }
        attempt(text.as_bytes());
    }

    #[test]
    fn no_order_of_lines_stops_the_reader(moves in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<bool>()), 1..6)) {
        let text = varied().all();
        let mut lines: Vec<&str> = text.lines().collect();
        for (from, to, copied) in moves {
            let (from, to) = (from.index(lines.len()), to.index(lines.len()));
            let line = if copied { lines[from] } else { lines.remove(from) };
            lines.insert(to.min(lines.len()), line);
        }
        attempt(lines.join("\n").as_bytes());
    }
}

/// Numbers at the limits of formats and rules.
const NUMBERS: [&str; 14] = [
    "0",
    "1",
    "2",
    "-1",
    "3",
    "7",
    "64",
    "1025",
    "65536",
    "1048577",
    "1099511627776",
    "18446744073709551615",
    "1e300",
    "null",
];

/// Returns the text with one of its numbers after the first line replaced.
fn with_number(text: &str, at: prop::sample::Index, number: &str) -> String {
    let first = text.find('\n').unwrap_or_default();
    let mut runs = Vec::new();
    let mut begin = None;
    for (i, byte) in text.bytes().enumerate().skip(first) {
        match (byte.is_ascii_digit(), begin) {
            (true, None) => begin = Some(i),
            (false, Some(start)) => {
                runs.push(start..i);
                begin = None;
            }
            _ => {}
        }
    }
    let run = runs[at.index(runs.len())].clone();
    format!("{}{number}{}", &text[..run.start], &text[run.end..])
}
