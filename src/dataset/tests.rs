//! Files as trainers take them, and files that nobody should have written.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

/// Reads a file in pieces of the given lengths, over and over.
fn read_in(name: &str, text: &[u8], pieces: &[usize]) -> Result<Dataset, Unread> {
    let mut reader = Reader::new(name);
    let (mut left, mut lengths) = (text, pieces.iter().cycle());
    while !left.is_empty() {
        let length = lengths.next().copied().unwrap_or(1).clamp(1, left.len());
        reader.feed(&left[..length]);
        left = &left[length..];
    }
    reader.finish()
}

fn read(name: &str, text: &str) -> Result<Dataset, Unread> {
    read_in(name, text.as_bytes(), &[usize::MAX])
}

fn texts(name: &str, text: &str) -> Vec<Text> {
    let found = read(name, text).expect("it tells of samples");
    found.samples.iter().map(|sample| sample.text).collect()
}

#[test]
fn turns_and_columns_of_text_are_counted_in_bytes() {
    let lines = [
        json!({"conversations": [{"from": "human", "value": "<image>\nWhat?"}, {"from": "gpt", "value": "A 猫"}], "image": "a.jpg"}),
        json!({"messages": [{"role": "user", "content": [{"type": "image", "image": "a.png"}, {"type": "text", "text": "What?"}]}]}),
        json!({"prompt": "ab", "completion": "cde", "id": "not text"}),
        json!({"prompt": "ab", "chosen": "cde", "rejected": "f"}),
        json!({"prompt": [{"content": "ab"}], "chosen": [{"content": "c"}], "rejected": [{"content": "def"}]}),
    ];
    let file: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let bytes = [13 + 5, 5, 5, 5, 5].map(Text::Bytes);
    assert_eq!(texts("train.jsonl", &file), bytes);
    let array = Value::from(lines.to_vec()).to_string();
    assert_eq!(texts("train.json", &array), bytes);
    let pretty = serde_json::to_string_pretty(&lines).expect("JSON");
    assert_eq!(texts("train.json", &format!("\u{feff} {pretty}")), bytes);
    let images: Vec<u32> = read("a.jsonl", &file)
        .expect("samples")
        .samples
        .iter()
        .map(|s| s.images)
        .collect();
    assert_eq!(images, [1, 1, 0, 0, 0]);
}

/// Counts words, and knows one image.
struct Words;

impl Look for Words {
    fn image(&mut self, image: &Value) -> Option<[u32; 2]> {
        (image == "a.png").then_some([480, 640])
    }

    fn tokens(&mut self, text: &str) -> Option<u64> {
        Some(text.split_whitespace().count() as u64)
    }
}

#[test]
fn what_stands_beside_is_looked_up() {
    let file = [
        json!({"conversations": [{"from": "human", "value": "<image> What is this?"}, {"from": "gpt", "value": "A small cat."}], "image": "a.png"}),
        json!({"prompt": "a b c", "chosen": "d", "rejected": "e f"}),
        json!({"text": "a b c", "image": "b.png"}),
        json!({"text": "a b c", "num_tokens": 9}),
    ];
    let mut reader = Reader::looking("a.json", Box::new(Words));
    reader.feed(Value::from(file.to_vec()).to_string().as_bytes());
    let found = reader.finish().expect("samples").samples;
    let texts: Vec<_> = found.iter().map(|sample| (sample.text, sample.answer)).collect();
    assert_eq!(
        texts,
        [
            (Text::Counted(6), 3),
            (Text::Counted(5), 2),
            (Text::Counted(3), 3),
            (Text::Tokens(9), 9)
        ]
    );
    assert_eq!(found[0].sizes, [[480, 640]]);
    assert_eq!((found[2].images, &found[2].sizes[..]), (1, &[][..]));
    let turns: Vec<_> = found.iter().map(|sample| sample.turns).collect();
    assert_eq!(turns, [2, 2, 1, 1]);
}

#[test]
fn positions_have_room_for_the_chat_template() {
    let mut images = ImageTokens::of(None, &vramscope_engine::Setup::default());
    let sample = |text, turns| Sample {
        text,
        answer: 0,
        turns,
        images: 0,
        sizes: vec![],
    };
    let mut of = |text, turns| Positions::of(&sample(text, turns), &mut images);
    let range = |least, most| Positions {
        least,
        most,
        of_images: 0,
    };
    assert_eq!(of(Text::Tokens(7), 2), range(7, 7));
    assert_eq!(of(Text::Counted(7), 2), range(7, 7 + 20 + 192));
    assert_eq!(of(Text::Bytes(60), 1), range(10, 60 + 10 + 192));
    assert_eq!(of(Text::Bytes(60), 1).cut_to(50), range(10, 50));
}

#[test]
fn a_column_of_tokens_counts_more_than_text() {
    let file = "{\"text\": \"abcd\", \"num_tokens\": 900}\n{\"input_ids\": [1, 2, 3]}\n{\"text\": \"ab\", \"length\": \"long\"}";
    assert_eq!(
        texts("a.jsonl", file),
        [Text::Tokens(900), Text::Tokens(3), Text::Bytes(2)]
    );
}

#[test]
fn tables_have_their_names_in_the_first_line() {
    let file = "id,text,width,height\r\n1,\"a, \"\"b\"\"\nc\",640,480\r\n2,xyz,,\r\n3,4,12,x,5\n";
    let found = read("a.csv", file).expect("samples");
    assert_eq!(
        found.samples,
        [
            Sample {
                text: Text::Bytes(8),
                answer: 8,
                turns: 1,
                images: 1,
                sizes: vec![[480, 640]]
            },
            Sample {
                text: Text::Bytes(3),
                answer: 3,
                turns: 1,
                images: 0,
                sizes: vec![]
            },
        ]
    );
    assert_eq!((found.broken, found.first_broken), (1, 3));
    for (name, sign) in [("a.tsv", '\t'), ("a.csv", ';'), ("a.csv", '|')] {
        let file = format!("question{sign}answer\nab{sign}42");
        assert_eq!(texts(name, &file), [Text::Bytes(4)], "{name}");
    }
    let nested = "messages\n\"[{\"\"content\"\": \"\"abc\"\"}]\"\n";
    assert_eq!(texts("a.csv", nested), [Text::Bytes(3)]);
}

#[test]
fn sizes_stand_in_columns_or_beside_each_image() {
    let lines = [
        json!({"text": "a", "image_width": 640, "image_height": 480}),
        json!({"text": "a", "images": [{"height": 480, "width": 640}, {"height": 2, "width": 3}]}),
        json!({"text": "a", "heights": [1, 2], "widths": [3, 4]}),
        json!({"text": "a", "heights": [1, 2], "widths": [3]}),
        json!({"text": "a", "width": 0, "height": 5, "image": "a.png"}),
    ];
    let file: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let found = read("a.jsonl", &file).expect("samples");
    let sizes: Vec<_> = found.samples.iter().map(|sample| sample.sizes.clone()).collect();
    assert_eq!(
        sizes,
        [
            vec![[480, 640]],
            vec![[480, 640], [2, 3]],
            vec![[1, 3], [2, 4]],
            vec![],
            vec![]
        ]
    );
    assert_eq!(found.samples[1].pixels(), 480 * 640 + 6);
    assert_eq!(found.samples[4].images, 1);
}

#[test]
fn what_tells_nothing_is_refused() {
    assert_eq!(read("a.jsonl", " \n\n"), Err(Unread::Empty));
    assert_eq!(read("a.json", "[]"), Err(Unread::Empty));
    assert_eq!(read("a.csv", "text\n"), Err(Unread::Empty));
    assert_eq!(read("a.jsonl", "\x1f\x08 gzip"), Err(Unread::Binary));
    assert_eq!(read("a.jsonl", "PAR1 and more"), Err(Unread::Binary));
    let named = Err(Unread::Unknown(vec!["id".into(), "score".into()]));
    assert_eq!(read("a.jsonl", "{\"id\": \"x\", \"score\": 1}"), named);
}

#[test]
fn a_record_that_cannot_be_read_is_counted_and_the_rest_kept() {
    let found = read("a.jsonl", "{\"text\": \"a\"}\n{\"text\": \n[1]\n{\"text\": \"bc\"}").expect("samples");
    assert_eq!((found.samples.len(), found.broken, found.first_broken), (2, 2, 2));
}

#[test]
fn a_summary_has_the_percentiles_and_the_worst_batch() {
    let summary = Summary::of((1..=100).rev().collect());
    assert_eq!(
        [50.0, 95.0, 99.0, 100.0].map(|p| summary.percentile(p)),
        [50, 95, 99, 100]
    );
    assert_eq!(summary.worst(3), [100, 99, 98]);
    assert_eq!(summary.padding(1), 0.0);
    // Two of {1, 2}: the longest is 1 in a quarter of the draws.
    let two = Summary::of(vec![1, 2]);
    assert!((two.padding(2) - (1.0 - 1.5 / 1.75)).abs() < 1e-12);
    assert_eq!(Summary::default().percentile(50.0), 0);
}

proptest! {
    /// A file cut anywhere gives the same samples, and no content stops the reader.
    #[test]
    fn any_bytes_are_read_and_alike_in_any_pieces(
        parts in prop::collection::vec(prop_oneof![
            prop::collection::vec(any::<u8>(), 0..8),
            prop::sample::select(vec![
                "{\"text\": \"a\"}", "{", "}", "[", "]", "\"", "\\", "\n", ",", "\r\n", "text,width,height", "\"a\"\"b\"", "1,2",
                "{\"messages\":[{\"content\":\"ü\"}]}", "\u{feff}", "<image>", "\t",
            ]).prop_map(|text| text.as_bytes().to_vec()),
        ], 0..24),
        name in prop::sample::select(vec!["a.jsonl", "a.json", "a.csv", "a.tsv", "a"]),
        pieces in prop::collection::vec(1usize..9, 1..5),
    ) {
        let file = parts.concat();
        prop_assert_eq!(read_in(name, &file, &pieces), read_in(name, &file, &[usize::MAX]));
    }

    #[test]
    fn what_is_written_is_counted(samples in prop::collection::vec((".{0,20}", prop::option::of(1u64..100_000), 1u32..5000), 1..20)) {
        let line = |(text, tokens, side): &(String, Option<u64>, u32)| {
            let mut line = json!({"text": text, "width": side, "height": 7});
            if let Some(tokens) = tokens {
                line["num_tokens"] = (*tokens).into();
            }
            format!("{line}\n")
        };
        let file: String = samples.iter().map(line).collect();
        let found = read("a.jsonl", &file).expect("samples");
        let wanted: Vec<Sample> = samples.iter().map(|(text, tokens, side)| Sample {
            text: tokens.map_or(Text::Bytes(text.len() as u64), Text::Tokens),
            answer: tokens.unwrap_or(text.len() as u64),
            turns: u32::from(!text.is_empty()),
            images: 1,
            sizes: vec![[7, *side]],
        }).collect();
        prop_assert_eq!(found.samples, wanted);
    }

    #[test]
    fn every_sample_is_in_one_bar(lengths in prop::collection::vec(0u64..=u64::from(u32::MAX), 1..60)) {
        let summary = Summary::of(lengths.clone());
        let bars = summary.histogram();
        prop_assert!(bars.len() <= 41);
        prop_assert_eq!(bars.iter().map(|bar| bar.samples).sum::<usize>(), lengths.len());
        let padding = summary.padding(8);
        prop_assert!((0.0..1.0).contains(&padding), "{}", padding);
    }
}
