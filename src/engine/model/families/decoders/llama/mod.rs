//! Llama 1 to 3.3, and models of other names like it: Vicuna, TinyLlama, SmolLM.

use crate::model::decoder::{Biases, DecoderDefaults, DecoderFamily, HeadRule};
use crate::model::facts::{ModelType, catalogue};
use crate::model::libraries::Liger;

/// `llama`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType {
        name: "llama",
        classes: &["LlamaForCausalLM", "LLaMAForCausalLM"],
    },
    catalogue: catalogue![
        "llama3.2-1b" = "meta-llama/Llama-3.2-1B",
        "llama3.1-8b" = "meta-llama/Llama-3.1-8B",
        "tinyllama-1.1b" = "TinyLlama/TinyLlama-1.1B-Chat-v1.0",
        "vicuna-7b" = "lmsys/vicuna-7b-v1.5",
        "vicuna-13b" = "lmsys/vicuna-13b-v1.5",
        "meta-llama/Llama-2-7b-hf",
        "meta-llama/Llama-2-13b-hf",
        "meta-llama/Llama-3.1-8B",
        "meta-llama/Llama-3.1-70B",
        "meta-llama/Llama-3.2-1B",
        "meta-llama/Llama-3.2-3B",
        "lmsys/vicuna-7b-v1.5",
        "lmsys/vicuna-13b-v1.5",
        "TinyLlama/TinyLlama-1.1B-Chat-v1.0",
        "HuggingFaceTB/SmolLM2-135M",
        "HuggingFaceTB/SmolLM2-360M",
        "HuggingFaceTB/SmolLM2-1.7B",
        "meta-llama/Llama-3.3-70B-Instruct",
        "meta-llama/Llama-3.1-405B",
        "meta-llama/Llama-3.1-8B-Instruct",
        "meta-llama/Meta-Llama-3-8B",
        "meta-llama/Meta-Llama-3-8B-Instruct",
        "meta-llama/Llama-3.1-70B-Instruct",
        "meta-llama/Meta-Llama-3-70B",
        "meta-llama/Meta-Llama-3-70B-Instruct",
        "meta-llama/Llama-3.2-1B-Instruct",
        "meta-llama/Llama-3.2-3B-Instruct",
        "meta-llama/Llama-2-70b-hf",
        "01-ai/Yi-6B",
        "01-ai/Yi-9B",
        "01-ai/Yi-34B",
    ],
    defaults: DecoderDefaults::LLAMA,
    heads: HeadRule::Divides,
    biases: Biases::of_attention_and_mlp,
    tensor_parallel: true,
    pipeline: true,
    liger: Liger::Replaces,
    ..DecoderFamily::USUAL
};
