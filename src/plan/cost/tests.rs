//! Tests of costs by card.

use vramscope_engine::setup::{Checkpointing, Precision};
use vramscope_time::{H200, Measured};

use super::*;

fn card(name: &str) -> &'static Device {
    Device::by_name(name).expect("it is known")
}

fn clock(device: &Device) -> Option<Clock> {
    Clock::of(device, Measured::read(H200).expect("it ships"), None)
}

fn on(question: &CostQuestion<'_>, name: &str, gpus: u64) -> CostRow {
    question.on(card(name), gpus, clock(card(name)).as_ref())
}

#[test]
fn a_run_costs_its_time_at_the_price_of_all_cards() {
    let model = Model::from_catalogue("qwen2.5-0.5b").expect("it is built in");
    let setup = Setup {
        seq: 512,
        ..Setup::default()
    };
    let prices = Prices::read("card,per_hour\nH200,3\nL4,0.6").expect("it is a list");
    let question = CostQuestion {
        model: &model,
        setup: &setup,
        parallel: None,
        prices: &prices,
        samples: Some(360_000),
        co2: Some(400.0),
    };
    for gpus in [1, 4] {
        let cost = on(&question, "H200", gpus).cost.expect("it fits and is timed");
        let near = |a: Option<f64>, b: f64| assert!(a.is_some_and(|a| (a / b - 1.0).abs() < 1e-9), "{a:?} {b}");
        near(cost.per_hour, 3.0 * gpus as f64);
        near(cost.hours, 100.0 / cost.samples_per_s);
        near(cost.run, 100.0 / cost.samples_per_s * 3.0 * gpus as f64);
        near(cost.per_thousand_samples, cost.run.expect("known") / 360.0);
        near(
            cost.per_million_tokens,
            cost.per_thousand_samples.expect("known") * 1e3 / 512.0,
        );
        near(cost.kwh_at_most, 0.7 * cost.hours.expect("known") * gpus as f64);
        near(cost.kg_co2_at_most, cost.kwh_at_most.expect("known") * 0.4);
    }
    let unpriced = on(&question, "A100", 1).cost.expect("it fits");
    assert_eq!(
        (unpriced.per_hour, unpriced.run, unpriced.per_million_tokens),
        (None, None, None)
    );
    assert!(unpriced.hours.is_some());
}

/// Cards share a run by what sends the least and fits, and by what was said if something was.
#[test]
fn several_share_by_the_first_that_fits() {
    let model = Model::from_catalogue("llama3.1-8b").expect("it is built in");
    let setup = Setup {
        seq: 1024,
        ckpt: Checkpointing::Full,
        ..Setup::default()
    };
    let prices = Prices::default();
    let question = CostQuestion {
        model: &model,
        setup: &setup,
        parallel: None,
        prices: &prices,
        samples: None,
        co2: None,
    };
    let alone = on(&question, "RTX 4090", 1);
    assert!(matches!(&alone.fit, Ok(fit) if fit.verdict == Verdict::Oom) && alone.cost.is_none());
    let shared = on(&question, "RTX 4090", 8);
    assert!(
        matches!(shared.strategy, Some(Strategy::Zero1 | Strategy::Fsdp)),
        "{shared:?}"
    );
    assert!(matches!(&shared.fit, Ok(fit) if fit.verdict != Verdict::Oom) && shared.cost.is_some());
    let said = CostQuestion {
        parallel: Some(Parallel {
            strategy: Strategy::Ddp,
            ..Parallel::default()
        }),
        ..question
    };
    let said = on(&said, "RTX 4090", 8);
    assert_eq!(said.strategy, Some(Strategy::Ddp));
    assert!(matches!(&said.fit, Ok(fit) if fit.verdict == Verdict::Oom));
    let refused = CostQuestion {
        setup: &Setup {
            compile: true,
            ..setup.clone()
        },
        ..question
    };
    assert!(on(&refused, "RTX 4090", 2).fit.is_err());
}

#[test]
fn rows_are_ranked_by_price_and_what_does_not_run_is_behind() {
    let model = Model::from_catalogue("qwen2.5-1.5b").expect("it is built in");
    let setup = Setup {
        seq: 512,
        ..Setup::default()
    };
    let prices = Prices::read("card,per_hour\nH200,30\nH100,2\nRTX 4060,0.1").expect("it is a list");
    let question = CostQuestion {
        model: &model,
        setup: &setup,
        parallel: None,
        prices: &prices,
        samples: None,
        co2: None,
    };
    let names = |rows: &[CostRow]| rows.iter().map(|row| row.card.clone()).collect::<Vec<_>>();
    let mut rows: Vec<CostRow> = ["RTX 4060", "A100", "H200", "H100"]
        .map(|name| on(&question, name, 1))
        .into();
    rank(&mut rows, RankBy::Cost);
    assert_eq!(
        names(&rows),
        ["H100 SXM", "H200", "A100 80GB SXM", "RTX 4060"],
        "{rows:?}"
    );
    rank(&mut rows, RankBy::Time);
    assert_eq!(
        names(&rows).last().map(String::as_str),
        Some("RTX 4060"),
        "it lacks memory"
    );
    assert_eq!(names(&rows)[0], "H200");
    assert_eq!(cards(&prices, Some(card("A100"))).len(), 4);
    assert_eq!(cards(&prices, Some(card("RTX 4060"))).len(), 3);
    assert!(
        cards(&Prices::default(), None)
            .iter()
            .all(|card| card.vendor.is_driven_by_cuda())
    );
}

/// bf16 on a card without units for it has no rate that a data sheet states.
#[test]
fn what_is_emulated_has_no_time() {
    let model = Model::from_catalogue("gpt2").expect("it is built in");
    let prices = Prices::default();
    let of = |precision: Precision| {
        let setup = Setup {
            precision,
            seq: 128,
            ..Setup::default()
        };
        let question = CostQuestion {
            model: &model,
            setup: &setup,
            parallel: None,
            prices: &prices,
            samples: None,
            co2: None,
        };
        on(&question, "T4", 1).cost
    };
    assert!(of(Precision::Bf16).is_none() && of(Precision::Fp32).is_some());
}
