//! Makes one estimate of a usual size once. `cargo xtask bench-wasm` times it beside the largest.

use std::hint::black_box;
use std::process::ExitCode;

use vramscope_engine::{Case, Model, simulate};

const CASE: &str = r#"{"model":"llava-1.5-7b","batch":4,"seq":2048}"#;

fn main() -> ExitCode {
    let Ok(Some(case)) = Case::from_json(CASE) else {
        return ExitCode::FAILURE;
    };
    let report = Model::from_case(&case).map(|model| simulate(&model, &case.setup).is_ok());
    ExitCode::from(u8::from(!black_box(report).unwrap_or(false)))
}
