//! Compares single attention calls with measurements on an H200: bytes, and estimated time.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;
use vramscope_engine::attention::{Algorithm, Call, Pass, memory, time};
use vramscope_engine::device::Device;
use vramscope_engine::dtype::DType;
use vramscope_engine::tape::Gpu;
use vramscope_tests::kept;
use vramscope_tests::measured::Statistics;

const TABLE: &str = "tests/data/attention_vs_predicted.md";

const HEAD: &str = "\
# Attention: measured against predicted

Each row of `truth/attention.jsonl` (NVIDIA H200, PyTorch 2.11: forward, or forward and backward of
`f(q, k, v).sum()`), against the engine. Bytes are simulated; time is estimated from the data sheet with
published shares of its peaks, and nothing is fitted, so it shows which algorithm wins and from where on
rather than milliseconds. Errors are (predicted − measured) ÷ measured. Made by
`UPDATE_TABLE=1 cargo test -p vramscope-tests --test attention`; a test compares it with today's engine.

| variant | pass | rows | bytes exact | bytes: median | bytes: max | times | time: median | time: max | beyond 1 ms: median |
| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
";

struct Row {
    variant: String,
    algorithm: Algorithm,
    length: u64,
    call: Call,
    bytes: u64,
    ms: f64,
}

impl Row {
    fn read(line: &str) -> Self {
        let row: Value = serde_json::from_str(line).expect("a line is JSON");
        let number = |key: &str| row[key].as_u64().expect("a whole number");
        let variant = row["impl"].as_str().expect("a name").to_owned();
        let (base, causal) = match variant.strip_suffix("_causal") {
            Some(base) => (base, true),
            None => (&*variant, false),
        };
        let base = base.trim_end_matches(|c: char| c.is_ascii_digit());
        let algorithm = Algorithm::ALL.into_iter().find(|a| a.name() == base);
        let heads = number("H");
        Self {
            algorithm: algorithm.expect("a variant of the engine"),
            length: number("L"),
            call: Call {
                batch: number("B"),
                heads,
                kv_heads: heads,
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
                pass: if row["backward"] == true {
                    Pass::Training
                } else {
                    Pass::Forward
                },
            },
            bytes: number("peak_extra_bytes"),
            ms: row["ms"].as_f64().expect("a number"),
            variant,
        }
    }

    fn bytes_error(&self) -> f64 {
        let found = memory(&self.call, self.algorithm, self.length, Gpu::H200).expect("it ran");
        (found.peak.get() as f64 - self.bytes as f64) / self.bytes as f64
    }

    fn time_error(&self) -> Option<f64> {
        let device = Device::by_name("H200").expect("it is known");
        let found = time(&self.call, self.algorithm, self.length, device).ok()?;
        Some((found.total.as_millis() - self.ms) / self.ms)
    }
}

fn rows() -> Vec<Row> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/truth/attention.jsonl");
    let text = std::fs::read_to_string(path).expect("the rows are there");
    text.lines().map(Row::read).collect()
}

fn render(rows: &[Row]) -> String {
    let mut groups: BTreeMap<(&str, bool), Vec<&Row>> = BTreeMap::new();
    for row in rows {
        let training = row.call.pass == Pass::Training;
        groups.entry((&row.variant, training)).or_default().push(row);
    }
    let mut out = HEAD.to_owned();
    for ((variant, training), rows) in groups {
        let bytes: Vec<f64> = rows.iter().map(|row| row.bytes_error()).collect();
        let exact = bytes.iter().filter(|e| **e == 0.0).count();
        let of = Statistics::of(&bytes).expect("a group has rows");
        let times: Vec<f64> = rows.iter().filter_map(|row| row.time_error()).collect();
        let long = rows.iter().filter(|row| row.ms > 1.0);
        let long: Vec<f64> = long.filter_map(|row| row.time_error()).collect();
        let share = |x: Option<f64>| x.map_or_else(|| "—".into(), |x| format!("{:.1}%", 100.0 * x));
        out += &format!(
            "| {variant} | {} | {} | {exact} | {:.3}% | {:.3}% | {} | {} | {} | {} |\n",
            if training { "training" } else { "forward" },
            rows.len(),
            100.0 * of.median,
            100.0 * of.max,
            times.len(),
            share(Statistics::of(&times).map(|s| s.median)),
            share(Statistics::of(&times).map(|s| s.max)),
            share(Statistics::of(&long).map(|s| s.median)),
        );
    }
    out
}

#[test]
fn bytes_are_within_a_thousandth() {
    let wrong: Vec<String> = rows()
        .iter()
        .map(|row| (row, row.bytes_error()))
        .filter(|(_, error)| error.abs() > 1e-3)
        .map(|(row, error)| format!("{} at {}, {:?}: {error:.4}", row.variant, row.length, row.call))
        .collect();
    assert!(wrong.is_empty(), "{} rows:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn the_kept_table_is_todays() {
    kept::hold(TABLE, &render(&rows()));
}
