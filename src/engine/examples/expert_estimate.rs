//! Makes one estimate of a model of 397 billion parameters in 512 experts once. `cargo xtask bench-wasm` times it.

use std::hint::black_box;
use std::process::ExitCode;

use vramscope_engine::{Case, Model, simulate};

/// The shape of Qwen3.5-397B-A17B.
const CONFIG: &str = include_str!("experts.json");
const CASE: &str = r#"{"model":"","batch":1,"seq":4096,"images":1,"grid":[48,64],"precision":"bf16","ckpt":"full"}"#;

fn main() -> ExitCode {
    let Ok(Some(case)) = Case::from_json(CASE) else {
        return ExitCode::FAILURE;
    };
    let report = Model::from_config(CONFIG).map(|model| simulate(&model, &case.setup).is_ok());
    ExitCode::from(u8::from(!black_box(report).unwrap_or(false)))
}
