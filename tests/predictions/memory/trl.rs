//! Steps of TRL's SFTTrainer, DPOTrainer and GRPOTrainer as people start them, against measurements on an H100.

use std::fmt::Write as _;
use std::io::Read as _;

use flate2::read::GzDecoder;
use serde::Deserialize;
use serde_json::{Value, json};
use vramscope_engine::{Case, Model, Report, simulate};
use vramscope_tests::{kept, ledger};

const FILE: &str = include_str!("../../data/truth/fronts_h100.jsonl");
const GRPO: &str = include_str!("../../data/truth/grpo_h100.jsonl");
const TABLE: &str = "tests/data/trl_vs_predicted.md";
/// Random configurations, once they are measured (`configurations.py draw … trl`).
const DRAWN: &str = "data/truth/trl.jsonl.gz";

/// A measured run, as `tests/data/truth/fronts.py` writes it.
#[derive(Debug, Deserialize)]
struct Row {
    case: Value,
    /// Configuration of a model without a name.
    config: Option<Value>,
    params: u64,
    after_model: u64,
    steady: Marks,
    peak_steady: u64,
    reserved_peak: u64,
}

#[derive(Debug, Deserialize)]
struct Marks {
    end: u64,
}

/// Names of the figures that are compared.
const FIGURES: [&str; 4] = ["peak", "after the model", "end", "reserved"];

/// A run, its case, and its prediction.
struct Compared {
    row: Row,
    case: Value,
    report: Result<Report, String>,
}

impl Compared {
    fn all() -> Vec<Self> {
        let rows = FILE
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).expect("a row"));
        let of_trl = rows.filter(|row| {
            row["case"]["front"]
                .as_str()
                .is_some_and(|front| front.starts_with("trl"))
        });
        of_trl
            .map(|row| {
                let row: Row = serde_json::from_value(row).expect("a row");
                let case = case(&row.case);
                Self::of(row, case)
            })
            .collect()
    }

    /// Steps of GRPO, whose cases are complete but for the trainer.
    fn grpo() -> Vec<Self> {
        let rows = GRPO.lines().filter_map(|line| serde_json::from_str::<Row>(line).ok());
        rows.map(|row| {
            let given = row.case.as_object().expect("an object").clone();
            let named = [("model", given["model"].clone()), ("trainer", json!("trl_grpo"))];
            let named = named.map(|(key, value)| (key.to_owned(), value));
            let others = given.into_iter().filter(|(key, _)| key != "front" && key != "model");
            let case: Value = named.into_iter().chain(others).collect();
            Self::of(row, case)
        })
        .collect()
    }

    fn of(row: Row, case: Value) -> Self {
        let report = predict(&case, row.config.as_ref());
        Self { row, case, report }
    }

    /// Random configurations; none before they are measured.
    fn drawn() -> Vec<Self> {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(DRAWN);
        let mut text = String::new();
        if let Ok(file) = std::fs::File::open(path) {
            GzDecoder::new(file).read_to_string(&mut text).expect("it is a text");
        }
        // Lines without figures say where it was measured, or that a run failed.
        let rows = text.lines().filter_map(|line| serde_json::from_str::<Row>(line).ok());
        rows.map(|row| {
            let case = row.case.clone();
            Self::of(row, case)
        })
        .collect()
    }

    /// The run as the ledger has it.
    fn run(&self) -> ledger::Run {
        let row = &self.row;
        ledger::Run::of(&self.case, (row.peak_steady, row.reserved_peak), self.report.as_ref())
    }

    /// Relative errors of [`FIGURES`].
    fn errors(&self) -> Option<[f64; 4]> {
        let report = self.report.as_ref().ok()?;
        let (row, steady) = (&self.row, &report.steady);
        let peak = steady.peak_forward.max(steady.peak_backward).max(steady.peak_optimizer);
        let pairs = [
            (peak, row.peak_steady),
            (report.after_model, row.after_model),
            (steady.end, row.steady.end),
            (report.peak_reserved, row.reserved_peak),
        ];
        Some(pairs.map(|(predicted, measured)| predicted.get() as f64 / measured as f64 - 1.0))
    }
}

/// The case of a run: TRL's defaults, and what `run_trl` gives beside them.
fn case(given: &Value) -> Value {
    let front = given["front"].as_str().expect("a front");
    let seq = given["seq"].as_u64().expect("a length");
    let mut case = json!({
        "model": given["model"],
        "trainer": front,
        "batch": given["batch"],
        "seq": seq,
        "precision": if given["dtype"] == "bfloat16" { "bf16-amp" } else { "amp-bf16" },
        "optim": "adamw_fused",
        "ckpt": if given["args"]["gradient_checkpointing"] == false { "none" } else { "full" },
        "accum": given["accum"].as_u64().unwrap_or(1),
        "clip": true,
    });
    if given["freeze"] == "lora" {
        case["freeze"] = json!("lora");
    }
    if front == "trl_dpo" {
        // Half of each sample is the prompt.
        case["completion"] = json!(seq - seq / 2);
    }
    case
}

fn predict(case: &Value, config: Option<&Value>) -> Result<Report, String> {
    let case = Case::from_json(&case.to_string()).map_err(|error| error.to_string())?;
    let case = case.ok_or("an empty case")?;
    let model = match config {
        Some(config) => Model::from_config_for(&config.to_string(), &case.setup),
        None => Model::from_case(&case),
    };
    let model = model.map_err(|error| error.to_string())?;
    simulate(&model, &case.setup).map_err(|error| error.to_string())
}

/// The absolute errors of a figure, the smallest first.
fn sorted(rows: &[Compared], figure: usize) -> Vec<f64> {
    let mut errors: Vec<f64> = rows
        .iter()
        .filter_map(|row| Some(row.errors()?[figure].abs()))
        .collect();
    errors.sort_by(f64::total_cmp);
    errors
}

/// The error that `percent` of the runs stay within.
fn within(errors: &[f64], percent: usize) -> f64 {
    errors[(errors.len() * percent).div_ceil(100) - 1]
}

#[test]
fn steps_of_trl_are_predicted() {
    let rows = Compared::all();
    assert_eq!(rows.len(), 20);
    for row in &rows {
        let report = row.report.as_ref().expect("it is simulated");
        assert_eq!(report.params, row.row.params, "{}", row.case);
    }
    let peak = sorted(&rows, 0);
    assert!(within(&peak, 50) <= 1e-6, "median {}", within(&peak, 50));
    assert!(within(&peak, 95) <= 0.002, "95% within {}", within(&peak, 95));
    let reserved = sorted(&rows, 3);
    assert!(within(&reserved, 50) <= 0.003, "median {}", within(&reserved, 50));
    assert!(within(&reserved, 90) <= 0.02, "90% within {}", within(&reserved, 90));
}

#[test]
fn steps_of_grpo_are_predicted() {
    let rows = Compared::grpo();
    assert_eq!(rows.len(), 16);
    for row in &rows {
        let report = row.report.as_ref().expect("it is simulated");
        assert_eq!(report.params, row.row.params, "{}", row.case);
    }
    let peak = sorted(&rows, 0);
    assert!(within(&peak, 50) <= 1e-6, "median {}", within(&peak, 50));
    assert!(within(&peak, 100) <= 0.001, "worst {}", within(&peak, 100));
    let reserved = sorted(&rows, 3);
    assert!(within(&reserved, 50) <= 0.005, "median {}", within(&reserved, 50));
    assert!(within(&reserved, 100) <= 0.08, "worst {}", within(&reserved, 100));
}

#[test]
fn random_steps_of_trl_are_predicted() {
    let rows = Compared::drawn();
    if rows.is_empty() {
        return;
    }
    let refused: Vec<&String> = rows.iter().filter_map(|row| row.report.as_ref().err()).collect();
    let is_named = |why: &&&String| why.contains("not simulated") || why.contains("not supported");
    assert!(refused.iter().all(|why| is_named(&why)), "{refused:?}");
    assert!(rows.len() - refused.len() >= 60, "{refused:?}");
    let peak = sorted(&rows, 0);
    assert!(within(&peak, 50) <= 0.003, "median {}", within(&peak, 50));
    assert!(within(&peak, 95) <= 0.02, "95% within {}", within(&peak, 95));
}

#[test]
fn the_kept_table_of_trl_is_todays() {
    let [rows, grpo, drawn] = [Compared::all(), Compared::grpo(), Compared::drawn()];
    kept::hold(TABLE, &table(&rows, &grpo, &drawn));
    for (name, rows) in [("trl", &rows), ("trl_grpo", &grpo), ("trl_drawn", &drawn)] {
        ledger::hold(name, rows.iter().map(Compared::run));
    }
}

fn table(rows: &[Compared], grpo: &[Compared], drawn: &[Compared]) -> String {
    let mut out = String::from(
        "# Steps of TRL 1.16's SFTTrainer, DPOTrainer and GRPOTrainer against their prediction\n\nModels that lie in a folder and are \
         loaded by the trainer, each measured alone in its process on an H100 (PyTorch 2.11, transformers 5.17, accelerate \
         1.15, peft 0.21; `tests/data/truth/fronts.py`). Made by `cargo xtask table`.\n",
    );
    write_rows(&mut out, rows);
    out += "\n## GRPO\n\nThe model that is trained generates, and no completion ends early; `reference` none is `beta` 0. The last \
            step is one that generates.\n";
    write_rows(&mut out, grpo);
    if !drawn.is_empty() {
        out += "\n## Random configurations\n\nOf every family that these trainers take (`configurations.py draw … trl`).\n";
        write_rows(&mut out, drawn);
    }
    out
}

fn write_rows(out: &mut String, rows: &[Compared]) {
    *out += "\n| figure | median | 95% within | worst |\n| --- | --- | --- | --- |\n";
    for (figure, name) in FIGURES.iter().enumerate() {
        let errors = sorted(rows, figure);
        let [median, most, worst] = [50, 95, 100].map(|percent| within(&errors, percent) * 100.0);
        let _ = writeln!(out, "| {name} | {median:.4}% | {most:.4}% | {worst:.4}% |");
    }
    *out +=
        "\n| case | peak, measured | predicted | reserved, measured | predicted |\n| --- | --- | --- | --- | --- |\n";
    for row in rows {
        let case: Vec<String> = row.case.as_object().into_iter().flatten().map(word).collect();
        let [peak, reserved] = match (row.errors(), &row.report) {
            (Some(errors), _) => [errors[0], errors[3]].map(off),
            (None, Err(why)) => [format!("refused: {why}"), String::new()],
            (None, Ok(_)) => unreachable!("a report has errors"),
        };
        let (measured, held) = (row.row.peak_steady, row.row.reserved_peak);
        let _ = writeln!(
            out,
            "| {} | {measured} | {peak} | {held} | {reserved} |",
            case.join(" ")
        );
    }
}

/// An error in percent.
fn off(error: f64) -> String {
    match error == 0.0 {
        true => "every byte".to_owned(),
        false => format!("{:+.4}%", error * 100.0),
    }
}

fn word((key, value): (&String, &Value)) -> String {
    match value.as_str() {
        Some(text) if key == "model" => text.to_owned(),
        Some(text) => format!("{key}={text}"),
        None => format!("{key}={value}"),
    }
}
