//! Tests the course's data against what the course teaches, the engine, and measurements.

#![allow(clippy::disallowed_methods, reason = "runs natively only")]

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use vramscope_course::{Unit, read_number};
use vramscope_engine::Case;
use vramscope_engine::units::Bytes;
use vramscope_phrases::LANGUAGES;

use super::figure::shown_in;
use super::given::amount;
use super::{
    Block, Book, Case as Example, Given, Input, Row, START, Tree, cases, check, inputs, items, lines, sheet, task, text,
};
use crate::state::{Address, Draft, Key, Reading};
use crate::worker::view::Summary;
use crate::worker::{Refusal, summary};

/// Tags of the languages that have the whole course.
fn languages() -> impl Iterator<Item = &'static str> {
    let whole = LANGUAGES.iter().filter(|language| !language.is_partial);
    whole.map(|language| language.tag)
}

const PARTS: [&str; 4] = ["9", "11", "V", "L"];

/// Ids of the course's rows, in order; each must have a page.
const ROWS: &str = include_str!("rows.txt");

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("course")
}

fn read(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn texts(language: &str) -> Map<String, Value> {
    let files = PARTS.into_iter().chain(["words"]);
    let of = |file| read(&folder().join(format!("../locales/{language}/course/{file}.json")));
    let objects = files.map(of).map(|file| file.as_object().expect("an object").clone());
    objects.flatten().collect()
}

fn book(language: &str) -> Book {
    let parts: Vec<_> = PARTS
        .iter()
        .map(|part| read(&folder().join(format!("parts/{part}.json"))))
        .collect();
    Book::read(&json!({ "parts": parts, "texts": texts(language) }).to_string()).expect("the course")
}

fn blocks<'a>(row: Row<'a>, kind: &'static str) -> impl Iterator<Item = Block<'a>> {
    row.blocks().filter(move |block| block.kind == kind)
}

fn own_inputs(block: Block, seed: Option<u64>) -> Vec<Input> {
    inputs(block, &Given::default(), seed)
}

#[test]
fn every_row_of_the_course_has_its_page_in_every_language() {
    for language in languages() {
        let book = book(language);
        let pages: Vec<_> = book.rows().map(|row| row.id).collect();
        assert_eq!(pages, ROWS.lines().collect::<Vec<_>>(), "{language}");
        for row in book.rows() {
            assert!(!row.title().is_empty(), "{language} {}: a title is missing", row.id);
            for block in row.blocks() {
                let at = format!("{language} {} {}", row.id, block.name);
                is_complete(block, &at);
            }
        }
    }
}

/// Checks that everything that a block shows is there.
fn is_complete(block: Block, at: &str) {
    match block.kind {
        "text" => assert!(block.row.paragraphs(block.name).count() > 0, "{at}: no text"),
        "figure" | "exercise" | "checklist" | "notes" | "quiz" | "table" | "sample" | "tree" | "link" => {
            assert!(!block.title().is_empty(), "{at}: a title is missing");
        }
        kind => panic!("{at}: nothing draws a {kind}"),
    }
    let inputs = own_inputs(block, None);
    let sheet = sheet(block, &inputs).unwrap_or_else(|e| panic!("{at}: a formula gives nothing: {e:?}"));
    for line in lines(block, &inputs, &sheet) {
        assert!(!line.label.is_empty(), "{at}: a label is missing");
        assert!(!line.result.is_empty(), "{at}: {} has no result", line.name);
    }
    for case in cases(block, &inputs) {
        assert!(!case.label.is_empty(), "{at}: the label of {} is missing", case.query);
    }
    for input in &inputs {
        assert!(
            !block.label(&input.name).is_empty(),
            "{at}: the label of {} is missing",
            input.name
        );
    }
    for mut row in block.tuples("rows") {
        assert!(
            row.next().is_some_and(|head| !head.is_empty()),
            "{at}: the head of a row is missing"
        );
    }
}

/// Structure of the texts, ignoring their wording.
fn shape(value: &Value) -> Value {
    match value {
        Value::Object(entries) => {
            let mut keys: Vec<_> = entries.iter().map(|(key, value)| (key.clone(), shape(value))).collect();
            keys.sort_by(|a, b| a.0.cmp(&b.0));
            Value::Object(keys.into_iter().collect())
        }
        Value::Array(values) => values.iter().map(shape).collect(),
        Value::String(text) => Value::Bool(!text.trim().is_empty()),
        _ => Value::Null,
    }
}

#[test]
fn every_language_says_as_much() {
    let english = texts("en");
    for language in languages() {
        let other = texts(language);
        let keys = |texts: &Map<String, Value>| {
            let mut keys: Vec<_> = texts.keys().cloned().collect();
            keys.sort();
            keys
        };
        assert_eq!(keys(&other), keys(&english));
        for (row, texts) in &english {
            assert_eq!(shape(&other[row]), shape(texts), "{language} {row}");
        }
        // Number placeholders must exist in every language.
        for (row, texts) in &english {
            for (key, text) in texts.as_object().into_iter().flatten() {
                let gaps = |value: &Value| value.as_str().map_or(0, |text| text.matches('{').count());
                assert_eq!(gaps(&other[row][key]), gaps(text), "{language} {row} {key}");
            }
        }
    }
}

/// Half a unit in the last digit of a figure such as `14.6`: allows for rounding and nothing else.
fn rounding(figure: &str) -> f64 {
    let decimals = figure.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    0.5 / 10_f64.powi(decimals as i32) * 1.000_001
}

fn figure_of(text: &str) -> Vec<f64> {
    let one = |figure: &str| {
        let (sign, digits) = figure.strip_prefix('-').map_or((1.0, figure), |digits| (-1.0, digits));
        sign * read_number(digits).unwrap_or_else(|| panic!("{text} is no figure"))
    };
    text.split(", ").map(one).collect()
}

#[test]
fn each_formula_gives_the_courses_figure_or_says_why_not() {
    let book = book("en");
    let mut compared = 0;
    for row in book.rows() {
        for block in row.blocks() {
            let name = block.name;
            let sheet = sheet(block, &own_inputs(block, None)).unwrap_or_else(|e| panic!("{} {name}: {e:?}", row.id));
            for (line, result) in block.line_data().iter().zip(&sheet.lines) {
                let course = text(line, "course");
                let unit_name = text(line, "unit");
                assert!(Unit::named(unit_name).is_some(), "{} {name}: `{unit_name}`", row.id);
                if course.is_empty() {
                    continue;
                }
                let unit = shown_in(line).0;
                let values: Vec<_> = result.value.0.iter().map(|value| value / unit.size).collect();
                let figures = figure_of(course);
                assert_eq!(values.len(), figures.len(), "{} {name}", row.id);
                let last = course.split(", ").next().unwrap_or_default();
                let agree = values
                    .iter()
                    .zip(&figures)
                    .all(|(value, figure)| (value - figure).abs() <= rounding(last));
                let slips = line.get("slip").is_some();
                assert_ne!(
                    agree, slips,
                    "{} {name} {}: {values:?}, course {course}",
                    row.id, result.name
                );
                if slips {
                    let mut why = block.paragraphs("gap").chain(block.paragraphs("end"));
                    assert!(why.any(|text| !text.is_empty()), "{} {name}: nothing says why", row.id);
                }
                compared += 1;
            }
        }
    }
    assert!(compared >= 40, "{compared}");
}

#[test]
fn exercises_take_right_answers_and_answer_wrong_ones() {
    for language in languages() {
        let book = book(language);
        for row in book.rows() {
            for block in blocks(row, "exercise") {
                let name = block.name;
                assert!(block.texts("hints").len() >= 2, "{} has no hints in steps", row.id);
                for seed in (0..24).map(Some).chain([None]) {
                    let inputs = own_inputs(block, seed);
                    let sheet = sheet(block, &inputs).expect("it is well formed");
                    let ask = text(block.data, "ask");
                    let right = sheet.value(ask).and_then(|value| value.single()).expect("one number");
                    let (unit, decimals) = block.line_named(ask).map(shown_in).expect("the line that is asked");
                    let shown = amount(&right.into(), unit, decimals.max(2));
                    let say = |typed: &str| check(block, &inputs, typed);
                    let task = task(block, &inputs);
                    assert!(!task.is_empty() && !task.contains('{'), "{} {name}: {task}", row.id);
                    assert!(right > 0.0, "{} {name} {seed:?}: {right}", row.id);
                    let comma = shown.replace(',', "").replace('.', ",");
                    for typed in [&shown, &comma] {
                        assert!(say(typed).is_right, "{} {name} {seed:?}: {typed}", row.id);
                    }
                    let wrong = amount(&(right * 1.7 + unit.size).into(), unit, decimals.max(2));
                    let verdict = say(&wrong);
                    assert!(
                        !verdict.is_right && !verdict.message.is_empty(),
                        "{} {name} {seed:?}: {wrong}",
                        row.id
                    );
                    assert!(!say("").is_right && !say("parsec").is_right);
                }
            }
        }
    }
}

#[test]
fn a_mistake_that_is_known_is_named() {
    let book = book("en");
    for row in book.rows() {
        for block in blocks(row, "exercise") {
            let inputs = own_inputs(block, None);
            let sheet = sheet(block, &inputs).expect("it is well formed");
            let line = block.line_named(text(block.data, "ask"));
            let (unit, _) = line.map(shown_in).expect("the line that is asked");
            let slips = items(block.data.get("slips")).iter().filter_map(Value::as_str);
            for (formula, hint) in slips.zip(block.texts("slips")) {
                let value = sheet
                    .evaluate(formula)
                    .unwrap_or_else(|e| panic!("{} {formula}: {e:?}", row.id));
                if value.single().is_none_or(|value| value <= 0.0) {
                    continue;
                }
                let typed = amount(&value, unit, 8);
                let verdict = check(block, &inputs, &typed);
                assert_eq!(
                    (verdict.is_right, verdict.message.as_str()),
                    (false, hint),
                    "{} {}: {typed}",
                    row.id,
                    block.name
                );
            }
        }
    }
}

#[test]
fn links_and_trees_lead_somewhere() {
    let book = book("en");
    let goes = |row: &str, to: &str| {
        let (address, problems) = Address::read(to);
        assert!(problems.is_empty(), "{row}: {to}: {problems:?}");
        let of_row = address.draft.get(Key::Row);
        assert!(of_row.is_empty() || book.row(of_row).is_some(), "{row}: {to}");
    };
    for row in book.rows() {
        for block in blocks(row, "link") {
            goes(row.id, text(block.data, "to"));
        }
        for block in blocks(row, "tree") {
            let nodes = block.data.get("nodes").and_then(Value::as_object).expect("nodes");
            let tree = Tree::of(block);
            let mut seen = vec![START];
            let mut next = 0;
            while let Some(node) = seen.get(next).copied() {
                let at = format!("{} {} {node}", row.id, block.name);
                assert!(!tree.words(node).is_empty(), "{at}: no words");
                let choices = tree.choices(node);
                match tree.address(node) {
                    Some(to) => goes(row.id, to),
                    None => assert!(!choices.is_empty(), "{at}: no way on"),
                }
                for choice in choices {
                    assert!(!choice.words.is_empty(), "{at}: no words for {}", choice.to);
                    assert_eq!(tree.answered(&[node, choice.to]), [(tree.words(node), choice.words)]);
                    seen.push(choice.to);
                }
                next += 1;
            }
            assert!(
                nodes.keys().all(|node| seen.contains(&node.as_str())),
                "{} {}: a node nobody reaches",
                row.id,
                block.name
            );
        }
    }
}

fn draft(query: &str) -> Draft {
    let mut draft = Draft::default();
    assert_eq!(draft.read_pairs(query), [], "{query}");
    draft
}

fn simulated(query: &str) -> Result<Summary, Refusal> {
    summary(&draft(query))
}

/// Setups of the course without duplicates.
fn all_cases(book: &Book) -> Vec<Example<'_>> {
    let mut all: Vec<Example> = Vec::new();
    for block in book.rows().flat_map(Row::blocks) {
        for case in cases(block, &own_inputs(block, None)) {
            if !all
                .iter()
                .any(|known| (&known.query, known.measured) == (&case.query, case.measured))
            {
                all.push(case);
            }
        }
    }
    all
}

#[test]
fn every_setup_of_the_course_is_simulated() {
    for Example { query, .. } in all_cases(&book("en")) {
        let outcome = simulated(&query);
        let summary = outcome.unwrap_or_else(|refusal| panic!("{query}: {refusal:?}"));
        assert!(summary.card.is_ok(), "{query}: {:?}", summary.card);
    }
}

/// Lines of a file of measured steps.
fn measurements(file: &str) -> Vec<Value> {
    let path = folder().join("../../../tests/data/truth").join(file);
    let text = std::fs::read_to_string(&path).expect("the measurements");
    text.lines()
        .map(|line| serde_json::from_str(line).expect(line))
        .collect()
}

/// Largest relative error that the course's pages may show.
const TOLERANCE: f64 = 0.015;

#[test]
fn every_measured_example_stands_beside_its_simulation() {
    let book = book("en");
    let cases = all_cases(&book);
    let settled: Vec<Value> = measurements("settled_fp16.jsonl");
    let mut shown = 0;
    for row in measurements("course.jsonl") {
        let Some(case) = row.get("case") else { continue };
        let parsed = Case::from_json(&case.to_string()).expect("JSON").expect("a case");
        // If fp16 overflowed in every step of the first measurement, use the rerun that continued until it no longer
        // did.
        let later = settled.iter().find(|settled| {
            let other = Case::from_json(&settled["case"].to_string())
                .expect("JSON")
                .expect("a case");
            (other.setup, other.model) == (parsed.setup.clone(), parsed.model.clone())
        });
        let measured = later.unwrap_or(&row)["peak_steady"].as_u64().expect("bytes");
        let same = |query: &str| {
            let reading = Reading::of(&draft(query), &Draft::default());
            reading.setup == parsed.setup && draft(query).get(Key::Model) == parsed.model
        };
        let found = cases
            .iter()
            .find(|case| case.measured == Some(Bytes::new(measured)) && same(&case.query));
        let query = &found.unwrap_or_else(|| panic!("no page shows {case}")).query;
        shown += 1;
        let predicted = simulated(query).expect(query).figures.peak_allocated.get();
        let error = (predicted as f64 / measured as f64 - 1.0).abs();
        assert!(error <= TOLERANCE, "{query}: {predicted}, measured {measured}");
    }
    assert_eq!(shown, 29);
}
