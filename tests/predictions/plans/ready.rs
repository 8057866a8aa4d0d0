//! Compares the precomputed plans for common models and cards, which `cargo xtask plans` writes, with the engine.

use std::path::Path;

use serde::Deserialize;
use vramscope_engine::allocator::Options;
use vramscope_engine::device::Device;
use vramscope_engine::simulate::simulate_recorded;
use vramscope_engine::simulate::{Trial, attempt};
use vramscope_engine::tape::Gpu;
use vramscope_engine::units::Bytes;
use vramscope_engine::{Case, Model, Setup};
use vramscope_plan::{Choice, Nearest};
use vramscope_tests::kept;
use vramscope_time::{Asked, Clock, Expense, H200, Measured, TimedRun};

const TABLE: &str = "tests/data/ready_plans.md";

const HEAD: &str = "\
# Ready plans

What `vramscope plan` recommends, by model and card: 16 samples a step, 2,048 positions with one image of the model's
own size, every entry left open, 5% of the memory kept free. `cargo xtask plans` makes them anew; a test plays each
through PyTorch's allocator as it is simulated. Reserved is what the allocator takes at most, of what it may take.

The last table is a course's settings for the same sizes of memory, made by a rule of thumb and not by simulation.

";

const COURSE: &str = "\
## A course's settings for video models

| memory | accumulation | batch | pixels | frames | bits |
| --- | --: | --: | --: | --: | --: |
| 8 GB (RTX 3070) | 8 | 1 | 112 | 8 | 16 |
| 12 GB (RTX 3080 Ti, 4070 Ti) | 4 | 1 | 224 | 8 | 16 |
| 24 GB and more (RTX 3090, A100) | 2 | 2 | 224 | 16 | 16 |
";

#[derive(Deserialize)]
struct Ready {
    model: String,
    gb: u64,
    card: String,
    planned: Bytes,
    recommended: Option<Choice>,
    nearest: Option<Nearest>,
}

fn ready() -> Vec<Ready> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../src/app/data/ready_plans.jsonl");
    let text = std::fs::read_to_string(path).expect("the plans are there");
    text.lines()
        .map(|line| serde_json::from_str(line).expect("a line is a plan"))
        .collect()
}

impl Ready {
    fn device(&self) -> &'static Device {
        Device::by_name(&self.card).expect("the card is known")
    }

    fn case(&self, setup: Setup) -> (Model, Case) {
        let case = Case {
            model: self.model.clone(),
            shape: serde_json::Map::new(),
            setup,
            limit_gib: None,
            parallel: None,
        };
        (Model::from_case(&case).expect("the model is known"), case)
    }

    /// Reserved bytes and milliseconds of a step, as `vramscope estimate` has them.
    fn estimated(&self, setup: &Setup) -> (Bytes, f64) {
        let (model, case) = self.case(setup.clone());
        let device = self.device();
        let own = Measured::read(H200).expect("the program's own kernels");
        let clock = Clock::of(device, own, None).expect("its rates are known");
        let gpu = device.gpu().expect("the card's shape is known");
        let run = TimedRun::record(&model, &case.setup, None, gpu, clock.network()).expect("it is simulated");
        let asked = Asked {
            sources: clock.sources(),
            expense: Expense::default(),
        };
        let step_ms = run.answer(&clock.costs(), asked).1.step_ms;
        let report =
            simulate_recorded(&model, (&case.setup, None), (run.into_recording(), Gpu::H200)).expect("it is simulated");
        (report.peak_reserved, step_ms)
    }

    fn played(&self, setup: &Setup, batch: u64) -> Trial {
        let setup = Setup {
            batch,
            accum: (16 / batch).clamp(1, 2),
            ..setup.clone()
        };
        let (model, case) = self.case(setup);
        let device = self.device();
        let options = Options {
            limit: Some(self.planned),
            ..Options::default()
        };
        let gpu = device.gpu().expect("the card's shape is known");
        attempt(&model, &case.setup, gpu, &options, 4).expect("it is simulated")
    }
}

#[test]
fn each_trains_within_its_limit() {
    for plan in ready() {
        let Some(best) = &plan.recommended else {
            let nearest = plan.nearest.as_ref().expect("where nothing fits, the nearest is told");
            assert!(nearest.choice.live > plan.planned, "{} on {}", plan.model, plan.card);
            continue;
        };
        let trial = plan.played(&best.setup, best.setup.batch);
        assert!(trial.trains(), "{} on {}", plan.model, plan.card);
        assert_eq!(
            Some(trial.peak_allocated),
            best.peak_allocated,
            "{} on {}",
            plan.model,
            plan.card
        );
        assert_eq!(best.setup.batch * best.setup.accum, 16);
    }
}

/// The table leads to the plan page, which must not say otherwise.
#[test]
fn figures_are_those_of_an_estimate_today() {
    for plan in ready() {
        let Some(best) = &plan.recommended else { continue };
        let (reserved, step_ms) = plan.estimated(&best.setup);
        assert_eq!(best.peak_reserved, Some(reserved), "{} on {}", plan.model, plan.card);
        let told = best.step_ms.expect("its rates are known");
        assert!(
            (told / step_ms - 1.0).abs() < 1e-6,
            "{} on {}: {told} ms in the table, {step_ms} ms of an estimate; `cargo xtask plans` makes it anew",
            plan.model,
            plan.card
        );
    }
}

/// An H200 is an H100 with more and faster memory.
#[test]
fn no_h200_is_slower_than_an_h100() {
    let all = ready();
    for of_model in all.chunk_by(|a, b| a.model == b.model) {
        let rate = |card: &str| {
            let plan = of_model.iter().find(|plan| plan.card == card);
            let best = plan.and_then(|plan| plan.recommended.as_ref());
            best.and_then(|best| best.samples_per_s).expect("it trains there")
        };
        let [h100, h200] = ["H100 SXM", "H200"].map(rate);
        assert!(
            h200 >= h100,
            "{}: {h200} samples/s, {h100} on an H100",
            of_model[0].model
        );
    }
}

#[test]
fn every_model_has_a_plan_on_the_largest_card_and_more_memory_is_no_farther() {
    let all = ready();
    for of_model in all.chunk_by(|a, b| a.model == b.model) {
        assert_eq!(of_model.len(), 8, "{}", of_model[0].model);
        let distances: Vec<Option<u32>> = of_model
            .iter()
            .map(|plan| plan.recommended.as_ref().map(|c| c.distance))
            .collect();
        let told: Vec<u32> = distances.iter().flatten().copied().collect();
        assert!(distances.last().is_some_and(Option::is_some), "{}", of_model[0].model);
        assert!(told.is_sorted_by(|a, b| a >= b), "{}: {told:?}", of_model[0].model);
    }
}

fn render(all: &[Ready]) -> String {
    let gib = |bytes: Bytes| format!("{:.1}", bytes.get() as f64 / f64::from(1 << 30));
    let mut out = HEAD.to_owned();
    for of_model in all.chunk_by(|a, b| a.model == b.model) {
        out += &format!(
            "## {}\n\n| card | trained | precision | optimizer | checkpointing | loss | batch × accumulation | reserved (GiB) | \
             samples/s |\n| --- | --- | --- | --- | --- | --- | --: | --: | --: |\n",
            of_model[0].model
        );
        for plan in of_model {
            let card = format!("{} GB ({})", plan.gb, plan.card);
            let Some(best) = &plan.recommended else {
                let short = plan
                    .nearest
                    .as_ref()
                    .map_or_else(String::new, |nearest| gib(nearest.short));
                out += &format!("| {card} | nothing fits: {short} GiB too much | | | | | | | |\n");
                continue;
            };
            let setup = serde_json::to_value(&best.setup).expect("a setup is JSON");
            let word = |key: &str| setup[key].as_str().unwrap_or_default().to_owned();
            let trained = match word("freeze").as_str() {
                "none" => "everything".to_owned(),
                "vision" => "all but the vision tower".to_owned(),
                "all-but-connector" => "the connector".to_owned(),
                adapters => adapters.to_owned(),
            };
            let reserved = best.peak_reserved.map(gib).unwrap_or_default();
            let rate = best.samples_per_s.map_or_else(String::new, |rate| format!("{rate:.2}"));
            out += &format!(
                "| {card} | {trained} | {} | {} | {} | {} | {} × {} | {reserved} of {} | {rate} |\n",
                word("precision"),
                word("optim"),
                word("ckpt"),
                word("loss"),
                best.setup.batch,
                best.setup.accum,
                gib(plan.planned),
            );
        }
        out += "\n";
    }
    out + COURSE
}

#[test]
fn the_kept_table_is_todays() {
    kept::hold(TABLE, &render(&ready()));
}
