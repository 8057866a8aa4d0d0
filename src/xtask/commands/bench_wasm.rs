//! `cargo xtask bench-wasm`: times estimates in WebAssembly.

use crate::process::{cargo, program, run};
use crate::{Failure, target, tools};

/// Node.js script, relative to the repository's root.
const SCRIPT: &str = "src/xtask/commands/bench_wasm.mjs";

/// Examples with a typical estimate (llava-1.5-7b, 4 × 2048 positions), the largest one of the catalogue (qwen2.5-vl-7b,
/// 4096 positions, four large images), and two of 397 billion and a trillion parameters in experts, as
/// in `src/engine/benches/estimate.rs`.
const EXAMPLES: [&str; 3] = ["usual_estimate", "largest_estimate", "expert_estimate"];

/// Times these estimates in WebAssembly, built as for the page and run by Node.js. `cargo bench -p vramscope-engine
/// --bench estimate` gives the native times.
///
/// # Errors
/// If Node.js is missing, or the build or an estimate fails.
pub fn bench_wasm() -> Result<(), Failure> {
    let node = tools::node()?;
    tools::wasm_target()?;
    let examples = EXAMPLES.map(|name| ["--example", name]);
    let (variable, flags) = super::WASM_RUSTFLAGS;
    run(cargo()
        .env(variable, flags)
        .args([
            "build",
            "--package",
            "vramscope-engine",
            "--profile",
            "wasm",
            "--target",
        ])
        .arg(tools::TARGET)
        .args(examples.as_flattened()))?;
    let built = target().join(tools::TARGET).join("wasm/examples");
    let modules = EXAMPLES.map(|name| built.join(name).with_extension("wasm"));
    run(program(node).arg(SCRIPT).args(modules))
}
