//! Errors that a run itself would raise, other than running out of memory.

use serde::{Deserialize, Serialize};

use crate::dtype::DType;

/// An error that the run itself would raise, other than running out of memory: the failure and the next step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Failure {
    /// The loss depends on no trained parameter.
    #[error("nothing that is trained leads to the loss: it has no gradient")]
    NoGradient,
    /// No linear layer has a name that the adapters target.
    #[error(
        "`lora_targets` is {targets}, but no linear layer of {model} has such a name; use projections or all-linear"
    )]
    NoTargets {
        /// Targets asked for.
        targets: String,
        /// The model's name.
        model: String,
    },
    /// An adapter of a router whose forward is not simulated with one.
    #[error(
        "peft makes adapters for the router of {model} too, which is not simulated with these `lora_targets`; use \
         projections or attention"
    )]
    AdaptedRouter {
        /// The model's name.
        model: String,
    },
    /// The package causal-conv1d refuses a convolution.
    #[error(
        "causal-conv1d takes channels in multiples of 8, kernels of 2 to 4 and SiLU alone; this model has {channels} \
         channels and kernels of {kernel}, or another activation: set `packages` to none"
    )]
    CausalConv1d {
        /// Channels of the convolution.
        channels: u64,
        /// Positions that its kernel spans.
        kernel: u64,
    },
    /// The model multiplies with a map's weight itself, which is none that can be multiplied.
    #[error(
        "this model multiplies with the weight of a map itself, which fails if it is in 4 bits, and is not simulated with an \
         adapter of a parameter: take `freeze` lora, and `lora_targets` that name maps"
    )]
    WeightRead,
    /// A module that peft cannot copy and train beside adapters, or whose copy fails.
    #[error(
        "`saved_modules`: a copy of {module} does not train, for it stops with \"{error}\"; leave it out, or set `saved_dtype` to as_weights"
    )]
    NotSaved {
        /// Path of the module.
        module: String,
        /// The library's error.
        error: String,
    },
    /// The head is none that TRL replaces, or its replacement is not simulated.
    #[error(
        "TRL's head, which makes no logits (`add_fused_lm_head`), is not simulated for this model; take `trainer` transformers"
    )]
    HeadNotReplaced,
    /// FlashAttention has no kernel for fp32.
    #[error("FlashAttention runs in fp16 and bf16 only; choose another precision, or `sdpa` attention")]
    FlashInFp32,
    /// A module puts rows of one type into a tensor of another.
    #[error(
        "{module} does not train under autocast: transformers 5.17 puts rows in {} into a tensor in {}, which PyTorch refuses \
         (\"Index put requires the source and destination dtypes match\"); take precision bf16 or fp32",
        .rows.name(),
        .tensor.name()
    )]
    PutUnderAutocast {
        /// Name of the module.
        module: String,
        /// Type of the rows.
        rows: DType,
        /// Type of the tensor.
        tensor: DType,
    },
    /// LLaVA-NeXT cannot arrange the class token of a CLIP tower in a grid.
    #[error(
        "LLaVA-NeXT does not run with `vision_feature_select_strategy` \"full\" and a CLIP tower: \
         `pack_image_features` cannot lay the class token out in a grid; take \"default\""
    )]
    LlavaNextFull,
    /// Aria has queries for images of other numbers of patches alone.
    #[error(
        "Aria does not run with images of {patches} patches, for which `projector_patch_to_query_dict` has no queries \
         (transformers 5.17 raises a KeyError); set `images` to 0, or correct `image_size` and `patch_size`"
    )]
    NoQueries {
        /// Patches of an image.
        patches: u64,
    },
    /// A token that is looked up has no row in the embedding.
    #[error(
        "the configuration does not run: `image_token_id` is {token}, of which the embedding of {rows} tokens has no row; \
         transformers 5.17 looks it up and stops with \"index out of range in self\", on a GPU with \"device-side assert \
         triggered\"; correct it, or `text_config.vocab_size`"
    )]
    NoRow {
        /// Id of the token.
        token: u64,
        /// Rows of the embedding.
        rows: u64,
    },
    /// The output of frozen embeddings, which was made a leaf that requires gradients, is changed in place.
    #[error(
        "{model} does not run with frozen embeddings and checkpointed blocks: `enable_input_require_grads` makes the \
         embeddings a leaf, and PyTorch refuses to change a leaf in place as this forward does; take `ckpt` none, or \
         train the embeddings"
    )]
    LeafChangedInPlace {
        /// The family's name.
        model: String,
    },
    /// A reentrant checkpoint goes back through what made an argument that it did not get by position.
    #[error(
        "a reentrant checkpoint goes back through what made the arguments that {module} gets by name, once for each block: \
         PyTorch stops with \"Trying to backward through the graph a second time\"; set `reentrant` to false"
    )]
    BackwardTwice {
        /// Dotted path of the block.
        module: String,
    },
    /// A module's parameters are not all trained or all frozen, and FSDP1 makes one of them.
    #[error(
        "FSDP1 flattens the parameters of a wrapped module into one, and those of {} are trained in part: PyTorch stops there \
         with \"Must flatten tensors with uniform `requires_grad` when `use_orig_params=False`\"; take FSDP2 (`strategy` \
         fsdp), or train all or none of them",
        place(.module)
    )]
    TrainedInPart {
        /// Dotted path of the module.
        module: String,
    },
    /// A trained parameter gets no gradient, and DDP does not look for such parameters.
    #[error(
        "DistributedDataParallel waits for a gradient of every trained parameter, and {parameter} gets none: PyTorch stops \
         in the second step with \"Expected to have finished reduction in the prior iteration\"; freeze what this batch \
         does not use, or let DDP look for it (`find_unused_parameters`), as transformers' Trainer does without `ckpt`"
    )]
    UnusedParameter {
        /// Dotted path of the first such parameter.
        parameter: String,
    },
    /// A parameter has no dimension, of which `zero.Init` makes no parts.
    #[error(
        "DeepSpeed's stage 3 sends each parameter as bytes while the model is made, and {parameter} is a single number: \
         PyTorch stops there with \"self.dim() cannot be 0 to view BFloat16 as Byte\"; set `strategy` to deepspeed2"
    )]
    ScalarParameter {
        /// Dotted path of the parameter.
        parameter: String,
    },
    /// An operation does not take tensors of these shapes.
    #[error(
        "the configuration does not run: in {}, {operation} does not fit shapes {}; transformers would stop there \
         too, so set the sizes of this part to match",
        place(.layer),
        listed(.shapes)
    )]
    Shapes {
        /// Dotted path of the module that runs it.
        layer: String,
        /// Name of the operation.
        operation: String,
        /// Shapes of its operands, and of the result if one is asked for.
        shapes: Vec<Vec<u64>>,
    },
    /// A tensor has more than 16 TiB.
    #[error(
        "in {}, {tensor} makes a tensor of shape {shape:?}, more than 16 TiB, which no GPU holds; lower `batch`, \
         `seq` or the sizes of the configuration",
        place(.layer)
    )]
    TooLarge {
        /// Dotted path of the module that makes it.
        layer: String,
        /// Name of the operation that makes it.
        tensor: String,
        /// Extents of the tensor.
        shape: Vec<u64>,
    },
    /// All micro-batches of a step make more tensors than are simulated.
    #[error("{accum} micro-batches of {each} tensors each are more than is simulated ({most} tensors); lower `accum`")]
    LongStep {
        /// Micro-batches of the step.
        accum: u64,
        /// Tensors that one makes.
        each: u64,
        /// Most tensors of a step.
        most: u64,
    },
}

/// Dotted path of a module; the root module has none.
fn place(layer: &str) -> &str {
    if layer.is_empty() { "the model" } else { layer }
}

/// Shapes joined for a sentence.
fn listed(shapes: &[Vec<u64>]) -> String {
    let shapes: Vec<String> = shapes.iter().map(|shape| format!("{shape:?}")).collect();
    shapes.join(" and ")
}
