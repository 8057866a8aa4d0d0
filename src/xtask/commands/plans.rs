//! `cargo xtask plans`: writes the precomputed plans.

use std::fs;

use serde_json::{Value, json};

use crate::process::{cargo, output, program, run};
use crate::{Failure, root};

/// Models that are commonly fine-tuned.
const MODELS: [&str; 6] = [
    "smolvlm2-2.2b",
    "internvl3-2b",
    "qwen2.5-vl-3b",
    "qwen3-vl-4b",
    "llava-1.5-7b",
    "qwen2.5-vl-7b",
];

/// One card for each common memory size, in GB.
const CARDS: [(u64, &str); 8] = [
    (8, "RTX 4060"),
    (12, "RTX 4070"),
    (16, "RTX 4080"),
    (24, "RTX 4090"),
    (40, "A100 40GB SXM"),
    (48, "L40S"),
    (80, "H100 SXM"),
    (141, "H200"),
];

/// Plans each pair of model and card and writes the recommendations to `tests/data/ready_plans.jsonl`; a test compares
/// them with the engine.
///
/// # Errors
/// If the command line cannot be built, or a plan fails.
pub fn plans() -> Result<(), Failure> {
    run(cargo().args(["build", "--release", "--locked", "-p", "vramscope"]))?;
    let mut all = Vec::new();
    for model in MODELS {
        for (gb, card) in CARDS {
            eprintln!("{model} on {card}");
            all.push(plan(model, gb, card)?);
        }
    }
    let lines: Vec<String> = all.iter().map(Value::to_string).collect();
    let path = root().join("src/app/data/ready_plans.jsonl");
    fs::write(&path, lines.join("\n") + "\n").map_err(|error| Failure::new(format!("{}: {error}", path.display())))
}

fn plan(model: &str, gb: u64, card: &str) -> Result<Value, Failure> {
    let binary = root().join("target/release/vramscope");
    let args = [
        "plan",
        model,
        "--gpu",
        card,
        "--effective",
        "16",
        "--most",
        "0",
        "--format",
        "json",
    ];
    let text = output(program(binary).args(args));
    let text = text.ok_or_else(|| Failure::new(format!("no plan of {model} on {card}")))?;
    let plan: Value = serde_json::from_str(&text).map_err(|error| Failure::new(error.to_string()))?;
    Ok(json!({
        "model": model,
        "gb": gb,
        "card": card,
        "planned": plan["planned"],
        "recommended": plan["recommended"],
        "nearest": plan["nearest"],
    }))
}
