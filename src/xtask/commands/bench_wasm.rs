use crate::process::{cargo, find, program, run};
use crate::{Failure, root, tools};

/// Runs in the repository's root.
const SCRIPT: &str = "src/xtask/commands/bench_wasm.mjs";
const EXAMPLE: &str = "largest_estimate";

/// Times the largest single estimate in WebAssembly, built as for the page and run by Node.js; the
/// native figures come from `cargo bench -p vramscope-engine --bench estimate`.
///
/// # Errors
/// When Node.js is missing, or the build or the estimate fails.
pub fn bench_wasm() -> Result<(), Failure> {
    let node = find(&["node", "nodejs"])
        .ok_or_else(|| Failure::new("there is no `node` on PATH: install Node.js 18 or later".to_owned()))?;
    tools::wasm_target()?;
    let build = [
        "build",
        "--package",
        "vramscope-engine",
        "--example",
        EXAMPLE,
        "--profile",
        "wasm",
        "--target",
    ];
    run(cargo().args(build).arg(tools::TARGET))?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), Into::into);
    let module = target
        .join(tools::TARGET)
        .join("wasm/examples")
        .join(EXAMPLE)
        .with_extension("wasm");
    run(program(node).arg(SCRIPT).arg(module))
}
