//! What surrounds the steps, against measurements: loading, merging and saving, on an H100 and on its host.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Deserialize;
use serde_json::{Value, json};
use vramscope_engine::Model;
use vramscope_engine::report::{Around, HostUse, Occasion, OnCard};
use vramscope_engine::setup::{Freeze, Precision, Setup};
use vramscope_engine::simulate::{Beside, around};
use vramscope_engine::tape::Gpu;
use vramscope_engine::units::Bytes;
use vramscope_tests::kept;

const FILES: [&str; 2] = [
    include_str!("../../data/truth/loading.jsonl"),
    include_str!("../../data/truth/loading_host.jsonl"),
];
const TABLE: &str = "tests/data/loading_vs_predicted.md";

/// A measured way to load, merge or save, as `tests/data/truth/loading.py` writes it.
#[derive(Debug, Deserialize)]
struct Row {
    case: Case,
    allocated: Option<u64>,
    reserved: Option<u64>,
    anonymous: u64,
    file: u64,
}

#[derive(Debug, Deserialize)]
struct Case {
    model: String,
    /// Type of the weights in the files.
    file: String,
    way: String,
}

impl Case {
    /// What the engine calls the way; `None` for one that is of the host alone.
    fn occasion(&self) -> Option<Occasion> {
        Some(match self.way.trim_end_matches("_bf16") {
            "moved" | "host" | "host_fp32" | "host_touched" => Occasion::LoadMoved,
            "mapped" | "mapped_again" => Occasion::LoadMapped,
            "cast" => Occasion::LoadCast,
            "nf4" => Occasion::LoadQuantised,
            "merged" | "merged_nf4" => Occasion::Merge,
            _ => return None,
        })
    }

    /// Setup of the weights that the way makes.
    fn setup(&self) -> Setup {
        let (way, is_bf16) = (self.way.as_str(), self.file == "bf16");
        let is_wide = way == "host_fp32" || !is_bf16 && !way.ends_with("_bf16") && way != "cast";
        Setup {
            batch: 1,
            seq: 1024,
            precision: if is_wide { Precision::Fp32 } else { Precision::Bf16 },
            freeze: match way {
                "merged" | "host_merged" => Freeze::Lora,
                "nf4" | "merged_nf4" => Freeze::Qlora,
                _ => Freeze::None,
            },
            rank: 16,
            ..Setup::default()
        }
    }
}

/// A figure that was measured and predicted.
struct Figure {
    name: &'static str,
    measured: u64,
    predicted: u64,
}

impl Figure {
    fn error(&self) -> f64 {
        self.predicted as f64 / self.measured as f64 - 1.0
    }
}

struct Compared {
    row: Row,
    card: Vec<Figure>,
    host: Option<Figure>,
}

/// Rows of a file, and the shapes of their models.
fn read(text: &str) -> (Vec<Row>, BTreeMap<String, Value>) {
    let (mut rows, mut shapes) = (Vec::new(), BTreeMap::new());
    for line in text.lines() {
        let value: Value = serde_json::from_str(line).expect("a line of JSON");
        if let Some(given) = value.get("shapes") {
            shapes = serde_json::from_value(given.clone()).expect("shapes by name");
        } else if value.get("case").is_some() && value.get("error").is_none() {
            rows.push(serde_json::from_value(value).expect("a row"));
        }
    }
    (rows, shapes)
}

fn predict(case: &Case, shape: &Value) -> Around {
    let mut config = shape.clone();
    config["dtype"] = json!(if case.file == "bf16" { "bfloat16" } else { "float32" });
    let setup = case.setup();
    let model = Model::from_config_for(&config.to_string(), &setup).expect("a model");
    let beside = Beside {
        parallel: None,
        files: model.files,
        workers: 0,
        between_steps: Bytes::ZERO,
        paged: Bytes::ZERO,
    };
    around(&model, &setup, Gpu::H200, beside).expect("it is simulated")
}

fn compare(row: Row, shape: &Value) -> Compared {
    let around = predict(&row.case, shape);
    let line = row.case.occasion().map(|occasion| {
        let found = around.card.iter().find(|line| line.occasion == occasion);
        *found.expect("the way is simulated")
    });
    let card = line.iter().flat_map(|line| of_card(&row, line)).collect();
    let host = of_host(&row, line.as_ref(), &around);
    Compared { row, card, host }
}

fn of_card(row: &Row, line: &OnCard) -> Vec<Figure> {
    let figure = |name, measured: Option<u64>, predicted: Bytes| {
        Some(Figure {
            name,
            measured: measured?,
            predicted: predicted.get(),
        })
    };
    let figures = [
        figure("allocated", row.allocated, line.allocated),
        figure("reserved", row.reserved, line.reserved),
    ];
    figures.into_iter().flatten().collect()
}

/// What the host has more than before: pages of its own and of the files, as far as they are touched.
fn of_host(row: &Row, line: Option<&OnCard>, around: &Around) -> Option<Figure> {
    let use_of = |what: HostUse| around.host.iter().find(|line| line.what == what).map(|line| line.bytes.own);
    let own = |predicted: Bytes| Figure {
        name: "own pages",
        measured: row.anonymous,
        predicted: predicted.get(),
    };
    match (row.case.way.as_str(), line) {
        ("saved", _) => use_of(HostUse::SavedModel).map(own),
        ("optimizer_saved", _) => use_of(HostUse::SavedStates).map(own),
        // Weights that nobody reads are not there, and what is saved from the host is not copied.
        ("host" | "host_saved" | "host_merged" | "merged" | "merged_nf4", _) | (_, None) => None,
        (_, Some(line)) => Some(Figure {
            name: "own pages and files",
            measured: row.anonymous + row.file,
            predicted: (line.host.own + line.host.mapped).get(),
        }),
    }
}

fn all() -> Vec<Compared> {
    let of = |text: &str| {
        let (rows, shapes) = read(text);
        let compared = rows.into_iter().map(|row| {
            let shape = shapes[&row.case.model].clone();
            compare(row, &shape)
        });
        compared.collect::<Vec<_>>()
    };
    FILES.iter().flat_map(|text| of(text)).collect()
}

/// Loading peak and host memory within 3% (issue 31).
const BOUND: f64 = 0.03;

#[test]
fn loading_merging_and_saving_are_predicted() {
    let rows = all();
    let mut cards = 0;
    let mut hosts = 0;
    for compared in &rows {
        for figure in compared.card.iter().filter(|figure| figure.name == "allocated") {
            assert!(figure.error().abs() <= BOUND, "{:?}: {}", compared.row.case, figure.error());
            cards += 1;
        }
        if let Some(figure) = &compared.host {
            assert!(figure.error().abs() <= BOUND, "{:?}: {}", compared.row.case, figure.error());
            hosts += 1;
        }
    }
    assert!(cards >= 10 && hosts >= 10, "{cards} of the card, {hosts} of the host");
}

#[test]
fn the_kept_table_of_loading_is_todays() {
    kept::hold(TABLE, &table(&all()));
}

fn table(rows: &[Compared]) -> String {
    let mut out = String::from(
        "# Loading, merging and saving against their prediction\n\nRandom models that lie in a folder, each way in a \
         process of its own, on an H100 (PyTorch 2.11, transformers 5.17, peft, bitsandbytes 0.50) and, those whose way \
         begins with host, on a machine without a GPU; `tests/data/truth/loading.py`. On the card: the highest bytes of \
         PyTorch's allocator. On the host: the pages that the process has more than before, its own or of files. Made by \
         `cargo xtask table`.\n\n| model | files | way | allocated, measured | predicted | reserved, measured | predicted | \
         host, measured | predicted |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for compared in rows {
        let Case { model, file, way } = &compared.row.case;
        let cells: Vec<String> = ["allocated", "reserved"]
            .iter()
            .map(|name| cell(compared.card.iter().find(|figure| figure.name == *name)))
            .collect();
        let host = cell(compared.host.as_ref());
        let _ = writeln!(out, "| {model} | {file} | {way} | {} | {host} |", cells.join(" | "));
    }
    out
}

fn cell(figure: Option<&Figure>) -> String {
    match figure {
        None => " | ".to_owned(),
        Some(figure) if figure.predicted == figure.measured => format!("{} | every byte", figure.measured),
        Some(figure) => format!("{} | {:+.2}%", figure.measured, figure.error() * 100.0),
    }
}
