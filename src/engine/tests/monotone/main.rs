//! Tests of monotonicity for every family: more samples, positions, images or width never cost less, and training or
//! keeping less never costs more, unless the report warns that a frozen tower keeps its graph.

mod configurations;
mod families;
mod family;
mod hybrids;
mod latent;
mod mixtures;
mod omni;
mod own_code;

use families::FAMILIES;
use family::Family;
use proptest::prelude::*;
use vramscope_engine::simulate::{record, simulate};
use vramscope_engine::tape::log::Event;
use vramscope_engine::tape::{Component, Gpu, Kind};
use vramscope_engine::{Case, Model, Report, Setup};

/// A setup by the keys of a case, and the width of the model.
#[derive(Debug, Clone)]
struct Keys {
    batch: u64,
    seq: u64,
    images: u64,
    width: u64,
    freeze: &'static str,
    ckpt: &'static str,
    /// Precision, optimizer, attention and the rest.
    rest: String,
}

impl Keys {
    fn model_and_setup(&self, family: &Family) -> (Model, Setup) {
        let Self {
            batch,
            seq,
            images,
            freeze,
            ckpt,
            rest,
            ..
        } = self;
        let freeze = if family.parts { freeze } else { &"none" };
        // IDEFICS has no connector to train alone, and PyTorch refuses what KOSMOS-2 writes into embeddings that are frozen
        // beside checkpointed blocks.
        let refuses = match family.name {
            "idefics" => true,
            "kosmos-2" => *ckpt != "none",
            _ => false,
        };
        let freeze = match *freeze {
            "all-but-connector" if refuses => &"vision",
            _ => freeze,
        };
        // Models of torchvision have no checkpointing, nor do some classes of transformers.
        let ckpt = match family.name {
            "torchvision_video_resnet"
            | "gpt_neox_japanese"
            | "openai-gpt"
            | "ctrl"
            | "xlm"
            | "cpmant"
            | "jetmoe"
            | "pix2struct" => &"none",
            _ => ckpt,
        };
        let case = format!(
            r#"{{"model":"x","batch":{batch},"seq":{seq},"images":{images},"grid":[4,4],"freeze":"{freeze}","ckpt":"{ckpt}",{rest}}}"#
        );
        let setup = Case::from_json(&case).unwrap().unwrap().setup;
        let model = Model::from_config(&family.config(self.width)).unwrap_or_else(|e| panic!("{}: {e}", family.name));
        (model, setup)
    }

    fn report(&self, family: &Family) -> Report {
        let (model, setup) = self.model_and_setup(family);
        simulate(&model, &setup).unwrap_or_else(|e| panic!("{} {self:?}: {e}", family.name))
    }

    /// Number of trained parameter tensors.
    fn trained_tensors(&self, family: &Family) -> u64 {
        let (model, setup) = self.model_and_setup(family);
        let run = record(&model, &setup, Gpu::H200);
        run.parameters.iter().filter(|(_, trained)| *trained).count() as u64
    }

    /// Highest sum of requested bytes in a steady step. Allocated bytes would include the blocks' slack, which depends
    /// on earlier frees.
    fn peak(&self, family: &Family) -> u64 {
        let (model, setup) = self.model_and_setup(family);
        let run = record(&model, &setup, Gpu::H200);
        let bytes = |event: &Event| run.log.allocations[event.storage() as usize].bytes;
        let (mut now, mut peak) = (0, 0);
        let steady_start = run.build.len() + run.first.events.len();
        let events = run.build.iter().chain(&run.first.events).chain(&run.steady.events);
        for (i, event) in events.enumerate() {
            if event.is_alloc() {
                now += bytes(event);
            } else {
                now -= bytes(event);
            }
            if i >= steady_start {
                peak = peak.max(now);
            }
        }
        peak
    }
}

/// LoRA trains no weight of the model itself, so that no optimizer holds those that no forward runs.
#[test]
fn frozen_weights_live_as_long_as_the_model() {
    let lora = |family: &Family, targets: &str| {
        let keys = Keys {
            batch: 2,
            seq: 530,
            images: 1,
            width: 1,
            freeze: "lora",
            ckpt: "none",
            rest: format!(r#""precision":"fp32","optim":"sgd","attn":"eager","lora_targets":"{targets}""#),
        };
        let (model, setup) = keys.model_and_setup(family);
        simulate(&model, &setup)
    };
    for family in FAMILIES.iter().filter(|family| family.text) {
        // Some language models have no projections of Llama's names.
        let report = lora(family, "attention").or_else(|_| lora(family, "all-linear"));
        let report = match report {
            Ok(report) => report,
            Err(refusal) if refusal.to_string().contains("`freeze` does not fit") => continue,
            Err(refusal) => panic!("{}: {refusal}", family.name),
        };
        let weights = report
            .timeline
            .live(report.timeline.peak_instant())
            .sum(|held| held.kind() == Kind::Weight);
        assert!(
            weights.get() >= 4 * report.params,
            "{}: {weights} of weights",
            family.name
        );
    }
}

/// Models whose language model takes patches without a tower.
const WITHOUT_TOWER: [&str; 2] = ["gemma4_unified", "fuyu"];

#[test]
fn each_frozen_part_trains_less() {
    for family in FAMILIES.iter().filter(|family| family.parts) {
        let trained = |freeze| {
            let keys = Keys {
                batch: 1,
                seq: 530,
                images: 1,
                width: 1,
                freeze,
                ckpt: "none",
                rest: r#""precision":"fp32","optim":"sgd","attn":"eager""#.to_owned(),
            };
            let (model, setup) = keys.model_and_setup(family);
            let report = simulate(&model, &setup);
            report
                .unwrap_or_else(|e| panic!("{} {freeze}: {e}", family.name))
                .trainable
        };
        let [all, language, connector] = ["none", "vision", "all-but-connector"].map(trained);
        assert!(
            (all > language || WITHOUT_TOWER.contains(&family.name)) && language > connector && connector > 0,
            "{}: {all}, {language}, {connector}",
            family.name
        );
    }
}

fn families() -> impl Strategy<Value = &'static Family> {
    (0..FAMILIES.len()).prop_map(|i| &FAMILIES[i])
}

fn setups() -> impl Strategy<Value = Keys> {
    let one_of = |words: &'static [&'static str]| proptest::sample::select(words);
    (
        // At least two samples: the class token's gradient of a single one is a view of all positions, and keeps their
        // memory.
        (2u64..5, 520u64..570, 1u64..3, 1u64..3),
        one_of(&["none", "vision", "all-but-connector"]),
        one_of(&["none", "full"]),
        one_of(&["fp32", "bf16"]),
        one_of(&["adamw", "adamw_fused", "sgd", "sgdm", "adafactor_torch"]),
        one_of(&["sdpa", "eager"]),
        any::<bool>(),
    )
        .prop_map(
            |((batch, seq, images, width), freeze, ckpt, precision, optim, attn, clip)| Keys {
                batch,
                seq,
                images,
                width,
                freeze,
                ckpt,
                rest: format!(r#""precision":"{precision}","optim":"{optim}","attn":"{attn}","clip":{clip}"#),
            },
        )
}

/// Activations of all parts that live when forward ends.
fn activations(report: &Report) -> u64 {
    let parts = [
        Component::VisionTower,
        Component::Connector,
        Component::LanguageModel,
        Component::Head,
    ];
    parts
        .iter()
        .map(|&part| report.held_after_forward(part, Kind::Activation).get())
        .sum()
}

/// Returns true if the report warns that a frozen tower keeps its graph.
fn warns_of_kept_graph(report: &Report) -> bool {
    report.warnings.iter().any(|w| w.code == "frozen-tower-keeps-graph")
}

/// Families whose attention casts queries and keys, or its scores, to fp32, and its weights back, or whose norms or scans
/// make fp32 of what is not: copies that fp32 weights do not need.
const CAST_TO_FP32: [&str; 26] = [
    "gptj",
    "codegen",
    "gpt_neo",
    "idefics",
    "bloom",
    "mpt",
    "mamba",
    "falcon_mamba",
    "mamba2",
    "bamba",
    "granitemoehybrid",
    "nemotron_h",
    "falcon_h1",
    "jamba",
    "granite_swa",
    "granitemoe_swa",
    "deepseek_vl_v2",
    "deepseek_v32",
    "glm_moe_dsa",
    "hy_v4",
    "xlm",
    "axk2",
    "zamba",
    "zamba2",
    "prophetnet",
    "recurrent_gemma",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(160))]

    #[test]
    fn more_of_anything_never_lowers_the_peak(
        family in families(),
        keys in setups(),
        grown in 0..4,
        by in 1u64..4,
    ) {
        let mut more = keys.clone();
        match grown {
            0 => more.batch += by,
            1 if family.text => more.seq += 16 * by,
            // LLaVA-OneVision cuts a single image into tiles, and none of several: two can take less than one.
            2 if family.images && (family.name != "llava_onevision" || keys.images > 1) => more.images += by,
            _ => more.width += by,
        }
        let (less, more) = (keys.peak(family), more.peak(family));
        prop_assert!(more >= less, "{}: the peak falls from {less} to {more}", family.name);
    }

    #[test]
    fn checkpointing_never_raises_the_activations_kept(family in families(), keys in setups()) {
        let none = activations(&Keys { ckpt: "none", ..keys.clone() }.report(family));
        for ckpt in ["vision", "language", "full"] {
            let report = Keys { ckpt, ..keys.clone() }.report(family);
            prop_assert!(activations(&report) <= none || warns_of_kept_graph(&report), "{} {ckpt}", family.name);
        }
    }

    /// The search for settings that train skips options that another one dominates, relying on this.
    #[test]
    fn fused_attention_half_precision_and_the_fused_optimizer_never_take_more(family in families(), keys in setups()) {
        let with = |precision: &str, optim: &str, attn: &str| {
            let rest = format!(r#""precision":"{precision}","optim":"{optim}","attn":"{attn}""#);
            Keys { rest, ..keys.clone() }
        };
        let peak = |precision, optim, attn| with(precision, optim, attn).peak(family);
        let best = peak("bf16", "adamw_fused", "sdpa");
        prop_assert!(best <= peak("bf16", "adamw_fused", "eager"), "{}: eager", family.name);
        if !CAST_TO_FP32.contains(&family.name) {
            prop_assert!(best <= peak("fp32", "adamw_fused", "sdpa"), "{}: fp32", family.name);
        }
        // Gated norms and the delta rule cast to fp32, which their inputs are already under autocast.
        let is_gated = family.name.starts_with("qwen3_5") || ["qwen3_next", "minicpmv4_6"].contains(&family.name);
        if !is_gated && !CAST_TO_FP32.contains(&family.name) {
            prop_assert!(best <= peak("amp-bf16", "adamw_fused", "sdpa"), "{}: amp-bf16", family.name);
        }
        for optim in ["adamw", "adamw_loop"] {
            // The fused form keeps its step counts on the GPU: a block of 512 bytes for each parameter.
            let steps = with("bf16", optim, "sdpa").trained_tensors(family) * 512;
            prop_assert!(best <= peak("bf16", optim, "sdpa") + steps, "{}: {optim}", family.name);
        }
    }

    #[test]
    fn freezing_never_raises_the_peak_without_a_warning(family in families(), keys in setups()) {
        let with = |freeze| Keys { freeze, ..keys.clone() };
        for (less, more) in [("none", "vision"), ("vision", "all-but-connector")] {
            let (trained, frozen) = (with(less).peak(family), with(more).peak(family));
            prop_assert!(
                frozen <= trained || warns_of_kept_graph(&with(more).report(family)),
                "{}: the peak rises from {trained} with {less} frozen to {frozen} with {more}",
                family.name
            );
        }
    }
}
