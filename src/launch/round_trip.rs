//! Exports of a plan, read back.

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::json;
use vramscope_engine::Setup;
use vramscope_engine::setup::{
    Attention, Checkpointing, Freeze, LigerKernels, Loss, Optimizer, Precision, Targets, TrainerKind,
};
use vramscope_plan::Plan;
use vramscope_plan::export::ExportFormat;

use super::tests::{case, launch, open};

/// A setup that a person may plan, with the settings that the tools' files hold.
fn planned() -> impl proptest::strategy::Strategy<Value = Setup> {
    let sizes = (1_u64..9, 1_u64..5000, 1_u64..9, 1_u64..65);
    let numbers = (0_u64..4, any::<bool>(), any::<bool>());
    let choices = (
        select(Precision::ALL),
        select(Optimizer::ALL),
        select(&[
            Freeze::NONE,
            Freeze::VISION,
            Freeze::ALL_BUT_CONNECTOR,
            Freeze::Lora,
            Freeze::Qlora,
        ]),
        select(&[Checkpointing::None, Checkpointing::Full]),
        select(&[Attention::Sdpa, Attention::Eager, Attention::FlashAttention2]),
        prop_oneof![
            Just(Targets::Projections),
            Just(Targets::Attention),
            Just(Targets::LanguageModel),
            Just(Targets::AllLinear),
            Just(Targets::parse("qkv,fc1").unwrap()),
        ],
    );
    (sizes, numbers, choices).prop_map(
        |((batch, seq, accum, rank), (dropout, clip, fused), (precision, optim, freeze, ckpt, attn, lora_targets))| {
            let adapted = matches!(freeze, Freeze::Lora | Freeze::Qlora);
            let default = Setup::default();
            Setup {
                batch,
                seq,
                accum,
                precision,
                optim,
                freeze,
                ckpt,
                attn,
                clip,
                loss: if fused { Loss::FusedLinear } else { Loss::default() },
                // Files hold these beside adapters alone.
                rank: if adapted { rank } else { default.rank },
                lora_dropout: if adapted {
                    dropout as f64 * 0.05
                } else {
                    default.lora_dropout
                },
                lora_targets: if adapted {
                    lora_targets
                } else {
                    default.lora_targets.clone()
                },
                ..default
            }
        },
    )
}

/// A plan that recommends a setup.
fn plan_of(setup: &Setup) -> Plan {
    let choice = json!({"setup": setup, "samples": setup.batch, "live": 1, "distance": 0});
    let plan = json!({"model": "qwen2.5-vl-3b", "limit": 1, "planned": 1, "asked": setup, "gpus": 1, "recommended": choice,
        "reasons": [], "front": [], "front_len": 0, "ladder": [], "not_searched": [], "refused": [],
        "searched": {"setups": 1, "refused": 0, "summed": 0, "recorded": 1, "bounded": 0, "dominated": 0}});
    serde_json::from_value(plan).unwrap_or_else(|error| panic!("{error}"))
}

proptest! {
    /// The file of a plan, read back, is the setup of the plan, with Liger's other kernels beside its loss where the
    /// tool can't leave them out.
    #[test]
    fn an_export_is_read_back_as_the_same_setup(
        setup in planned(),
        form in select(&[ExportFormat::Trl, ExportFormat::LlamaFactory, ExportFormat::MsSwift]),
    ) {
        let plan = plan_of(&setup);
        let Ok(text) = form.write(&plan, plan.recommended.as_ref().expect("one is")) else {
            return Ok(());
        };
        let read = launch(&[&text]);
        let open = open(&read);
        match (form, setup.loss) {
            // LLaMA-Factory's `all` passes over the connector.
            (ExportFormat::LlamaFactory, _) if setup.lora_targets == Targets::AllLinear => {}
            // Tools but TRL prepare 4-bit models in ways of their own.
            (ExportFormat::LlamaFactory | ExportFormat::MsSwift, _) if setup.freeze == Freeze::Qlora => prop_assert!(open[0].contains("QLoRA"), "{:?}", open),
            _ => prop_assert!(open.is_empty(), "{open:?}\n{text}"),
        }
        // LLaMA-Factory checkpoints no frozen blocks of such a model.
        let ckpt = match (form, setup.ckpt) {
            (ExportFormat::LlamaFactory, Checkpointing::Full) => Checkpointing::Trained,
            (_, ckpt) => ckpt,
        };
        // Both switch on all of Liger with its loss.
        let liger = match (form, setup.loss) {
            (ExportFormat::LlamaFactory, Loss::FusedLinear) => LigerKernels {
                before: true,
                ..LigerKernels::ALL_KERNELS
            },
            (ExportFormat::MsSwift, Loss::FusedLinear) => LigerKernels::ALL_KERNELS,
            _ => setup.liger,
        };
        let setup = Setup { ckpt, liger, ..setup };
        let setup = match form {
            // TRL's own loss takes the place of Liger's, and lines for the script freeze parts.
            ExportFormat::Trl => Setup {
                loss: Loss::default(),
                freeze: match setup.freeze {
                    Freeze::VISION | Freeze::ALL_BUT_CONNECTOR => Freeze::NONE,
                    adapters => adapters,
                },
                ..setup
            },
            _ => setup,
        };
        if open.is_empty() || form == ExportFormat::Trl || setup.freeze == Freeze::Qlora && form == ExportFormat::MsSwift {
            let trainer = match (form, setup.freeze) {
                (ExportFormat::Trl, _) => TrainerKind::TrlSft,
                (ExportFormat::MsSwift, freeze) if freeze != Freeze::Qlora => TrainerKind::MsSwift,
                _ => TrainerKind::Transformers,
            };
            // Each of them switches `use_cache` off.
            let use_cache = Some(false);
            let read = case(&read).setup;
            // What a plan leaves to the tool, and a setup to its file.
            let (pixels, loading, pad_to_multiple_of) = (read.pixels, read.loading, read.pad_to_multiple_of);
            let of_tool = Setup { trainer, use_cache, pixels, loading, pad_to_multiple_of, ..setup };
            prop_assert_eq!(read, of_tool, "{}", text);
        }
    }
}
