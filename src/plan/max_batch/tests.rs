//! Tests of the search for the largest micro-batch.

use super::*;
use proptest::prelude::*;

/// Peak of a run that is constant up to some batch and linear beyond it.
fn peak([floor, base, slope]: [u64; 3], batch: u64) -> u64 {
    floor.max(base + slope * batch)
}

fn searched(limit: u64, of: [u64; 3]) -> (u64, usize) {
    let mut search = Search::new(Bytes::new(limit));
    let mut asked = 0;
    while let Some(batch) = search.next() {
        asked += 1;
        let peak = peak(of, batch);
        let stopped = (peak > limit).then(|| vramscope_engine::simulate::Stopped {
            step: 1,
            phase: None,
            tensor: String::new(),
            error: vramscope_engine::allocator::OutOfMemory {
                requested: Bytes::ZERO,
                allocated: Bytes::ZERO,
                reserved: Bytes::ZERO,
                limit: Bytes::new(limit),
            },
            order: vramscope_engine::simulate::SegmentOrder::NewProcess,
        });
        let trial = Trial {
            peak_allocated: Bytes::new(peak.min(limit)),
            peak_reserved: Bytes::new(peak.min(limit)),
            retries: 0,
            stopped,
        };
        search.note(batch, trial);
    }
    (search.result().max_batch, asked)
}

proptest! {
    #[test]
    fn it_is_what_a_linear_scan_finds(
        limit in 0u64..100_000, floor in 0u64..120_000, base in 0u64..50_000, slope in 1u64..3000,
    ) {
        let of = [floor, base, slope];
        let scanned = (1..=MOST).take_while(|&batch| peak(of, batch) <= limit).last().unwrap_or(0);
        let (found, asked) = searched(limit, of);
        prop_assert_eq!(found, scanned);
        prop_assert!(asked <= 24, "{} tries", asked);
    }
}

#[test]
fn a_line_takes_few_tries() {
    assert_eq!(searched(1_000_000, [0, 200_000, 7_919]).0, 101);
    assert!(searched(1_000_000, [0, 200_000, 7_919]).1 <= 6);
}

#[test]
fn more_steps_are_looked_at_from_the_answer_on() {
    let model = Model::from_catalogue("gpt2").unwrap();
    let mut goes_down = false;
    for mib in [1500, 2100, 3300] {
        for seq in [96, 200, 333] {
            let (limit, gpu) = (Bytes::mib(mib), Gpu::default());
            let setup = Setup {
                seq,
                ..Setup::default()
            };
            let mut batches = Batches::new(model.clone(), setup.clone(), gpu, (limit, 1)).unwrap();
            let first = batches.answer().unwrap();
            batches.go_on(5);
            let lasting = batches.answer().unwrap().max_batch;
            assert_eq!(lasting, max_batch(&model, &setup, gpu, limit, 6).unwrap().max_batch);
            goes_down |= lasting < first.max_batch;
        }
    }
    assert!(
        goes_down,
        "the first step makes no states of the optimizer beside gradients and activations"
    );
}

#[test]
fn one_more_finds_no_room() {
    let model = Model::from_catalogue("gpt2").unwrap();
    let setup = Setup {
        seq: 64,
        ..Setup::default()
    };
    let found = max_batch(&model, &setup, Gpu::default(), Bytes::gib(8), 2).unwrap();
    let (batch, trial) = found.tries.iter().find(|(_, trial)| !trial.trains()).unwrap();
    assert_eq!(*batch, found.max_batch + 1);
    assert!(found.end.is_none());
    let stopped = trial.stopped.as_ref().unwrap();
    assert!(stopped.error.requested + stopped.error.reserved > Bytes::gib(8));
    assert!(!stopped.tensor.is_empty());
    let lengths = Setup {
        lengths: vec![3, 4],
        ..setup
    };
    assert!(max_batch(&model, &lengths, Gpu::default(), Bytes::gib(8), 2).is_err());
}
