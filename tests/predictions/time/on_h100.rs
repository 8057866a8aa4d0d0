//! Compares the time of steps on an H100 with estimates from a record that `vramscope bench` made there alone.

use std::fmt::Write;

use vramscope_benchmark::Record;
use vramscope_engine::Model;
use vramscope_engine::setup::Precision;
use vramscope_engine::simulate::record_work;
use vramscope_engine::tape::Gpu;
use vramscope_tests::kept;
use vramscope_tests::measured::{Row, Statistics};
use vramscope_time::{Clock, H200, Measured as Kernels, Milliseconds, step};

use super::steps::{milliseconds, phases, total};

const FILE: &str = "steps_h100.jsonl";
const TABLE: &str = "tests/data/time_on_h100.md";
const RECORD: &str = include_str!("../../data/time/record_h100.json");

const HEAD: &str = "\
# Time on an H100, from its own record

Seventy steps of `truth/training_steps.jsonl`, drawn by chance, measured again on an H100 (`truth/steps_h100.jsonl`), against
estimates for that card: with the record that `vramscope bench` made there half an hour before
([time/record_h100.json](time/record_h100.json)), which holds the host's probes; with the same record without them, so that
the pace that comes with the program counts as it is; and from the data sheet. Steps in fp16 are left out, since GradScaler
left their optimizer out. The steps were timed five times each, and the host was shared: the best of five lies 3% below the
median that counts here, and up to 16% in single cases. Errors are (predicted − measured) ÷ measured. Made by `cargo xtask
table`.

";

const FROM: [&str; 3] = ["the record", "the record without its host", "the data sheet"];

struct Timed {
    row: Row,
    measured: Milliseconds,
    estimated: [Milliseconds; 3],
}

impl Timed {
    fn errors(&self) -> [f64; 3] {
        self.estimated.map(|ms| total(ms) / total(self.measured) - 1.0)
    }
}

fn clocks() -> [Clock; 3] {
    let own = || Kernels::read(H200).expect("the file that comes with the program");
    let record = Record::read(RECORD).expect("a record");
    let without = Record {
        host: None,
        ..record.clone()
    };
    let card = vramscope_engine::device::Device::by_name(&record.device.name).expect("a known card");
    let given = [Some(&record), Some(&without), None].map(|record| record.map(|r| Kernels::of_record(r, &own())));
    given.map(|given| Clock::of(card, own(), given).expect("its data sheet is known"))
}

fn timed() -> Vec<Timed> {
    let clocks = clocks();
    let rows = Row::read_all(FILE).into_iter();
    rows.filter(|row| row.case.setup.precision != Precision::AmpFp16)
        .filter_map(|row| {
            let measured = milliseconds(&row.measured)?;
            let model = Model::from_case(&row.case).expect("a known model");
            let recording = record_work(&model, &row.case.setup, Gpu::H200).expect("its memory is predicted");
            let estimated = clocks
                .each_ref()
                .map(|clock| step(&recording, &clock.costs()).milliseconds());
            Some(Timed {
                row,
                measured,
                estimated,
            })
        })
        .collect()
}

/// One test, since each figure needs the work of every step.
#[test]
fn errors_on_another_card_are_within_the_limits_and_the_kept_table_is_todays() {
    let timed = timed();
    let of = |least: f64, which: usize| {
        let long = timed.iter().filter(|timed| total(timed.measured) >= least);
        Statistics::of(&long.map(|timed| timed.errors()[which]).collect::<Vec<_>>()).expect("there are rows")
    };
    let (with, without) = (of(0.0, 0), of(0.0, 1));
    assert!(with.median <= 0.10 && with.p90 <= 0.30, "{with:?}");
    assert!(
        with.median < without.median,
        "the host's probes help: {with:?}, {without:?}"
    );
    let mut out = HEAD.to_owned();
    out += "| rows | estimate from | median | 90th percentile | worst |\n| --- | --- | --- | --- | --- |\n";
    for (which, from) in FROM.iter().enumerate() {
        for (rows, least) in [("50 ms and more", 50.0), ("all", 0.0)] {
            let s = of(least, which);
            let [median, p90, max] = [s.median, s.p90, s.max].map(|x| format!("{:.1}%", 100.0 * x));
            let _ = writeln!(out, "| {rows} | {from} | {median} | {p90} | {max} |");
        }
    }
    out += "\n| case | measured: forward, backward, optimizer (ms) | predicted | error | without its host | data sheet |\n";
    out += "| --- | --- | --- | --- | --- | --- |\n";
    let mut rows: Vec<&Timed> = timed.iter().collect();
    rows.sort_by(|a, b| b.errors()[0].abs().total_cmp(&a.errors()[0].abs()));
    for timed in rows {
        let [error, without, sheet] = timed.errors().map(|e| format!("{:+.0}%", 100.0 * e));
        let (model, options) = (&timed.row.case.model, &timed.row.options);
        let (measured, predicted) = (phases(timed.measured), phases(timed.estimated[0]));
        let _ = writeln!(
            out,
            "| {model} {options} | {measured} | {predicted} | {error} | {without} | {sheet} |"
        );
    }
    kept::hold(TABLE, &out);
}
