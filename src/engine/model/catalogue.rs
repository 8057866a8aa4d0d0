//! Models known by name: `config.json` files inside the program.

/// Pairs each name with the text of `catalogue/NAME.json`: in the page, which is downloaded, without spaces.
#[cfg(not(target_arch = "wasm32"))]
macro_rules! catalogue {
    ($($name:literal),+ $(,)?) => {
        &[$(($name, include_str!(concat!("catalogue/", $name, ".json")))),+]
    };
}

#[cfg(target_arch = "wasm32")]
macro_rules! catalogue {
    ($($name:literal),+ $(,)?) => {
        &[$(($name, {
            const TEXT: &str = include_str!(concat!("catalogue/", $name, ".json"));
            const BYTES: [u8; compact_len(TEXT)] = compact(TEXT);
            match std::str::from_utf8(&BYTES) {
                Ok(text) => text,
                Err(_) => panic!("a byte is left out that is no space"),
            }
        })),+]
    };
}

/// Bytes of a JSON text without the spaces between its words.
#[cfg(any(target_arch = "wasm32", test))]
const fn compact_len(text: &str) -> usize {
    let (text, mut len, mut at, mut quoted) = (text.as_bytes(), 0, 0, false);
    while at < text.len() {
        quoted ^= text[at] == b'"';
        len += (quoted || !text[at].is_ascii_whitespace()) as usize;
        at += 1;
    }
    len
}

/// A JSON text, which has no escaped quotes, without the spaces between its words.
#[cfg(any(target_arch = "wasm32", test))]
const fn compact<const N: usize>(text: &str) -> [u8; N] {
    let (text, mut out, mut len, mut at, mut quoted) = (text.as_bytes(), [0; N], 0, 0, false);
    while at < text.len() {
        quoted ^= text[at] == b'"';
        if quoted || !text[at].is_ascii_whitespace() {
            out[len] = text[at];
            len += 1;
        }
        at += 1;
    }
    out
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
    "llava-hf/llava-1.5-7b-hf",
    "llava-hf/llava-1.5-13b-hf",
    "llava-hf/llava-v1.6-vicuna-7b-hf",
    "llava-hf/llava-v1.6-vicuna-13b-hf",
    "llava-hf/llava-v1.6-mistral-7b-hf",
    "Qwen/Qwen2-VL-2B-Instruct",
    "Qwen/Qwen2-VL-7B-Instruct",
    "Qwen/Qwen2-VL-72B-Instruct",
    "Qwen/Qwen2.5-VL-3B-Instruct",
    "Qwen/Qwen2.5-VL-7B-Instruct",
    "Qwen/Qwen2.5-VL-32B-Instruct",
    "Qwen/Qwen2.5-VL-72B-Instruct",
    "Qwen/Qwen3-VL-2B-Instruct",
    "Qwen/Qwen3-VL-4B-Instruct",
    "Qwen/Qwen3-VL-8B-Instruct",
    "Qwen/Qwen3-VL-32B-Instruct",
    "OpenGVLab/InternVL3-1B-hf",
    "OpenGVLab/InternVL3-2B-hf",
    "OpenGVLab/InternVL3-8B-hf",
    "OpenGVLab/InternVL3-14B-hf",
    "google/paligemma-3b-pt-224",
    "google/paligemma-3b-pt-448",
    "google/paligemma2-3b-pt-224",
    "google/paligemma2-3b-pt-448",
    "google/gemma-3-4b-it",
    "google/gemma-3-12b-it",
    "google/gemma-3-27b-it",
    "HuggingFaceTB/SmolVLM-256M-Instruct",
    "HuggingFaceTB/SmolVLM-500M-Instruct",
    "HuggingFaceTB/SmolVLM2-256M-Video-Instruct",
    "HuggingFaceTB/SmolVLM2-500M-Video-Instruct",
    "HuggingFaceTB/SmolVLM2-2.2B-Instruct",
    "HuggingFaceM4/Idefics3-8B-Llama3",
    "meta-llama/Llama-3.2-11B-Vision",
    "meta-llama/Llama-3.2-11B-Vision-Instruct",
    "meta-llama/Llama-3.2-90B-Vision-Instruct",
    "Salesforce/blip2-opt-2.7b",
    "Salesforce/blip2-opt-6.7b",
    "openai/clip-vit-base-patch32",
    "openai/clip-vit-base-patch16",
    "openai/clip-vit-large-patch14",
    "openai/clip-vit-large-patch14-336",
    "google/siglip-base-patch16-224",
    "google/siglip-so400m-patch14-384",
    "google/vit-base-patch16-224",
    "google/vit-large-patch16-224",
    "MCG-NJU/videomae-base-finetuned-kinetics",
    "MCG-NJU/videomae-large-finetuned-kinetics",
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
    "mistralai/Mistral-7B-v0.1",
    "mistralai/Mistral-7B-v0.3",
    "mistralai/Mistral-Nemo-Base-2407",
    "Qwen/Qwen2.5-0.5B-Instruct",
    "Qwen/Qwen2.5-1.5B-Instruct",
    "Qwen/Qwen2.5-3B-Instruct",
    "Qwen/Qwen2.5-7B-Instruct",
    "Qwen/Qwen2.5-14B-Instruct",
    "Qwen/Qwen2.5-32B-Instruct",
    "Qwen/Qwen2.5-72B-Instruct",
    "Qwen/Qwen3-0.6B",
    "Qwen/Qwen3-1.7B",
    "Qwen/Qwen3-4B",
    "Qwen/Qwen3-8B",
    "Qwen/Qwen3-14B",
    "Qwen/Qwen3-32B",
    "google/gemma-2b",
    "google/gemma-7b",
    "google/gemma-2-2b",
    "google/gemma-2-9b",
    "google/gemma-2-27b",
    "google/gemma-3-1b-pt",
    "microsoft/phi-1_5",
    "microsoft/phi-2",
    "microsoft/Phi-3-mini-4k-instruct",
    "microsoft/phi-4",
    "microsoft/Phi-4-mini-instruct",
    "facebook/opt-125m",
    "facebook/opt-1.3b",
    "facebook/opt-2.7b",
    "facebook/opt-6.7b",
    "openai-community/gpt2",
    "openai-community/gpt2-medium",
    "openai-community/gpt2-large",
    "openai-community/gpt2-xl",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compact_text_says_the_same() {
        const TEXT: &str = "{\n  \"a key\": [1, 2],\n  \"b\": \"x y\"\n}\n";
        const BYTES: [u8; compact_len(TEXT)] = compact(TEXT);
        assert_eq!(std::str::from_utf8(&BYTES), Ok(r#"{"a key":[1,2],"b":"x y"}"#));
        assert!(CATALOGUE.iter().all(|(_, text)| !text.contains('\\')));
    }
}
