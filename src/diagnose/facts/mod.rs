//! What a text says of the run, as typed facts: phase, part, tools, setup, system. Hypotheses are drawn from these, never
//! from the text itself.

mod command;
mod setting;
mod setup;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

pub use command::{Lost, OfCommand, command};
pub use setting::{Setting, settings};
pub use setup::derive;

macro_rules! facts {
    ($($variant:ident $name:literal $what:literal),+ $(,)?) => {
        /// A fact of the run. Its name is what files of kinds call it.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Fact {
            $(#[doc = $what] $variant),+
        }

        impl Fact {
            /// Its name in files of kinds.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }
        }

        impl FromStr for Fact {
            type Err = String;

            fn from_str(name: &str) -> Result<Self, String> {
                match name {
                    $($name => Ok(Self::$variant),)+
                    _ => Err(format!("no fact is called `{name}`")),
                }
            }
        }
    };
}

facts! {
    // What failed.
    Oom "oom" "The GPU's memory ran out.",
    HasNumbers "numbers" "An error with the allocator's numbers is there.",
    SmallRequest "small-request" "The request that failed is below 1% of the card.",
    LargeRequest "large-request" "The request that failed is above an eighth of the card.",
    RequestExceeds "exceeds-card" "The request that failed is larger than the card.",
    RoomBefore "room" "The card had a quarter of its memory free when a request failed.",
    HostOom "host-oom" "The host's memory ran out.",
    Killed "killed" "A process was killed from outside.",
    LauncherEnded "launcher-ended" "A launcher ended its processes, and does not say why.",
    OtherError "other-error" "An error is there that is no lack of memory.",
    NetworkError "network-error" "A connection between ranks failed.",
    SystemCall "system-call" "A connection or a system call of NCCL failed, which may be nothing on one machine.",
    MarkedTwice "marked-twice" "DDP counts a parameter's gradient twice.",
    NoGradientError "no-gradient-error" "Backward failed, as no gradient reaches the loss.",
    EmptyWeight "empty-weight" "A token's row is looked for in an embedding without rows.",
    OtherExit "other-exit" "A process ended with an error of its own, not by SIGKILL.",
    HostWords "host-words" "Somebody says that the host's memory ran out.",
    RamWords "ram-words" "Somebody says 内存, which is the host's memory where 显存 is not said.",
    GpuWords "gpu-words" "An error or somebody says that the GPU's memory ran out.",
    VramWords "vram-words" "The GPU's memory is spoken of.",
    Slow "slow" "The run is slower than expected.",
    DriverError "driver-error" "CUDA itself refused memory, outside PyTorch's allocator.",
    WeightsExceed "weights-exceed" "The named model's weights in 16 bits are larger than the card.",
    // When.
    Load "phase=load" "Weights were being loaded or moved.",
    Prepare "phase=prepare" "The model was being wrapped: DDP, FSDP, DeepSpeed's engine.",
    Data "phase=data" "Data were being prepared.",
    Forward "phase=forward" "Forward.",
    Loss "phase=loss" "Logits or the loss.",
    Backward "phase=backward" "Backward.",
    FirstStates "phase=states" "The optimizer made its states.",
    Step "phase=optimizer" "The optimizer's update.",
    Evaluation "phase=evaluation" "Evaluation.",
    Generation "phase=generation" "Generation.",
    Save "phase=save" "Saving.",
    Resume "phase=resume" "A checkpoint was being loaded to go on.",
    Compile "phase=compile" "Compilation or capture of graphs.",
    ServerStart "phase=start" "An inference engine was starting.",
    Merge "phase=merge" "Adapters were being merged.",
    // Where.
    VisionPart "part=vision" "The vision tower.",
    AttentionPart "part=attention" "Attention.",
    HeadPart "part=head" "The head.",
    MlpPart "part=mlp" "The feed-forward part.",
    ExpertsPart "part=experts" "A mixture of experts.",
    // Over time.
    StepsRan "steps-ran" "Steps had run before.",
    Grows "grows" "Memory grows.",
    Sudden "sudden" "Memory was far below the card before.",
    Upgraded "upgraded" "It began with another version.",
    SameSetup "same-setup" "Somebody says that the setup is the same as before.",
    Guessed "guessed" "Somebody supposes that memory grows, and did not see it.",
    // Tools.
    MsSwift "ms-swift" "ms-swift.",
    LlamaFactory "llama-factory" "LLaMA-Factory.",
    Trl "trl" "TRL.",
    Transformers "transformers" "transformers' Trainer.",
    Axolotl "axolotl" "axolotl.",
    Unsloth "unsloth" "unsloth.",
    DeepSpeed "deepspeed" "DeepSpeed.",
    Vllm "vllm" "vLLM.",
    Verl "verl" "verl.",
    Megatron "megatron" "Megatron.",
    Lightning "lightning" "Lightning.",
    // Setup.
    VisionModel "vision-model" "A vision-language model.",
    Images "images" "The data have pictures.",
    FixedPictures "fixed-pictures" "The model brings every picture to one size: its pixels change nothing.",
    Tiles "tiles" "The model cuts a picture into tiles of one size.",
    Video "video" "The data have videos.",
    PixelCap "pixel-cap" "The pixels of a picture are limited.",
    VideoCap "video-cap" "The pixels or frames of a video are limited.",
    Lora "lora" "Adapters are trained.",
    Quantized "quantized" "Weights are quantized.",
    Full "full" "All weights are trained.",
    Frozen "frozen-vision" "The vision tower is frozen.",
    Checkpointing "checkpointing" "Gradient checkpointing is asked for.",
    NoCheckpointing "no-checkpointing" "Gradient checkpointing is switched off.",
    Eager "eager" "Attention makes its matrix.",
    Sdpa "sdpa" "PyTorch's scaled dot-product attention.",
    Flash "flash" "FlashAttention.",
    Fp32 "fp32" "Weights are loaded in fp32.",
    Half "half" "Weights are loaded in 16 bits.",
    Zero1 "zero=1" "DeepSpeed's ZeRO-1.",
    Zero2 "zero=2" "DeepSpeed's ZeRO-2.",
    Zero3 "zero=3" "DeepSpeed's ZeRO-3.",
    Offload "offload" "States or weights lie in the host's memory.",
    Fsdp "fsdp" "FSDP.",
    DataParallel "data-parallel" "nn.DataParallel.",
    DeviceMap "device-map" "The model is spread over the cards by device_map.",
    OneCard "one-card" "One card runs it.",
    ManyCards "many-cards" "Several cards run it.",
    SeveralNodes "several-nodes" "Several machines run it.",
    BatchOne "batch=1" "One sample in a micro-batch.",
    BatchMore "batch>1" "Several samples in a micro-batch.",
    LongLength "long" "Sequences of 8,192 positions or more are allowed.",
    LongSaid "long-said" "Somebody says that samples have 8,000 tokens or more.",
    HasLength "length" "The length is limited.",
    Packing "packing" "Samples are packed.",
    Evaluates "evaluates" "Evaluation runs between steps.",
    Reinforcement "rl" "GRPO, PPO or another training on its own samples.",
    Preference "preference" "DPO or another training on pairs.",
    UsesVllm "uses-vllm" "vLLM generates for the training.",
    Colocated "colocated" "vLLM lives on the cards that train.",
    Sleeps "sleeps" "vLLM sleeps between its turns.",
    VllmApart "vllm-apart" "vLLM generates as a server of its own.",
    Liger "liger" "Liger's kernels.",
    Workers "workers" "Several workers load data.",
    PinnedMemory "pinned" "Pinned memory is in use.",
    Expandable "expandable" "Expandable segments are on.",
    Metrics "metrics" "compute_metrics is given.",
    HasModel "model" "A model is named.",
    HasCommand "command" "A command or a configuration is there.",
    HasFrames "frames" "A traceback is there.",
    // System.
    Wsl "wsl" "Windows' subsystem for Linux.",
    Windows "windows" "Windows.",
    Mac "mac" "macOS.",
    Container "container" "A container.",
    Slurm "slurm" "Slurm.",
    Mig "mig" "A slice of a card (MIG).",
    Notebook "notebook" "A notebook.",
    Rocm "rocm" "AMD's ROCm.",
    Mps "mps" "Apple's MPS.",
    Xpu "xpu" "Intel's XPU.",
    Npu "npu" "Ascend's NPU.",
    Jax "jax" "JAX.",
    MpsRatioZero "mps-ratio-zero" "The MPS ratio is set to 0.",
    SeveralRanks "several-ranks" "Several ranks failed.",
    Reads "reads" "Several readings of memory are there.",
    LoadsInCode "loads-in-code" "Code loads a model.",
    HeadFit "head-fit" "The request has the size of the model's head or embedding.",
    VisionFit "vision-fit" "The request has the size of an attention matrix of the model's vision tower.",
    LoadingBar "loading-bar" "A progress bar of loading weights is there.",
    Loaded "loaded" "Weights were loaded to the end.",
    SetOnLoad "set-on-load" "Somebody says what was set when the model was loaded.",
    EachLoads "each-loads" "Every rank loads the whole model.",
}

impl fmt::Display for Fact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Serialize for Fact {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Fact {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

/// Facts with the lines that show them, the values of settings, and versions.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    of: BTreeMap<Fact, Vec<Place>>,
    versions: BTreeMap<String, (String, Place)>,
    /// Values for the gaps of phrases.
    pub values: BTreeMap<String, String>,
}

/// A line of one of several texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Place {
    /// Index of the text.
    pub text: usize,
    /// Number of the line; 0 for a fact that no single line shows.
    pub line: usize,
}

/// Phases from the most to the least specific: a traceback through several is of the first of them.
const PHASES: [Fact; 15] = [
    Fact::ServerStart,
    Fact::Merge,
    Fact::Save,
    Fact::Resume,
    Fact::FirstStates,
    Fact::Generation,
    Fact::Evaluation,
    Fact::Compile,
    Fact::Prepare,
    Fact::Step,
    Fact::Backward,
    Fact::Loss,
    Fact::Load,
    Fact::Data,
    Fact::Forward,
];

impl Facts {
    /// Adds a fact.
    pub fn add(&mut self, fact: Fact, place: Place) {
        let places = self.of.entry(fact).or_default();
        if places.len() < 4 && !places.contains(&place) {
            places.push(place);
        }
    }

    /// Adds the version of a tool; the first one counts.
    pub fn add_version(&mut self, tool: &str, version: &str, place: Place) {
        self.versions
            .entry(tool.to_owned())
            .or_insert_with(|| (version.to_owned(), place));
    }

    /// Returns true if a fact is known.
    pub fn has(&self, fact: Fact) -> bool {
        self.of.contains_key(&fact)
    }

    /// Lines that show a fact.
    pub fn places(&self, fact: Fact) -> &[Place] {
        self.of.get(&fact).map_or(&[], Vec::as_slice)
    }

    /// Version of a tool.
    pub fn version(&self, tool: &str) -> Option<&str> {
        self.versions.get(tool).map(|(version, _)| version.as_str())
    }

    /// Line that says the version of a tool.
    pub fn version_place(&self, tool: &str) -> Option<Place> {
        self.versions.get(tool).map(|(_, place)| *place)
    }

    /// The phase in which it failed.
    pub fn phase(&self) -> Option<Fact> {
        PHASES.into_iter().find(|phase| self.has(*phase))
    }

    /// Memory of the host is none of the GPU's unless the allocator says so.
    pub fn settle_host(&mut self) {
        if self.has(Fact::HostOom) && !self.has(Fact::HasNumbers) {
            self.of.remove(&Fact::Oom);
        }
    }

    /// Settles what single lines leave open: a bar that stopped is a load that failed, memory of the host is none of the
    /// GPU's unless the allocator says so, and the most specific phase stays alone.
    pub fn settle(&mut self) {
        if self.has(Fact::LoadingBar) && !self.has(Fact::Loaded) && !self.has(Fact::StepsRan) {
            // Evaluation and the like may be what the program is for: it did not get there.
            let before = [Fact::ServerStart, Fact::Merge, Fact::Resume, Fact::Load];
            self.of
                .retain(|fact, _| !PHASES.contains(fact) || before.contains(fact));
            let places = self.of.get(&Fact::LoadingBar).cloned().unwrap_or_default();
            self.of.entry(Fact::Load).or_insert(places);
        }
        if self.has(Fact::SetOnLoad) && !self.has(Fact::LoadingBar) && !self.has(Fact::HasFrames) {
            self.of.remove(&Fact::Load);
        }
        self.settle_host();
        if let Some(phase) = self.phase() {
            self.of.retain(|fact, _| *fact == phase || !PHASES.contains(fact));
        }
    }
}
