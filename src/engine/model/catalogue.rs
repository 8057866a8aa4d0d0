//! Models known by name: `config.json` files inside the program.

/// Pairs each name with the text of `catalogue/NAME.json`.
macro_rules! catalogue {
    ($($name:literal),+ $(,)?) => {
        &[$(($name, include_str!(concat!("catalogue/", $name, ".json")))),+]
    };
}

/// Name and `config.json`, in the order of menus.
pub(super) const CATALOGUE: &[(&str, &str)] = catalogue![
    "llava-1.5-7b",
    "llava-1.5-13b",
    "tinyllava-1.5b",
    "qwen2-vl-2b",
    "qwen2-vl-7b",
    "qwen2.5-vl-3b",
    "qwen2.5-vl-7b",
    "qwen3-vl-2b",
    "qwen3-vl-4b",
    "internvl3-1b",
    "internvl3-2b",
    "paligemma-3b",
    "smolvlm-256m",
    "smolvlm2-2.2b",
    "gemma3-4b",
    "mllama",
    "blip2-2.7b",
    "clip-l",
    "vit-large",
    "videomae-base",
    "videomae-large",
    "llama3.2-1b",
    "llama3.1-8b",
    "tinyllama-1.1b",
    "vicuna-7b",
    "vicuna-13b",
    "qwen2.5-0.5b",
    "qwen2.5-1.5b",
    "qwen2.5-3b",
    "qwen2.5-7b",
    "gpt2",
    "gpt2-medium",
    "gpt2-large",
    "gpt2-xl",
];
