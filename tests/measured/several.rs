//! Measured rows of one of several GPUs, each with its simulation.

use std::path::Path;

use serde_json::Value;
use vramscope_engine::setup::Checkpointing;
use vramscope_engine::simulate::simulate_parallel;
use vramscope_engine::tape::Gpu;
use vramscope_engine::{Case, Model, Report, format};

use super::Statistics;
use crate::ledger;

/// Quantities of the steady step, as rows name them; its peak and the highest reserved bytes follow.
pub const PHASES: [&str; 7] = [
    "before_forward",
    "after_forward",
    "peak_forward",
    "after_backward",
    "peak_backward",
    "peak_optimizer",
    "end",
];

/// Index of the peak among the quantities.
pub const PEAK: usize = PHASES.len();

/// Index of the reserved bytes.
pub const RESERVED: usize = PEAK + 1;

/// One case.
pub struct Row {
    /// The case.
    pub case: Case,
    /// The measured values.
    pub measured: Value,
    /// The prediction.
    pub report: Report,
}

impl Row {
    fn read(line: &str) -> Option<Self> {
        let case = Case::from_json(line).expect("a case is read")?;
        let measured: Value = serde_json::from_str(line).expect("a line is JSON");
        let mut parallel = case.parallel.expect("a case names its strategy");
        if parallel.strategy.is_pipeline() {
            parallel.stage = measured["rank"].as_u64();
        }
        let case = Case {
            parallel: Some(parallel),
            ..case
        };
        let model = Model::from_case(&case).expect("the model is known");
        let report = simulate_parallel(&model, &case.setup, &parallel, Gpu::H200);
        Some(Self {
            report: report.expect("the case is simulated"),
            measured,
            case,
        })
    }

    /// Describes the parallelism in words.
    fn shares(&self) -> String {
        let parallel = self.case.parallel.unwrap_or_default();
        let gpus = match parallel.world {
            2 => String::new(),
            world => format!(" of {world}"),
        };
        let (mp, offload) = (told(parallel.mp, "mp"), told(parallel.offload.is_any(), "offload"));
        let stage = match parallel.stage {
            Some(stage) => format!(" stage {stage} accum={}", self.case.setup.accum),
            None => String::new(),
        };
        format!("{:?}{gpus}{stage}{mp}{offload}", parallel.strategy)
    }

    /// (predicted − measured) ÷ measured for each quantity, without the `foreign` bytes that the measuring program
    /// holds.
    pub fn errors(&self, foreign: u64) -> [f64; PHASES.len() + 2] {
        let error = |predicted: u64, measured: &Value| {
            let measured = (measured.as_u64().expect("bytes") - foreign) as f64;
            (predicted as f64 - measured) / measured
        };
        let (steady, measured) = (&self.report.steady, &self.measured);
        let predicted = [
            steady.before_forward,
            steady.after_forward,
            steady.peak_forward,
            steady.after_backward,
            steady.peak_backward,
            steady.peak_optimizer,
            steady.end,
        ];
        let mut errors = [0.0; PHASES.len() + 2];
        for (at, (phase, bytes)) in PHASES.into_iter().zip(predicted).enumerate() {
            errors[at] = error(bytes.get(), &measured["steady"][phase]);
        }
        errors[PEAK] = error(self.report.peak_allocated.get(), &measured["peak_steady"]);
        errors[RESERVED] = error(self.report.peak_reserved.get(), &measured["reserved_peak"]);
        errors
    }
}

/// All cases of a file in `data/truth`, each for one of several GPUs.
pub struct Rows {
    /// The cases.
    pub rows: Vec<Row>,
    /// Bytes that the measuring program holds in addition to training.
    foreign: u64,
}

impl Rows {
    /// Reads and simulates the cases.
    ///
    /// # Panics
    /// If the file is missing or malformed.
    pub fn read(file: &str, foreign: u64) -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/truth").join(file);
        let text = std::fs::read_to_string(path).expect("the rows are there");
        Self {
            rows: text.lines().filter_map(Row::read).collect(),
            foreign,
        }
    }

    /// Errors of one quantity over all cases.
    ///
    /// # Panics
    /// If there is no case.
    pub fn of(&self, figure: usize) -> Statistics {
        let errors: Vec<f64> = self.rows.iter().map(|row| row.errors(self.foreign)[figure]).collect();
        Statistics::of(&errors).expect("there are rows")
    }

    /// The cases as the ledger has them, without the bytes that the measuring program holds.
    pub fn ledger(&self) -> impl Iterator<Item = ledger::Run> {
        self.rows.iter().map(|row| {
            let took = |key: &str| row.measured[key].as_u64().expect("bytes") - self.foreign;
            let took = (took("peak_steady"), took("reserved_peak"));
            let run = ledger::Run::of::<String>(&row.measured["case"], took, Ok(&row.report));
            // Each rank of a pipeline is a stage of its own.
            let stage = row.case.parallel.and_then(|parallel| parallel.stage);
            let stage = stage.map_or_else(String::new, |stage| format!(" stage={stage}"));
            ledger::Run {
                run: run.run + &stage,
                ..run
            }
        })
    }

    /// Formats the table of all cases, with `head` as its header.
    pub fn table(&self, head: &str) -> String {
        let mut out = head.to_owned();
        out += "| case | before fwd | after fwd | peak fwd | after bwd | peak bwd | peak opt | end | **peak** | reserved |\n";
        out += "| --- | --: | --: | --: | --: | --: | --: | --: | --: | --: |\n";
        for row in &self.rows {
            let setup = &row.case.setup;
            let errors = row.errors(self.foreign).map(format::error).join(" | ");
            out += &format!(
                "| **{}** {} batch={} seq={} {:?} {:?}{} | {errors} |\n",
                row.case.model,
                row.shares(),
                setup.batch,
                setup.seq,
                setup.precision,
                setup.optim,
                told(setup.ckpt != Checkpointing::None, "checkpointed")
            );
        }
        out
    }
}

fn told(given: bool, word: &str) -> String {
    if given { format!(" {word}") } else { String::new() }
}
