//! Several GPUs that share a training step, as entered.

use vramscope_engine::setup::{Offload, Parallel, Strategy, Zero};

use super::{Draft, Key};

/// Returns how several GPUs share the step of a draft without errors; `None` for one GPU, and for a task that is
/// simulated on one alone.
pub fn parallel(good: &Draft) -> Option<Parallel> {
    let world = world(good);
    let is_shared = world != 1 && good.get(Key::Phase) == Key::Phase.default_text();
    is_shared.then(|| Parallel {
        strategy: Strategy::named(good.get(Key::Strategy)).unwrap_or(Strategy::Fsdp),
        world,
        mp: good.get(Key::Mp) == "true",
        offload: Offload::named(good.get(Key::Offload)).unwrap_or_default(),
        bucket: count(good, Key::Bucket).unwrap_or(Parallel::default().bucket),
        zero: Zero::parse(good.get(Key::Zero)).unwrap_or_default(),
        stage: None,
    })
}

/// Number of GPUs entered.
pub fn world(good: &Draft) -> u64 {
    count(good, Key::World).unwrap_or(1)
}

fn count(good: &Draft, key: Key) -> Option<u64> {
    key.form().read(good.get(key)).ok()?.as_u64()
}

impl Draft {
    /// Enters how several GPUs share the step, or that there is one. The network stays.
    pub fn share(&mut self, parallel: Option<&Parallel>) {
        let shared = parallel.copied().unwrap_or(Parallel {
            strategy: Strategy::Fsdp,
            world: 1,
            ..Parallel::default()
        });
        self.set(Key::World, shared.world.to_string());
        self.set(Key::Strategy, shared.strategy.name());
        self.set(Key::Mp, shared.mp.to_string());
        self.set(Key::Offload, shared.offload.word());
        self.set(Key::Bucket, shared.bucket.to_string());
        self.set(Key::Zero, shared.zero.text());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::Reading;

    fn read(pairs: &[(Key, &str)]) -> Option<Parallel> {
        let mut draft = Draft::default();
        pairs.iter().for_each(|(key, text)| draft.set(*key, *text));
        Reading::of(&draft, &Draft::default()).parallel
    }

    #[test]
    fn one_gpu_has_no_strategy() {
        assert_eq!(read(&[]), None);
        assert_eq!(read(&[(Key::Strategy, "ddp"), (Key::Offload, "true")]), None);
        assert_eq!(read(&[(Key::World, "8"), (Key::Phase, "generate")]), None);
        assert_eq!(
            read(&[(Key::World, "eight")]),
            None,
            "the text in its place is the default"
        );
    }

    #[test]
    fn every_entry_reaches_the_run() {
        let fsdp = Parallel {
            strategy: Strategy::Fsdp,
            world: 8,
            ..Parallel::default()
        };
        assert_eq!(read(&[(Key::World, "8")]), Some(fsdp));
        let zero = read(&[(Key::World, "0")]);
        assert_eq!(zero.map(|shared| shared.world), Some(0), "the engine refuses it");
        for strategy in Strategy::ALL {
            for (word, offload) in Offload::WORDS {
                let shared = read(&[
                    (Key::World, "4"),
                    (Key::Strategy, strategy.name()),
                    (Key::Mp, "true"),
                    (Key::Offload, word),
                ]);
                let wanted = Parallel {
                    strategy: *strategy,
                    world: 4,
                    mp: true,
                    offload,
                    ..Parallel::default()
                };
                assert_eq!(shared, Some(wanted));
            }
        }
    }

    #[test]
    fn what_is_entered_for_several_is_read_back() {
        let shared = Parallel {
            strategy: Strategy::Deepspeed2,
            world: 16,
            offload: Offload::Optimizer,
            bucket: 100,
            zero: Zero::parse("reduce_bucket_size=2e8,overlap_comm=true").expect("DeepSpeed's keys"),
            ..Parallel::default()
        };
        let mut draft = Draft::default();
        draft.share(Some(&shared));
        assert_eq!(parallel(&draft), Some(shared));
        draft.share(None);
        assert_eq!(draft, Draft::default());
    }

    /// Menus and links know every word of the engine.
    #[test]
    fn the_choices_are_the_engines() {
        assert_eq!(Key::Strategy.choices(), Strategy::CHOICES.names);
        assert_eq!(Key::Offload.choices(), Offload::WORDS.map(|(word, _)| word));
    }
}
