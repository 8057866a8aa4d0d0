//! Formats the table of measured against predicted values.

use vramscope_engine::format;

use super::comparison::Comparison;
use super::quantity::Quantity;
use super::row::Measured;
use super::statistics::Statistics;

/// Path of the table, relative to the repository's root.
pub const TABLE_PATH: &str = "tests/data/measured_vs_predicted.md";

/// Beginning of the table's file: which measurements it holds, and how to read them. [`render_table`] adds the tables below.
const HEAD: &str = "\
# Measured against predicted

Every training step of `truth/training_steps.jsonl` and `truth/course.jsonl`, those of
`truth/settled_fp16.jsonl`, where fp16 overflows at first, those of `truth/held_out.jsonl`, drawn by chance
among models without a row in the first, and those of `truth/held_out_all_models.jsonl`, drawn among all, both
predicted before they were measured, those of `truth/own_process.jsonl`: the cases of two of these again and
195 others, each in a process of its own, and those of `truth/configurations.jsonl.gz`: configurations drawn by chance
that nobody published; measured on an NVIDIA H200 (those of `truth/families.jsonl.gz`, of families that came later, on
an H100) with PyTorch 2.11 and transformers 5.17 (see
[README.md](README.md)), against what the engine says of the same case without having seen the measurement. Errors are (predicted − measured) ÷ measured. A
case that does not say otherwise has no checkpointing, SDPA, nothing frozen, and one micro-batch a
step. Made by `cargo xtask table`; a test compares it with today's engine.

";

/// Steps of fp16 runs after GradScaler stops skipping, for cases whose first steps it skips.
pub const SETTLED_FILE: &str = "settled_fp16.jsonl";

/// Random cases whose predictions were recorded before they were measured: over models without a row in
/// `training_steps.jsonl`, and over all models.
pub const HELD_OUT_FILES: [&str; 2] = ["held_out.jsonl", "held_out_all_models.jsonl"];

/// Cases that were each measured in a separate process: those of `training_steps.jsonl` and `held_out_all_models.jsonl`
/// again, and 195 random ones.
pub const OWN_PROCESS_FILE: &str = "own_process.jsonl";

/// Random configurations of each family, each measured in a separate process.
pub const CONFIGURATIONS_FILE: &str = "configurations.jsonl.gz";

/// Random configurations of families that came later, drawn by `truth/drawn`, each measured in a separate process on an
/// H100.
pub const FAMILIES_FILE: &str = "families.jsonl.gz";

/// All files of training steps, in the order of the table.
pub fn files() -> impl Iterator<Item = &'static str> {
    let first = ["training_steps.jsonl", "course.jsonl", SETTLED_FILE].into_iter();
    first
        .chain(HELD_OUT_FILES)
        .chain([OWN_PROCESS_FILE, CONFIGURATIONS_FILE, FAMILIES_FILE])
}

/// Columns of errors with short headers; columns without data are left out for a file.
const ERRORS: [(Quantity, &str); 10] = [
    (Quantity::BeforeForward, "before fwd"),
    (Quantity::AfterForward, "after fwd"),
    (Quantity::PeakForward, "peak fwd"),
    (Quantity::AfterBackward, "after bwd"),
    (Quantity::PeakBackward, "peak bwd"),
    (Quantity::PeakOptimizer, "peak opt"),
    (Quantity::End, "end"),
    (Quantity::PeakAllocated, "**peak**"),
    (Quantity::PeakReserved, "reserved"),
    (Quantity::ReservedAlone, "fresh"),
];

/// Formats the whole table: for each file a summary and its rows.
pub fn render_table(predicted: &[(&str, Vec<Comparison>)]) -> String {
    let mut out = String::from(HEAD);
    for (file, rows) in predicted {
        out += &format!(
            "## {file}\n\n{}\n{}\n{}\n{}",
            coverage(rows),
            by_quantity(rows),
            by_model(rows),
            list(rows)
        );
    }
    out
}

fn coverage(rows: &[Comparison]) -> String {
    let trained = rows.iter().filter(|c| matches!(c.row.measured, Measured::Trained(_)));
    let (predicted, missing): (Vec<_>, Vec<_>) = trained.partition(|c| c.outcome.is_ok());
    let exact = predicted
        .iter()
        .filter(|c| c.parameters_are_exact() == Some(true))
        .count();
    format!(
        "{} cases: {} predicted, {} that the engine does not know yet, {} that failed or ran out of memory when \
         measured. Parameters and trained parameters exact in {exact} of {}.\n",
        rows.len(),
        predicted.len(),
        missing.len(),
        rows.len() - predicted.len() - missing.len(),
        predicted.len(),
    )
}

fn by_quantity(rows: &[Comparison]) -> String {
    let mut out =
        String::from("| figure | n | median | p90 | max | worst under |\n| --- | --: | --: | --: | --: | --: |\n");
    for quantity in Quantity::ALL {
        let errors: Vec<f64> = rows.iter().filter_map(|row| row.error(quantity)).collect();
        out += &statistics_line(quantity.name(), &errors);
    }
    out
}

fn by_model(rows: &[Comparison]) -> String {
    let mut names: Vec<&str> = rows.iter().map(|c| c.row.case.model.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let mut out = String::from(
        "| peak of model | n | median | p90 | max | worst under |\n| --- | --: | --: | --: | --: | --: |\n",
    );
    for name in names {
        let rows = rows.iter().filter(|c| c.row.case.model == name);
        let errors: Vec<f64> = rows.filter_map(|row| row.error(Quantity::PeakAllocated)).collect();
        out += &statistics_line(name, &errors);
    }
    out
}

fn statistics_line(name: &str, errors: &[f64]) -> String {
    let percent = |fraction: f64| format!("{:.2}%", fraction * 100.0);
    Statistics::of(errors).map_or_else(String::new, |s| {
        let figures = [s.median, s.p90, s.max, s.worst_under].map(percent);
        format!("| {name} | {} | {} |\n", s.count, figures.join(" | "))
    })
}

fn list(rows: &[Comparison]) -> String {
    let is_known = |(quantity, _): &(Quantity, &str)| rows.iter().any(|row| row.error(*quantity).is_some());
    let columns: Vec<(Quantity, &str)> = ERRORS.into_iter().filter(is_known).collect();
    let heads: Vec<&str> = columns.iter().map(|(_, head)| *head).collect();
    let mut out = format!("| | case | measured | predicted | {} |\n", heads.join(" | "));
    out += &format!("| --: | --- | --: | --: | {} |\n", vec!["--:"; heads.len()].join(" | "));
    for comparison in rows {
        out += &row_line(comparison, &columns);
    }
    out + "\n"
}

fn row_line(comparison: &Comparison, columns: &[(Quantity, &str)]) -> String {
    let row = &comparison.row;
    let label = row.label.as_ref().map(|label| format!("{label} ")).unwrap_or_default();
    let case = format!("{label}**{}** {}", row.case.model, row.options);
    let measured = match &row.measured {
        Measured::Trained(_) => gib(Quantity::PeakAllocated.measured(&row.measured)),
        Measured::OutOfMemory => "out of memory".into(),
        Measured::Failed(_) => "failed".into(),
    };
    let predicted = match &comparison.outcome {
        Ok(report) => format::gib(report.peak_allocated),
        Err(_) => "—".into(),
    };
    let error = |(quantity, _): &(Quantity, &str)| comparison.error(*quantity).map(format::error).unwrap_or_default();
    let errors: Vec<String> = columns.iter().map(error).collect();
    format!(
        "| {} | {case} | {measured} | {predicted} | {} |\n",
        row.index,
        errors.join(" | ")
    )
}

fn gib(bytes: Option<vramscope_engine::units::Bytes>) -> String {
    bytes.map(format::gib).unwrap_or_default()
}
