//! What the setup of a launch leaves out of the run, and whether an estimate without it is an upper or a lower bound of what the
//! run needs, or none.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use vramscope_engine::verdict::Verdict;

use crate::keys::NotSimulated;
use crate::remark::{Note, Remark};
use crate::values::is_like_flash;

/// How the memory that the run needs compares with an estimate that leaves something out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// The run needs at most as much.
    AtMost,
    /// The run needs at least as much.
    AtLeast,
    /// The run may need less or more.
    Unknown,
    /// The estimate says nothing of the run: it would be of another strategy, loss or device.
    AnotherRun,
}

/// How an estimate's figure compares with what the run that was given needs, with all that the estimate leaves out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Grade {
    /// It is of the whole run.
    Exact,
    /// The run needs at most as much.
    AtMost,
    /// The run needs at least as much.
    AtLeast,
    /// The run needs between two figures.
    Between,
    /// No figure bounds the run: a dry run tells (`vramscope dry-run`).
    DryRun,
}

macro_rules! aspects {
    ($($variant:ident = $word:literal, $about:literal;)+) => {
        /// Aspect of a run.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Aspect {
            $(#[doc = $about] $variant,)+
        }

        impl Aspect {
            /// All aspects.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// Stable word, as in JSON.
            pub const fn word(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }
    };
}

aspects! {
    Length = "length", "Lengths of samples, and how batches are made of them.";
    Images = "images", "Sizes of images and videos.";
    Loss = "loss", "The loss, and the trainer that computes it.";
    Strategy = "strategy", "How GPUs share the model.";
    Zero = "zero", "Options of DeepSpeed's ZeRO.";
    Offload = "offload", "What is kept in the memory of the host.";
    Tuner = "tuner", "Parameters that are trained.";
    Checkpointing = "checkpointing", "Checkpoints of activations.";
    Optimizer = "optimizer", "The optimizer.";
    Precision = "precision", "Types of weights and compute.";
    Quantization = "quantization", "Quantized weights.";
    Kernels = "kernels", "Operations that replace the model's own.";
    Compile = "compile", "Compilation of the step.";
    Model = "model", "The model's own configuration.";
    Generation = "generation", "How completions are generated.";
    Beside = "beside", "Another model on the same GPU.";
    Profiling = "profiling", "A profiler.";
    Device = "device", "The device that runs the step.";
    Files = "files", "Settings in a file that was not given.";
    Setting = "setting", "A key or a value that is not known.";
}

/// Something that changes the memory of a run and that its setup leaves out.
///
/// In JSON: `{"what": "kernels", "given": "use_unsloth: true", "why": "replaces …", "direction": "unknown"}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// What is left out.
    pub what: Aspect,
    /// Key and value of the line that asks for it, as `key: value`; `None` if it follows from several, or no line tells it.
    pub given: Option<String>,
    /// What the run has and the estimate has not, or why it is not simulated, in English.
    pub why: String,
    /// How the memory that the run needs compares with an estimate without it.
    pub direction: Direction,
}

impl LeftOut {
    /// Says that a larger model stands in for that of the run.
    pub fn of_larger_model(why: &str) -> Self {
        Self {
            what: Aspect::Model,
            given: None,
            why: why.to_owned(),
            direction: Direction::AtMost,
        }
    }

    /// Returns true if a larger model stands in for that of the run.
    pub fn is_of_larger_model(&self) -> bool {
        self.what == Aspect::Model && self.given.is_none() && self.direction == Direction::AtMost
    }

    /// Returns true for the length of samples that no line tells: with one that a person gives, nothing is left out.
    pub fn is_missing_length(&self) -> bool {
        self.what == Aspect::Length && self.given.is_none()
    }

    /// Returns true for the sizes of images that no line tells: with sizes that a person gives, nothing is left out.
    pub fn is_missing_images(&self) -> bool {
        self.what == Aspect::Images && self.given.is_none()
    }

    /// Returns true for a line that joins samples up to the length allowed. Its bound holds for rows that are full of images
    /// too: a row has those of several samples.
    pub fn is_of_full_rows(&self) -> bool {
        self.what == Aspect::Length && self.given.is_some() && self.direction == Direction::AtMost
    }

    /// Returns true for the images of rows into which samples are packed: those that a person gives may be of one sample alone.
    pub fn is_of_packed_images(&self) -> bool {
        self.what == Aspect::Images && self.given.is_some() && self.direction == Direction::AtMost
    }

    /// Returns true for the number of GPUs that no line tells: with one that a person gives, nothing is left out.
    pub fn is_missing_gpus(&self) -> bool {
        self.what == Aspect::Strategy && self.given.is_none() && self.direction == Direction::Unknown
    }

    /// Returns true for a larger step that stands in for that of another loss.
    pub fn is_of_loss(&self) -> bool {
        self.what == Aspect::Loss && self.given.is_none() && self.direction == Direction::AtMost
    }

    /// Returns true for what vLLM takes in the training process: a share of the card, which a verdict on a card counts.
    pub fn is_vllm_beside(&self) -> bool {
        self.what == Aspect::Beside && self.given.is_none()
    }

    /// Returns true for an assumption that is listed only beside something that is left out, where it keeps bounds from holding:
    /// by itself it leaves nothing out.
    pub fn is_assumption(&self) -> bool {
        let is_assumed = self.given.is_none() && self.direction == Direction::Unknown;
        is_assumed && self.what == Aspect::Loss
    }

    /// Returns true if an estimate without it bounds the run.
    pub const fn is_bound(&self) -> bool {
        matches!(self.direction, Direction::AtMost | Direction::AtLeast)
    }

    /// Returns true if an estimate without it says nothing of the run.
    pub fn is_another_run(&self) -> bool {
        self.direction == Direction::AnotherRun
    }
}

/// Lower end of a bound, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Least {
    /// Least that tensors hold at the peak.
    pub peak_allocated: u64,
    /// Least that the allocator reserves.
    pub peak_reserved: u64,
}

/// Bounds of a run whose files do not tell how long its samples are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct OfLengths {
    /// What it needs at least, with the shortest samples.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub least: Option<Least>,
    /// Positions of the longest samples with which it fits the card, if it does not with the longest that it may have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub length_that_fits: Option<u64>,
}

/// One process that spreads the layers of the model over several GPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
struct Layers {
    strategy: &'static str,
    world: u64,
}

/// The JSON document of an estimate, with how it compares with the run that was given.
#[derive(Debug, Serialize)]
pub struct Graded<'a, D> {
    #[serde(flatten)]
    estimate: D,
    /// GPUs over which the run spreads its layers, where the estimate is of one GPU that holds all of them.
    #[serde(rename = "parallel", skip_serializing_if = "Option::is_none")]
    layers: Option<Layers>,
    grade: Grade,
    #[serde(flatten)]
    lengths: OfLengths,
    not_this_run: &'a [LeftOut],
}

impl<'a, D> Graded<'a, D> {
    /// Grades an estimate that leaves this out.
    pub fn of(estimate: D, left_out: &'a [LeftOut]) -> Self {
        Self {
            estimate,
            layers: None,
            grade: Grade::of(left_out),
            lengths: OfLengths::default(),
            not_this_run: left_out,
        }
    }

    /// The same for a run whose layers are spread over `gpus` GPUs, if it is one.
    #[must_use]
    pub fn over(self, gpus: Option<u64>) -> Self {
        let layers = gpus.map(|world| Layers {
            strategy: "device_map",
            world,
        });
        Self { layers, ..self }
    }

    /// The same with the bounds that follow from the lengths of samples.
    #[must_use]
    pub fn with(self, lengths: OfLengths) -> Self {
        Self {
            grade: self.grade.with(lengths),
            lengths,
            ..self
        }
    }
}

impl Grade {
    /// Grade of an estimate that leaves this out. If some of it raises what the run needs and some lowers it, or for some nobody
    /// knows, the estimate bounds nothing.
    pub fn of(left_out: &[LeftOut]) -> Self {
        let all = |wanted: Direction| left_out.iter().all(|left| left.direction == wanted);
        match left_out {
            [] => Self::Exact,
            _ if all(Direction::AtMost) => Self::AtMost,
            _ if all(Direction::AtLeast) => Self::AtLeast,
            _ => Self::DryRun,
        }
    }

    /// The verdict on the run that follows from the verdict on its figure; `None` if the run may lie on the other side.
    ///
    /// A run that needs at most as much as its figure fits where the figure does; one that needs at least as much runs out
    /// of memory where the figure does. Only an exact figure tells that a run is tight.
    pub const fn settles(self, verdict: Verdict) -> Option<Verdict> {
        match (verdict, self) {
            (_, Self::Exact) | (Verdict::Fits, Self::AtMost | Self::Between) | (Verdict::Oom, Self::AtLeast) => {
                Some(verdict)
            }
            _ => None,
        }
    }

    /// The same with the bounds that follow from the lengths of samples: with a lower one too, an upper bound becomes a range.
    #[must_use]
    pub const fn with(self, lengths: OfLengths) -> Self {
        match (self, lengths.least) {
            (Self::AtMost, Some(_)) => Self::Between,
            _ => self,
        }
    }
}

/// An aspect of the run that is left out, and how what the run needs compares with an estimate without it.
pub(crate) type Effect = (Aspect, Direction);

/// Effect of leaving out what no table lists.
pub(crate) const NOT_KNOWN: Effect = (Aspect::Setting, Direction::Unknown);

/// Rows of the table: a key, `=` and a name of the draft, or `!` and a reason; an aspect; a direction.
fn rows() -> impl Iterator<Item = [&'static str; 3]> {
    let lines = include_str!("keys/left_out.tsv").lines();
    lines
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .filter_map(|line| {
            let mut cells = line.split('\t');
            Some([cells.next()?, cells.next()?, cells.next()?])
        })
}

fn effect([_, what, direction]: [&str; 3]) -> Option<Effect> {
    let what = Aspect::ALL.iter().find(|aspect| aspect.word() == what)?;
    let direction = match direction {
        "at_most" => Direction::AtMost,
        "at_least" => Direction::AtLeast,
        "unknown" => Direction::Unknown,
        "another_run" => Direction::AnotherRun,
        _ => return None,
    };
    Some((*what, direction))
}

fn row(is: impl Fn(&str) -> bool) -> Option<Effect> {
    rows().find(|[name, ..]| is(name)).and_then(effect)
}

/// Effect of leaving out a key, for this reason: that of its values (`KEY:VALUE`) where all have the same, its own, that of
/// the object that holds it, or the reason's.
pub(crate) fn of_key(key: &str, value: &Value, why: NotSimulated) -> Effect {
    let values = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
    let of_value = |value: &Value| {
        let wanted = format!("{key}:{}", value.as_str()?);
        row(|name| name == wanted)
    };
    let of_values: Option<Vec<Effect>> = values.iter().map(of_value).collect();
    if let Some([first, rest @ ..]) = of_values.as_deref()
        && rest.iter().all(|(_, direction)| *direction == first.1)
    {
        return *first;
    }
    let ends = key.match_indices('.').rev().map(|(at, _)| at);
    let holders = std::iter::once(key.len()).chain(ends).map(|end| &key[..end]);
    let own = holders.filter_map(|holder| row(|name| name == holder)).next();
    own.or_else(|| row(|name| name.strip_prefix('!') == Some(why.word())))
        .unwrap_or(NOT_KNOWN)
}

/// Effect of a value that is not simulated, of a setting of this name in the draft; some have rows of their own
/// (`=NAME:VALUE`).
pub(crate) fn of_knob(knob: &str, value: &Value) -> Effect {
    let with_value = value.as_str().map(|value| match is_like_flash(value) {
        true => format!("{knob}:flash_attention_3"),
        false => format!("{knob}:{value}"),
    });
    let of = |wanted: &str| row(|name| name.strip_prefix('=') == Some(wanted));
    let own = with_value.and_then(|wanted| of(&wanted));
    own.or_else(|| of(knob)).unwrap_or(NOT_KNOWN)
}

/// Effect of what a remark says is not simulated.
fn of_remark(remark: &Remark) -> Effect {
    use Direction::{AnotherRun, AtLeast, AtMost, Unknown};
    match remark.note {
        // The estimate has more samples, logits or models than the run.
        Note::LargerLoss | Note::LossWithoutLogits => (Aspect::Loss, AtMost),
        Note::NoVocabulary => (Aspect::Loss, Unknown),
        Note::OtherModel => (Aspect::Beside, Unknown),
        Note::Generation => (Aspect::Generation, Unknown),
        Note::TablesBeside => (Aspect::Tuner, AtMost),
        Note::ModulesBeside => (Aspect::Tuner, AtLeast),
        // The run's kernels keep only a part of what the simulated operations keep for backward.
        Note::LigersModel | Note::NoFlashAttention => (Aspect::Kernels, AtMost),
        Note::Fp32ForFp16 | Note::ComputeIn4Bits | Note::Fp32IsCovered => (Aspect::Precision, AtMost),
        Note::ScalesAreCovered => (Aspect::Quantization, AtMost),
        Note::LossIn4Bits => (Aspect::Loss, AtMost),
        Note::OtherOptimizer => (Aspect::Optimizer, Unknown),
        // It updates one parameter after another, each with one temporary tensor of its size.
        Note::OlderAdamw => (Aspect::Optimizer, AtMost),
        // The estimate has adapters in all parts instead.
        Note::TargetsInLanguage | Note::TargetsNotInConnector | Note::TargetsInOnePart => (Aspect::Tuner, AtMost),
        // The estimate casts weights to fp32 that the tool leaves in their type.
        Note::QloraOfTool => (Aspect::Quantization, AtMost),
        Note::SingleQuantization => (Aspect::Quantization, AtLeast),
        Note::FewBits => (Aspect::Quantization, AtMost),
        Note::FewBitsOpen => (Aspect::Quantization, Unknown),
        Note::EightBits => (Aspect::Quantization, AtMost),
        Note::EightBitsOpen => (Aspect::Quantization, Unknown),
        Note::QuantizedInFull => (Aspect::Quantization, Unknown),
        // The estimate freezes fewer parts.
        Note::FreezingParts => (Aspect::Tuner, AtMost),
        Note::Bf16UnderFp16 | Note::Fp16UnderBf16 | Note::ComputeInFp32 | Note::DeepspeedWithoutBf16 => {
            (Aspect::Precision, Unknown)
        }
        Note::AutoSize => (Aspect::Zero, Unknown),
        Note::OtherTower => (Aspect::Model, AnotherRun),
        Note::AbsentFile => (Aspect::Files, AnotherRun),
        // Each card holds some of the layers and their activations, where the estimate is of one card with all.
        Note::DeviceMap => (Aspect::Strategy, AtMost),
        Note::OneProcess => (Aspect::Strategy, AnotherRun),
        _ => NOT_KNOWN,
    }
}

/// What no line tells: the lengths and images of samples, for which the estimate takes the most that a run can have, each
/// sample as long as allowed and full of the largest images; the number of GPUs; what runs beside. Without a limit on the
/// length of samples it takes a length of its own, and bounds nothing.
pub(crate) fn of_samples(remark: &Remark) -> Option<LeftOut> {
    use Direction::{AtLeast, AtMost, Unknown};
    let (what, direction) = match remark.note {
        Note::NoLength => (Aspect::Length, Unknown),
        Note::LongestSamples | Note::AllPositions => (Aspect::Length, AtMost),
        Note::FilledWithImages | Note::OneImage | Note::ImagesOfRows => (Aspect::Images, AtMost),
        Note::ImageOfItsOwnSize => (Aspect::Images, Unknown),
        Note::Thinker => (Aspect::Model, AtLeast),
        Note::NoGpus | Note::OpenGpus => (Aspect::Strategy, Unknown),
        Note::Vllm => (Aspect::Beside, AtLeast),
        _ => return None,
    };
    Some(LeftOut {
        what,
        given: (remark.note == Note::ImagesOfRows).then(|| "packing".to_owned()),
        why: remark.to_string(),
        direction,
    })
}

/// An assumption that keeps bounds from holding where something else is left out: under DDP, that a script with a loop of its
/// own runs a trainer, which copies outputs to fp32.
pub(crate) fn of_assumption(remark: &Remark, is_ddp: bool) -> Option<LeftOut> {
    (remark.note == Note::OwnLoop && is_ddp).then(|| LeftOut {
        what: Aspect::Loss,
        given: None,
        why: remark.to_string(),
        direction: Direction::Unknown,
    })
}

/// What a remark says is not simulated.
pub(crate) fn of_setup(remark: &Remark) -> LeftOut {
    let (what, direction) = of_remark(remark);
    LeftOut {
        what,
        given: None,
        why: remark.to_string(),
        direction,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::keys::{Meaning, keys};
    use crate::tests::launch;
    use crate::{Launch, ModelFacts, Tool};

    /// A model of text alone, whose images are not open.
    const TEXT: ModelFacts = ModelFacts {
        takes_images: false,
        ..ModelFacts::UNKNOWN
    };

    fn left_out(launch: &Launch) -> Vec<LeftOut> {
        launch.resolve(TEXT).not_this_run
    }

    fn of(launch: &Launch, given: &str) -> (Aspect, Direction) {
        let all = left_out(launch);
        let found = all.iter().find(|left| left.given.as_deref() == Some(given));
        let found = found.unwrap_or_else(|| panic!("{given}: {all:?}"));
        (found.what, found.direction)
    }

    #[test]
    fn every_row_of_the_table_is_of_something_that_is_left_out() {
        let lines = include_str!("keys/left_out.tsv").lines();
        let count = lines.filter(|line| !line.is_empty() && !line.starts_with('#')).count();
        assert_eq!(rows().filter_map(effect).count(), count);
        let names: BTreeSet<&str> = rows().map(|[name, ..]| name).collect();
        assert_eq!(names.len(), count);
        for why in NotSimulated::ALL {
            assert!(names.contains(&*format!("!{}", why.word())), "{why:?}");
        }
        let meanings: Vec<(&str, Meaning)> = Tool::ALL.iter().flat_map(|tool| keys(*tool)).collect();
        for name in names.iter().filter(|name| !name.starts_with('!')) {
            let is_there = meanings
                .iter()
                .any(|(key, meaning)| match (name.strip_prefix('='), meaning) {
                    (Some(knob), Meaning::Simulated(own, _)) => knob.split(':').next() == Some(own),
                    (None, Meaning::NotSimulated(..)) => Some(*key) == name.split(':').next(),
                    _ => false,
                });
            assert!(is_there, "{name}");
        }
    }

    #[test]
    fn bounds_are_given_where_one_side_only_has_tensors_of_its_own() {
        let packed = |more: &str| launch(&[&format!("swift sft --packing true {more}")]);
        let flash = packed("--max_length 4096 --attn_impl flash_attn");
        assert_eq!(of(&flash, "packing: true"), (Aspect::Length, Direction::AtMost));
        assert_eq!(flash.resolve(TEXT).grade(), Grade::AtMost);
        // Rows that are filled up, without a mask, are what is simulated; what tells their samples apart is not.
        for rows in [
            "stage: sft\ncutoff_len: 512\npacking: true\n",
            "stage: pt\ncutoff_len: 512\n",
        ] {
            let llama = launch(&[rows]).resolve(TEXT);
            assert_eq!(
                (llama.grade(), &llama.case["seq"]),
                (Grade::Exact, &512.into()),
                "{rows}"
            );
        }
        let neat = launch(&["stage: sft\ncutoff_len: 512\nneat_packing: true\n"]);
        assert_eq!(of(&neat, "neat_packing: true").1, Direction::Unknown);
        // FlexAttention has no mask.
        let flex = launch(&["base_model: a/b\nsequence_len: 512\nsample_packing: true\nflex_attention: true\n"]);
        assert_eq!(of(&flex, "sample_packing: true").1, Direction::AtMost);
        assert_eq!(of(&flex, "flex_attention: true"), (Aspect::Kernels, Direction::AtMost));
        assert_eq!(flex.resolve(TEXT).case["attn"], "sdpa");
        for kernel in ["flash_attention_3", "kernels-community/vllm-flash-attn3"] {
            let hub = launch(&[&format!(
                "base_model: a/b\nsequence_len: 512\nattn_implementation: {kernel}\n"
            )]);
            assert_eq!(of(&hub, &format!("attn_implementation: {kernel}")).1, Direction::AtMost);
            assert_eq!(hub.resolve(TEXT).case["attn"], "flash_attention_2");
        }
        // A mask tells the samples apart, or their length is not known.
        for more in ["--max_length 4096", "--attn_impl flash_attn"] {
            let launch = packed(more);
            assert_eq!(of(&launch, "packing: true").1, Direction::Unknown, "{more}");
            assert_eq!(launch.resolve(TEXT).grade(), Grade::DryRun);
        }
        // Less than what is simulated of it, and no more than the longest samples take.
        let biased = launch(&["swift sft --max_length 512 --lora_bias all"]);
        assert_eq!(of(&biased, "lora_bias: all").1, Direction::AtLeast);
        assert_eq!(biased.resolve(TEXT).grade(), Grade::DryRun);
        let both = launch(&["swift sft --max_length 512 --lora_bias all --gradient_checkpointing offload"]);
        assert_eq!(both.resolve(TEXT).grade(), Grade::DryRun);
        // Of images whose sizes nobody tells there is no bound.
        assert_eq!(flash.resolve(ModelFacts::UNKNOWN).grade(), Grade::DryRun);
        let parts = launch(&["swift sft --train_type full --max_length 512 --freeze_llm true"]);
        let parts = parts.resolve(ModelFacts {
            positions: Some(4096),
            ..ModelFacts::UNKNOWN
        });
        assert_eq!(parts.case["freeze"], "none");
        assert!(
            parts
                .not_this_run
                .iter()
                .any(|left| left.what == Aspect::Tuner && left.is_bound())
        );
        let shared = packed("--max_length 4096 --attn_impl flash_attn --nproc_per_node 2").resolve(TEXT);
        assert_eq!(shared.grade(), Grade::AtMost, "{shared:?}");
        let whole = launch(&["swift sft --max_length 4096"]);
        // Samples may be shorter than allowed.
        assert_eq!(whole.resolve(TEXT).grade(), Grade::AtMost);
        // The estimate is of a length of its own.
        let open = launch(&["swift sft"]).resolve(TEXT);
        assert!(open.not_this_run[0].is_missing_length());
        assert_eq!(open.grade(), Grade::DryRun);
        let unknown = launch(&["swift sft --max_lenght 4096"]);
        assert_eq!(of(&unknown, "max_lenght: 4096"), (Aspect::Setting, Direction::Unknown));
    }

    #[test]
    fn another_strategy_loss_or_device_is_another_run() {
        let megatron = "compute_environment: LOCAL_MACHINE\ndistributed_type: MEGATRON_LM\nnum_processes: 4\n";
        for (texts, what) in [
            (
                &["accelerate launch train.py --output_dir x", megatron][..],
                Aspect::Strategy,
            ),
            (&["stage: ppo\nfinetuning_type: lora\n"], Aspect::Loss),
            (&["swift rlhf --rlhf_type ppo"], Aspect::Loss),
            (&["python train.py --output_dir x --deepspeed zero.json"], Aspect::Files),
            (&["accelerate launch --tpu train.py --output_dir x"], Aspect::Device),
        ] {
            let resolved = launch(texts).resolve(ModelFacts::UNKNOWN);
            assert!(
                resolved.another_run().any(|left| left.what == what),
                "{texts:?}: {resolved:?}"
            );
            assert_eq!(resolved.grade(), Grade::DryRun);
        }
    }

    #[test]
    fn in_json_it_is_words() {
        let all = left_out(&launch(&["swift sft --gradient_checkpointing offload"]));
        let json = serde_json::to_value(&all).expect("plain data");
        assert_eq!(json[0]["what"], "checkpointing");
        assert_eq!(json[0]["direction"], "at_most");
        assert_eq!(json[0]["given"], "gradient_checkpointing: offload");
        assert_eq!(serde_json::from_value::<Vec<LeftOut>>(json).expect("the same"), all);
        assert_eq!(serde_json::to_value(Grade::AtLeast).expect("a word"), "at_least");
        for aspect in Aspect::ALL {
            assert_eq!(serde_json::to_value(aspect).expect("a word"), aspect.word());
        }
    }
}
