//! Compares separately recorded passes and updates with whole runs.

use vramscope_engine::device::Device;
use vramscope_engine::setup::{Checkpointing, Freeze, Loss, Optimizer, Precision, ZeroGrad};
use vramscope_engine::simulate::{
    Counted, Notes, Pass, PassRecorder, count, record_notes, record_update, record_update_input,
};
use vramscope_engine::tape::Gpu;
use vramscope_engine::tape::work::WorkItem;
use vramscope_engine::{Model, Setup};
use vramscope_time::{Costs, H200, Measured, Passes, Rates};

const MODELS: [&str; 9] = [
    "qwen2.5-vl-3b",
    "qwen2-vl-2b",
    "qwen3-vl-2b",
    "llava-1.5-7b",
    "llama3.2-1b",
    "gpt2-medium",
    "internvl3-1b",
    "gemma3-4b",
    "smolvlm-256m",
];

fn setups() -> Vec<Setup> {
    let base = Setup {
        seq: 1700,
        ..Setup::default()
    };
    let with = |change: fn(&mut Setup)| {
        let mut setup = base.clone();
        change(&mut setup);
        setup
    };
    vec![
        base.clone(),
        with(|s| (s.batch, s.accum, s.ckpt) = (2, 4, Checkpointing::Full)),
        with(|s| (s.accum, s.ckpt, s.freeze) = (2, Checkpointing::Vision, Freeze::Lora)),
        with(|s| (s.accum, s.ckpt, s.freeze) = (2, Checkpointing::Language, Freeze::VISION)),
        with(|s| (s.precision, s.accum, s.loss) = (Precision::AmpBf16, 3, Loss::FusedLinear)),
        with(|s| (s.precision, s.ckpt, s.batch) = (Precision::AmpFp16, Checkpointing::Full, 3)),
        with(|s| (s.freeze, s.ckpt) = (Freeze::Qlora, Checkpointing::Full)),
        with(|s| (s.freeze, s.accum, s.precision) = (Freeze::Qlora, 3, Precision::AmpBf16)),
        with(|s| (s.freeze, s.accum, s.ckpt) = (Freeze::Qlora, 2, Checkpointing::Full)),
        with(|s| (s.freeze, s.ckpt, s.use_cache) = (Freeze::ALL_BUT_CONNECTOR, Checkpointing::Vision, Some(true))),
        with(|s| (s.zero_grad, s.optim) = (ZeroGrad::ToZero, Optimizer::Adamw)),
    ]
}

/// Calls `check` for every model with every setup that it can run.
fn each(mut check: impl FnMut(&Model, &Setup)) {
    for name in MODELS {
        let model = Model::from_catalogue(name).unwrap();
        for setup in setups() {
            let text = !model.takes().parts;
            let fits = |freeze| match freeze {
                Freeze::NONE => true,
                Freeze::Lora | Freeze::Qlora => name != "gpt2-medium",
                _ => !text,
            };
            let alone = text && matches!(setup.ckpt, Checkpointing::Vision | Checkpointing::Language);
            // These combinations also fail in transformers.
            let autocast = setup.precision.autocast().is_some();
            let liger = name == "gpt2-medium" && setup.loss == Loss::FusedLinear;
            let fails = liger || (name == "smolvlm-256m" && autocast);
            if fits(setup.freeze) && !alone && !fails {
                let seq = if name == "gpt2-medium" { 700 } else { setup.seq };
                check(&model, &Setup { seq, ..setup });
            }
        }
    }
}

/// Records one pass of a model for a setup.
fn pass(model: &Model, setup: &Setup, whole: bool) -> (Pass, i64) {
    let pass = PassRecorder::default().pass(model, setup, Gpu::H200.into(), (true, whole));
    pass.unwrap()
}

#[test]
fn one_block_stands_for_all_that_do_alike() {
    let measured = Measured::read(H200).unwrap();
    let costs = Costs::new(
        Rates::of(Device::by_name("H200").unwrap()).unwrap(),
        None,
        &measured.pace,
    );
    each(|model, setup| {
        let (light, left) = pass(model, setup, false);
        let (whole, _) = pass(model, setup, true);
        let told = format!("{}: {setup:?}", model.name);
        assert_eq!(left, 0, "{told}");
        assert_eq!(light.peak, whole.peak, "{told}");
        let [one, other] = [light, whole].map(|pass| Passes::of(pass.work.phases(), &costs).seconds);
        for (one, other) in one.into_iter().zip(other) {
            assert!(
                (one - other).abs() < 1e-9 * other.max(1e-6),
                "{one} for {other}, {told}"
            );
        }
    });
}

#[test]
fn a_model_that_stands_passes_as_a_new_one() {
    each(|model, setup| {
        let between = Setup {
            batch: 3 - setup.batch.min(2),
            accum: 3 - setup.accum.min(2),
            ckpt: match setup.ckpt {
                Checkpointing::None => Checkpointing::Full,
                _ => Checkpointing::None,
            },
            ..setup.clone()
        };
        let mut recorder = PassRecorder::default();
        for setup in [setup, &between, setup] {
            let told = format!("{}: {setup:?}", model.name);
            let (stood, left) = recorder.pass(model, setup, Gpu::H200.into(), (true, false)).unwrap();
            let (new, left_new) = pass(model, setup, false);
            assert_eq!((stood.peak, left), (new.peak, left_new), "{told}");
            for (stood, new) in stood.work.phases().into_iter().zip(new.work.phases()) {
                assert!(stood.eq(new), "{told}");
            }
        }
    });
}

/// A separately recorded pass and update have the memory of the same run recorded as a whole.
#[test]
fn a_pass_and_an_update_by_themselves_are_those_of_a_run() {
    let mut recorder = PassRecorder::default();
    each(|model, setup| {
        let repeated = Setup {
            accum: setup.accum.min(2),
            ..setup.clone()
        };
        let with = |optim: Optimizer| Setup {
            optim,
            ..repeated.clone()
        };
        let bare = with(Optimizer::Sgd);
        let notes = Notes { work: true, sums: true };
        let told = format!("{}: {setup:?}", model.name);
        let counted = |setup: &Setup| {
            let run = record_notes(model, setup, Gpu::H200, notes).unwrap();
            let Counted { pass, update, end, .. } = count(&run);
            ([pass, update, end], run.work)
        };
        let ([pass_peak, _, end], work) = counted(&bare);
        let pass = recorder.record(model, setup, Gpu::H200.into(), true).unwrap();
        assert_eq!(pass.peak, pass_peak, "{told}");
        let launches = |items: &[WorkItem]| items.iter().map(|item| item.launches(&|_| true)).sum::<u64>();
        let all = |part: (&[WorkItem], u64)| launches(part.0) * part.1;
        let [forward, backward] = pass.work.phases().map(|parts| parts.map(all).sum::<u64>());
        assert_eq!(forward, launches(work.forward()), "{told}");
        assert_eq!(backward, launches(work.backward()), "{told}");
        let one_sample = Setup {
            batch: 1,
            accum: 1,
            ..bare
        };
        let update_input = record_update_input(model, &one_sample, Gpu::H200.into()).unwrap();
        for optim in [
            Optimizer::Sgd,
            Optimizer::AdamwFused,
            Optimizer::Adamw,
            Optimizer::Adafactor,
            Optimizer::AdafactorTorch,
            setup.optim,
        ] {
            let ([_, peak, after], work) = counted(&with(optim));
            let update = record_update(model, &with(optim), Gpu::H200.into(), (&update_input, true)).unwrap();
            assert_eq!(update.states, after.saturating_sub(end), "{optim:?}, {told}");
            let [own, run] = [update.peak, peak].map(|peak| peak.max(pass_peak + update.states));
            assert_eq!(own, run, "{optim:?}, {told}");
            assert_eq!(update.work, work.optimizer(), "{optim:?}, {told}");
        }
    });
}
