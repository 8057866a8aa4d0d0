//! `estimate` of one setup.

use serde::Serialize;
use serde_json::Map;
use vramscope_engine::device::Device;
use vramscope_engine::report::{BreakdownNode, Phase, Prediction, StepBytes};
use vramscope_engine::units::Bytes;
use vramscope_engine::verdict::Fit;
use vramscope_engine::{Case, Model, Report, Setup};

use super::Estimate;
use super::batch::Line;
use crate::failure::Failure;
use crate::input::setup_flags::SetupFlags;
use crate::input::source::Source;
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
        let target = target.map(|target| (target, Fit::of(&report, target.room())));
        match format {
            Format::Text => {
                let estimate = text::Estimate {
                    model: &model.name,
                    setup: &setup,
                    report: &report,
                    target,
                };
                output::print(&estimate.render(terminal::width()))
            }
            Format::Json => output::print_json(&Answer::new(&model.name, &setup, &report, target.as_ref())),
            Format::Jsonl => output::print_line(&Line::new(0, &Ok(report))),
        }
    }

    fn subject(self) -> Result<(Model, Setup), Failure> {
        match (self.model, self.config, self.case) {
            (Some(name), ..) => from_case(named(name), self.setup),
            (_, Some(source), _) => from_config(&source, self.setup),
            (.., Some(text)) => from_case(read_case(&text)?, self.setup),
            _ => Err(Failure::Input(
                "name a model, or give --config, --case or --cases".into(),
            )),
        }
    }

    fn target(&self) -> Result<Option<Target>, Failure> {
        let card = |name: &String| Device::by_name(name).map(Target::Card).map_err(Failure::input);
        match (&self.gpu, self.limit_gib) {
            (Some(name), _) => card(name).map(Some),
            (None, Some(gib)) => limit(gib).map(Some),
            (None, None) => Ok(None),
        }
    }
}

fn named(model: String) -> Case {
    Case {
        model,
        shape: Map::new(),
        setup: Setup::default(),
    }
}

fn read_case(text: &str) -> Result<Case, Failure> {
    let case = Case::from_json(text).map_err(|e| Failure::Input(format!("--case: {e}")))?;
    case.ok_or_else(|| {
        Failure::Input("--case: names no model; give an object such as {\"model\": \"gpt2\", \"batch\": 8}".into())
    })
}

fn from_case(mut case: Case, flags: SetupFlags) -> Result<(Model, Setup), Failure> {
    flags.apply(&mut case.setup);
    let model = Model::from_case(&case).map_err(Failure::input)?;
    Ok((model, case.setup))
}

fn from_config(source: &Source, flags: SetupFlags) -> Result<(Model, Setup), Failure> {
    let mut setup = Setup::default();
    flags.apply(&mut setup);
    let text = source.read_text()?;
    let model = Model::from_config_for(&text, &setup).map_err(|e| Failure::Input(format!("{source}: {e}")))?;
    Ok((model, setup))
}

fn limit(gib: f64) -> Result<Target, Failure> {
    // 2⁵⁰ bytes is beyond any device, and keeps the product exact enough for an integer.
    if !(gib > 0.0 && gib <= 1_048_576.0) {
        return Err(Failure::Input(format!(
            "--limit-gib {gib}: give what the allocator may reserve in GiB, above 0, such as 23.5"
        )));
    }
    let bytes = Bytes::new((gib * f64::from(1 << 30)) as u64);
    Ok(Target::Limit(bytes))
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
    breakdown: &'a BreakdownNode,
}

#[derive(Serialize)]
struct JudgedTarget<'a> {
    name: &'a str,
    #[serde(flatten)]
    fit: &'a Fit,
}

impl<'a> Answer<'a> {
    fn new(model: &'a str, setup: &'a Setup, report: &'a Report, target: Option<&'a (Target, Fit)>) -> Self {
        Self {
            model,
            setup,
            target: target.map(|(target, fit)| JudgedTarget {
                name: target.name(),
                fit,
            }),
            peak_phase: report.peak_phase,
            prediction: report.prediction(),
            first: report.first,
            fragmentation: report.fragmentation,
            breakdown: &report.breakdown,
        }
    }
}
