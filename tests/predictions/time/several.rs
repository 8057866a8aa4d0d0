//! Compares the time of steps on two GPUs, and of their collectives, with the engine's estimates.

use std::fmt::Write;
use std::path::Path;
use std::sync::LazyLock;

use serde_json::Value;
use vramscope_engine::device::Device;
use vramscope_engine::setup::Strategy;
use vramscope_engine::tape::Gpu;
use vramscope_engine::{Case, Model};
use vramscope_tests::kept;
use vramscope_tests::measured::Statistics;
use vramscope_time::communication::{Collective, Link};
use vramscope_time::{Costs, H200, Measured, Milliseconds, Network, ParallelTime, Rates, estimate_parallel};

const TABLE: &str = "tests/data/data_parallel_time_vs_predicted.md";

const HEAD: &str = "\
# Two GPUs: measured time against predicted

The milliseconds of every case of `truth/data_parallel.jsonl`, one of two NVIDIA H200, against what the engine
estimates of it: kernels, collectives and the host's pace as in [time/](time/README.md). Nothing is fitted to a step.
Errors are (predicted − measured) ÷ measured, of the whole. FSDP2's Python decides most of its steps here; how much
of it a host does in a millisecond differs between machines, and the pace was measured on another one than the steps.
Made by `cargo xtask table`; a test compares it with today's engine.

";

const TENSOR_TABLE: &str = "tests/data/tensor_parallel_time_vs_predicted.md";

const TENSOR_HEAD: &str = "\
# Tensor parallelism: measured time against predicted

The milliseconds of every case of `truth/tensor_parallel.jsonl`, one of two or four NVIDIA H200, against what the
engine estimates of it: the kernels of one GPU's part, sums and gathers that all wait for, and the host's pace as in
[time/](time/README.md). Nothing is fitted to a step. Errors are (predicted − measured) ÷ measured, of the whole.
Python around `DTensor`s decides these steps: it takes about half a millisecond for each shared map forward and again
backward, 0.2 to 0.7 in the chains by which the pace was measured, and the steps ran on another machine. Most are longer than
estimated, and not by their work: a step of the same model takes up to 2.4 times as long in one row as in another whose kernels
are as many, while the GPU waits in both. Two or four processes on a shared host wait at every collective for the one that is
slowest at that moment, and the estimate plays one. What that adds was not measured apart from these steps.
Made by `cargo xtask table`; a test compares it with today's engine.

";

const PIPELINE_TABLE: &str = "tests/data/pipeline_parallel_time_vs_predicted.md";

const PIPELINE_HEAD: &str = "\
# Pipeline parallelism: measured time against predicted

The milliseconds of a step of every case of `truth/pipeline_parallel.jsonl` that ran on two NVIDIA H200, at the stage that
the engine estimates to take longer: its kernels, the host's pace as in [time/](time/README.md), what it receives, and
stages − 1 micro-batches more while the pipeline fills and drains, as if both stages took as long; these are in the error
and not in the phases. Forward is what runs before the first backward. Nothing is fitted to a step. Errors are
(predicted − measured) ÷ measured, of the whole. Python of the schedule itself, which checks and wraps every
micro-batch, is not counted, and one stage is taken for both.
Made by `cargo xtask table`; a test compares it with today's engine.

";

const TRAINER_TABLE: &str = "tests/data/two_gpus_time_vs_predicted.md";

const TRAINER_HEAD: &str = "\
# Trainer on two GPUs: measured time against predicted

Steps of transformers' Trainer 5.17 on two NVIDIA H200 (PyTorch 2.11, accelerate 1.15, DeepSpeed 0.19.8), of
`truth/two_gpus_time.jsonl`: the median of the last two thirds of a run, between `on_step_begin` and `on_step_end`; beside it
the fastest and the slowest of those. The estimate has the kernels, collectives and host's pace of [time/](time/README.md); nothing
is fitted to a step. What DeepSpeed's and FSDP1's hooks take was measured on the machine of the steps, in chains of tiny blocks;
the rest of the pace on others. DDP is among them to tell what is not the hooks': it is a third too short as well, since the host was slower than that of
the pace and Trainer's own Python is not counted.
Errors are (predicted − measured) ÷ measured.
Made by `cargo xtask table`; a test compares it with today's engine.

";

static OWN: LazyLock<Measured> = LazyLock::new(|| Measured::read(H200).expect("the file that comes with the program"));

fn link() -> Link {
    let device = Device::by_name("H200").expect("it is known");
    Link::of(device).expect("its data sheet names its link")
}

fn lines(file: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/truth").join(file);
    let text = std::fs::read_to_string(path).expect("the rows are there");
    let lines = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("a line is JSON"));
    lines.collect()
}

struct Row {
    case: Case,
    words: String,
    measured: Milliseconds,
    parallel_time: ParallelTime,
}

impl Row {
    fn read(line: &Value) -> Option<Self> {
        let case = Case::from_json(&line.to_string()).expect("a case is read")?;
        let mut parallel = case.parallel.expect("a case names its strategy");
        parallel.stage = line["rank"].as_u64().filter(|_| parallel.strategy.is_pipeline());
        let ms = |phase: &str| line["ms"][phase].as_f64();
        let model = Model::from_case(&case).expect("the model is known");
        let costs = Costs::new(Rates::REFERENCE, Some(&OWN.kernels), &OWN.pace);
        let network = Network::new(link(), Some(&OWN.collectives));
        let parallel_time = estimate_parallel(&model, &case.setup, &parallel, Gpu::H200, (&costs, &network));
        let told = |given: bool, word: &str| if given { format!(" {word}") } else { String::new() };
        Some(Self {
            words: format!(
                "{:?}{}{}{}{}",
                parallel.strategy,
                match parallel.stage {
                    Some(stage) => format!(" stage {stage} accum={}", case.setup.accum),
                    None => String::new(),
                },
                if parallel.world == 2 {
                    String::new()
                } else {
                    format!(" of {}", parallel.world)
                },
                told(parallel.mp, "mp"),
                told(parallel.offload.is_any(), "offload")
            ),
            measured: Milliseconds {
                forward: ms("forward")?,
                backward: ms("backward")?,
                optimizer: ms("optimizer")?,
            },
            parallel_time: parallel_time.expect("its memory is predicted"),
            case,
        })
    }

    fn strategy(&self) -> Option<Strategy> {
        self.case.parallel.map(|parallel| parallel.strategy)
    }

    /// Estimated time, including the pipeline's time to fill and drain.
    fn milliseconds(&self) -> f64 {
        total(self.parallel_time.milliseconds()) + self.parallel_time.waiting * 1e3
    }

    fn error(&self) -> f64 {
        self.milliseconds() / total(self.measured) - 1.0
    }
}

fn total(ms: Milliseconds) -> f64 {
    ms.forward + ms.backward + ms.optimizer
}

fn rows(file: &str) -> Vec<Row> {
    lines(file).iter().filter_map(Row::read).collect()
}

static ROWS: LazyLock<Vec<Row>> = LazyLock::new(|| rows("data_parallel.jsonl"));

static TENSOR: LazyLock<Vec<Row>> = LazyLock::new(|| rows("tensor_parallel.jsonl"));

static PIPELINE: LazyLock<Vec<Row>> = LazyLock::new(|| slowest_stages(rows("pipeline_parallel.jsonl")));

/// A step of transformers' `Trainer`.
struct Step {
    case: Case,
    strategy: String,
    /// Milliseconds of the median step, the fastest and the slowest.
    measured: [f64; 3],
    parallel_time: ParallelTime,
}

impl Step {
    fn read(line: &Value) -> Self {
        let case = Case::from_json(&line["case"].to_string()).expect("a case is read");
        let case = case.expect("it says something");
        let parallel = case.parallel.expect("a case names its strategy");
        let model = Model::from_case(&case).expect("the model is known");
        let costs = Costs::new(Rates::REFERENCE, Some(&OWN.kernels), &OWN.pace);
        let network = Network::new(link(), Some(&OWN.collectives));
        let parallel_time = estimate_parallel(&model, &case.setup, &parallel, Gpu::H200, (&costs, &network));
        let steps = line["steps_ms"].as_array().expect("there are steps");
        let mut steps: Vec<f64> = steps[steps.len() / 3..].iter().filter_map(Value::as_f64).collect();
        steps.sort_by(f64::total_cmp);
        let offload = &line["case"]["offload"];
        Self {
            strategy: match offload.as_str() {
                Some(offload) => format!("{} offload={offload}", parallel.strategy.name()),
                None => parallel.strategy.name().to_owned(),
            },
            measured: [steps[steps.len() / 2], steps[0], steps[steps.len() - 1]],
            parallel_time: parallel_time.expect("its memory is predicted"),
            case,
        }
    }

    /// Estimated milliseconds of the whole step.
    fn milliseconds(&self) -> f64 {
        self.parallel_time.step_seconds(&self.case.setup) * 1e3
    }

    fn error(&self) -> f64 {
        self.milliseconds() / self.measured[0] - 1.0
    }
}

static TRAINER: LazyLock<Vec<Step>> = LazyLock::new(|| lines("two_gpus_time.jsonl").iter().map(Step::read).collect());

fn errors_of_trainer() -> Statistics {
    let errors: Vec<f64> = TRAINER.iter().map(Step::error).collect();
    Statistics::of(&errors).expect("there are rows")
}

fn trainer_table() -> String {
    let all = errors_of_trainer();
    let mut out = format!(
        "{TRAINER_HEAD}Median {:.1}%, 90th percentile {:.1}%, worst {:.1}%.\n\n",
        100.0 * all.median,
        100.0 * all.p90,
        100.0 * all.max
    );
    out += "| case | measured (ms) | fastest, slowest | predicted | forward, backward, optimizer | communication, exposed | error |\n";
    out += "| --- | ---: | --- | ---: | --- | --- | ---: |\n";
    for step in TRAINER.iter() {
        let (setup, parallel_time) = (&step.case.setup, &step.parallel_time);
        let [median, fastest, slowest] = step.measured;
        let _ = writeln!(
            out,
            "| **{}** {} batch={} accum={} {} ckpt={} | {median:.0} | {fastest:.0}, {slowest:.0} | {:.0} | {} | {:.1}, {:.1} | {:+.0}% |",
            step.case.model,
            step.strategy,
            setup.batch,
            setup.accum,
            setup.precision.name(),
            setup.ckpt.name(),
            step.milliseconds(),
            phases(parallel_time.milliseconds()),
            parallel_time.traffic.seconds * 1e3,
            parallel_time.exposed * 1e3,
            100.0 * step.error(),
        );
    }
    out
}

/// For each case, the stage with the longest estimate, which the others wait for.
fn slowest_stages(rows: Vec<Row>) -> Vec<Row> {
    let mut out: Vec<Row> = Vec::new();
    for row in rows {
        let of = |row: &Row| (row.case.model.clone(), row.case.setup.clone(), row.strategy());
        match out.iter_mut().find(|known| of(known) == of(&row)) {
            Some(known) if known.milliseconds() < row.milliseconds() => *known = row,
            Some(_) => {}
            None => out.push(row),
        }
    }
    out
}

/// Collectives by size: kind, MiB, measured and estimated milliseconds.
fn collectives() -> Vec<(Collective, u64, f64, f64)> {
    let network = Network::new(link(), Some(&OWN.collectives));
    let of = |line: &Value| {
        let kind = Collective::by_name(line["collective"].as_str()?)?;
        let (mib, gpus) = (line["mib"].as_u64()?, line["world"].as_u64()?);
        // Events around a call measure at least the host's part and at least the GPUs' part.
        let call = OWN.pace.named(&format!("{} call", kind.name()));
        let seconds = network.seconds(kind, (mib << 20) as f64, gpus).max(call);
        Some((kind, mib, line["ms"].as_f64()?, seconds * 1e3))
    };
    lines("data_parallel.jsonl").iter().filter_map(of).collect()
}

fn phases(ms: Milliseconds) -> String {
    [ms.forward, ms.backward, ms.optimizer]
        .map(|ms| format!("{ms:.1}"))
        .join(", ")
}

fn steps_table(head: &str, rows: &[Row]) -> String {
    let steps = steps(rows);
    let mut out = format!(
        "{head}Median {:.1}%, 90th percentile {:.1}%, worst {:.1}%.\n\n",
        100.0 * steps.median,
        100.0 * steps.p90,
        100.0 * steps.max
    );
    out += "| case | measured: forward, backward, optimizer (ms) | predicted | communication, exposed (ms) | error |\n";
    out += "| --- | --- | --- | --- | --- |\n";
    for row in rows {
        let (setup, parallel_time) = (&row.case.setup, &row.parallel_time);
        let _ = writeln!(
            out,
            "| **{}** {} batch={} seq={} {:?} {:?} | {} | {} | {:.1}, {:.1} | {:+.0}% |",
            row.case.model,
            row.words,
            setup.batch,
            setup.seq,
            setup.precision,
            setup.optim,
            phases(row.measured),
            phases(parallel_time.milliseconds()),
            parallel_time.traffic.seconds * 1e3,
            parallel_time.exposed * 1e3,
            100.0 * row.error(),
        );
    }
    out
}

fn table() -> String {
    let mut out = steps_table(HEAD, &ROWS);
    out += "\n## Collectives by size\n\n| what | MiB | measured (ms) | predicted | error |\n| --- | ---: | ---: | ---: | ---: |\n";
    for (kind, mib, measured, predicted) in collectives() {
        let _ = writeln!(
            out,
            "| {} | {mib} | {measured:.3} | {predicted:.3} | {:+.0}% |",
            kind.name(),
            100.0 * (predicted / measured - 1.0)
        );
    }
    let s = by_size();
    let _ = writeln!(out, "\nMedian {:.1}%, worst {:.1}%.", 100.0 * s.median, 100.0 * s.max);
    out
}

fn steps(rows: &[Row]) -> Statistics {
    Statistics::of(&rows.iter().map(Row::error).collect::<Vec<_>>()).expect("there are rows")
}

fn by_size() -> Statistics {
    let errors: Vec<f64> = collectives().iter().map(|(.., ms, found)| found / ms - 1.0).collect();
    Statistics::of(&errors).expect("there are rows")
}

#[test]
fn errors_are_within_the_limits() {
    let (steps, collectives) = (steps(&ROWS), by_size());
    assert_eq!((steps.count, collectives.count), (13, 18));
    assert!(steps.median <= 0.12, "steps: {steps:?}");
    assert!(collectives.median <= 0.10, "collectives: {collectives:?}");
}

#[test]
fn the_kept_table_is_todays() {
    kept::hold(TABLE, &table());
}

#[test]
fn stages_are_within_the_limits() {
    let steps = steps(&PIPELINE);
    assert_eq!(steps.count, 19);
    assert!(steps.median <= 0.08, "steps: {steps:?}");
    assert!(steps.p90 <= 0.21, "steps: {steps:?}");
}

#[test]
fn the_kept_table_of_stages_is_todays() {
    kept::hold(PIPELINE_TABLE, &steps_table(PIPELINE_HEAD, &PIPELINE));
}

#[test]
fn the_kept_table_of_shared_maps_is_todays() {
    kept::hold(TENSOR_TABLE, &steps_table(TENSOR_HEAD, &TENSOR));
}

#[test]
fn the_kept_table_of_trainer_is_todays() {
    kept::hold(TRAINER_TABLE, &trainer_table());
}

/// What text and page say beside times of several GPUs is what the table says.
#[test]
fn times_are_called_as_short_as_they_are() {
    const WORDS: &str = include_str!("../../../src/app/locales/en/time.json");
    let words: Value = serde_json::from_str(WORDS).expect("it is JSON");
    let said = words["several_are_short"].as_str().expect("there is such a text");
    let all = errors_of_trainer();
    let told = format!(
        "{} steps of Trainer measured on two H200 took {:.1} times as long in the median, up to {:.1} times.",
        TRAINER.len(),
        1.0 / (1.0 - all.median),
        1.0 / (1.0 - all.max)
    );
    assert!(said.ends_with(&told), "{said}: {told}");
}
