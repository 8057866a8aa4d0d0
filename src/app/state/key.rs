//! Keys of everything that a URL can hold.

use serde::{Deserialize, Serialize};

use super::{Form, Widget};

/// All entries that a URL can hold, under the names used in case files and on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Key {
    /// Catalogue name of the model.
    Model,
    /// A pasted `config.json`; replaces [`Key::Model`].
    Config,
    /// A recording: a name of the gallery, or a file beside the page.
    Recording,
    /// Sizes of a recording that covers several, by name.
    Sizes,
    /// The segments of the allocator under a recording.
    ExpandableSegments,
    /// The card.
    Gpu,
    /// Limit of the bytes that the allocator may reserve.
    LimitGib,
    /// Task: training, evaluation or generation.
    Phase,
    /// Tokens to generate.
    NewTokens,
    /// Micro-batch.
    Batch,
    /// Positions per sample.
    Seq,
    /// Positions of each sample, if they differ.
    Lengths,
    /// Padding or packing of samples with different lengths.
    Packing,
    /// Images per sample.
    Images,
    /// Image size in pixels per side.
    Image,
    /// Patch grid, height by width.
    Grid,
    /// Pixels of each image of a sample, if they differ.
    ImageSizes,
    /// Frames per video.
    Frames,
    /// Number format.
    Precision,
    /// Optimizer.
    Optim,
    /// Activation checkpointing.
    Ckpt,
    /// Attention implementation.
    Attn,
    /// Frozen parts of the model.
    Freeze,
    /// LoRA rank.
    Rank,
    /// LoRA dropout.
    LoraDropout,
    /// Modules that get LoRA adapters.
    LoraTargets,
    /// Data type of the adapters.
    LoraDtype,
    /// Micro-batches per optimizer step.
    Accum,
    /// Gradient clipping.
    Clip,
    /// Mode of `zero_grad`: `to_none` or `to_zero`.
    ZeroGrad,
    /// Autocast's weight cache.
    AutocastCache,
    /// Exponential moving average of the weights.
    Ema,
    /// Loss implementation.
    Loss,
    /// Keeps the keys and values of a forward pass (`use_cache`).
    UseCache,
    /// Data pipeline, stage by stage.
    Data,
    /// Samples of the whole run.
    Samples,
    /// Price of a GPU per hour.
    PricePerHour,
    /// Maximum power draw of a card in watts.
    Watts,
    /// Target samples per optimizer step, over all GPUs of a plan.
    Effective,
    /// Number of GPUs of a plan.
    Gpus,
    /// Percentage of the memory that a plan leaves free.
    Margin,
    /// Entries that a plan may change.
    Open,
    /// Setups compared side by side with the current one.
    Compare,
    /// Query heads of the attention page.
    Heads,
    /// Key and value heads.
    KvHeads,
    /// Elements of one head.
    HeadDim,
    /// Data type of queries, keys and values.
    Dtype,
    /// Causal masking.
    Causal,
    /// Sliding window.
    Window,
    /// Percent of the keys that top-k keeps.
    Topk,
    /// Queries per chunk of chunked attention.
    Chunk,
    /// Passes included: training or forward only.
    Pass,
    /// Longest sequence of the attention curves.
    Longest,
    /// Sequence length used in the formulas.
    At,
    /// Attention algorithms shown.
    Algorithms,
    /// Logarithmic horizontal axis.
    LogX,
    /// Logarithmic vertical axis.
    LogY,
    /// The entry that is swept.
    Sweep,
    /// Cards that a sweep is compared with.
    Cards,
    /// Ids of the benchmark records shown.
    Records,
    /// Row of the course.
    Row,
    /// One block of that row.
    Figure,
    /// Answers entered in the fields of that row.
    Given,
    /// Seed for the exercises' numbers.
    Seed,
    /// Large type for presentations.
    Present,
    /// Language of the page.
    Lang,
    /// Light or dark.
    Theme,
    /// Marks a page that runs inside a frame of another page.
    Embed,
    /// Widget shown in that frame.
    Widget,
    /// Id by which the embedding page identifies the frame.
    Id,
}

impl Key {
    /// All keys, in the order in which a URL lists them.
    pub const ALL: [Self; 70] = [
        Self::Model,
        Self::Config,
        Self::Recording,
        Self::Sizes,
        Self::ExpandableSegments,
        Self::Gpu,
        Self::LimitGib,
        Self::Phase,
        Self::NewTokens,
        Self::Batch,
        Self::Seq,
        Self::Lengths,
        Self::Packing,
        Self::Images,
        Self::Image,
        Self::Grid,
        Self::ImageSizes,
        Self::Frames,
        Self::Precision,
        Self::Optim,
        Self::Ckpt,
        Self::Attn,
        Self::Freeze,
        Self::Rank,
        Self::LoraDropout,
        Self::LoraTargets,
        Self::LoraDtype,
        Self::Accum,
        Self::Clip,
        Self::ZeroGrad,
        Self::AutocastCache,
        Self::Ema,
        Self::Loss,
        Self::UseCache,
        Self::Data,
        Self::Samples,
        Self::PricePerHour,
        Self::Watts,
        Self::Effective,
        Self::Gpus,
        Self::Margin,
        Self::Open,
        Self::Compare,
        Self::Heads,
        Self::KvHeads,
        Self::HeadDim,
        Self::Dtype,
        Self::Causal,
        Self::Window,
        Self::Topk,
        Self::Chunk,
        Self::Pass,
        Self::Longest,
        Self::At,
        Self::Algorithms,
        Self::LogX,
        Self::LogY,
        Self::Sweep,
        Self::Cards,
        Self::Records,
        Self::Row,
        Self::Figure,
        Self::Given,
        Self::Seed,
        Self::Present,
        Self::Lang,
        Self::Theme,
        Self::Embed,
        Self::Widget,
        Self::Id,
    ];

    /// Keys of an embedded page, which are also accepted in the query before the `#`.
    pub const OF_FRAME: [Self; 3] = [Self::Embed, Self::Widget, Self::Id];

    /// Name in the URL.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Config => "config",
            Self::Recording => "recording",
            Self::Sizes => "sizes",
            Self::ExpandableSegments => "expandable_segments",
            Self::Gpu => "gpu",
            Self::LimitGib => "limit_gib",
            Self::Phase => "phase",
            Self::NewTokens => "new_tokens",
            Self::Batch => "batch",
            Self::Seq => "seq",
            Self::Lengths => "lengths",
            Self::Packing => "packing",
            Self::Images => "images",
            Self::Image => "image",
            Self::Grid => "grid",
            Self::ImageSizes => "image_sizes",
            Self::Frames => "frames",
            Self::Precision => "precision",
            Self::Optim => "optim",
            Self::Ckpt => "ckpt",
            Self::Attn => "attn",
            Self::Freeze => "freeze",
            Self::Rank => "rank",
            Self::LoraDropout => "lora_dropout",
            Self::LoraTargets => "lora_targets",
            Self::LoraDtype => "lora_dtype",
            Self::Accum => "accum",
            Self::Clip => "clip",
            Self::ZeroGrad => "zero_grad",
            Self::AutocastCache => "autocast_cache",
            Self::Ema => "ema",
            Self::Loss => "loss",
            Self::UseCache => "use_cache",
            Self::Data => "data",
            Self::Samples => "samples",
            Self::PricePerHour => "price_per_hour",
            Self::Watts => "watts",
            Self::Effective => "effective",
            Self::Gpus => "gpus",
            Self::Margin => "margin",
            Self::Open => "open",
            Self::Compare => "compare",
            Self::Heads => "heads",
            Self::KvHeads => "kv_heads",
            Self::HeadDim => "head_dim",
            Self::Dtype => "dtype",
            Self::Causal => "causal",
            Self::Window => "window",
            Self::Topk => "topk",
            Self::Chunk => "chunk",
            Self::Pass => "pass",
            Self::Longest => "longest",
            Self::At => "at",
            Self::Algorithms => "algorithms",
            Self::LogX => "log_x",
            Self::LogY => "log_y",
            Self::Sweep => "sweep",
            Self::Cards => "cards",
            Self::Records => "records",
            Self::Row => "row",
            Self::Figure => "figure",
            Self::Given => "given",
            Self::Seed => "seed",
            Self::Present => "present",
            Self::Lang => "lang",
            Self::Theme => "theme",
            Self::Embed => "embed",
            Self::Widget => "widget",
            Self::Id => "id",
        }
    }

    /// Finds a key by its name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|k| k.name() == name)
    }

    /// Format of the key's text.
    pub const fn form(self) -> Form {
        match self {
            Self::Model
            | Self::Config
            | Self::Recording
            | Self::Gpu
            | Self::Id
            | Self::Data
            | Self::Margin
            | Self::Open => Form::Text,
            Self::Samples | Self::Effective => Form::OptionalCount,
            Self::PricePerHour | Self::Watts => Form::Amount,
            Self::Gpus => Form::Count,
            Self::Batch | Self::Seq | Self::Images | Self::Rank | Self::Accum | Self::NewTokens => Form::Count,
            Self::LimitGib => Form::Gib,
            Self::Sizes => Form::NamedCounts,
            Self::ExpandableSegments => Form::Choice(&["recorded", "true", "false"]),
            Self::Lengths => Form::Lengths,
            Self::Packing => Form::Choice(&["padded", "packed"]),
            Self::Phase => Form::Choice(&["train", "evaluate", "generate"]),
            Self::Image | Self::Frames => Form::OptionalCount,
            Self::Grid => Form::Grid,
            Self::ImageSizes => Form::Sizes,
            Self::UseCache => Form::ModelSwitch,
            Self::LoraDropout => Form::Probability,
            Self::LoraTargets => Form::Targets,
            Self::LoraDtype => Form::Choice(&["fp32", "bf16"]),
            Self::ZeroGrad => Form::Choice(&["to_none", "to_zero"]),
            Self::Loss => Form::Choice(&["full", "fused_linear"]),
            Self::Clip | Self::AutocastCache | Self::Ema => Form::Switch,
            Self::Precision => Form::Choice(&["fp32", "bf16", "amp-bf16", "amp-fp16"]),
            Self::Optim => Form::Choice(&[
                "adamw",
                "adamw_fused",
                "adamw_loop",
                "sgd",
                "sgdm",
                "adafactor",
                "adafactor_torch",
                "adamw_8bit",
                "paged_adamw_8bit",
                "paged_adamw",
            ]),
            Self::Ckpt => Form::Choice(&["none", "full", "vision", "language"]),
            Self::Attn => Form::Choice(&["sdpa", "eager", "flash_attention_2"]),
            Self::Freeze => Form::Choice(&["none", "vision", "all-but-connector", "lora", "qlora"]),
            Self::Compare => Form::Setups,
            Self::Heads => Form::OptionalCount,
            Self::KvHeads => Form::OptionalCount,
            Self::HeadDim => Form::OptionalCount,
            Self::Dtype => Form::Choice(&["model", "bf16", "fp16", "fp32"]),
            Self::Causal => Form::Choice(&["model", "true", "false"]),
            Self::Window => Form::Count,
            Self::Topk => Form::Count,
            Self::Chunk => Form::Count,
            Self::Pass => Form::Choice(&["training", "forward"]),
            Self::Longest => Form::Count,
            Self::At => Form::Count,
            Self::Algorithms => Form::Text,
            Self::LogX => Form::Switch,
            Self::LogY => Form::Switch,
            Self::Sweep => Form::Choice(&["batch", "seq", "image", "images", "frames"]),
            Self::Cards | Self::Records | Self::Row | Self::Figure | Self::Given => Form::Text,
            Self::Seed => Form::OptionalCount,
            Self::Present => Form::Choice(&["1"]),
            Self::Lang => Form::Choice(&["en", "zh-CN", "zh-TW"]),
            Self::Theme => Form::Choice(&["light", "dark"]),
            Self::Embed => Form::Choice(&["1"]),
            Self::Widget => Form::Choice(&Widget::NAMES),
        }
    }

    /// Returns true if the value is part of the training setup, under the same name in a case file.
    pub const fn in_setup(self) -> bool {
        !matches!(
            self,
            Self::Model
                | Self::Config
                | Self::Recording
                | Self::Sizes
                | Self::ExpandableSegments
                | Self::Gpu
                | Self::LimitGib
                | Self::Phase
                | Self::NewTokens
                | Self::Compare
                | Self::Records
                | Self::Row
                | Self::Figure
                | Self::Given
                | Self::Seed
                | Self::Present
                | Self::Lang
                | Self::Theme
                | Self::Embed
                | Self::Widget
                | Self::Id
        ) && !self.of_charts()
            && !self.of_time()
            && !self.of_plan()
    }

    /// Returns true if the value affects only the time or price of a run, never its memory.
    pub const fn of_time(self) -> bool {
        matches!(self, Self::Data | Self::Samples | Self::PricePerHour | Self::Watts)
    }

    /// Returns true if the value states the goal of a plan.
    pub const fn of_plan(self) -> bool {
        matches!(self, Self::Effective | Self::Gpus | Self::Margin | Self::Open)
    }

    /// Returns true if the value selects what charts show rather than what runs.
    pub const fn of_charts(self) -> bool {
        matches!(
            self,
            Self::Heads
                | Self::KvHeads
                | Self::HeadDim
                | Self::Dtype
                | Self::Causal
                | Self::Window
                | Self::Topk
                | Self::Chunk
                | Self::Pass
                | Self::Longest
                | Self::At
                | Self::Algorithms
                | Self::LogX
                | Self::LogY
                | Self::Sweep
                | Self::Cards
        )
    }

    /// Returns true if the value affects a run or its fit: setup, model, card or task.
    pub const fn decides_run(self) -> bool {
        self.in_setup()
            || matches!(
                self,
                Self::Model | Self::Config | Self::Gpu | Self::LimitGib | Self::Phase | Self::NewTokens
            )
    }

    /// Returns true if the value affects the memory of a recorded step or its fit, besides the recording itself.
    pub const fn decides_recorded(self) -> bool {
        matches!(
            self,
            Self::Sizes | Self::ExpandableSegments | Self::Gpu | Self::LimitGib
        )
    }

    /// Text that applies if nothing is entered.
    pub const fn default_text(self) -> &'static str {
        match self {
            Self::Model => "llava-1.5-7b",
            Self::Gpu => "H100 SXM",
            Self::Recording | Self::Sizes => "",
            Self::ExpandableSegments => "recorded",
            Self::Batch | Self::Images | Self::Accum | Self::Gpus => "1",
            Self::Margin => "5",
            Self::Effective | Self::Open => "",
            Self::Seq => "2048",
            Self::Phase => "train",
            Self::NewTokens => "128",
            Self::Packing => "padded",
            Self::Precision => "bf16",
            Self::Optim => "adamw",
            Self::Ckpt | Self::Freeze => "none",
            Self::Attn => "sdpa",
            Self::Rank => "16",
            Self::LoraDropout => "0",
            Self::LoraTargets => "projections",
            Self::LoraDtype => "fp32",
            Self::ZeroGrad => "to_none",
            Self::AutocastCache => "true",
            Self::Loss => "full",
            Self::Clip | Self::Ema => "false",
            Self::Dtype | Self::Causal | Self::UseCache => "model",
            Self::Window => "512",
            Self::Topk => "10",
            Self::Chunk => "64",
            Self::Pass => "training",
            Self::Longest => "16384",
            Self::At => "2048",
            Self::Algorithms => "standard,flash,sliding,topk,chunked",
            Self::LogX | Self::LogY => "true",
            Self::Sweep => "batch",
            Self::Heads | Self::KvHeads | Self::HeadDim | Self::Cards => "",
            Self::Compare | Self::Embed | Self::Widget | Self::Id => "",
            Self::Data | Self::Samples | Self::PricePerHour | Self::Watts => "",
            Self::Records | Self::Row | Self::Figure | Self::Given | Self::Seed | Self::Present => "",
            Self::LimitGib
            | Self::Config
            | Self::Lengths
            | Self::Image
            | Self::Grid
            | Self::ImageSizes
            | Self::Frames => "",
            Self::Lang | Self::Theme => "",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_found_by_its_name() {
        for key in Key::ALL {
            assert_eq!(Key::named(key.name()), Some(key));
        }
    }

    #[test]
    fn every_default_has_its_form() {
        for key in Key::ALL {
            assert!(key.form().read(key.default_text()).is_ok(), "{key:?}");
        }
    }
}
