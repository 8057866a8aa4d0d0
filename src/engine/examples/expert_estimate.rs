//! Makes one estimate of a model of 397 billion parameters in 512 experts, and one of a trillion in 384, once. `cargo xtask
//! bench-wasm` times them.

use std::hint::black_box;
use std::process::ExitCode;

use vramscope_engine::{Case, Model, simulate};

/// The shapes of Qwen3.5-397B-A17B and of Kimi-K2.5.
const CONFIGS: [&str; 2] = [include_str!("experts.json"), include_str!("kimi.json")];
const CASE: &str = r#"{"model":"","batch":1,"seq":4096,"images":1,"grid":[48,64],"precision":"bf16","ckpt":"full"}"#;

fn main() -> ExitCode {
    let Ok(Some(case)) = Case::from_json(CASE) else {
        return ExitCode::FAILURE;
    };
    let is_made = |config| Model::from_config(config).is_ok_and(|model| simulate(&model, &case.setup).is_ok());
    ExitCode::from(u8::from(!black_box(CONFIGS.into_iter().all(is_made))))
}
