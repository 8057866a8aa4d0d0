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

fn estimates(c: &mut Criterion) {
    for (name, text) in CASES {
        let Ok(Some(case)) = Case::from_json(text) else {
            continue;
        };
        let Ok(model) = Model::from_case(&case) else { continue };
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
