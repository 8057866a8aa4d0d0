//! Predictions for the steps of a watched run, one for each shape.

use std::collections::HashMap;

use serde_json::Value;
use vramscope_engine::tape::Gpu;
use vramscope_engine::{Case, Model};
use vramscope_time::{Bound, Clock};

use crate::input::watched::{Header, Shape};
use crate::predict::{predict, predict_timed};

/// Prediction of a step after the first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Predicted {
    /// Highest allocated bytes.
    pub peak: u64,
    /// Highest reserved bytes.
    pub reserved: u64,
    /// Allocated bytes at the end of the step.
    pub end: u64,
    /// Time of the step; `None` for a card whose rates are not known.
    pub time: Option<PredictedTime>,
}

/// Predicted time of a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PredictedTime {
    /// Milliseconds of the whole step.
    pub ms: f64,
    /// The side that limits it.
    pub bound: Bound,
}

/// Makes predictions, and keeps them.
pub struct Predictions {
    config: String,
    case: serde_json::Map<String, Value>,
    gpu: Gpu,
    clock: Option<Clock>,
    known: HashMap<Shape, Result<Predicted, String>>,
}

impl Predictions {
    /// Prepares predictions for a run on a GPU with its clock.
    pub fn new(header: &Header, gpu: Gpu, clock: Option<Clock>) -> Self {
        Self {
            config: header.config.as_ref().map(Value::to_string).unwrap_or_default(),
            case: header.case.clone(),
            gpu,
            clock,
            known: HashMap::new(),
        }
    }

    /// Sources of the times.
    pub fn sources(&self) -> Option<[&str; 2]> {
        self.clock.as_ref().map(Clock::sources)
    }

    /// Prediction for a step of this shape, or the reason why there is none.
    pub fn of(&mut self, shape: &Shape) -> Result<Predicted, String> {
        if let Some(known) = self.known.get(shape) {
            return known.clone();
        }
        let predicted = self.predict(shape);
        self.known.insert(shape.clone(), predicted.clone());
        predicted
    }

    fn predict(&self, shape: &Shape) -> Result<Predicted, String> {
        if self.config.is_empty() {
            return Err("the model has no configuration of transformers".to_owned());
        }
        let mut case = self.case.clone();
        case.insert("model".to_owned(), "".into());
        let counts = [("batch", shape.batch), ("seq", shape.seq), ("images", shape.images)];
        for (key, count) in counts {
            case.extend(count.map(|count| (key.to_owned(), count.into())));
        }
        case.extend(shape.grid.map(|sides| ("grid".to_owned(), sides.to_vec().into())));
        let text = Value::Object(case).to_string();
        let case = Case::from_json(&text).map_err(|error| error.to_string())?;
        let case = case.ok_or("the run's setup is empty")?;
        let model = Model::from_config_for(&self.config, &case.setup).map_err(|error| error.to_string())?;
        let setup = &case.setup;
        let (report, time) = match &self.clock {
            None => predict(&model, setup, None, self.gpu).map(|report| (report, None)),
            Some(clock) => predict_timed(&model, (setup, None), (clock, self.gpu), |run| {
                let time = run.time(&clock.costs());
                Some(PredictedTime {
                    ms: time.interval() * 1e3,
                    bound: run.counted(&time).bound(),
                })
            }),
        }
        .map_err(|failure| failure.to_string())?;
        Ok(Predicted {
            peak: report.peak_allocated.get(),
            reserved: report.peak_reserved.get(),
            end: report.steady.end.get(),
            time,
        })
    }
}
