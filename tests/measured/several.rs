//! Rows of one of several GPUs: each case simulated, beside what was measured.

use std::path::Path;

use serde_json::Value;
use vramscope_engine::setup::Checkpointing;
use vramscope_engine::simulate::simulate_parallel;
use vramscope_engine::tape::Gpu;
use vramscope_engine::{Case, Model, Report, format};

use super::Statistics;

/// Figures of the steady step, as rows name them; after them come its peak and the highest reserved bytes.
pub const PHASES: [&str; 7] = [
    "before_forward",
    "after_forward",
    "peak_forward",
    "after_backward",
    "peak_backward",
    "peak_optimizer",
    "end",
];

/// Place of the peak among the figures.
pub const PEAK: usize = PHASES.len();

/// Place of the reserved bytes.
pub const RESERVED: usize = PEAK + 1;

/// One case.
pub struct Row {
    /// What was run.
    pub case: Case,
    /// What was measured.
    pub measured: Value,
    /// What is predicted.
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

    /// How the GPUs share, in words.
    fn shares(&self) -> String {
        let parallel = self.case.parallel.unwrap_or_default();
        let gpus = match parallel.world {
            2 => String::new(),
            world => format!(" of {world}"),
        };
        let (mp, offload) = (told(parallel.mp, "mp"), told(parallel.offload, "offload"));
        let stage = match parallel.stage {
            Some(stage) => format!(" stage {stage} accum={}", self.case.setup.accum),
            None => String::new(),
        };
        format!("{:?}{gpus}{stage}{mp}{offload}", parallel.strategy)
    }

    /// (predicted − measured) ÷ measured of each figure, without the `foreign` bytes that the measuring program holds.
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

/// Every case of a file of `data/truth`, one of several GPUs each.
pub struct Rows {
    /// The cases.
    pub rows: Vec<Row>,
    /// Bytes that the measuring program holds beside training.
    foreign: u64,
}

impl Rows {
    /// Reads and simulates them.
    ///
    /// # Panics
    /// When the file is not there or not what the measuring program writes.
    pub fn read(file: &str, foreign: u64) -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/truth").join(file);
        let text = std::fs::read_to_string(path).expect("the rows are there");
        Self {
            rows: text.lines().filter_map(Row::read).collect(),
            foreign,
        }
    }

    /// Errors of one figure over all cases.
    ///
    /// # Panics
    /// When there is no case.
    pub fn of(&self, figure: usize) -> Statistics {
        let errors: Vec<f64> = self.rows.iter().map(|row| row.errors(self.foreign)[figure]).collect();
        Statistics::of(&errors).expect("there are rows")
    }

    /// The table of all cases, under `head`.
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
