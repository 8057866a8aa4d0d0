//! Compares the time of measured training steps with the engine's estimates.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::sync::LazyLock;

use serde_json::Value;
use vramscope_benchmark::Record;
use vramscope_engine::Model;
use vramscope_engine::attention::{Algorithm, Call, Pass};
use vramscope_engine::device::Device;
use vramscope_engine::dtype::DType;
use vramscope_engine::simulate::record_work;
use vramscope_engine::tape::Gpu;
use vramscope_tests::kept;
use vramscope_tests::measured::{Comparison, Measured, Row, Statistics};
use vramscope_time::{Clock, Costs, H200, Measured as Kernels, Milliseconds, Rates, elapsed};

use super::intervals::{Coverage, Estimated, ends, head, scale};

const FILE: &str = "training_steps.jsonl";
const TABLE: &str = "tests/data/time_vs_predicted.md";

const HEAD: &str = "\
# Measured time against predicted

The milliseconds of every training step of `truth/training_steps.jsonl` (the last micro-batch's forward
and backward, and the update), against what the engine estimates of the same case: with the kernels of
an H200 and the pace of a host that come with the program (see [time/](time/README.md)); with the kernels
of a record of `vramscope bench` in their place ([records/h200.json](records/h200.json)), as
`estimate --record` and *my card* take them; and with those of an H100's record
([time/record_h100.json](time/record_h100.json)), carried by the data sheets of both cards. Nothing is fitted
to a step: kernels and operations are measured one by one. The ends of intervals alone follow from these
steps, as [exactness.md](../../docs/exactness.md#the-interval-of-a-time) says. Errors are (predicted − measured) ÷ measured, of the
whole. Hosts differ: the pace was measured on another machine of the same kind than the steps, on another
day. Made by `cargo xtask table`; a test compares it with today's engine.

";

/// A step with its measured and estimated times, in milliseconds.
struct Timed {
    row: Row,
    measured: Milliseconds,
    /// Estimates in the order of [`KERNELS`].
    estimated: [Estimated; KERNELS.len()],
}

/// Sources of kernel times.
const KERNELS: [&str; 3] = [
    "measured kernels",
    "bench's record",
    "an H100's record, both data sheets",
];
const OWN: usize = 0;
const RECORD: usize = 1;
const SHEET: usize = 2;

impl Timed {
    fn errors(&self) -> [f64; KERNELS.len()] {
        self.estimated.map(|of| total(of.ms) / total(self.measured) - 1.0)
    }
}

pub(super) fn total(ms: Milliseconds) -> f64 {
    ms.forward + ms.backward + ms.optimizer
}

/// Rows that trained, except those whose optimizer GradScaler skipped.
static TIMED: LazyLock<Vec<Timed>> = LazyLock::new(|| {
    let clocks = clocks();
    let rows = Comparison::of_file(FILE).into_iter().filter(|c| !c.scaler_skipped());
    rows.filter_map(|comparison| {
        let row = comparison.row;
        let measured = milliseconds(&row.measured)?;
        let model = Model::from_case(&row.case).ok()?;
        let recording = record_work(&model, &row.case.setup, Gpu::H200).expect("its memory is predicted");
        let estimated = Estimated::all(recording, &row.case.setup, &clocks);
        Some(Timed {
            row,
            measured,
            estimated,
        })
    })
    .collect()
});

/// Clocks of an H200 in the order of [`KERNELS`], with the pace that comes with the program.
fn clocks() -> [Clock; KERNELS.len()] {
    let own = || Kernels::read(H200).expect("the file that comes with the program");
    let of_record = |text: &str| {
        let record = Record::read(text).expect("a record");
        Kernels::of_record(&Record { host: None, ..record }, &own())
    };
    let given = [
        None,
        Some(of_record(include_str!("../../data/records/h200.json"))),
        Some(of_record(include_str!("../../data/time/record_h100.json"))),
    ];
    let card = Device::by_name("H200").expect("a known card");
    given.map(|given| Clock::of(card, own(), given).expect("its data sheet is known"))
}

pub(super) fn milliseconds(measured: &Measured) -> Option<Milliseconds> {
    let Measured::Trained(row) = measured else { return None };
    let ms = |phase: &str| row.get("ms")?.get(phase).and_then(Value::as_f64);
    Some(Milliseconds {
        forward: ms("forward")?,
        backward: ms("backward")?,
        optimizer: ms("optimizer")?,
    })
}

/// Errors of one of the estimates, for rows that take at least `least_ms`.
fn statistics(least_ms: f64, estimate: usize) -> Statistics {
    let long = TIMED.iter().filter(|timed| total(timed.measured) >= least_ms);
    Statistics::of(&long.map(|timed| timed.errors()[estimate]).collect::<Vec<_>>()).expect("there are rows")
}

/// One test for all of them: each needs the work of every step, which takes longer than all else in this file.
#[test]
fn errors_are_within_the_limits_and_the_kept_table_is_todays() {
    errors_are_within_the_limits();
    a_record_of_our_own_bench_is_within_the_limits_too();
    ends_of_intervals_follow_from_these_steps();
    kept::hold(TABLE, &table());
}

fn errors_are_within_the_limits() {
    let (long, all, sheet) = (statistics(50.0, OWN), statistics(0.0, OWN), statistics(0.0, SHEET));
    assert!(long.median <= 0.06 && long.p90 <= 0.14, "50 ms and more: {long:?}");
    assert!(all.median <= 0.06, "all: {all:?}");
    assert!(sheet.median <= 0.08, "from an H100's record: {sheet:?}");
}

/// The ends that come with the program are the percentiles of these steps and those of the first H100, from all sources.
fn ends_of_intervals_follow_from_these_steps() {
    let scores = TIMED.iter().flat_map(|timed| {
        let measured = total(timed.measured);
        timed.estimated.map(|of| of.score(measured))
    });
    let scores = scores.chain(super::own_record::scores_of_the_first());
    let first = TIMED[0].estimated[0];
    let kept = first.ends.map(|end| scale(end) / first.spread);
    let today = ends(scores.collect());
    let same = today.iter().zip(kept).all(|(today, kept)| (today - kept).abs() < 0.02);
    assert!(same, "measured/spreads.json should say {today:?}, and says {kept:?}");
}

/// Coverage of the intervals from one of the sources.
fn coverage(which: usize) -> Coverage {
    Coverage::of(
        TIMED
            .iter()
            .map(|timed| (timed.estimated[which], total(timed.measured))),
    )
}

fn a_record_of_our_own_bench_is_within_the_limits_too() {
    let (long, all) = (statistics(50.0, RECORD), statistics(0.0, RECORD));
    assert!(long.median <= 0.08 && long.p90 <= 0.25, "50 ms and more: {long:?}");
    assert!(all.median <= 0.12, "all: {all:?}");
}

/// Relative errors of the rows in `attention.jsonl` by variant and pass, with measured kernels.
fn attention() -> BTreeMap<(String, bool), Vec<f64>> {
    let own = Kernels::read(H200).expect("the file that comes with the program");
    let costs = Costs::new(Rates::REFERENCE, Some(&own.kernels), &own.pace);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/truth/attention.jsonl");
    let text = std::fs::read_to_string(path).expect("the rows are there");
    let mut out: BTreeMap<(String, bool), Vec<f64>> = BTreeMap::new();
    for line in text.lines() {
        let row: Value = serde_json::from_str(line).expect(line);
        let number = |key: &str| row[key].as_u64().expect(key);
        let variant = row["impl"].as_str().expect("a name");
        let (name, causal) = variant
            .strip_suffix("_causal")
            .map_or((variant, false), |name| (name, true));
        let name = name.trim_end_matches(char::is_numeric);
        let algorithm = Algorithm::ALL.into_iter().find(|a| a.name() == name).expect(name);
        let training = row["backward"] == true;
        let call = Call {
            batch: number("B"),
            heads: number("H"),
            kv_heads: number("H"),
            width: number("D"),
            dtype: if row["dtype"] == "bf16" {
                DType::Bf16
            } else {
                DType::F32
            },
            causal,
            window: 512,
            kept_percent: 10,
            chunk: 64,
            pass: if training { Pass::Training } else { Pass::Forward },
        };
        let found = elapsed(&call, algorithm, number("L"), Gpu::H200, &costs).expect("it ran");
        let error = found.as_millis() / row["ms"].as_f64().expect("a time") - 1.0;
        out.entry((variant.to_owned(), training)).or_default().push(error);
    }
    out
}

#[test]
fn attention_is_within_its_limit() {
    let errors: Vec<f64> = attention().into_values().flatten().collect();
    let all = Statistics::of(&errors).expect("there are rows");
    assert!(all.median <= 0.10, "{all:?}");
}

fn attention_table() -> String {
    let mut out =
        "\n## Attention by itself\n\nEvery row of `truth/attention.jsonl`, with the measured kernels and the host's \
                   pace alone.\n\n| variant | pass | rows | median | 90th percentile |\n| --- | --- | --- | --- | --- |\n"
            .to_owned();
    for ((variant, training), errors) in attention() {
        let s = Statistics::of(&errors).expect("a group has rows");
        let pass = if training { "training" } else { "forward" };
        let _ = writeln!(
            out,
            "| {variant} | {pass} | {} | {:.1}% | {:.1}% |",
            s.count,
            100.0 * s.median,
            100.0 * s.p90
        );
    }
    out
}

fn table() -> String {
    let mut out = HEAD.to_owned();
    out += "| rows | estimate from | median | 90th percentile | worst |\n| --- | --- | --- | --- | --- |\n";
    let kinds = [
        ("50 ms and more", 50.0, OWN),
        ("all", 0.0, OWN),
        ("50 ms and more", 50.0, RECORD),
        ("all", 0.0, RECORD),
        ("50 ms and more", 50.0, SHEET),
        ("all", 0.0, SHEET),
    ];
    for (rows, least, which) in kinds {
        let from = KERNELS[which];
        let s = statistics(least, which);
        let percent = |x: f64| format!("{:.1}%", 100.0 * x);
        let [median, p90, max] = [s.median, s.p90, s.max].map(percent);
        let _ = writeln!(out, "| {rows} | {from} | {median} | {p90} | {max} |");
    }
    out += &head();
    for (which, from) in KERNELS.iter().enumerate() {
        out += &coverage(which).line(from);
    }
    out += "\n| case | measured: forward, backward, optimizer (ms) | predicted | error | interval | from bench's record | from an H100's |\n";
    out += "| --- | --- | --- | --- | --- | --- | --- |\n";
    let mut rows: Vec<&Timed> = TIMED.iter().collect();
    rows.sort_by(|a, b| b.errors()[0].abs().total_cmp(&a.errors()[0].abs()));
    for timed in rows {
        let [error, record, sheet] = timed.errors().map(|e| format!("{:+.0}%", 100.0 * e));
        let _ = writeln!(
            out,
            "| {} {} | {} | {} | {error} | {} | {record} | {sheet} |",
            timed.row.case.model,
            timed.row.options,
            phases(timed.measured),
            phases(timed.estimated[OWN].ms),
            interval(&timed.estimated[OWN]),
        );
    }
    out += &attention_table();
    out
}

/// Ends of an interval in milliseconds.
pub(super) fn interval(of: &Estimated) -> String {
    let [low, high] = of.ends.map(|end| end * total(of.ms));
    format!("{low:.1} to {high:.1}")
}

pub(super) fn phases(ms: Milliseconds) -> String {
    [ms.forward, ms.backward, ms.optimizer]
        .map(|ms| format!("{ms:.1}"))
        .join(", ")
}
