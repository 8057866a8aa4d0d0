//! Steps under `torch.compile` beside the same steps in eager mode, as measured on an H100: the range that the engine tells.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Read as _;

use flate2::read::GzDecoder;
use serde::Deserialize;
use serde_json::Value;
use vramscope_engine::report::compiled::MEASURED;
use vramscope_engine::{Case, Model, simulate};
use vramscope_tests::kept;

const FILE: &str = "data/truth/compiled.jsonl.gz";
const TABLE: &str = "tests/data/compiled_vs_eager.md";

/// A measured run.
#[derive(Debug, Deserialize)]
struct Row {
    case: Value,
    config: Value,
    /// Highest allocated bytes of the steady step; none if the run failed.
    peak_steady: Option<u64>,
    reserved_peak: Option<u64>,
    /// Graphs that the compiler made; absent in eager mode.
    graphs: Option<u64>,
    error: Option<String>,
    oom: Option<String>,
}

/// A step that was measured both ways.
struct Pair {
    eager: Row,
    compiled: Row,
}

impl Pair {
    /// Compiled bytes as a share of eager's: allocated, reserved.
    fn shares(&self) -> Option<[f64; 2]> {
        let of = |row: &Row| Some([row.peak_steady? as f64, row.reserved_peak? as f64]);
        let (compiled, eager) = (of(&self.compiled)?, of(&self.eager)?);
        Some([compiled[0] / eager[0], compiled[1] / eager[1]])
    }

    /// The engine's peak of the step in eager mode, as a share of the measured one.
    fn predicted(&self) -> Result<f64, String> {
        let case = Case::from_json(&self.eager.case.to_string()).map_err(|error| error.to_string())?;
        let setup = case.ok_or("an empty case")?.setup;
        let model =
            Model::from_config_for(&self.eager.config.to_string(), &setup).map_err(|error| error.to_string())?;
        let report = simulate(&model, &setup).map_err(|error| error.to_string())?;
        let measured = self.eager.peak_steady.ok_or("not measured")?;
        Ok(report.peak_allocated.get() as f64 / measured as f64)
    }

    fn family(&self) -> &str {
        self.eager.case["model"].as_str().unwrap_or_default()
    }
}

fn pairs() -> Vec<Pair> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(FILE);
    let mut text = String::new();
    let file = std::fs::File::open(path).expect("a part of the repository");
    GzDecoder::new(file).read_to_string(&mut text).expect("it is a text");
    // The first line says where it was measured.
    let rows = text
        .lines()
        .skip(1)
        .map(|line| serde_json::from_str::<Row>(line).expect("a row"));
    let (compiled, mut eager): (Vec<Row>, Vec<Row>) = rows.partition(|row| row.case.get("compile").is_some());
    let mut all = Vec::new();
    for row in compiled {
        let mut case = row.case.clone();
        case.as_object_mut().map(|case| case.remove("compile"));
        let at = eager
            .iter()
            .position(|eager| eager.case == case && eager.config == row.config);
        let eager = eager.swap_remove(at.expect("each compiled step has its eager one"));
        all.push(Pair { eager, compiled: row });
    }
    all
}

/// Shares of one figure, in ascending order.
fn sorted(pairs: &[Pair], figure: usize) -> Vec<f64> {
    let mut shares: Vec<f64> = pairs.iter().filter_map(|pair| Some(pair.shares()?[figure])).collect();
    shares.sort_by(f64::total_cmp);
    shares
}

/// The range of shares in thousandths, rounded outwards, without `left_out` at each end.
fn range(shares: &[f64], left_out: usize) -> [u64; 2] {
    let (low, high) = (shares[left_out], shares[shares.len() - 1 - left_out]);
    [(low * 1000.0).floor() as u64, (high * 1000.0).ceil() as u64]
}

#[test]
fn the_range_that_is_told_is_the_measured_one() {
    let pairs = pairs();
    let [allocated, reserved] = [0, 1].map(|figure| sorted(&pairs, figure));
    let compiled: Vec<&Pair> = pairs.iter().filter(|pair| pair.shares().is_some()).collect();
    assert!(
        compiled.iter().all(|pair| pair.compiled.graphs > Some(0)),
        "a step that was not compiled"
    );
    let families: BTreeSet<&str> = compiled.iter().map(|pair| pair.family()).collect();
    assert!(allocated.len() >= 60 && families.len() >= 10);
    let told = (
        MEASURED.steps,
        MEASURED.families,
        MEASURED.allocated,
        MEASURED.reserved,
        MEASURED.usual,
    );
    let measured = (
        allocated.len() as u64,
        families.len() as u64,
        range(&allocated, 0),
        range(&reserved, 0),
        range(&allocated, allocated.len() / 20),
    );
    assert_eq!(told, measured);
}

/// The figure that the range is told beside is eager's, so it must be right.
#[test]
fn the_eager_steps_are_predicted() {
    let pairs = pairs();
    let measured = pairs.iter().filter(|pair| pair.eager.peak_steady.is_some());
    let off: Vec<String> = measured
        .filter_map(|pair| match pair.predicted() {
            Ok(share) if (share - 1.0).abs() <= 0.015 => None,
            Ok(share) => Some(format!("{share:.4} {}", pair.eager.case)),
            Err(why) => Some(format!("{why} {}", pair.eager.case)),
        })
        .collect();
    assert!(off.is_empty(), "{}", off.join("\n"));
}

#[test]
fn the_kept_table_of_compiled_steps_is_todays() {
    kept::hold(TABLE, &table(&pairs()));
}

fn table(pairs: &[Pair]) -> String {
    let mut out = String::from(
        "# Compiled steps beside eager ones\n\nRandom configurations of a few layers, each measured in eager mode and under \
         `torch.compile(model)` (Inductor, its defaults), alone in a process of its own, on an H100 (PyTorch 2.11, transformers \
         5.17; `tests/data/truth/compiled.py`). Shares are of the steady step's peak of allocated bytes, and of the run's peak of \
         reserved bytes, which holds what the compiler takes while it tries kernels. Made by `cargo xtask table`.\n\n",
    );
    out += "| figure | least | median | most |\n| --- | --- | --- | --- |\n";
    for (figure, name) in ["allocated", "reserved"].into_iter().enumerate() {
        let shares = sorted(pairs, figure);
        let [low, middle, high] = [0, shares.len() / 2, shares.len() - 1].map(|at| (shares[at] - 1.0) * 100.0);
        let _ = writeln!(out, "| {name} | {low:+.1}% | {middle:+.1}% | {high:+.1}% |");
    }
    out += "\n| key | value | steps | least | median | most |\n| --- | --- | --- | --- | --- | --- |\n";
    for key in ["precision", "ckpt", "attn", "optim"] {
        let values: BTreeSet<&str> = pairs.iter().filter_map(|pair| pair.eager.case[key].as_str()).collect();
        for value in values {
            let of_value = pairs.iter().filter(|pair| pair.eager.case[key] == value);
            let mut shares: Vec<f64> = of_value.filter_map(|pair| Some(pair.shares()?[0])).collect();
            shares.sort_by(f64::total_cmp);
            if shares.is_empty() {
                continue;
            }
            let [low, middle, high] = [0, shares.len() / 2, shares.len() - 1].map(|at| (shares[at] - 1.0) * 100.0);
            let _ = writeln!(
                out,
                "| {key} | {value} | {} | {low:+.1}% | {middle:+.1}% | {high:+.1}% |",
                shares.len()
            );
        }
    }
    out += "\n| case | eager | compiled | allocated | reserved |\n| --- | --- | --- | --- | --- |\n";
    for pair in pairs {
        let case: Vec<String> = pair.eager.case.as_object().into_iter().flatten().map(word).collect();
        let mib = |row: &Row| {
            row.peak_steady
                .map_or("-".into(), |bytes| format!("{:.0} MiB", bytes as f64 / 1_048_576.0))
        };
        let shares = match (pair.shares(), &pair.compiled.error, &pair.compiled.oom) {
            (Some([allocated, reserved]), ..) => {
                format!("{:+.1}% | {:+.1}%", (allocated - 1.0) * 100.0, (reserved - 1.0) * 100.0)
            }
            (None, Some(error), _) => format!("{} |", first_words(error)),
            (None, None, _) => "out of memory |".into(),
        };
        let _ = writeln!(
            out,
            "| {} | {} | {} | {shares} |",
            case.join(" "),
            mib(&pair.eager),
            mib(&pair.compiled)
        );
    }
    out
}

/// The beginning of an error, as a cell of a table.
fn first_words(error: &str) -> String {
    let line: String = error.chars().take(80).collect();
    line.replace(['|', '\n'], " ")
}

fn word((key, value): (&String, &Value)) -> String {
    match value.as_str() {
        Some(text) if key == "model" => text.to_owned(),
        Some(text) => format!("{key}={text}"),
        None => format!("{key}={value}"),
    }
}
