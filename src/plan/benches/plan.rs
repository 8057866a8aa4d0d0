//! Benchmarks a search over a hundred thousand setups on one core.

#![allow(clippy::disallowed_methods, reason = "runs natively only")]
#![allow(missing_docs, reason = "criterion's macros make undocumented functions")]

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use vramscope_engine::device::Device;
use vramscope_engine::units::Bytes;
use vramscope_engine::{Model, Setup};
use vramscope_plan::search::{Entry, Found, Question, Samples, Search, Space, inputs};
use vramscope_time::{Costs, H200, Measured, Rates};

/// The allocator that the command line uses.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// One planning question: model, card, and settings that may change.
struct Asked {
    name: &'static str,
    model: &'static str,
    card: &'static str,
    gib: u64,
    samples: Samples,
    allowed: &'static [Entry],
    setup: Setup,
}

fn asked() -> Vec<Asked> {
    let two_images = Setup {
        seq: 3072,
        image_sizes: vec![[720, 1280]; 2],
        ..Setup::default()
    };
    let of = |name, model, card, gib, samples, allowed, setup| Asked {
        name,
        model,
        card,
        gib,
        samples,
        allowed,
        setup,
    };
    let data: &[Entry] = &[Entry::Resolution, Entry::Images];
    let (effective, fit) = (Samples::Effective(64), Samples::AsManyAsFit(256));
    let llava = Setup {
        seq: 1024,
        ..Setup::default()
    };
    vec![
        of(
            "qwen2.5-vl-7b, 24 GB, 2 images of 1280×720",
            "qwen2.5-vl-7b",
            "RTX 4090",
            22,
            effective,
            data,
            two_images.clone(),
        ),
        of(
            "qwen2.5-vl-7b, 80 GB, 2 images of 1280×720",
            "qwen2.5-vl-7b",
            "A100 80GB",
            76,
            effective,
            data,
            two_images,
        ),
        of(
            "llava-1.5-7b, 24 GB, as many as fit",
            "llava-1.5-7b",
            "RTX 4090",
            22,
            fit,
            &[],
            llava.clone(),
        ),
        of(
            "llava-1.5-7b, 80 GB, as many as fit",
            "llava-1.5-7b",
            "A100 80GB",
            76,
            fit,
            &[],
            llava,
        ),
    ]
}

fn searched(asked: &Asked, measured: &Measured) -> Found {
    let device = Device::by_name(asked.card).expect("the card is known");
    let model = |_: &Setup| Model::from_catalogue(asked.model);
    let inputs = inputs(model, &asked.setup, asked.allowed).expect("the model is known");
    let rates = Rates::of(device).expect("the data sheet states its rates");
    let costs = Costs::new(rates, None, &measured.pace);
    let question = Question {
        space: Space::around(inputs, asked.samples, 1, &[]),
        device: Some(device),
        costs: Some(&costs),
        room: Bytes::gib(asked.gib),
    };
    Search::new(question).finish()
}

fn search(c: &mut Criterion) {
    let measured = Measured::read(H200).expect("the file is read");
    let mut group = c.benchmark_group("search");
    group.sample_size(10).warm_up_time(Duration::from_millis(100));
    for asked in asked() {
        let found = searched(&asked, &measured);
        println!("{}: {:?}, {} fit", asked.name, found.decided, found.fitting.len());
        group.bench_function(asked.name, |b| b.iter(|| black_box(searched(&asked, &measured))));
    }
    group.finish();
}

criterion_group!(benches, search);
criterion_main!(benches);
