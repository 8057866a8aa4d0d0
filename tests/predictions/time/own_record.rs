//! Compares the time of steps on a machine with estimates from a record that `vramscope bench` made there alone.

use std::fmt::Write;
use std::sync::LazyLock;

use vramscope_benchmark::Record;
use vramscope_engine::Model;
use vramscope_engine::setup::Precision;
use vramscope_engine::simulate::record_work;
use vramscope_engine::tape::Gpu;
use vramscope_tests::kept;
use vramscope_tests::measured::{Measured, Row, Statistics};
use vramscope_time::{Clock, H200, Measured as Kernels, Milliseconds};

use super::intervals::{Coverage, Estimated, head};
use super::steps::{interval, milliseconds, phases, total};

/// Steps of a machine and the record that `bench` made there.
struct Machine {
    /// File of the steps.
    steps: &'static str,
    record: &'static str,
    table: &'static str,
    /// What the table says of them.
    head: &'static str,
    /// Names of the three sources of estimates.
    from: [&'static str; 3],
}

/// Sources of estimates for a card whose kernels come with the program only as another card's.
const OF_OTHERS: [&str; 3] = ["the record", "the record without its host", "the data sheets"];

const FIRST: Machine = Machine {
    steps: "steps_h100.jsonl",
    record: include_str!("../../data/time/record_h100.json"),
    table: "tests/data/time_on_h100.md",
    head: "\
# Time on an H100, from its own record

Seventy steps of `truth/training_steps.jsonl`, drawn by chance, measured again on an H100 (`truth/steps_h100.jsonl`), against
estimates for that card: with the record that `vramscope bench` made there half an hour before
([time/record_h100.json](time/record_h100.json)), which holds the host's probes, but did not follow its pace; ",
    from: OF_OTHERS,
};

const LATER: Machine = Machine {
    steps: "steps_h100_later.jsonl",
    record: include_str!("../../data/time/record_h100_later.json"),
    table: "tests/data/time_on_h100_later.md",
    head: "\
# Time on another H100, from its own record

Thirty cases of `truth/training_steps.jsonl`, `held_out.jsonl` and `held_out_all_models.jsonl` that the first H100 did not run,
drawn by chance (`truth/draw.py`, seed 20261207) and measured on a second H100 (`truth/steps_h100_later.jsonl`), against
estimates for that card, of which no constant comes from these steps: with the record that was made there in the eight minutes
before ([time/record_h100_later.json](time/record_h100_later.json)), which holds the host's probes and followed its pace; ",
    from: OF_OTHERS,
};

const ON_H200: Machine = Machine {
    steps: "steps_h200_later.jsonl",
    record: include_str!("../../data/time/record_h200_later.json"),
    table: "tests/data/time_on_h200_later.md",
    head: "\
# Time on another H200, from its own record

Cases of `truth/training_steps.jsonl`, `held_out.jsonl` and `held_out_all_models.jsonl` that neither H100 ran, drawn by chance
(`truth/draw.py`, seed 20261209; the deadline came after 44 of 60) and measured on an H200 of which no constant comes
(`truth/steps_h200_later.jsonl`), against estimates for that card: with the record that one run of `vramscope bench` made there
in the 264 seconds before ([time/record_h200_later.json](time/record_h200_later.json)). Its host was fast while `bench` ran and
slow while the steps did: see [exactness.md](../../docs/exactness.md#a-host-that-changes). Estimates are: with this record; ",
    from: ["the record", "the record without its host", "kernels of another H200"],
};

const HEAD: &str = "\
with the same record without its host, so that
the pace that comes with the program counts as it is; and without any measurement of this card: the H200's kernels that
come with the program, for another card carried by the data sheets of both. Steps in fp16 are left out, since GradScaler
left their optimizer out. An interval is for nine steps in ten; its ends follow from the H200's steps and the first H100's ([exactness.md](../../docs/exactness.md#the-interval-of-a-time)). The steps were timed five times each, and the host was
shared: the median of five counts here, which other programs on the host may lengthen. Errors are (predicted − measured) ÷
measured. Made by `cargo xtask table`.

";

struct Timed {
    row: Row,
    measured: Milliseconds,
    /// The best of five.
    best: f64,
    estimated: [Estimated; 3],
}

impl Timed {
    fn errors(&self) -> [f64; 3] {
        self.estimated.map(|of| total(of.ms) / total(self.measured) - 1.0)
    }
}

fn clocks(text: &str) -> [Clock; 3] {
    let own = || Kernels::read(H200).expect("the file that comes with the program");
    let record = Record::read(text).expect("a record");
    let without = Record {
        host: None,
        ..record.clone()
    };
    let card = vramscope_engine::device::Device::by_name(&record.device.name).expect("a known card");
    let given = [Some(&record), Some(&without), None].map(|record| record.map(|r| Kernels::of_record(r, &own())));
    given.map(|given| Clock::of(card, own(), given).expect("its data sheet is known"))
}

fn timed(machine: &Machine) -> Vec<Timed> {
    let clocks = clocks(machine.record);
    let rows = Row::read_all(machine.steps).into_iter();
    rows.filter(|row| row.case.setup.precision != Precision::AmpFp16)
        .filter_map(|row| {
            let measured = milliseconds(&row.measured)?;
            let model = Model::from_case(&row.case).expect("a known model");
            let recording = record_work(&model, &row.case.setup, Gpu::H200).expect("its memory is predicted");
            let estimated = Estimated::all(recording, &row.case.setup, &clocks);
            Some(Timed {
                best: best(&row.measured)?,
                row,
                measured,
                estimated,
            })
        })
        .collect()
}

fn best(measured: &Measured) -> Option<f64> {
    let Measured::Trained(row) = measured else { return None };
    row.get("ms")?.get("best_total")?.as_f64()
}

/// Coverage of the intervals from one of the sources.
fn coverage(timed: &[Timed], which: usize, measured: impl Fn(&Timed) -> f64) -> Coverage {
    Coverage::of(timed.iter().map(|timed| (timed.estimated[which], measured(timed))))
}

/// Coverage from each source, of the median of five runs and of the best.
fn intervals(machine: &Machine, timed: &[Timed]) -> String {
    let mut out = head();
    for (which, from) in machine.from.iter().enumerate() {
        out += &coverage(timed, which, |timed| total(timed.measured)).line(from);
        out += &coverage(timed, which, |timed| timed.best).line(&format!("{from}, the best of five"));
    }
    out
}

/// What the GPU decides, and what waits for the host: the median error of each source.
fn by_resource(machine: &Machine, timed: &[Timed]) -> String {
    let mut out = "\n| steps | estimate from | number | median |\n| --- | --- | --- | --- |\n".to_owned();
    for (steps, is_busy) in [
        ("the GPU computes 85% and more", true),
        ("the GPU computes less", false),
    ] {
        for (which, from) in machine.from.iter().enumerate() {
            let of = timed
                .iter()
                .filter(|timed| (timed.estimated[which].busy >= 0.85) == is_busy);
            let s = Statistics::of(&of.map(|timed| timed.errors()[which]).collect::<Vec<_>>()).expect("there are rows");
            let _ = writeln!(out, "| {steps} | {from} | {} | {:.1}% |", s.count, 100.0 * s.median);
        }
    }
    out
}

static OF_FIRST: LazyLock<Vec<Timed>> = LazyLock::new(|| timed(&FIRST));

/// Scores of the first machine's steps, from all sources.
pub(super) fn scores_of_the_first() -> impl Iterator<Item = f64> {
    OF_FIRST.iter().flat_map(|timed| {
        let measured = total(timed.measured);
        timed.estimated.map(|of| of.score(measured))
    })
}

#[test]
fn errors_on_another_card_are_within_the_limits_and_the_kept_table_is_todays() {
    let of = |which, least| statistics(&OF_FIRST, which, least);
    let (with, without, sheet) = (of(0, 0.0), of(1, 0.0), of(2, 0.0));
    assert!(with.median <= 0.06 && with.p90 <= 0.25, "{with:?}");
    assert!(with.median < without.median, "{with:?}, {without:?}");
    assert!(sheet.median <= 0.14, "from the data sheets: {sheet:?}");
    for (which, widest) in [(1, 0.20), (2, 0.30)] {
        let coverage = coverage(&OF_FIRST, which, |timed| total(timed.measured));
        let is_honest = (0.80..=0.97).contains(&coverage.share()) && coverage.half_width <= widest;
        assert!(is_honest, "{}: {coverage:?}", FIRST.from[which]);
    }
    hold(&FIRST, &OF_FIRST);
}

/// No constant comes from these steps.
#[test]
fn a_later_machine_is_within_the_limits_by_its_own_record() {
    let timed = timed(&LATER);
    let of = |least| statistics(&timed, 0, least);
    let (all, long) = (of(0.0), of(50.0));
    assert!(
        all.median <= 0.08 && long.median <= 0.06 && long.p90 <= 0.25,
        "{all:?}, {long:?}"
    );
    let busy = timed.iter().filter(|timed| timed.estimated[0].busy >= 0.85);
    let busy = Statistics::of(&busy.map(|timed| timed.errors()[0]).collect::<Vec<_>>()).expect("there are some");
    assert!(
        busy.median <= 0.03 && busy.max <= 0.08,
        "what the GPU decides: {busy:?}"
    );
    assert!(coverage(&timed, 0, |timed| total(timed.measured)).share() >= 0.7);
    hold(&LATER, &timed);
}

/// No constant comes from these steps, nor from this machine.
#[test]
fn a_later_h200_is_slower_by_its_host_alone() {
    let timed = timed(&ON_H200);
    hold(&ON_H200, &timed);
    // A processor whose core a neighbour shares took 1.6 times as long as in the record (docs/exactness.md), so that errors are
    // on one side, and at most that large.
    for timed in &timed {
        let error = timed.errors()[0];
        assert!((-0.47..=0.05).contains(&error), "{error}: {}", timed.row.options);
    }
    let busy = timed.iter().filter(|timed| timed.estimated[0].busy >= 0.85);
    let busy = Statistics::of(&busy.map(|timed| timed.errors()[0]).collect::<Vec<_>>()).expect("there are some");
    assert!(busy.median <= 0.06, "what the GPU decides: {busy:?}");
}

/// Errors of one of the estimates, for steps of at least `least` milliseconds.
fn statistics(timed: &[Timed], which: usize, least: f64) -> Statistics {
    let long = timed.iter().filter(|timed| total(timed.measured) >= least);
    Statistics::of(&long.map(|timed| timed.errors()[which]).collect::<Vec<_>>()).expect("there are rows")
}

/// Compares a machine's table with the kept one.
fn hold(machine: &Machine, timed: &[Timed]) {
    let of = |least: f64, which: usize| statistics(timed, which, least);
    let mut out = format!("{}{HEAD}", machine.head);
    out += "| rows | estimate from | median | 90th percentile | worst |\n| --- | --- | --- | --- | --- |\n";
    for (which, from) in machine.from.iter().enumerate() {
        for (rows, least) in [("50 ms and more", 50.0), ("all", 0.0)] {
            let s = of(least, which);
            let [median, p90, max] = [s.median, s.p90, s.max].map(|x| format!("{:.1}%", 100.0 * x));
            let _ = writeln!(out, "| {rows} | {from} | {median} | {p90} | {max} |");
        }
    }
    out += &by_resource(machine, timed);
    out += &intervals(machine, timed);
    out += "\n| case | measured: forward, backward, optimizer (ms) | predicted | error | interval | without its host | data sheets |\n";
    out += "| --- | --- | --- | --- | --- | --- | --- |\n";
    let mut rows: Vec<&Timed> = timed.iter().collect();
    rows.sort_by(|a, b| b.errors()[0].abs().total_cmp(&a.errors()[0].abs()));
    for timed in rows {
        let [error, without, sheet] = timed.errors().map(|e| format!("{:+.0}%", 100.0 * e));
        let (model, options) = (&timed.row.case.model, &timed.row.options);
        let (measured, predicted) = (phases(timed.measured), phases(timed.estimated[0].ms));
        let interval = interval(&timed.estimated[0]);
        let _ = writeln!(
            out,
            "| {model} {options} | {measured} | {predicted} | {error} | {interval} | {without} | {sheet} |"
        );
    }
    kept::hold(machine.table, &out);
}
