//! Tests of a report's reserved bytes against an allocator that replays every event.

use std::collections::HashMap;

use proptest::prelude::*;
use vramscope_engine::allocator::{Block, CachingAllocator, Options};
use vramscope_engine::report::SegmentLayout;
use vramscope_engine::simulate::{Recording, record, simulate};
use vramscope_engine::tape::Gpu;
use vramscope_engine::tape::log::{Event, StorageId};
use vramscope_engine::{Case, Model};

const GPT2: &str = r#"{"model_type":"gpt2","vocab_size":5000,"n_positions":1024,"n_embd":256,"n_layer":3,"n_head":4}"#;
const LLAMA: &str = r#"{"model_type":"llama","vocab_size":9000,"hidden_size":320,"intermediate_size":900,
    "num_hidden_layers":3,"num_attention_heads":4,"num_key_value_heads":2,"max_position_embeddings":1024}"#;

/// Replays every event of the three steps and returns the reserved bytes at the end.
fn played_whole(run: &Recording) -> u64 {
    let mut allocator = CachingAllocator::new(Options::default());
    let mut live: HashMap<StorageId, Vec<Block>> = HashMap::new();
    let mut play = |allocator: &mut CachingAllocator, events: &[Event]| {
        for event in events {
            let id = event.storage();
            let blocks = live.entry(id).or_default();
            if event.is_alloc() {
                blocks.push(allocator.alloc(run.log.allocations[id as usize].bytes, 0).unwrap());
            } else if !blocks.is_empty() {
                allocator.free(blocks.remove(0));
            }
        }
    };
    play(&mut allocator, &run.build);
    allocator.empty_cache();
    for step in [&run.first, &run.steady, &run.steady] {
        play(&mut allocator, &step.events);
    }
    allocator.reserved().get()
}

fn setups() -> impl Strategy<Value = (&'static str, String)> {
    let optim = prop_oneof![Just("adamw"), Just("adamw_fused"), Just("sgdm"), Just("adafactor")];
    let precision = prop_oneof![Just("fp32"), Just("bf16"), Just("amp-bf16")];
    let ckpt = prop_oneof![Just("none"), Just("full")];
    let sizes = (1_u64..6, 64_u64..900, 1_u64..3);
    (prop_oneof![Just(GPT2), Just(LLAMA)], precision, optim, ckpt, sizes).prop_map(
        |(config, precision, optim, ckpt, (batch, seq, accum))| {
            let setup = format!(
                r#""precision":"{precision}","optim":"{optim}","ckpt":"{ckpt}","batch":{batch},"seq":{seq},"accum":{accum}"#
            );
            (config, setup)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_not_played_twice_changes_nothing((config, setup) in setups()) {
        let case = Case::from_json(&format!(r#"{{"model":"x",{setup}}}"#)).unwrap().unwrap();
        let model = Model::from_config(config).unwrap();
        let report = simulate(&model, &case.setup).unwrap();
        let fresh = report.reserved.iter().find(|r| r.layout == SegmentLayout::FreshProcess).unwrap();
        prop_assert_eq!(fresh.bytes.get(), played_whole(&record(&model, &case.setup, Gpu::H200)));
    }

    #[test]
    fn the_layout_that_needs_most_is_reserved((config, setup) in setups()) {
        let case = Case::from_json(&format!(r#"{{"model":"x",{setup}}}"#)).unwrap().unwrap();
        let report = simulate(&Model::from_config(config).unwrap(), &case.setup).unwrap();
        prop_assert!(report.reserved.len() == 3);
        for reserved in &report.reserved {
            let sum: u64 = reserved.segments.iter().map(|(bytes, count)| bytes.get() * count).sum();
            prop_assert_eq!(sum, reserved.bytes.get());
            prop_assert!(reserved.bytes <= report.peak_reserved);
        }
        prop_assert!(report.peak_reserved >= report.peak_allocated);
        if let Some([least, most]) = report.reserved_range() {
            prop_assert!(least.bytes < most.bytes && most.bytes == report.peak_reserved);
        }
    }
}
