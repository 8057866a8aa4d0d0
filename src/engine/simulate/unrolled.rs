//! Runs the passes of a step with deduplicated layers, and unrolls them.

use super::steps::{Recording, Trainer, Wrap, record_trainer};
use crate::Model;
use crate::setup::{Setup, TrainerKind};
use crate::tape::{Mark, Rolled, Tape, Tensor};

/// Makes the model and records a step on this tape, or on another with the same settings if its layers are not alike.
pub(super) fn record_on(model: &Model, setup: &Setup, tape: &Tape, wrap: Option<Wrap<'_>>) -> Recording {
    let works = tape.works();
    let (mut trainer, params) = Trainer::new(model, setup, tape);
    // Layers that are alike but for what of them is trained are not.
    let names = [&setup.frozen_names, &setup.trained_names, &setup.saved_modules];
    trainer.rolls = names.iter().all(|names| names.is_empty());
    prepare(wrap, tape, (&mut trainer, &params));
    let recording = record_trainer(tape.clone(), trainer, params);
    if !tape.has_unlike_layers() {
        return recording;
    }
    let tape = tape.with_same_settings(works);
    let (mut trainer, params) = Trainer::new(model, setup, &tape);
    prepare(wrap, &tape, (&mut trainer, &params));
    record_trainer(tape, trainer, params)
}

/// Wraps a model that was just made; until then scripts empty the cache, and no trainer does.
fn prepare(wrap: Option<Wrap<'_>>, tape: &Tape, (trainer, params): (&mut Trainer, &[Tensor])) {
    if let Some(wrap) = wrap {
        if !wrap.moves {
            tape.empty_cache();
        }
        if wrap.leaves_pixels {
            trainer.run.leave_pixels();
        }
        (wrap.around)(tape, trainer, params);
    }
}

impl Trainer {
    /// Deduplicates the layers of the pass that begins here, if it may be unrolled.
    pub(super) fn roll(&self, t: &Tape) -> Option<Rolled> {
        // Generation calls the layers once for each token.
        let generates = self.run.setup.trainer == TrainerKind::TrlGrpo;
        if self.rolls && !generates { t.roll() } else { None }
    }

    /// Replaces what a pass recorded by what it would have recorded with every layer, and moves its marks there. `live`
    /// are tensors that it made and that are still live. If they are not the only ones, or the layers are not alike, the
    /// recording is of no use ([`Tape::has_unlike_layers`]).
    pub(super) fn unroll(&mut self, t: &Tape, rolled: Rolled, live: Option<Tensor>, marks: &mut [(Mark, &mut usize)]) {
        if self.try_to_unroll(t, rolled, live, marks).is_none() {
            t.refuse_unlike_layers();
        }
    }

    fn try_to_unroll(
        &mut self,
        t: &Tape,
        rolled: Rolled,
        live: Option<Tensor>,
        marks: &mut [(Mark, &mut usize)],
    ) -> Option<()> {
        if t.failure().is_some() {
            // What follows a failure is never looked at.
            return Some(());
        }
        let kept = self.run.kept();
        let begin = rolled.begin();
        let live: Vec<Tensor> = live.into_iter().chain(kept.tensor()).collect();
        let places: Vec<(Mark, usize)> = marks.iter().map(|(mark, at)| (*mark, **at)).collect();
        let unrolled = t.unroll(rolled, (self.optimizer.params(), &live), &places)?;
        for (_, at) in marks {
            **at = unrolled.event(**at)?;
        }
        let work = &mut self.work;
        for at in [
            &mut work.before_forward,
            &mut work.after_forward,
            &mut work.after_backward,
        ] {
            if *at >= begin.item {
                *at = unrolled.item(*at)?;
            }
        }
        match kept.replaced() {
            Some(replaced) if replaced.at >= begin.event => kept.move_to(unrolled.event(replaced.at)?),
            _ => {}
        }
        Some(())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::io::Read as _;

    use flate2::read::GzDecoder;
    use proptest::prelude::*;

    use super::super::check::check;
    use super::*;
    use crate::python_json;
    use crate::setup::{Checkpointing, Freeze, Loss, Precision, ZeroGrad};
    use crate::tape::Gpu;
    use crate::tape::work::{HostOp, Launch, WorkItem};

    /// Asserts that two recordings are the same: every event, mark, description and work item.
    pub fn assert_same(model: &Model, setup: &Setup, [short, full]: [&Recording; 2]) {
        let told = format!("{}: {setup:?}", model.name);
        assert_eq!(short.failure, full.failure, "{told}");
        if short.failure.is_some() {
            return;
        }
        assert!(short.build == full.build, "{told}");
        for (one, other) in [(&short.first, &full.first), (&short.steady, &full.steady)] {
            assert!(one.events == other.events, "{told}");
            assert_eq!(one.instants(), other.instants(), "{told}");
        }
        let module = |recording: &Recording, scope| {
            (
                recording.log.path(scope),
                recording.log.scopes[scope as usize].component,
            )
        };
        assert_eq!(short.log.allocations.len(), full.log.allocations.len(), "{told}");
        for (one, other) in short.log.allocations.iter().zip(full.log.allocations.iter()) {
            assert_eq!(module(short, one.scope), module(full, other.scope), "{told}");
            let mut other = *other;
            other.scope = one.scope;
            assert_eq!(*one, other, "{told}");
        }
        for [one, other] in [
            [short.work.forward(), full.work.forward()],
            [short.work.backward(), full.work.backward()],
            [short.work.optimizer(), full.work.optimizer()],
        ] {
            assert_eq!(one.len(), other.len(), "{told}");
            for (one, other) in one.iter().zip(other) {
                let of = |recording: &Recording, launch: &Launch| {
                    let found = recording.log.path(launch.scope);
                    (found, Launch { scope: 0, ..*launch })
                };
                match (one, other) {
                    (WorkItem::Launch(one), WorkItem::Launch(other)) => {
                        assert_eq!(of(short, one), of(full, other), "{told}");
                    }
                    (WorkItem::HostOp(HostOp::Accumulate(one)), WorkItem::HostOp(HostOp::Accumulate(other))) => {
                        assert_eq!(one, other, "{told}");
                    }
                    (WorkItem::Repeat(one, times), WorkItem::Repeat(other, times_of_other)) => {
                        assert_eq!((one.len(), times), (other.len(), times_of_other), "{told}");
                    }
                    _ => assert_eq!(one, other, "{told}"),
                }
            }
        }
    }

    /// Compares a run with deduplicated layers with one that runs each. Returns true if it was unrolled, or fails.
    fn compare(model: &Model, setup: &Setup) -> bool {
        let tapes = [Tape::roomy(Gpu::H200), Tape::roomy(Gpu::H200)];
        tapes.iter().for_each(Tape::write_work);
        let rolled = record_on(model, setup, &tapes[0], None);
        let unlike = tapes[0].has_unlike_layers();
        let (trainer, params) = Trainer::new(model, setup, &tapes[1]);
        let [_, tape] = tapes;
        let full = record_trainer(tape, trainer, params);
        assert_same(model, setup, [&rolled, &full]);
        full.failure.is_some() || !unlike
    }

    fn setup(model: &Model) -> Setup {
        Setup {
            seq: if model.takes().text {
                model.default_seq().min(1024)
            } else {
                0
            },
            ..Setup::default()
        }
    }

    #[test]
    fn every_model_is_unrolled_as_it_runs() {
        for name in Model::catalogue() {
            let model = Model::from_catalogue(name).unwrap();
            for ckpt in [Checkpointing::None, Checkpointing::Full] {
                let setup = Setup {
                    ckpt,
                    use_cache: Some(false),
                    ..setup(&model)
                };
                if check(&model, &setup).is_ok() {
                    assert!(compare(&model, &setup), "{name} {ckpt:?}");
                }
            }
        }
    }

    /// Default configurations of families of transformers.
    fn configurations() -> Vec<String> {
        const PACKED: &[u8] = include_bytes!("../../../tests/data/coverage/configs.jsonl.gz");
        let mut text = String::new();
        GzDecoder::new(PACKED).read_to_string(&mut text).unwrap();
        let rows = text.lines().map(|line| python_json::read(line).unwrap());
        let configs = rows.map(|row| row["config"].to_string());
        configs.filter(|config| Model::from_config(config).is_ok()).collect()
    }

    /// Its layers use what an earlier one's indexer chose, and every layer is recorded by itself; checkpoints keep nothing of it.
    const NOT_ALIKE: (&str, Checkpointing) = ("hy_v4", Checkpointing::None);

    #[test]
    fn every_configuration_is_unrolled_as_it_runs() {
        let mut compared = 0;
        for config in configurations() {
            let model = Model::from_config(&config).unwrap();
            for ckpt in [Checkpointing::None, Checkpointing::Full] {
                let setup = Setup {
                    ckpt,
                    seq: 512,
                    ..setup(&model)
                };
                if check(&model, &setup).is_ok() {
                    let is_unrolled = compare(&model, &setup);
                    let is_alike = (model.name.as_str(), ckpt) != NOT_ALIKE;
                    assert_eq!(is_unrolled, is_alike, "{} {ckpt:?}", model.name);
                    compared += 1;
                }
            }
        }
        assert!(compared > 200, "{compared}");
    }

    /// LFM2's convolutions have no adapters, so that the graph begins at the first block with attention.
    #[test]
    fn blocks_before_the_first_adapter_are_no_model_of_those_behind_it() {
        let model = Model::from_catalogue("LiquidAI/LFM2-1.2B").unwrap();
        let setup = Setup {
            seq: 256,
            precision: Precision::Fp32,
            freeze: Freeze::Lora,
            trainer: TrainerKind::Transformers,
            use_cache: Some(false),
            ..Setup::default()
        };
        assert!(compare(&model, &setup));
    }

    prop_compose! {
        fn drawn()(
            (accum, batch) in (1_u64..6, 1_u64..3),
            (precision, ckpt, freeze, trainer) in (0..4_usize, 0..4_usize, 0..5_usize, 0..4_usize),
            flags in any::<[bool; 4]>(),
        ) -> Setup {
            use Checkpointing as C;
            use TrainerKind as T;
            let [to_zero, clip, fused, use_cache] = flags;
            let trainer = [T::Loop, T::Transformers, T::TrlSft, T::TrlDpo][trainer];
            Setup {
                accum,
                batch: if trainer == T::TrlDpo { 2 * batch } else { batch },
                precision: Precision::ALL[precision],
                ckpt: [C::None, C::Full, C::Vision, C::Language][ckpt],
                freeze: [Freeze::NONE, Freeze::VISION, Freeze::ALL_BUT_CONNECTOR, Freeze::Lora, Freeze::Qlora][freeze],
                trainer,
                zero_grad: if to_zero { ZeroGrad::ToZero } else { ZeroGrad::ToNone },
                clip,
                loss: if fused { Loss::FusedLinear } else { Loss::Full },
                use_cache: Some(use_cache),
                ..Setup::default()
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(96))]
        #[test]
        fn any_setup_is_unrolled_as_it_runs(number in any::<prop::sample::Index>(), drawn in drawn()) {
            let names: Vec<_> = Model::catalogue().into_iter().collect();
            let of_families = configurations();
            let at = number.index(names.len() + of_families.len());
            let model = match names.get(at) {
                Some(name) => Model::from_catalogue(name).unwrap(),
                None => Model::from_config(&of_families[at - names.len()]).unwrap(),
            };
            let setup = Setup { seq: setup(&model).seq, ..drawn };
            if check(&model, &setup).is_ok() {
                compare(&model, &setup);
            }
        }
    }
}
