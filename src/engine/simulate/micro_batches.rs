//! Runs the micro-batches of a step.

use super::parts::Passes;
use super::steps::Trainer;
use crate::tape::{Failure, Mark, Point, Tape, Tensor};

/// Most tensors of a step. A model of a hundred blocks makes some twenty thousand in a micro-batch.
const MOST_TENSORS: u64 = 1 << 23;

/// Positions of one micro-batch.
#[derive(Clone, Copy)]
struct MicroBatch {
    begin: Point,
    end: Point,
    before_forward: usize,
    after_forward: usize,
    after_backward: usize,
}

impl MicroBatch {
    fn marks(&self) -> [(Mark, usize); 3] {
        [
            (Mark::BeforeForward, self.before_forward),
            (Mark::AfterForward, self.after_forward),
            (Mark::AfterBackward, self.after_backward),
        ]
    }
}

impl Trainer {
    /// Runs forward and backward of each micro-batch of a step.
    pub fn micro_batches(&mut self, t: &Tape) -> Passes {
        if let Some(pipeline) = self.pipeline.take() {
            return self.scheduled(t, pipeline);
        }
        if self.run.setup.trainer.is_derived() {
            return self.fetched_micro_batches(t);
        }
        let start = t.mark();
        let count = self.run.setup.accum;
        let mut last = self.micro_batch(t, count == 1);
        let each = last.end.storages_since(&last.begin);
        if each.saturating_mul(count) > MOST_TENSORS && count > 1 {
            let (accum, most) = (count, MOST_TENSORS);
            t.fail(|| Failure::LongStep { accum, each, most });
        }
        let mut later = 0;
        for number in 2..=count {
            // What follows a failure is never looked at.
            if t.failure().is_some() || t.has_unlike_layers() {
                break;
            }
            let before = std::mem::replace(&mut last, self.micro_batch(t, number == count));
            if self.repeats && number < count && self.repeat(t, [&before, &last], count - number) {
                later = t.mark() - last.end.events;
                break;
            }
        }
        Passes {
            start,
            before_forward: last.before_forward + later,
            after_forward: last.after_forward + later,
            after_backward: last.after_backward + later,
            end: t.mark(),
            replaced: self.run.kept().replaced(),
        }
    }

    /// Repeats the last micro-batch `times` times if it went the way of the one before; returns true if it did.
    fn repeat(&self, t: &Tape, [before, last]: [&MicroBatch; 2], times: u64) -> bool {
        let Some(part) = t.alike([before.begin, last.begin, last.end]) else {
            return false;
        };
        let kept = self.run.kept();
        let replaced = kept.replaced();
        if part
            .left
            .iter()
            .any(|id| replaced.is_none_or(|kept| kept.storage != *id))
        {
            return false;
        }
        let mut later = 0;
        for number in 1..=times {
            later = t.repeat_part(&part, number, &last.marks());
        }
        if let Some(id) = part.left.first() {
            kept.renumber(id + later);
        }
        true
    }

    /// The loss of which backward begins, and the tensor before it if that outlives backward.
    fn scaled(&mut self, t: &Tape, loss: &Tensor) -> (Option<Tensor>, Tensor) {
        let Some(engine) = self.engine() else {
            return (None, self.scaler.scale(t, t.scale(loss)));
        };
        let [divided, scaled] = engine.scaled(t, loss);
        (Some(divided), scaled)
    }

    /// Runs a micro-batch, with deduplicated layers if it can be unrolled.
    fn micro_batch(&mut self, t: &Tape, is_last: bool) -> MicroBatch {
        let begin = t.point();
        let rolled = self.roll(t);
        let mut run = self.run_micro_batch(t, begin, is_last);
        if let Some(rolled) = rolled {
            let mut marks = [
                (Mark::BeforeForward, &mut run.before_forward),
                (Mark::AfterForward, &mut run.after_forward),
                (Mark::AfterBackward, &mut run.after_backward),
            ];
            self.unroll(t, rolled, None, &mut marks);
            run.end = t.point();
        }
        run
    }

    fn run_micro_batch(&mut self, t: &Tape, begin: Point, is_last: bool) -> MicroBatch {
        let batch = self.forward.batch(t, &self.run);
        let before_forward = t.mark();
        t.reach(Mark::BeforeForward);
        self.work.begin(t.work_mark(), false);
        self.wrapper.iter().for_each(|wrapper| wrapper.begin(is_last));
        let loss = self.output(t, &batch);
        let after_forward = t.mark();
        t.reach(Mark::AfterForward);
        self.work.after_forward = t.work_mark();
        let (given, scaled) = self.scaled(t, &loss);
        if !scaled.requires_grad() {
            t.fail(|| Failure::NoGradient);
        }
        if t.failure().is_none() {
            t.backward(&scaled);
            self.wrapper.iter().for_each(|wrapper| wrapper.after_backward(t));
        }
        drop((scaled, given));
        let held = (loss, batch);
        // The loop around DeepSpeed's engine lets go of both before the update.
        let held = self.engine().is_none().then_some(held);
        let after_backward = t.mark();
        t.reach(Mark::AfterBackward);
        self.work.after_backward = t.work_mark();
        drop(held);
        MicroBatch {
            begin,
            end: t.point(),
            before_forward,
            after_forward,
            after_backward,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::check::check;
    use super::super::steps::{Recording, record_trainer};
    use super::super::unrolled::tests::assert_same;
    use super::*;
    use crate::setup::{Attention, Checkpointing, Freeze, Loss, Optimizer, Packing, Precision, ZeroGrad};
    use crate::tape::Gpu;
    use crate::{Model, Setup};

    /// Records a run with every layer.
    fn recorded(model: &Model, setup: &Setup, repeats: bool) -> Recording {
        let tape = Tape::roomy(Gpu::H200);
        let (mut trainer, params) = Trainer::new(model, setup, &tape);
        trainer.repeats = repeats;
        record_trainer(tape, trainer, params)
    }

    /// Compares a run whose micro-batches are repeated with one in which each is recorded by itself. Returns true if
    /// micro-batches were repeated, `None` if the run fails.
    fn compare(model: &Model, setup: &Setup) -> Option<bool> {
        let [short, full] = [true, false].map(|repeats| recorded(model, setup, repeats));
        assert_same(model, setup, [&short, &full]);
        let repeated = short.log.allocations.descriptions().len() < full.log.allocations.descriptions().len();
        short.failure.is_none().then_some(repeated)
    }

    fn setup(model: &Model) -> Setup {
        Setup {
            seq: if model.takes().text {
                model.default_seq().min(1024)
            } else {
                0
            },
            accum: 5,
            ..Setup::default()
        }
    }

    #[test]
    fn every_model_repeats_its_micro_batches() {
        for name in Model::catalogue() {
            let model = Model::from_catalogue(name).unwrap();
            let setup = setup(&model);
            if check(&model, &setup).is_ok() {
                assert_eq!(compare(&model, &setup), Some(true), "{name}");
            }
        }
    }

    const OPTIMIZERS: [Optimizer; 17] = [
        Optimizer::Adamw,
        Optimizer::AdamwFused,
        Optimizer::AdamwLoop,
        Optimizer::Sgd,
        Optimizer::Sgdm,
        Optimizer::Adafactor,
        Optimizer::AdafactorTorch,
        Optimizer::Adamw8bit,
        Optimizer::PagedAdamw8bit,
        Optimizer::PagedAdamw,
        Optimizer::Lion8bit,
        Optimizer::PagedLion,
        Optimizer::Muon,
        Optimizer::AdamwTorchao8bit,
        Optimizer::AdamwTorchao4bit,
        Optimizer::Adagrad,
        Optimizer::AdagradLoop,
    ];

    prop_compose! {
        fn drawn()(
            (accum, batch, images) in (1_u64..8, 1_u64..4, 1_u64..3),
            (precision, attn, ckpt, freeze) in (0..4_usize, 0..3_usize, 0..4_usize, 0..5_usize),
            optim in 0..OPTIMIZERS.len(),
            flags in any::<[bool; 7]>(),
            lengths in proptest::collection::vec(1_u64..600, 0..3),
        ) -> Setup {
            use Checkpointing as C;
            let [clip, to_zero, cached, ema, fused, use_cache, packed] = flags;
            Setup {
                accum,
                batch,
                images,
                precision: Precision::ALL[precision],
                attn: [Attention::Sdpa, Attention::Eager, Attention::FlashAttention2][attn],
                ckpt: [C::None, C::Full, C::Vision, C::Language][ckpt],
                freeze: [Freeze::NONE, Freeze::VISION, Freeze::ALL_BUT_CONNECTOR, Freeze::Lora, Freeze::Qlora][freeze],
                lora_dropout: if fused { 0.1 } else { 0.0 },
                optim: OPTIMIZERS[optim],
                clip,
                zero_grad: if to_zero { ZeroGrad::ToZero } else { ZeroGrad::ToNone },
                autocast_cache: cached,
                ema,
                loss: if fused { Loss::FusedLinear } else { Loss::Full },
                use_cache: Some(use_cache),
                packing: if packed { Packing::Packed } else { Packing::Padded },
                lengths,
                ..Setup::default()
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(96))]
        #[test]
        fn repeated_micro_batches_are_those_recorded_one_by_one(number in any::<prop::sample::Index>(), drawn in drawn()) {
            let models: Vec<_> = Model::catalogue().into_iter().collect();
            let model = Model::from_catalogue(models[number.index(models.len())]).unwrap();
            let setup = Setup { seq: setup(&model).seq, ..drawn };
            if check(&model, &setup).is_ok() {
                let repeated = compare(&model, &setup);
                // The first micro-batch makes the gradients, so that the third is the first that repeats the one before
                // it. Where the gradients stay, the first of a later step makes none, and the second repeats it.
                let stay = setup.zero_grad == ZeroGrad::ToZero;
                let expected = |repeated| repeated == (setup.accum > 3) || (stay && setup.accum == 3);
                prop_assert!(repeated.is_none_or(expected));
            }
        }
    }
}
