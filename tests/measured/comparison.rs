//! Pairs each measured case with the engine's prediction.

use serde_json::{Map, Value};
use vramscope_engine::setup::{Optimizer, Precision};
use vramscope_engine::units::Bytes;
use vramscope_engine::{Model, Report, simulate};

use super::quantity::Quantity;
use super::row::{Measured, Row};
use crate::ledger;

/// The engine's report for a case, or its error.
pub type Outcome = Result<Report, String>;

/// A measured case with its prediction.
pub struct Comparison {
    /// The measurement.
    pub row: Row,
    /// The prediction.
    pub outcome: Outcome,
}

impl Comparison {
    /// Predicts every row of a file in `data/truth`.
    pub fn of_file(file: &str) -> Vec<Self> {
        Row::read_all(file).into_iter().map(Self::of).collect()
    }

    fn of(row: Row) -> Self {
        let model = match &row.config {
            Some(config) => Model::from_config_for(config, &row.case.setup),
            None => Model::from_case(&row.case),
        };
        let model = model.map_err(|error| error.to_string());
        let outcome = model.and_then(|model| simulate(&model, &row.case.setup).map_err(|error| error.to_string()));
        Self { row, outcome }
    }

    /// Relative error of a quantity, if both measured and predicted.
    pub fn error(&self, quantity: Quantity) -> Option<f64> {
        let measured = quantity.measured(&self.row.measured)?.get() as f64;
        let predicted = quantity.predicted(self.outcome.as_ref().ok()?).get() as f64;
        Some((predicted - measured) / measured)
    }

    /// The run as the ledger has it; `None` if it did not train.
    pub fn run(&self) -> Option<ledger::Run> {
        let took = |quantity: Quantity| quantity.measured(&self.row.measured).map(Bytes::get);
        let peak = took(Quantity::PeakAllocated)?;
        let reserved = took(Quantity::PeakReserved).unwrap_or(0);
        let report = match self.scaler_skipped() {
            true => Err("fp16 overflowed with random weights when it was measured, so that no optimizer ran"),
            false => self.outcome.as_ref().map_err(String::as_str),
        };
        let run = ledger::Run::of(&Value::Null, (peak, reserved), report);
        let label = self
            .row
            .label
            .as_ref()
            .map_or_else(String::new, |label| format!(" ({label})"));
        Some(ledger::Run {
            run: format!("{}{label} {}", self.row.case.model, self.row.options),
            ..run
        })
    }

    /// Returns true if GradScaler skipped the optimizer in measured steps, so that the optimizer states of a normal
    /// training run did not exist when the last of them began; or if it skipped the first step and, as far as can be
    /// told, the last. Random weights overflow in fp16.
    pub fn scaler_skipped(&self) -> bool {
        let Measured::Trained(row) = &self.row.measured else {
            return false;
        };
        let number = |row: &Map<String, Value>, key: &str| row.get(key).and_then(Value::as_u64).unwrap_or(0);
        let of = |step: &str, key| {
            row.get(step)
                .and_then(Value::as_object)
                .map_or(0, |step| number(step, key))
        };
        let is_fp16 = self.row.case.setup.precision == Precision::AmpFp16;
        let states_by = number(row, "after_model") + self.states(row) / 2;
        let is_late =
            of("first", "end") < states_by && of("steady", "peak_optimizer") == of("steady", "after_backward");
        is_fp16 && (of("steady", "before_forward") < states_by || is_late)
    }

    /// Relative error of the engine's first step for rows whose scaler skipped: its peak, compared with that of the
    /// last measured step.
    pub fn error_of_first_step(&self) -> Option<f64> {
        let Measured::Trained(row) = &self.row.measured else {
            return None;
        };
        let steady = row.get("steady")?.as_object()?;
        let measured = |key: &str| steady.get(key).and_then(Value::as_u64);
        let first = self.outcome.as_ref().ok()?.first;
        // States that this step created outlive it.
        let is_taken = measured("end")? > measured("before_forward")? + self.states(row) / 2;
        let predicted = if is_taken {
            first.peak()
        } else {
            first.peak_forward.max(first.peak_backward)
        };
        let peak = row.get("peak_steady").and_then(Value::as_u64)? as f64;
        Some(predicted.get() as f64 / peak - 1.0)
    }

    /// Bytes of a row's optimizer states.
    fn states(&self, row: &Map<String, Value>) -> u64 {
        let width = match self.row.case.setup.optim {
            Optimizer::Adamw | Optimizer::AdamwFused | Optimizer::AdamwLoop => 8,
            Optimizer::Sgdm => 4,
            _ => 0,
        };
        width * row.get("trainable").and_then(Value::as_u64).unwrap_or(0)
    }

    /// Returns true if total and trainable parameters equal the measured counts; `None` if either side has no count.
    pub fn parameters_are_exact(&self) -> Option<bool> {
        let Measured::Trained(row) = &self.row.measured else {
            return None;
        };
        let report = self.outcome.as_ref().ok()?;
        let count = |key: &str| row.get(key).and_then(Value::as_u64);
        Some((count("params")?, count("trainable")?) == (report.params, report.trainable))
    }
}
