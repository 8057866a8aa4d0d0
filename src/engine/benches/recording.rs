//! Benchmarks of reading and replaying a recording, and of answering at one size of a recording of all sizes.

#![allow(clippy::disallowed_methods, reason = "runs natively only")]
#![allow(missing_docs, reason = "criterion's macros make undocumented functions")]

use std::hint::black_box;
use std::io::Read;
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use flate2::read::GzDecoder;
use vramscope_engine::recording::{self, Opened};

/// Allocator that the command line uses.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Returns the repository's recordings, or the file that `VRAMSCOPE_RECORDING` names, such as a step of a 7B model.
fn recordings() -> Vec<(String, Vec<u8>)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/recordings/");
    let names = ["smolvlm-256m-bf16-sgdm", "llama-4layers-trl-sft-ckpt"];
    let own = names.map(|name| (name.to_owned(), format!("{folder}{name}.vram.gz")));
    let given = std::env::var("VRAMSCOPE_RECORDING")
        .ok()
        .map(|path| ("given".to_owned(), path));
    let unpacked = |(name, path): (String, String)| (name, unpack(&path));
    own.into_iter().chain(given).map(unpacked).collect()
}

fn unpack(path: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).expect("the recording is there");
    GzDecoder::new(file).read_to_end(&mut bytes).expect("it is whole");
    bytes
}

fn read(c: &mut Criterion) {
    let mut group = c.benchmark_group("recording");
    group.sample_size(10).warm_up_time(Duration::from_millis(100));
    for (name, bytes) in recordings() {
        let run = || recording::read(&bytes[..], None).expect("a recording");
        group.bench_function(format!("read {name}"), |b| b.iter(|| black_box(run())));
        group.bench_function(format!("read and play {name}"), |b| {
            b.iter(|| black_box(recording::report(run()).expect("a step")))
        });
    }
}

fn sizes(c: &mut Criterion) {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/recordings/");
    let bytes = unpack(&format!("{folder}qwen2-4layers-bf16.sizes.gz"));
    let open = || match recording::open(&bytes[..], None).expect("all sizes") {
        Opened::Sizes(all) => all,
        Opened::Run(_) => unreachable!("it ends in .sizes.gz"),
    };
    let all = open();
    let mut group = c.benchmark_group("sizes");
    group.sample_size(10).warm_up_time(Duration::from_millis(100));
    group.bench_function("open", |b| b.iter(|| black_box(open())));
    group.bench_function("answer", |b| {
        b.iter(|| black_box(recording::report(all.at(&[3, 448], None).expect("it holds")).expect("a step")))
    });
}

criterion_group!(benches, read, sizes);
criterion_main!(benches);
