//! Compares searches of small spaces with simulating every setup.

use super::*;

/// Records every setup of a small space as a whole run. The found setups have the same figures, and every setup that
/// fits is found or dominated.
fn finds_what_looking_at_every_setup_finds(
    name: &str,
    [seq, gib]: [u64; 2],
    freeze: Freeze,
    samples: Samples,
    kept: &[Entry],
) {
    let asked = Setup {
        batch: 1,
        seq,
        freeze,
        ..Setup::default()
    };
    let space = Space::around(one(name, &asked), samples, 1, kept);
    searched(&space, gib, |found, judge| {
        let room = Bytes::gib(gib);
        let slack = front::equal(room);
        for own in &found.fitting {
            let whole = judge.figures(own).unwrap();
            assert_eq!(own.peak, whole.peak, "{name}: {own:?}");
            let [own_time, time] = [own, &whole].map(|candidate| candidate.time.unwrap().get());
            assert!(
                (own_time - time).abs() < 1e-9 * time,
                "{own_time} for {time}, {name}: {own:?}"
            );
        }
        let mut looked_at = 0;
        // Of the setups that differ only in the micro-batch, the largest that fits.
        let mut largest: Vec<Candidate> = Vec::new();
        for setup in every_setup(&space) {
            let candidate = Candidate {
                distance: distance_to(&space, 0, &setup, None),
                setup,
                parallel: None,
                input: 0,
                peak: Bytes::ZERO,
                time: None,
            };
            let Ok(whole) = judge.figures(&candidate) else {
                continue;
            };
            looked_at += 1;
            // Leave out setups within 0.5% of the room, since the search may drop them as equal to another one.
            if whole.peak + slack <= room {
                largest.retain(|other| !is_alike(other, &whole));
                largest.push(whole);
            }
        }
        for whole in &largest {
            let beats = |own: &Candidate| {
                let slower = own.seconds_a_sample() > whole.seconds_a_sample() * 1.005;
                let takes_more = own.peak > whole.peak + slack && own.setup.batch <= whole.setup.batch;
                own.distance <= whole.distance && !slower && !takes_more
            };
            assert!(found.fitting.iter().any(beats), "{name}: nothing found beats {whole:?}");
        }
        assert!(looked_at > 50 && !largest.is_empty(), "{name}: {looked_at}");
    });
}

#[test]
fn a_search_over_gpt2_finds_what_looking_at_every_setup_finds() {
    let samples = Samples::Effective(12);
    finds_what_looking_at_every_setup_finds("gpt2", [256, 2], Freeze::NONE, samples, &[Entry::Attn]);
}

#[test]
fn a_search_for_as_many_as_fit_finds_what_looking_at_every_setup_finds() {
    let samples = Samples::AsManyAsFit(6);
    finds_what_looking_at_every_setup_finds("gpt2", [256, 3], Freeze::NONE, samples, &[Entry::Precision]);
}

/// With two samples a step, a micro-batch of two is not accumulated: no gradients of an earlier micro-batch lie beside its
/// forward, so it fits where a micro-batch of one does not.
#[test]
fn a_search_over_one_micro_batch_finds_what_looking_at_every_setup_finds() {
    let samples = Samples::Effective(2);
    finds_what_looking_at_every_setup_finds("gpt2", [64, 1], Freeze::NONE, samples, &[]);
}

#[test]
fn a_search_with_adapters_finds_what_looking_at_every_setup_finds() {
    let kept = [Entry::Attn, Entry::Loss];
    finds_what_looking_at_every_setup_finds("qwen2-vl-2b", [400, 9], Freeze::Lora, Samples::Effective(4), &kept);
}

#[test]
fn a_search_over_images_finds_what_looking_at_every_setup_finds() {
    let kept = [Entry::Attn, Entry::Freeze];
    finds_what_looking_at_every_setup_finds("smolvlm-256m", [1300, 4], Freeze::NONE, Samples::Effective(4), &kept);
}

/// Returns true if two setups differ only in the micro-batch.
fn is_alike(one: &Candidate, other: &Candidate) -> bool {
    let without = |candidate: &Candidate| Setup {
        batch: 1,
        accum: 1,
        ..candidate.setup.clone()
    };
    without(one) == without(other)
}

/// Every setup of a space with one input and one GPU.
fn every_setup(space: &Space) -> Vec<Setup> {
    let mut all = vec![space.asked().clone()];
    let mut open = |choices: Vec<fn(&mut Setup, &Space, usize) -> bool>| {
        for choose in choices {
            all = std::mem::take(&mut all)
                .into_iter()
                .flat_map(|setup| {
                    (0..).map_while(move |at| {
                        let mut setup = setup.clone();
                        choose(&mut setup, space, at).then_some(setup)
                    })
                })
                .collect();
        }
    };
    open(vec![
        |setup, space, at| space.precisions.get(at).map(|one| setup.precision = *one).is_some(),
        |setup, space, at| space.optims.get(at).map(|one| setup.optim = *one).is_some(),
        |setup, space, at| space.ckpts.get(at).map(|one| setup.ckpt = *one).is_some(),
        |setup, space, at| space.attns.get(at).map(|one| setup.attn = *one).is_some(),
        |setup, space, at| space.freezes.get(at).map(|one| setup.freeze = *one).is_some(),
        |setup, space, at| space.losses.get(at).map(|one| setup.loss = *one).is_some(),
        |setup, space, at| {
            let batch = space.batches.get(at);
            batch
                .map(|batch| (setup.batch, setup.accum) = (*batch, space.accum(*batch, None)))
                .is_some()
        },
    ]);
    all
}
