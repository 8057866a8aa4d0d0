//! `estimate` of one setup.

use serde::Serialize;
use vramscope_engine::report::{BreakdownNode, OutsideTerm, Phase, Prediction, StepBytes};
use vramscope_engine::units::Bytes;
use vramscope_engine::verdict::{Fit, Room};
use vramscope_engine::{Case, Model, Report, Setup};

use super::Estimate;
use super::batch::Line;
use crate::failure::Failure;
use crate::output::target::Target;
use crate::output::{self, Format, terminal, text};
use crate::predict::predict;

impl Estimate {
    /// Predicts the one setup that the flags describe.
    ///
    /// # Errors
    /// See [`Failure`].
    pub fn run_single(self) -> Result<(), Failure> {
        let format = self.format.unwrap_or(Format::Text);
        let target = self.target()?;
        let (model, setup) = self.subject()?;
        let report = predict(&model, &setup)?;
        match format {
            Format::Text => {
                let width = terminal::width();
                output::print(&text::estimate(&model.name, &setup, &report, target.as_ref(), width))
            }
            Format::Json => output::print_json(&Answer::new(&model.name, &setup, &report, target.as_ref())),
            Format::Jsonl => output::print_line(&Line::new(0, &Ok(report))),
        }
    }

    fn subject(self) -> Result<(Model, Setup), Failure> {
        let (model, mut setup) = match (self.model, self.config, self.case) {
            (Some(name), ..) => (Model::from_catalogue(&name).map_err(Failure::input)?, Setup::default()),
            (_, Some(source), _) => {
                let text = source.read_text()?;
                let model = Model::from_config(&text).map_err(|e| Failure::Input(format!("{source}: {e}")))?;
                (model, Setup::default())
            }
            (.., Some(text)) => read_case(&text)?,
            _ => {
                return Err(Failure::Input(
                    "name a model, or give --config, --case or --cases".into(),
                ));
            }
        };
        self.setup.apply(&mut setup);
        Ok((model, setup))
    }

    fn target(&self) -> Result<Option<Target>, Failure> {
        self.limit_gib.map(limit).transpose()
    }
}

fn read_case(text: &str) -> Result<(Model, Setup), Failure> {
    let case = Case::from_json(text).map_err(|e| Failure::Input(format!("--case: {e}")))?;
    let case = case.ok_or_else(|| {
        Failure::Input("--case: names no model; give an object such as {\"model\": \"gpt2\", \"batch\": 8}".into())
    })?;
    Ok((Model::from_case(&case).map_err(Failure::input)?, case.setup))
}

fn limit(gib: f64) -> Result<Target, Failure> {
    // 2⁵⁰ bytes is beyond any device, and keeps the product exact enough for an integer.
    if !(gib > 0.0 && gib <= 1_048_576.0) {
        return Err(Failure::Input(format!(
            "--limit-gib {gib}: give what the allocator may reserve in GiB, above 0, such as 23.5"
        )));
    }
    let bytes = Bytes::new((gib * f64::from(1 << 30)) as u64);
    Ok(Target {
        name: "allocator limit".into(),
        room: Room::Allocator(bytes),
    })
}

/// The whole answer as one JSON document.
#[derive(Serialize)]
struct Answer<'a> {
    model: &'a str,
    setup: &'a Setup,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<JudgedTarget<'a>>,
    peak_phase: Phase,
    #[serde(flatten)]
    prediction: Prediction<'a>,
    first: StepBytes,
    fragmentation: Bytes,
    outside: &'a [OutsideTerm],
    breakdown: &'a BreakdownNode,
}

#[derive(Serialize)]
struct JudgedTarget<'a> {
    name: &'a str,
    #[serde(flatten)]
    fit: Fit,
}

impl<'a> Answer<'a> {
    fn new(model: &'a str, setup: &'a Setup, report: &'a Report, target: Option<&'a Target>) -> Self {
        Self {
            model,
            setup,
            target: target.map(|target| JudgedTarget {
                name: &target.name,
                fit: Fit::of(report, target.room),
            }),
            peak_phase: report.peak_phase,
            prediction: report.prediction(),
            first: report.first,
            fragmentation: report.fragmentation,
            outside: &report.outside,
            breakdown: &report.breakdown,
        }
    }
}
