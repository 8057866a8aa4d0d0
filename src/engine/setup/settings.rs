//! The settings of a run, each declared once. Cases, URLs, flags, controls, single changes, sweeps and exports follow
//! from here; `docs/CONTRIBUTING.md` tells how to add one.

use serde::{Deserialize, Serialize};

use super::declaration::settings;
use super::{
    AdapterType, Alternatives, Attention, Checkpointing, Declaration, Depends, ExpertAdapters, Export, Freeze,
    FrozenType, Generation, Group, KernelPackages, LigerKernels, Loading, Loss, Needs, Optimizer, Packing,
    ParameterNames, PixelValues, Precision, Reference, SavedType, Targets, TrainerKind, Value, ZeroGrad,
};

settings! {
    /// Micro-batch: samples per forward.
    Batch(batch: u64 = 1) {
        about: "Micro-batch: samples per forward",
        group: Group::Batch,
        most: Some(65_536),
        alternatives: Alternatives::HalfAndDouble,
        sweep: Some(4096),
        export: Export::Written,
    }

    /// Text positions per sample, image tokens included; 0 for pure vision models.
    Seq(seq: u64 = 2048) {
        about: "Text positions per sample, image tokens included",
        group: Group::Batch,
        needs: Needs::Text,
        most: Some(4_194_304),
        step: 256,
        alternatives: Alternatives::Half,
        sweep: Some(1 << 20),
        export: Export::Written,
    }

    /// Text positions of each sample of a micro-batch, if they differ; `batch` and `seq` then follow from them.
    Lengths(lengths: Vec<u64> = Vec::new()) {
        about: "Text positions of each sample where they differ, such as 512,2048,300; batch and seq follow",
        example: "512, 2048, 300",
        group: Group::Lengths,
        needs: Needs::Text,
        export: Export::OfSamples,
    }

    /// Layout of samples of different lengths.
    Packing(packing: Packing = Packing::default()) {
        about: "How samples of different lengths are put together",
        group: Group::Lengths,
        needs: Needs::Text,
        depends: Depends::Lengths,
        alternatives: Alternatives::Each,
        export: Export::OfSamples,
    }

    /// Positions of which a padded row has a whole multiple (`pad_to_multiple_of` of transformers' collators).
    PadToMultipleOf(pad_to_multiple_of: u64 = 1) {
        about: "Rows are padded to a whole multiple of this many positions (pad_to_multiple_of of a collator)",
        group: Group::Lengths,
        needs: Needs::Text,
        most: Some(65_536),
        export: Export::OfSamples,
    }

    /// Images per sample.
    Images(images: u64 = 1) {
        about: "Images per sample",
        group: Group::Images,
        needs: Needs::ImageCount,
        most: Some(4_096),
        start: 0,
        sweep: Some(512),
        export: Export::OfSamples,
    }

    /// Pixels a side; the model's own size if absent.
    Image(image: Option<u64> = None) {
        about: "Pixels a side of an image or frame",
        absent: "the model's own",
        value_name: "PIXELS",
        example: "auto",
        group: Group::Images,
        needs: Needs::ImageSize,
        step: 14,
        start: 14,
        sweep: Some(4096),
        alternatives: Alternatives::Half,
        export: Export::OfSamples,
    }

    /// Patch grid `[height, width]` before the 2×2 merge, for Qwen-VL models.
    Grid(grid: Option<[u64; 2]> = None) {
        about: "Patches of an image before the 2x2 merge (Qwen-VL), such as 24x32",
        absent: "the model's own",
        example: "24x24",
        group: Group::Grid,
        needs: Needs::Grid,
        export: Export::OfSamples,
    }

    /// Pixels `[height, width]` of each image of a sample, if they differ; `images`, `image` and `grid` then follow
    /// from them.
    ImageSizes(image_sizes: Vec<[u64; 2]> = Vec::new()) {
        about: "Pixels of each image of a sample, height by width, such as 720x1280 or 480x640,300x200; images, image \
                and grid follow",
        example: "720x1280",
        group: Group::ImageSizes,
        needs: Needs::Parts,
        alternatives: Alternatives::Half,
        export: Export::OfSamples,
    }

    /// Images of each sample, if they differ in number or size; `image_sizes` then lists those of all samples, one sample
    /// after the other.
    ImageCounts(image_counts: Vec<u64> = Vec::new()) {
        about: "Images of each sample where samples differ, such as 1,2; image_sizes then lists those of all samples in turn",
        example: "1, 2",
        group: Group::ImageSizes,
        needs: Needs::ImageCount,
        export: Export::OfSamples,
    }

    /// Pixel values as they come to the GPU.
    Pixels(pixels: PixelValues = PixelValues::default()) {
        about: "Pixel values of a trainer's batch: cast to the weights' type, or as the processor makes them, in fp32",
        needs: Needs::Parts,
        is_of_training: true,
        export: Export::OfSamples,
    }

    /// Frames per video, for video models.
    Frames(frames: Option<u64> = None) {
        about: "Frames per video (video models)",
        absent: "the model's own",
        example: "auto",
        group: Group::Images,
        needs: Needs::Frames,
        most: Some(4_096),
        step: 2,
        start: 2,
        sweep: Some(512),
        alternatives: Alternatives::Half,
        export: Export::OfSamples,
    }

    /// Number format.
    Precision(precision: Precision = Precision::default()) {
        about: "Number format of weights and compute",
        group: Group::Precision,
        alternatives: Alternatives::Each,
        export: Export::Written,
    }

    /// Optimizer.
    Optim(optim: Optimizer = Optimizer::default()) {
        about: "Optimizer and the form of its step",
        group: Group::Optimizer,
        is_of_training: true,
        alternatives: Alternatives::Each,
        export: Export::Written,
    }

    /// Activation checkpointing.
    Ckpt(ckpt: Checkpointing = Checkpointing::default()) {
        about: "Activation (gradient) checkpointing: of all blocks or one part's",
        group: Group::Step,
        is_of_training: true,
        alternatives: Alternatives::Each,
        export: Export::Written,
    }

    /// Reentrant checkpoints.
    Reentrant(reentrant: bool = false) {
        about: "Reentrant checkpoints (use_reentrant=True): a block keeps its input alone, and backward goes through it within \
                one node",
        group: Group::Finer,
        depends: Depends::Checkpoints,
        is_of_training: true,
        alternatives: Alternatives::Each,
        export: Export::Written,
    }

    /// Attention implementation.
    Attn(attn: Attention = Attention::default()) {
        about: "Attention implementation",
        group: Group::Step,
        alternatives: Alternatives::Each,
        export: Export::Written,
    }

    /// Packages whose kernels replace parts of a forward.
    Packages(packages: KernelPackages = KernelPackages::default()) {
        about: "Installed packages whose kernels replace parts of a forward",
    }

    /// How weights come to the GPU.
    Loading(loading: Loading = Loading::default()) {
        about: "How weights come to the GPU: loaded onto it from files, or made there or moved one by one",
        needs: Needs::Text,
        is_of_training: true,
    }

    /// Parameters that are frozen.
    Freeze(freeze: Freeze = Freeze::default()) {
        about: "Which part is frozen, or adapters: `lora`, `qlora` on 4-bit weights",
        group: Group::Parameters,
        is_of_training: true,
        alternatives: Alternatives::Each,
        export: Export::Written,
    }

    /// Parameters that are frozen beside those of `freeze`, by their names.
    FrozenNames(frozen_names: ParameterNames = ParameterNames::default()) {
        about: "Parameters frozen beside those of freeze: regular expressions of their names with spaces between them",
        absent: "none",
        value_name: "PATTERNS",
        example: "embed_tokens",
        group: Group::Finer,
        needs: Needs::Text,
        is_of_training: true,
        export: Export::OfSamples,
    }

    /// Parameters that are trained in spite of `freeze` and `frozen_names`, by their names.
    TrainedNames(trained_names: ParameterNames = ParameterNames::default()) {
        about: "Parameters trained in spite of freeze and frozen_names: regular expressions with spaces between them",
        absent: "none",
        value_name: "PATTERNS",
        example: "lm_head",
        group: Group::Finer,
        needs: Needs::Text,
        is_of_training: true,
        export: Export::OfSamples,
    }

    /// Type of frozen weights.
    FrozenWeights(frozen_weights: FrozenType = FrozenType::default()) {
        about: "Type of frozen weights beside trained ones in fp32: the same, or autocast's, as tools keep them",
        group: Group::Finer,
        depends: Depends::FrozenUnderAutocast,
        is_of_training: true,
        alternatives: Alternatives::Each,
    }

    /// LoRA rank.
    Rank(rank: u64 = 16) {
        about: "LoRA rank",
        group: Group::Adapters,
        depends: Depends::Adapters,
        is_of_training: true,
        most: Some(8_192),
        step: 8,
        sweep: Some(8_192),
        alternatives: Alternatives::HalfAndDouble,
        export: Export::Written,
    }

    /// LoRA dropout probability.
    LoraDropout(lora_dropout: f64 = 0.0) {
        about: "LoRA dropout probability",
        group: Group::Adapters,
        depends: Depends::Adapters,
        is_of_training: true,
        export: Export::Written,
    }

    /// DoRA: the length of each of a weight's rows is trained apart from its direction.
    Dora(dora: bool = false) {
        about: "DoRA (use_dora): adapters of a weight's direction, and the length of each of its rows trained beside them",
        group: Group::Finer,
        depends: Depends::Adapters,
        is_of_training: true,
        alternatives: Alternatives::Each,
        export: Export::Written,
    }

    /// Projections that get low-rank adapters.
    LoraTargets(lora_targets: Targets = Targets::default()) {
        about: "Where adapters go: projections, attention, language-model, all-linear, or names such as q_proj,v_proj",
        group: Group::Adapters,
        depends: Depends::Adapters,
        is_of_training: true,
        alternatives: Alternatives::Each,
        export: Export::Written,
    }

    /// Adapters on the fused weights of experts.
    LoraExperts(lora_experts: ExpertAdapters = ExpertAdapters::default()) {
        about: "Adapters on experts: what peft makes of lora_targets, or all fused weights (target_parameters)",
        group: Group::Finer,
        depends: Depends::Adapters,
        is_of_training: true,
    }

    /// Type of the adapters' weights.
    LoraDtype(lora_dtype: AdapterType = AdapterType::default()) {
        about: "Type of the adapters' weights",
        group: Group::Adapters,
        depends: Depends::Adapters,
        is_of_training: true,
        alternatives: Alternatives::Each,
    }

    /// Modules that are trained in full beside adapters, as copies (`modules_to_save`).
    SavedModules(saved_modules: ParameterNames = ParameterNames::default()) {
        about: "Modules trained in full beside adapters (modules_to_save): their names, or the ends of them, with spaces between them",
        absent: "none",
        value_name: "NAMES",
        example: "embed_tokens lm_head",
        group: Group::Finer,
        depends: Depends::Adapters,
        needs: Needs::Text,
        is_of_training: true,
        export: Export::Written,
    }

    /// Type of the weights of those modules.
    SavedDtype(saved_dtype: SavedType = SavedType::default()) {
        about: "Type of the weights of saved_modules: that of the weights they copy, or fp32",
        group: Group::Finer,
        depends: Depends::Adapters,
        is_of_training: true,
    }

    /// Micro-batches per optimizer step.
    Accum(accum: u64 = 1) {
        about: "Micro-batches per optimizer step",
        group: Group::Step,
        is_of_training: true,
        most: Some(64),
        alternatives: Alternatives::HalfAndDouble,
        export: Export::Written,
    }

    /// Inputs that the other micro-batches of a step hold on the GPU, in MiB, where they are not as large as this one.
    Fetched(fetched: Option<u64> = None) {
        about: "MiB of inputs of the step's other micro-batches, which Trainer fetches with this one",
        absent: "as many as they are of this one",
        value_name: "MIB",
        example: "auto",
        is_of_training: true,
        most: Some(16_777_216),
        start: 0,
        step: 64,
        export: Export::OfSamples,
    }

    /// Gradient clipping at norm 1.
    Clip(clip: bool = false) {
        about: "Clip gradients at norm 1",
        group: Group::Step,
        is_of_training: true,
        alternatives: Alternatives::Each,
        export: Export::Written,
    }

    /// State of the gradients after `zero_grad`.
    ZeroGrad(zero_grad: ZeroGrad = ZeroGrad::default()) {
        about: "What zero_grad leaves of gradients",
        is_of_training: true,
        alternatives: Alternatives::Each,
    }

    /// Keeps autocast's low-precision copies of weights until forward ends.
    AutocastCache(autocast_cache: bool = true) {
        about: "Autocast keeps its low-precision copies of weights during forward",
        depends: Depends::Autocast,
        is_of_training: true,
        alternatives: Alternatives::Each,
    }

    /// Keeps an exponential moving average of all weights (`torch.optim.swa_utils.AveragedModel` with
    /// `get_ema_multi_avg_fn`).
    Ema(ema: bool = false) {
        about: "Keep an exponential moving average of all weights",
        is_of_training: true,
        alternatives: Alternatives::Each,
    }

    /// Computation of a language model's loss.
    Loss(loss: Loss = Loss::default()) {
        about: "All logits, or Liger's fused linear cross-entropy",
        group: Group::Loss,
        needs: Needs::Text,
        is_of_training: true,
        alternatives: Alternatives::Each,
        export: Export::Written,
    }

    /// NEFTune: noise on the embeddings of tokens.
    Neftune(neftune: bool = false) {
        about: "NEFTune (neftune_noise_alpha of Trainer): noise is added to the embeddings of tokens",
        group: Group::Finer,
        needs: Needs::Text,
        depends: Depends::Trainer,
        is_of_training: true,
        export: Export::Written,
    }

    /// Kernels of Liger beside its loss.
    Liger(liger: LigerKernels = LigerKernels::default()) {
        about: "Kernels of Liger 0.8 beside its loss, in the model that Trainer was given, or before the model is made",
        group: Group::Loss,
        needs: Needs::Text,
        is_of_training: true,
    }

    /// Program that runs the training steps.
    Trainer(trainer: TrainerKind = TrainerKind::default()) {
        about: "Program that runs the steps: a loop of one's own, transformers' Trainer, or a trainer of TRL or ms-swift",
        group: Group::Step,
        is_of_training: true,
        alternatives: Alternatives::Each,
    }

    /// Positions of each sample, from its end, that have labels, where the trainer leaves out the others (TRL, ms-swift); all
    /// but the first if absent, under ms-swift all of text.
    Completion(completion: Option<u64> = None) {
        about: "Positions at the end of each sample that have labels, under TRL and ms-swift: the completion, or an \
                assistant's turns",
        absent: "all but the first",
        example: "auto",
        group: Group::Loss,
        needs: Needs::Text,
        depends: Depends::CountedLabels,
        is_of_training: true,
        most: Some(4_194_304),
        step: 256,
        export: Export::OfSamples,
    }

    /// Positions of each sample, from its end, that have labels, if they differ; those of `completion` are the same for all.
    Labels(labels: Vec<u64> = Vec::new()) {
        about: "Positions at the end of each sample that have labels where they differ, such as 149,348, under TRL and ms-swift",
        example: "149, 348",
        group: Group::Loss,
        needs: Needs::Text,
        depends: Depends::CountedLabels,
        is_of_training: true,
        export: Export::OfSamples,
    }

    /// Log-probabilities of the reference model.
    Reference(reference: Reference = Reference::default()) {
        about: "When the reference model's log-probabilities are made: in every step, before training (DPO), or never \
                (GRPO with beta 0)",
        group: Group::Loss,
        needs: Needs::Text,
        depends: Depends::Reference,
        is_of_training: true,
        alternatives: Alternatives::Each,
    }

    /// Program that generates GRPO's completions.
    Generation(generation: Generation = Generation::default()) {
        about: "What generates GRPO's completions: transformers, or vLLM, whose own memory is not counted",
        group: Group::Loss,
        needs: Needs::Text,
        depends: Depends::Generation,
        is_of_training: true,
    }

    /// Micro-batches that one generation of GRPO makes completions for; as many as those of an optimizer step if absent.
    StepsPerGeneration(steps_per_generation: Option<u64> = None) {
        about: "Micro-batches that one generation of GRPO makes completions for",
        absent: "as many as accum",
        example: "auto",
        group: Group::Loss,
        needs: Needs::Text,
        depends: Depends::Generation,
        is_of_training: true,
        most: Some(4_096),
    }

    /// Times that GRPO trains on the completions of one generation.
    NumIterations(num_iterations: u64 = 1) {
        about: "Times that GRPO trains on the completions of one generation",
        group: Group::Loss,
        needs: Needs::Text,
        depends: Depends::Generation,
        is_of_training: true,
        most: Some(4_096),
    }

    /// Keeps keys and values of every forward of the language model (`config.use_cache`); the configuration's own value
    /// if absent.
    UseCache(use_cache: Option<bool> = None) {
        about: "The language model keeps keys and values of every forward, in training too",
        absent: "as its config.json says",
        group: Group::Loss,
        needs: Needs::Text,
        is_of_training: true,
    }

    /// Tensors of other models that stay on the same GPU all along, in MiB: a reference or reward model, a teacher, or what
    /// a tool trains beside.
    Beside(beside: u64 = 0) {
        about: "MiB of other tensors that stay on the same GPU all along: of a reference or reward model, or a teacher",
        value_name: "MIB",
        is_of_training: true,
        most: Some(16_777_216),
        start: 0,
        step: 256,
    }

    /// `torch.compile` of the model. What a compiled step allocates is not simulated: figures stay those of eager mode,
    /// beside the range in which measured compiled steps lay.
    Compile(compile: bool = false) {
        about: "The model runs under torch.compile: figures are eager's, beside the range of measured compiled steps",
        is_of_training: true,
    }
}

#[cfg(test)]
mod tests;
