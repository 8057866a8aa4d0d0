//! Benchmarks the allocator, in time per event, on recorded training steps.
#![allow(clippy::disallowed_methods, reason = "runs natively only")]
#![expect(missing_docs, reason = "criterion_group makes a public function")]

use std::collections::HashMap;
use std::fs::File;
use std::hint::black_box;
use std::io::Read;
use std::path::Path;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use flate2::read::GzDecoder;
use vramscope_engine::allocator::{Action, Block, CachingAllocator, Options, Trace};

/// One allocator event, as the simulation of a training step issues it.
#[derive(Clone, Copy)]
enum AllocatorEvent {
    Alloc { slot: usize, bytes: u64 },
    Free { slot: usize },
}

fn steps(name: &str) -> Vec<AllocatorEvent> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/data/traces")
        .join(name);
    let mut json = Vec::new();
    GzDecoder::new(File::open(path).unwrap())
        .read_to_end(&mut json)
        .unwrap();
    let trace = Trace::from_json(&json).unwrap();
    let mut slots = HashMap::new();
    let mut next = 0;
    let mut steps = Vec::new();
    for event in trace.events {
        match event.action {
            Action::Alloc => {
                slots.insert(event.address, next);
                steps.push(AllocatorEvent::Alloc {
                    slot: next,
                    bytes: event.size,
                });
                next += 1;
            }
            Action::FreeCompleted => steps.push(AllocatorEvent::Free {
                slot: slots[&event.address],
            }),
            _ => {}
        }
    }
    steps
}

fn play(steps: &[AllocatorEvent], blocks: &mut [Option<Block>], options: &Options) -> u64 {
    let mut allocator = CachingAllocator::new(options.clone());
    for &step in steps {
        match step {
            AllocatorEvent::Alloc { slot, bytes } => blocks[slot] = allocator.alloc(bytes, 0).ok(),
            AllocatorEvent::Free { slot } => allocator.free(blocks[slot].take().unwrap()),
        }
    }
    allocator.peak_reserved().get()
}

fn recorded_steps(c: &mut Criterion) {
    let mut group = c.benchmark_group("allocator");
    for name in ["gpt2-bf16", "internvl3-1b-amp", "qwen2-vl-2b"] {
        let steps = steps(&format!("{name}.trace.json.gz"));
        group.throughput(Throughput::Elements(steps.len() as u64));
        for (mode, expandable_segments) in [("segments", false), ("expandable", true)] {
            let options = Options {
                expandable_segments,
                ..Options::default()
            };
            group.bench_function(format!("{name}/{mode}"), |b| {
                b.iter_batched_ref(
                    || vec![None; steps.len()],
                    |blocks| black_box(play(&steps, blocks, &options)),
                    BatchSize::LargeInput,
                );
            });
        }
    }
    group.finish();
}

criterion_group!(benches, recorded_steps);
criterion_main!(benches);
