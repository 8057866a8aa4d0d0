//! Remarks on the setup of a launch: what is taken for granted, not told, or not simulated.

use std::fmt;

macro_rules! notes {
    ($($variant:ident = $word:literal, $text:literal;)+) => {
        /// Kind of a remark.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Note {
            $(#[doc = $text] $variant,)+
        }

        impl Note {
            /// All kinds.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// Stable word, by which other languages find their texts.
            pub const fn word(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }

            /// Text in English, with `{name}` for a value.
            pub const fn text(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }
        }
    };
}

notes! {
    NoModel = "no_model", "the model: give its name, or --config with its config.json";
    NoLength = "no_length", "the length of samples: give --seq";
    Thinker = "thinker", "the thinker alone, which trains; its talker takes more where it is loaded";
    AllPositions = "all_positions", "no line limits the length of samples: each is as long as the model allows, {seq} positions; give --seq";
    ImageOfItsOwnSize = "image_of_its_own_size", "a sample has one image of the model's own size; give --image-sizes";
    FilledWithImages = "filled_with_images", "each sample is full of images of the largest size, as far as its length has room; give --image-sizes";
    NoTargets = "no_targets", "the modules that get adapters: peft's default for the model is taken as all projections";
    MostPixels = "most_pixels", "the size of images: at most {pixels} pixels each, so --image-sizes {side}x{side} is the largest square";
    NoImageSize = "no_image_size", "the size of images, which no line limits: give --image-sizes";
    MostTokens = "most_tokens", "the size of images: at most {tokens} positions each; give --image-sizes";
    MostVideo = "most_video", "the size of videos, where samples have any: at most {most}";
    EveryLabel = "every_label", "every position has a label: ms-swift makes no logits of those that have none";
    KnownTokens = "known_tokens", "special tokens are of the vocabulary: new ones make the embeddings larger";
    LargerLoss = "larger_loss", "{loss}: a larger step stands in, of supervised fine-tuning on {samples} samples at once, with {mib} MiB beside it for what the loss makes of their logits and for the other models";
    LossWithoutLogits = "loss_without_logits", "{loss}, which makes no logits: a larger step stands in, of supervised fine-tuning on {samples} samples at once";
    NoNegatives = "no_negatives", "a sample has one match and no negatives; each takes as much as a sample (INFONCE_HARD_NEGATIVES)";
    NoVocabulary = "no_vocabulary", "the size of the vocabulary, of which the loss makes tensors of its own";
    OtherModel = "other_model", "{what}, whose size is not known";
    Generation = "generation", "completions that the model generates while it trains, whose keys and values are not known";
    TablesBeside = "tables_beside", "{names}, which train in full beside the adapters: at most {bytes} bytes for each of their parameters are held beside";
    ModulesBeside = "modules_beside", "{names}, which train in full beside the adapters and whose size is not known";
    Vllm = "vllm", "vLLM's own memory: in the training process it takes {share} of the card (vllm_gpu_memory_utilization), which a verdict on a card counts";
    DeviceMap = "device_map", "one process and {gpus} GPUs: the model is split over them, layer by layer (device_map), and each holds at most what one would hold alone; NPROC_PER_NODE={gpus} starts a process on each";
    OneProcess = "one_process", "one process and {gpus} GPUs: the model is copied to each at every step (nn.DataParallel), or split over them (device_map); torchrun --nproc_per_node {gpus} starts a process on each";
    OtherCommands = "other_commands", "of the commands, {command} is the one that trains; the others are passed over: {others}";
    AlikeRuns = "alike_runs", "{count} runs are started that differ in nothing that changes memory; this is one of them";
    Conditional = "conditional", "line {line} starts the run under a condition that is not known here";
    UnsetVariables = "unset_variables", "variables that no line sets are taken as empty: {names}";
    WholeBesideAdapters = "whole_beside_adapters", "{parts}, which train in full beside the adapters";
    OtherTower = "other_tower", "the tower {tower}: no model that is known by name is made of it and this language model; name one before --launch";
    OwnProgram = "own_program", "{script}: a program of its own, whose code decides what its options mean";
    CutOff = "cut_off", "line {line}: {why} ends the command, so that the shell does not pass it {options}";
    LongestSamples = "longest_samples", "every sample is as long as allowed: {seq} positions";
    ImagesOfRows = "images_of_rows", "a row has the images of all samples that are packed into it: give those of a whole row";
    PaddedSamples = "padded_samples", "every sample has {seq} positions, as {tool} makes them";
    Bf16Weights = "bf16_weights", "weights are loaded in bf16, as most checkpoints have them";
    OneGpu = "one_gpu", "one GPU";
    CardWithBf16 = "card_with_bf16", "the card decides what is bf16 or fp16: one that has bf16 is taken; give --gpu";
    CardOfNotebooks = "card_of_notebooks", "the card decides what is bf16 or fp16: a T4 is taken, which hosts of notebooks give where nothing is said and which has fp16 alone; give --gpu";
    Fp32ForFp16 = "fp32_for_fp16", "all in fp32, in which unsloth keeps what overflows in fp16 of this model";
    OneImage = "one_image", "a sample has one image, of the model's own size, which no length limits; give --images";
    NoFlashAttention = "no_flash_attention", "FlashAttention, which is not simulated for this model: PyTorch's own attention keeps as much, and masks beside";
    ComputeIn4Bits = "compute_in_4_bits", "4-bit weights are multiplied in {dtype} beside other compute in {other}, of the same size";
    LossIn4Bits = "loss_in_4_bits", "the trainer of {tool} beside 4-bit weights: transformers' Trainer is simulated, which makes logits of all positions";
    ScalesAreCovered = "scales_are_covered", "4-bit weights without double quantization: their scales take less than what is simulated in fp32 of the others";
    ComputeInFp32 = "compute_in_fp32", "4-bit weights are multiplied in {dtype} beside other compute in {other} (bnb_4bit_compute_dtype)";
    Fp32IsCovered = "fp32_is_covered", "4-bit weights are multiplied in {dtype} beside other compute in {other}: in full they take less than what is simulated in fp32 of the others";
    Fp16UnderBf16 = "fp16_under_bf16", "weights in fp16 under bf16 autocast";
    ScriptDefaults = "script_defaults", "options of the script have their defaults: give the command that starts it too, if it has other ones";
    NoGpus = "no_gpus", "how many GPUs share the run: give --world";
    OpenGpus = "open_gpus", "the number of processes is {given}, which no line tells: give --world";
    GatheredAhead = "gathered_ahead", "FSDP1 gathers each block ahead of backward (BACKWARD_PRE); without, a run takes a block less";
    OwnLoop = "own_loop", "a loop of one's own: tensors that a Trainer keeps are not simulated on several GPUs";
    WrappedClasses = "wrapped_classes", "FSDP wraps {names}; the modules that transformers keeps whole are simulated, in towers too";
    ZeroDefaults = "zero_defaults", "DeepSpeed's buffers have its defaults where no size is given";
    Expandable = "expandable", "the allocator has expandable segments, which keep less than the fixed ones that are simulated";
    LigersModel = "ligers_model", "Liger's kernels of this model, whose own are simulated in their place";
    LigerIgnored = "liger_ignored", "Liger has no kernels for this model, or the tool asks for none: it stays as it is";
    OtherOptimizer = "other_optimizer", "optimizer {name}; take one of {known}, or give --optim";
    OlderAdamw = "older_adamw", "transformers' own AdamW of earlier versions (adamw_hf): PyTorch's stands in, which holds more in an update";
    QloraOfTool = "qlora_of_tool", "QLoRA as {tool} prepares it: it is simulated after peft's prepare_model_for_kbit_training, which casts all weights that are not in 4 bits to fp32";
    SingleQuantization = "single_quantization", "4-bit weights without double quantization";
    TargetsInLanguage = "targets_in_language", "adapters on {names} of the language model alone";
    TargetsNotInConnector = "targets_not_in_connector", "adapters in the vision tower and the language model, but not in the connector";
    TargetsInOnePart = "targets_in_one_part", "adapters in one of vision tower and connector alone";
    QuantizedInFull = "quantized_in_full", "quantized weights without adapters";
    FewBits = "few_bits", "the weights of {model} in few bits: those in 16 bits stand in, which take more than their kernels do";
    FewBitsOpen = "few_bits_open", "the weights of {model} in few bits, whose kernels unpack them";
    EightBits = "eight_bits", "8-bit weights: those in 16 bits stand in, which take more than their kernels and what peft casts to fp32";
    EightBitsOpen = "eight_bits_open", "8-bit weights, whose kernels keep tensors of their own";
    FreezingParts = "freezing_parts", "freezing {parts}";
    Bf16UnderFp16 = "bf16_under_fp16", "weights in bf16 under fp16 autocast";
    DeepspeedWithoutBf16 = "deepspeed_without_bf16", "DeepSpeed without bf16; take bf16: true, in which its engine is simulated";
    AutoSize = "auto_size", "zero_optimization.{key}: auto, which transformers makes of the model's width; give the number";
    OfLine = "of_line", "{given}: {why}";
    AbsentFile = "absent_file", "the settings in {path}; give it too, with --launch {path}";
}

/// A remark, with the names and numbers in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remark {
    /// Its kind.
    pub note: Note,
    /// Values by name.
    pub values: Vec<(&'static str, String)>,
}

impl Note {
    /// Makes a remark of this kind.
    pub fn with<const N: usize>(self, values: [(&'static str, String); N]) -> Remark {
        Remark {
            note: self,
            values: values.into(),
        }
    }
}

impl From<Note> for Remark {
    fn from(note: Note) -> Self {
        note.with([])
    }
}

impl fmt::Display for Remark {
    /// Writes the text in English.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = self.note.text().split(['{', '}']);
        f.write_str(parts.next().unwrap_or_default())?;
        while let (Some(name), Some(text)) = (parts.next(), parts.next()) {
            let value = self.values.iter().find(|(known, _)| *known == name);
            f.write_str(value.map_or(name, |(_, value)| value))?;
            f.write_str(text)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stand_in_their_places_and_are_not_searched() {
        let remark = Note::MostPixels.with([("pixels", "262144".into()), ("side", "{pixels}".into())]);
        assert!(
            remark
                .to_string()
                .contains("at most 262144 pixels each, so --image-sizes {pixels}x{pixels}")
        );
        assert_eq!(Remark::from(Note::OneGpu).to_string(), "one GPU");
    }

    #[test]
    fn words_are_different() {
        let words: std::collections::BTreeSet<_> = Note::ALL.iter().map(|note| note.word()).collect();
        assert_eq!(words.len(), Note::ALL.len());
    }
}
