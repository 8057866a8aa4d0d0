//! Tests of `cost`: what a run costs on each card, and in which order.

use serde_json::Value;

use crate::program::{run, run_on};

const PRICES: &str = "card,per_hour,currency,date\nH200,3.5,USD,2026-11-01\nL4,0.7,USD,2026-11-20\n";

fn answer(args: &[&str], prices: &str) -> Value {
    let ran = run_on(
        [
            "cost",
            "qwen2.5-0.5b",
            "--seq",
            "256",
            "--prices",
            "-",
            "--format",
            "json",
        ]
        .iter()
        .chain(args),
        prices,
    );
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    serde_json::from_str(&ran.stdout).expect("JSON")
}

#[test]
fn the_cheapest_is_first_and_the_price_is_that_of_the_time_that_an_estimate_takes() {
    let answer = answer(&["--gpus", "1,2", "--samples", "10k"], PRICES);
    let rows = answer["rows"].as_array().expect("rows");
    assert_eq!((rows.len(), &answer["currency"]), (4, &"USD".into()));
    let price = |row: &Value| row["run"].as_f64().expect("a price");
    assert!(rows.windows(2).all(|two| price(&two[0]) <= price(&two[1])), "{answer}");
    let h200 = rows
        .iter()
        .find(|row| row["card"] == "H200" && row["gpus"] == 1)
        .expect("it is tried");
    let estimate = run([
        "estimate",
        "qwen2.5-0.5b",
        "--seq",
        "256",
        "--gpu",
        "H200",
        "--format",
        "json",
    ]
    .iter()
    .chain(&["--samples", "10k", "--price-per-hour", "3.5"]));
    let estimate: Value = serde_json::from_str(&estimate.stdout).expect("JSON");
    assert_eq!(h200["run"], estimate["time"]["run"]["cost"]);
    assert_eq!(h200["needed"], estimate["target"]["needed"]);
}

#[test]
fn a_text_says_the_days_of_the_prices_and_what_does_not_run() {
    let ran = run_on(
        ["cost", "llama3.1-8b", "--seq", "512", "--gpus", "1", "--prices", "-"].iter(),
        PRICES,
    );
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    for words in [
        "cheapest first",
        "1 × H200",
        "USD/1M tokens",
        "Do not run it:\n  1 × L4: needs",
        "Prices of 2026-11-01 to 2026-11-20.",
    ] {
        assert!(ran.stdout.contains(words), "{words}: {}", ran.stdout);
    }
}

#[test]
fn a_wrong_list_is_refused_by_row() {
    let ran = run_on(["cost", "gpt2", "--prices", "-"].iter(), "card,per_hour\nH9000,2\n");
    let refused = ran.refused();
    assert!(refused.contains("row 1") && refused.contains("H9000"), "{refused}");
}
