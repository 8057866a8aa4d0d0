//! Benchmarks one estimate and its parts.
#![expect(missing_docs, reason = "criterion_group makes a public function")]

use criterion::{Criterion, criterion_group, criterion_main};
use vramscope_engine::simulate::record;
use vramscope_engine::tape::Gpu;
use vramscope_engine::{Case, Model, simulate};

/// The allocator that the command line uses.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const CASES: [(&str, &str); 3] = [
    ("gpt2", r#"{"model":"gpt2","batch":2,"seq":512}"#),
    (
        "llava-1.5-7b batch 4 seq 2048",
        r#"{"model":"llava-1.5-7b","batch":4,"seq":2048}"#,
    ),
    (
        "qwen2.5-vl-7b seq 4096, four large images",
        r#"{"model":"qwen2.5-vl-7b","batch":1,"seq":4096,"images":4,"grid":[60,68]}"#,
    ),
];

/// Shapes like Qwen3.5-397B-A17B's, 60 layers of 512 experts each, and like Kimi-K2.5's, 60 layers of 384 experts each.
const EXPERTS: [(&str, &str); 2] = [
    ("397 B parameters in experts", include_str!("../examples/experts.json")),
    ("1 T parameters in experts", include_str!("../examples/kimi.json")),
];

/// A step of models with experts.
const STEP: &str = r#"{"model":"","batch":1,"seq":4096,"images":1,"grid":[48,64],"precision":"bf16","ckpt":"full"}"#;

fn estimates(c: &mut Criterion) {
    let of_experts = EXPERTS.map(|(name, config)| (name, STEP, Some(config)));
    let cases = CASES
        .into_iter()
        .map(|(name, text)| (name, text, None))
        .chain(of_experts);
    for (name, text, config) in cases {
        let Ok(Some(case)) = Case::from_json(text) else {
            continue;
        };
        let model = config.map_or_else(|| Model::from_case(&case), Model::from_config);
        let Ok(model) = model else { continue };
        if simulate(&model, &case.setup).is_err() {
            continue;
        }
        let mut group = c.benchmark_group(name);
        group.bench_function("tape", |b| b.iter(|| record(&model, &case.setup, Gpu::H200)));
        group.bench_function("estimate", |b| b.iter(|| simulate(&model, &case.setup)));
        group.finish();
    }
}

criterion_group!(benches, estimates);
criterion_main!(benches);
