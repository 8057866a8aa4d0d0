//! Tests of the search for setups.

mod exhaustive;

use super::*;
use crate::{Judge, Plan, Target, less_margin};
use vramscope_engine::Model;
use vramscope_engine::setup::{Precision, Strategy};
use vramscope_engine::simulate::{Notes, count, record_notes, record_parallel_notes};
use vramscope_engine::simulate_on;
use vramscope_engine::tape::Gpu;
use vramscope_engine::verdict::{Fit, Room};
use vramscope_time::{H200, Measured, Rates};

fn one(name: &str, asked: &Setup) -> Vec<Input> {
    inputs(|_| Model::from_catalogue(name), asked, &[]).unwrap()
}

fn asked() -> Setup {
    Setup {
        batch: 4,
        seq: 128,
        precision: Precision::AmpBf16,
        ..Setup::default()
    }
}

/// Runs a search and passes the result to `use_it` with a judge for it.
fn searched<T>(space: &Space, gib: u64, use_it: impl FnOnce(Found, Judge<'_>) -> T) -> T {
    let measured = Measured::read(H200).unwrap();
    let device = Device::by_name("H200").unwrap();
    let costs = Costs::new(Rates::of(device).unwrap(), Some(&measured.kernels), &measured.pace);
    let question = Question {
        space: space.clone(),
        device: Some(device),
        costs: Some(&costs),
        room: Bytes::gib(gib),
    };
    let found = Search::new(question).finish();
    let judge = Judge {
        space,
        device: Some(device),
        costs: Some(&costs),
        limit: Bytes::gib(gib),
    };
    use_it(found, judge)
}

#[test]
fn what_is_put_together_is_what_a_simulation_says() {
    let space = Space::around(one("gpt2-medium", &asked()), Samples::Effective(8), 1, &[]);
    searched(&space, 6, |found, _| {
        assert!(space.len() > 10 * found.decided.recorded, "{:?}", found.decided);
        let model = Model::from_catalogue("gpt2-medium").unwrap();
        for candidate in &found.fitting {
            let report = simulate_on(&model, &repeated(&candidate.setup), Gpu::H200).unwrap();
            let (put, simulated) = (candidate.peak.get() as f64, report.peak_allocated.get() as f64);
            assert!((put - simulated).abs() < 0.02 * simulated, "{candidate:?}: {simulated}");
        }
    });
}

/// Work on a segment that was recorded as a sum counts as that of each addend.
#[test]
fn sums_of_segments_count_as_what_they_stand_for() {
    let setups = [
        Setup::default(),
        Setup {
            batch: 2,
            accum: 2,
            ckpt: Checkpointing::Full,
            precision: Precision::AmpBf16,
            optim: Optimizer::AdamwFused,
            ..Setup::default()
        },
        Setup {
            batch: 3,
            freeze: Freeze::VISION,
            attn: Attention::Eager,
            ..Setup::default()
        },
        Setup {
            freeze: Freeze::Lora,
            ckpt: Checkpointing::Language,
            loss: Loss::FusedLinear,
            ..Setup::default()
        },
    ];
    let parallel = Parallel {
        strategy: Strategy::Fsdp,
        world: 2,
        ..Parallel::default()
    };
    for name in ["qwen2-vl-2b", "qwen2.5-vl-3b", "qwen3-vl-2b"] {
        let model = Model::from_catalogue(name).unwrap();
        for setup in &setups {
            let setup = &Setup {
                seq: 700,
                image_sizes: vec![[308, 420], [252, 252]],
                ..setup.clone()
            };
            let of = |sums| Notes { work: false, sums };
            let counted = |sums| count(&record_notes(&model, setup, Gpu::H200, of(sums)).unwrap());
            assert_eq!(counted(true), counted(false), "{name}: {setup:?}");
            if setup.accum == 1 {
                let shared =
                    |sums| count(&record_parallel_notes(&model, setup, &parallel, Gpu::H200, of(sums)).unwrap());
                assert_eq!(shared(true), shared(false), "{name}: {setup:?}");
            }
        }
    }
}

#[test]
fn every_setup_is_decided_once() {
    let space = Space::around(
        one("llava-1.5-7b", &Setup { seq: 700, ..asked() }),
        Samples::Effective(8),
        1,
        &[],
    );
    for gib in [20, 60] {
        searched(&space, gib, |found, _| {
            let Decided {
                setups,
                summed,
                bounded,
                dominated,
                refused,
                ..
            } = found.decided;
            assert_eq!(setups, space.len());
            assert_eq!(summed + bounded + dominated + refused, setups, "{:?}", found.decided);
        });
    }
}

/// Compares with every micro-batch of each class and optimizer: no bound may hide one that fits.
#[test]
fn no_bound_rules_out_what_fits() {
    let asked = Setup {
        seq: 256,
        ..Setup::default()
    };
    for samples in [Samples::AsManyAsFit(12), Samples::Effective(12)] {
        let space = Space::around(one("gpt2", &asked), samples, 1, &[Entry::Attn]);
        searched(&space, 2, |found, judge| {
            let room = Bytes::gib(2);
            let mut compared = 0;
            for candidate in &found.fitting {
                let fits = |batch: u64| {
                    let mut other = candidate.clone();
                    (other.setup.batch, other.setup.accum) = (batch, space.accum(batch, None));
                    judge.figures(&other).unwrap().peak <= room
                };
                let largest = space
                    .batches_of(None)
                    .iter()
                    .copied()
                    .filter(|&batch| fits(batch))
                    .max();
                assert_eq!(Some(candidate.setup.batch), largest, "{candidate:?}");
                compared += 1;
            }
            assert!(compared > 2, "{:?}", found.decided);
        });
    }
}

#[test]
fn a_kept_entry_stays_and_a_front_beats_itself_nowhere() {
    let setup = Setup {
        seq: 1024,
        freeze: Freeze::Lora,
        ..Setup::default()
    };
    let kept = [Entry::Ckpt, Entry::Optim, Entry::Offload];
    let space = Space::around(one("llava-1.5-7b", &setup), Samples::Effective(4), 1, &kept);
    searched(&space, 22, |found, _| {
        assert!(found.fitting.iter().all(|c| c.setup.ckpt == Checkpointing::None));
        assert!(found.fitting.iter().all(|c| c.setup.optim == setup.optim));
        assert!(found.fitting.iter().all(|c| c.samples() == 4));
        let front = front(&found.fitting, Bytes::gib(22));
        assert!(!front.is_empty());
        for (at, one) in front.iter().enumerate() {
            for other in &front[at + 1..] {
                assert!(
                    one.time > other.time || one.peak > other.peak,
                    "{one:?} beats {other:?}"
                );
            }
        }
    });
}

#[test]
fn what_is_recommended_trains_and_its_next_micro_batch_does_not() {
    let space = Space::around(one("gpt2-medium", &asked()), Samples::AsManyAsFit(64), 1, &[]);
    searched(&space, 8, |found, judge| {
        let best = judge.recommend(&found).unwrap().unwrap();
        assert!(best.settled.trial.trains());
        assert!(best.settled.trial.peak_reserved <= Bytes::gib(8));
        assert_eq!(best.settled.candidate.distance, 0);
        assert_eq!(best.settled.next, Some((best.settled.candidate.setup.batch + 1, false)));
        // Each difference is explained, the fused optimizer among them.
        assert!(best.reasons.iter().any(|reason| reason.key == "optim"));
    });
}

#[test]
fn where_nothing_fits_the_nearest_is_the_leanest() {
    let asked = Setup {
        seq: 1024,
        ..Setup::default()
    };
    let space = Space::around(one("llava-1.5-7b", &asked), Samples::Effective(1), 1, &[Entry::Freeze]);
    searched(&space, 8, |found, judge| {
        assert!(found.fitting.is_empty());
        let nearest = found.nearest.unwrap();
        assert!(nearest.peak > Bytes::gib(8));
        let of = |optim| {
            judge.figures(&Candidate {
                setup: Setup {
                    optim,
                    ..nearest.setup.clone()
                },
                ..nearest.clone()
            })
        };
        assert!(of(Optimizer::AdamwFused).unwrap().peak >= nearest.peak);
    });
}

#[test]
fn several_gpus_share_what_one_cannot_hold() {
    let asked = Setup {
        seq: 512,
        optim: Optimizer::AdamwFused,
        ..Setup::default()
    };
    let kept = [Entry::Optim, Entry::Freeze, Entry::Offload];
    let space = Space::around(one("llama3.2-1b", &asked), Samples::Effective(2), 2, &kept);
    searched(&space, 9, |found, judge| {
        let best = judge.recommend(&found).unwrap().unwrap().settled.candidate;
        let strategy = best.parallel.unwrap().strategy;
        assert!(
            matches!(strategy, Strategy::Zero1 | Strategy::Fsdp | Strategy::FsdpNoReshard),
            "{strategy:?}"
        );
        assert_eq!(best.samples(), 2);
    });
}

/// A loss that is another objective stays; one that only computes the same value otherwise may be taken.
#[test]
fn a_search_keeps_the_objective() {
    let around = |loss| {
        let asked = Setup {
            loss,
            ..Setup::default()
        };
        Space::around(one("gpt2", &asked), Samples::Effective(2), 1, &[]).losses
    };
    assert_eq!(around(Loss::Dft), [Loss::Dft]);
    assert_eq!(around(Loss::Smoothed), [Loss::Smoothed]);
    assert!(around(Loss::Full).contains(&Loss::FusedLinear));
}

/// With tensor parallelism all GPUs train one micro-batch, so a step may be a single sample; the found setup has the
/// memory and time of the whole run.
#[test]
fn maps_that_are_shared_are_searched_as_they_are_recorded() {
    let asked = Setup {
        seq: 512,
        optim: Optimizer::AdamwFused,
        ..Setup::default()
    };
    let kept = [Entry::Freeze, Entry::Offload, Entry::Loss, Entry::Precision];
    let space = Space::around(one("tinyllama-1.1b", &asked), Samples::Effective(6), 2, &kept);
    searched(&space, 60, |found, judge| {
        let is_shared = |candidate: &&Candidate| {
            candidate
                .parallel
                .is_some_and(|parallel| parallel.strategy == Strategy::Tensor)
        };
        let shared: Vec<&Candidate> = found.fitting.iter().filter(is_shared).collect();
        assert!(shared.len() > 1, "{:?}", found.refused);
        for candidate in shared {
            assert_eq!(candidate.samples(), 6, "{candidate:?}");
            assert_eq!((candidate.setup.batch, candidate.setup.accum), (6, 1));
            let whole = judge.figures(candidate).unwrap();
            assert_eq!(whole.peak, candidate.peak, "{candidate:?}");
            let (time, sum) = (whole.time.unwrap().get(), candidate.time.unwrap().get());
            assert!((time / sum - 1.0).abs() < 0.02, "{time} {sum}: {candidate:?}");
        }
    });
    let alone = Space::around(one("tinyllama-1.1b", &asked), Samples::Effective(1), 2, &kept);
    assert!(alone.has_no_stages());
    assert_eq!(alone.refusal(), None);
    searched(&alone, 60, |found, _| {
        assert!(found.fitting.iter().all(|candidate| candidate.samples() == 1));
        let Decided {
            setups,
            summed,
            bounded,
            dominated,
            refused,
            ..
        } = found.decided;
        assert_eq!(
            (setups, summed + bounded + dominated + refused),
            (alone.len(), alone.len())
        );
        assert!(!found.fitting.is_empty());
    });
}

/// Pipelines are searched with enough micro-batches for all stages, and no stage exceeds the reported peak.
#[test]
fn stages_are_searched_with_a_micro_batch_for_each() {
    let asked = Setup {
        seq: 512,
        precision: Precision::Bf16,
        optim: Optimizer::AdamwFused,
        ..Setup::default()
    };
    let kept = [
        Entry::Freeze,
        Entry::Offload,
        Entry::Loss,
        Entry::Precision,
        Entry::Attn,
    ];
    let space = Space::around(one("tinyllama-1.1b", &asked), Samples::Effective(12), 2, &kept);
    searched(&space, 60, |found, judge| {
        let is_staged = |candidate: &&Candidate| {
            candidate
                .parallel
                .is_some_and(|parallel| parallel.strategy == Strategy::Pipeline)
        };
        let staged: Vec<&Candidate> = found.fitting.iter().filter(is_staged).collect();
        assert!(staged.len() > 1, "{:?}", found.refused);
        for candidate in staged {
            assert_eq!(candidate.samples(), 12, "{candidate:?}");
            assert!(candidate.setup.accum >= 2, "{candidate:?}");
            let run = judge.recording(candidate).unwrap();
            let counted = count(&run);
            let peak = counted.pass.max(counted.update).get() as f64;
            let said = candidate.peak.get() as f64;
            assert!(peak <= said && said <= 1.03 * peak, "{peak} {said}: {candidate:?}");
            let whole = judge.figures(candidate).unwrap();
            let (time, sum) = (whole.time.unwrap().get(), candidate.time.unwrap().get());
            assert!((time / sum - 1.0).abs() < 0.02, "{time} {sum}: {candidate:?}");
        }
    });
}

/// What a plan promises of a setup, an estimate of it says too: of memory, and of the verdict on the next larger
/// micro-batch.
#[test]
fn a_plan_promises_what_an_estimate_says() {
    let device = Device::by_name("H200").unwrap();
    for (name, gib, margin) in [
        ("gpt2-medium", 6, 5.0),
        ("gpt2-medium", 8, 40.0),
        ("gpt2-medium", 10, 40.0),
        ("gpt2-medium", 12, 50.0),
        ("gpt2-medium", 16, 50.0),
        ("qwen2.5-0.5b", 12, 5.0),
    ] {
        let model = Model::from_catalogue(name).unwrap();
        let space = Space::around(one(name, &asked()), Samples::Effective(8), 1, &[]);
        let limit = Bytes::gib(gib);
        let target = Target {
            model: name,
            limit,
            card: Some(device),
            most: 8,
        };
        let planned = less_margin(limit, margin);
        let measured = Measured::read(H200).unwrap();
        let costs = Costs::new(Rates::of(device).unwrap(), Some(&measured.kernels), &measured.pace);
        let question = Question {
            space: space.clone(),
            device: Some(device),
            costs: Some(&costs),
            room: planned,
        };
        let judge = Judge {
            space: &space,
            device: Some(device),
            costs: Some(&costs),
            limit: planned,
        };
        let plan = Plan::new(&judge, Search::new(question).finish(), &target).unwrap();
        for choice in plan.recommended.iter().chain(&plan.front) {
            let report = simulate_on(&model, &choice.setup, Gpu::H200).unwrap();
            assert_eq!(choice.peak_reserved, Some(report.peak_reserved), "{name}: {choice:?}");
            let Some((batch, _)) = choice.next_batch else {
                continue;
            };
            let larger = Setup {
                batch,
                accum: 8 / batch,
                ..choice.setup.clone()
            };
            let larger = simulate_on(&model, &larger, Gpu::H200).unwrap();
            let verdict = Fit::of(&larger, Room::Allocator(limit)).verdict;
            assert_eq!(choice.next_verdict, Some(verdict), "{name}: {choice:?}");
        }
    }
}
