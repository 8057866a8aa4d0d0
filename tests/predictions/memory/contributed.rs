//! Runs that `vramscope watch --share` wrote, of whoever watched one: the step that took the most, beside its prediction.

use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value};
use vramscope_engine::device::Device;
use vramscope_engine::simulate::simulate_on;
use vramscope_engine::{Case, Model, Report};
use vramscope_tests::ledger;

/// Folder of the runs.
const RUNS: &str = "data/shared_runs";

#[derive(Debug, Deserialize)]
struct Shared {
    gpu: Option<String>,
    gpus: u64,
    config: Value,
    case: Map<String, Value>,
    steps: Vec<Step>,
}

#[derive(Debug, Deserialize)]
struct Step {
    step: u64,
    peak: u64,
    reserved: u64,
    #[serde(flatten)]
    shape: Map<String, Value>,
}

/// Keys of a step that are its shape.
const SHAPE: [&str; 4] = ["batch", "seq", "images", "grid"];

impl Shared {
    /// The step that took the most; the first makes the optimizer's states.
    fn largest(&self) -> &Step {
        let later = self.steps.iter().filter(|step| step.step > 1);
        later.max_by_key(|step| step.peak).expect("a run of several steps")
    }

    /// The setup of a step as a case.
    fn case(&self, step: &Step) -> Value {
        let mut case = self.case.clone();
        let kind = self.config["model_type"].as_str().unwrap_or_default();
        case.insert("model".to_owned(), kind.into());
        let shape = step.shape.iter().filter(|(key, _)| SHAPE.contains(&key.as_str()));
        case.extend(shape.map(|(key, value)| (key.clone(), value.clone())));
        Value::Object(case)
    }

    fn predict(&self, case: &Value) -> Result<Report, String> {
        let read = Case::from_json(&case.to_string()).map_err(|error| error.to_string())?;
        let setup = read.ok_or("an empty case")?.setup;
        let model = Model::from_config_for(&self.config.to_string(), &setup).map_err(|error| error.to_string())?;
        let card = self.gpu.as_deref().and_then(|name| Device::by_name(name).ok());
        let gpu = card.and_then(Device::gpu).unwrap_or_default();
        simulate_on(&model, &setup, gpu).map_err(|error| error.to_string())
    }
}

/// A run of one GPU joins the ledger; whoever adds one that is off names its cause there.
#[test]
fn contributed_runs_are_in_the_ledger() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(RUNS);
    let mut files: Vec<_> = std::fs::read_dir(&folder)
        .expect("a folder of runs")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    files.sort();
    assert!(!files.is_empty());
    let runs = files.iter().map(|file| {
        let text = std::fs::read_to_string(file).expect("a run");
        let shared: Shared = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        assert_eq!(shared.gpus, 1, "{}: runs of one GPU are compared", file.display());
        let step = shared.largest();
        let case = shared.case(step);
        ledger::Run::of(&case, (step.peak, step.reserved), shared.predict(&case).as_ref())
    });
    ledger::hold("contributed", runs.collect::<Vec<_>>());
}
