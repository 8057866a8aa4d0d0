//! Makes the largest single estimate once. `cargo xtask bench-wasm` times it in WebAssembly, where `main` may be called
//! again and again.

use std::hint::black_box;
use std::process::ExitCode;

use vramscope_engine::{Case, Model, simulate};

const CASE: &str = r#"{"model":"qwen2.5-vl-7b","batch":1,"seq":4096,"images":4,"grid":[60,68]}"#;

fn main() -> ExitCode {
    let Ok(Some(case)) = Case::from_json(CASE) else {
        return ExitCode::FAILURE;
    };
    let report = Model::from_case(&case).map(|model| simulate(&model, &case.setup).is_ok());
    ExitCode::from(u8::from(!black_box(report).unwrap_or(false)))
}
