//! Compares the precomputed plans for common models and cards, which `cargo xtask plans` writes, with the engine.

use std::path::Path;

use serde::Deserialize;
use vramscope_engine::allocator::Options;
use vramscope_engine::device::Device;
use vramscope_engine::simulate::{Trial, attempt};
use vramscope_engine::units::Bytes;
use vramscope_engine::{Case, Model, Setup};
use vramscope_plan::{Choice, Nearest};
use vramscope_tests::kept;

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
    fn played(&self, setup: &Setup, batch: u64) -> Trial {
        let setup = Setup {
            batch,
            accum: (16 / batch).clamp(1, 2),
            ..setup.clone()
        };
        let case = Case {
            model: self.model.clone(),
            shape: serde_json::Map::new(),
            setup,
            limit_gib: None,
            parallel: None,
        };
        let model = Model::from_case(&case).expect("the model is known");
        let device = Device::by_name(&self.card).expect("the card is known");
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
