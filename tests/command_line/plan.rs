//! Tests of `plan`: recommendations for a card, with reasons.

use serde_json::Value;

use crate::exports::FORMS;
use crate::program::run;

const GPT2: [&str; 8] = [
    "plan",
    "gpt2",
    "--seq",
    "256",
    "--precision",
    "bf16",
    "--limit-gib",
    "3",
];

fn planned(more: &[&str]) -> Value {
    let ran = run(GPT2.iter().chain(more).chain(&["--format", "json"]));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    serde_json::from_str(&ran.stdout).expect("JSON")
}

#[test]
fn what_is_recommended_stays_within_the_limit_less_the_margin() {
    let plan = planned(&[]);
    let best = &plan["recommended"];
    let planned_limit = plan["planned"].as_u64().expect("bytes");
    assert_eq!(planned_limit, (3.0 * 1_073_741_824.0 * 0.95) as u64);
    assert!(best["peak_reserved"].as_u64().expect("bytes") <= planned_limit);
    assert_eq!(best["next_batch"][1], false);
    assert!(plan["front"].as_array().is_some_and(|front| !front.is_empty()));
    let decided = &plan["searched"];
    let of = |key: &str| decided[key].as_u64().expect("a number");
    assert_eq!(
        of("setups"),
        of("summed") + of("bounded") + of("dominated") + of("refused")
    );
    assert!(of("recorded") * 100 < of("setups"), "{decided}");
}

#[test]
fn what_a_flag_gives_stays_unless_it_is_freed() {
    let optim = |more: &[&str]| {
        planned(more)["recommended"]["setup"]["optim"]
            .as_str()
            .expect("a name")
            .to_owned()
    };
    assert_eq!(optim(&["--optim", "adamw_loop"]), "adamw_loop");
    assert_eq!(optim(&["--optim", "adamw_loop", "--free", "optim"]), "adamw_fused");
    assert_eq!(optim(&["--keep", "optim"]), "adamw");
    let ckpt = planned(&["--ckpt", "full"]);
    assert_eq!(ckpt["recommended"]["setup"]["ckpt"], "full");
}

#[test]
fn samples_of_a_step_are_made_up_by_accumulation() {
    let plan = planned(&["--effective", "24"]);
    let setup = &plan["recommended"]["setup"];
    let of = |key: &str| setup[key].as_u64().expect("a number");
    assert_eq!(of("batch") * of("accum"), 24);
    assert!(plan["ladder"].as_array().is_some_and(|rungs| rungs.len() > 1));
}

#[test]
fn where_nothing_fits_it_is_told_what_stands_in_the_way() {
    let ran = run([
        "plan",
        "llava-1.5-7b",
        "--seq",
        "700",
        "--freeze",
        "none",
        "--limit-gib",
        "6",
    ]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains("NOTHING FITS"), "{}", ran.stdout);
    assert!(ran.stdout.contains("What takes the memory"), "{}", ran.stdout);
    assert!(ran.stdout.contains("weights"), "{}", ran.stdout);
}

#[test]
fn a_plan_is_told_in_words_with_its_ladder() {
    let ran = run(GPT2.iter().chain(&["--effective", "64"]));
    for words in [
        "RUN",
        "Changes and reasons",
        "Step by step until it fits",
        "lowers the peak",
        "Setups searched",
        "Not searched",
    ] {
        assert!(ran.stdout.contains(words), "{words} in {}", ran.stdout);
    }
    assert!(
        ran.stdout.lines().all(|line| line.chars().count() <= 80),
        "{}",
        ran.stdout
    );
}

#[test]
fn every_form_is_written_for_what_it_takes() {
    for form in FORMS {
        let ran = run(GPT2.iter().chain(&["--keep", "attn", "--export", form]));
        assert_eq!(ran.code, Some(0), "{form}: {}", ran.stderr);
        assert!(ran.stdout.len() > 100, "{form}: {}", ran.stdout);
    }
    // Settings that a tool does not support are refused, not omitted.
    let refused = run(GPT2.iter().chain(&["--optim", "sgdm", "--export", "hf-yaml"]));
    assert!(refused.refused().contains("--optim sgd"), "{}", refused.stderr);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let no_card = run(["plan", "gpt2"]);
    assert!(no_card.refused().contains("--gpu NAME"));
    let margin = run(GPT2.iter().chain(&["--margin", "99"]));
    assert!(margin.refused().contains("--margin 99"));
    let samples = run(GPT2.iter().chain(&["--effective", "7", "--batch", "2"]));
    assert!(samples.refused().contains("make"), "{}", samples.stderr);
    let entry = run(GPT2.iter().chain(&["--keep", "colour"]));
    assert_eq!(entry.code, Some(2));
}
