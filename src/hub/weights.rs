//! Types in which a repository stores its weights, as its name tells, and what they mean for training.

use serde_json::{Map, Value, json};

/// Type of stored weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Weights {
    /// 16 or 32 bits, which train.
    #[default]
    Plain,
    /// bitsandbytes' NF4.
    Nf4,
    /// bitsandbytes' NF4 but for some layers, which the repository's own file lists (unsloth's dynamic quantisation).
    DynamicNf4,
    /// bitsandbytes' LLM.int8().
    Int8,
    /// GPTQ.
    Gptq,
    /// AWQ.
    Awq,
    /// 8-bit floats.
    Fp8,
    /// 4-bit floats of blocks (NVFP4, MXFP4).
    Fp4,
    /// compressed-tensors and other kinds of integers.
    Compressed,
    /// llama.cpp's files.
    Gguf,
    /// Apple's MLX.
    Mlx,
    /// ONNX and other forms of a graph.
    Graph,
}

/// Ends of names and the type they tell, the longest of those with the same end first.
const ENDS: [(&str, Weights); 40] = [
    ("-unsloth-bnb-4bit", Weights::DynamicNf4),
    ("-bnb-nf4-bf16", Weights::Nf4),
    ("-bnb-4bit", Weights::Nf4),
    ("-bnb-nf4", Weights::Nf4),
    ("-nf4", Weights::Nf4),
    ("-bnb-8bit", Weights::Int8),
    ("-gptq-int4", Weights::Gptq),
    ("-gptq-int8", Weights::Gptq),
    ("-gptq-4bit", Weights::Gptq),
    ("-gptq", Weights::Gptq),
    ("-int4", Weights::Gptq),
    ("-int8", Weights::Gptq),
    ("-awq-int4", Weights::Awq),
    ("-awq-4bit", Weights::Awq),
    ("-awq-8bit", Weights::Awq),
    ("-awq", Weights::Awq),
    ("-fp8-dynamic", Weights::Fp8),
    ("-fp8-static", Weights::Fp8),
    ("-fp8-block", Weights::Fp8),
    ("-fp8", Weights::Fp8),
    ("-nvfp4", Weights::Fp4),
    ("-mxfp4", Weights::Fp4),
    ("-fp4", Weights::Fp4),
    ("-quantized.w4a16", Weights::Compressed),
    ("-quantized.w8a8", Weights::Compressed),
    ("-quantized.w8a16", Weights::Compressed),
    ("-w4a16", Weights::Compressed),
    ("-w8a8", Weights::Compressed),
    ("-w8a16", Weights::Compressed),
    ("-gguf", Weights::Gguf),
    ("-ggml", Weights::Gguf),
    ("-mlx-4bit", Weights::Mlx),
    ("-mlx-8bit", Weights::Mlx),
    ("-mlx-bf16", Weights::Mlx),
    ("-mlx", Weights::Mlx),
    ("-4bit-dwq", Weights::Mlx),
    ("-onnx", Weights::Graph),
    ("-openvino", Weights::Graph),
    ("-bf16", Weights::Plain),
    ("-fp16", Weights::Plain),
];

/// Owners who publish for one program alone, whose names end in bits only (`-4bit`).
const MLX_OWNERS: [&str; 2] = ["mlx-community", "lmstudio-community"];

impl Weights {
    /// Takes what a name tells of the weights from its end: the rest of the name, and the type.
    pub(crate) fn split(owner: &str, name: &str) -> (String, Self) {
        let mut rest = name.to_owned();
        let mut weights = Self::Plain;
        if MLX_OWNERS.contains(&owner.to_ascii_lowercase().as_str()) {
            for end in ["-3bit", "-4bit", "-5bit", "-6bit", "-8bit", "-bf16"] {
                if let Some(kept) = without_end(&rest, end) {
                    (rest, weights) = (kept, Self::Mlx);
                }
            }
        }
        while let Some((kept, of)) = ENDS.iter().find_map(|(end, of)| Some((without_end(&rest, end)?, *of))) {
            rest = kept;
            if weights == Self::Plain {
                weights = of;
            }
        }
        (rest, weights)
    }

    /// Returns the configuration with the weights' type in it; `None` if training does not run on such weights as they are,
    /// or how it does is not simulated ([`Self::refusal`]).
    pub(crate) fn applied(self, config: &Map<String, Value>) -> Option<Map<String, Value>> {
        let mut config = config.clone();
        match self {
            // A GGUF file is dequantised when transformers loads it, and MLX's and graphs' weights are copies: what is trained
            // are the base's weights.
            Self::Plain | Self::Gguf | Self::Mlx | Self::Graph => {}
            Self::Nf4 | Self::DynamicNf4 => {
                // bitsandbytes would quantise again what is stored in another type.
                if config.contains_key("quantization_config") {
                    return None;
                }
                let nf4 = json!({"quant_method": "bitsandbytes", "load_in_4bit": true, "bnb_4bit_quant_type": "nf4",
                    "bnb_4bit_use_double_quant": true, "bnb_4bit_compute_dtype": "bfloat16"});
                config.insert("quantization_config".into(), nf4);
            }
            Self::Int8 | Self::Gptq | Self::Awq | Self::Fp8 | Self::Fp4 | Self::Compressed => return None,
        }
        Some(config)
    }

    /// Word of the type.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Nf4 => "nf4",
            Self::DynamicNf4 => "dynamic_nf4",
            Self::Int8 => "int8",
            Self::Gptq => "gptq",
            Self::Awq => "awq",
            Self::Fp8 => "fp8",
            Self::Fp4 => "fp4",
            Self::Compressed => "compressed",
            Self::Gguf => "gguf",
            Self::Mlx => "mlx",
            Self::Graph => "graph",
        }
    }

    /// What the type means for training; `None` for weights that train as they are.
    pub fn meaning(self) -> Option<&'static str> {
        Some(match self {
            Self::Plain => return None,
            Self::Nf4 => "its weights are stored in 4 bits (bitsandbytes NF4): adapters alone train beside them",
            Self::DynamicNf4 => {
                "its weights are stored in 4 bits (bitsandbytes NF4), some layers in 16, which its own file lists and which are \
                 counted as 4 bits here: adapters alone train beside them"
            }
            Self::Int8 => "its weights are stored in 8 bits (bitsandbytes): adapters alone train beside them",
            Self::Gptq => "its weights are stored in few bits (GPTQ): adapters alone train beside them",
            Self::Awq => "its weights are stored in 4 bits (AWQ): adapters alone train beside them",
            Self::Fp8 => "its weights are stored in 8-bit floats, which transformers does not train",
            Self::Fp4 => "its weights are stored in 4-bit floats, which are for inference",
            Self::Compressed => {
                "its weights are stored in few bits (compressed-tensors): adapters alone train beside them"
            }
            Self::Gguf => "GGUF files are for inference: its base is what trains",
            Self::Mlx => "MLX's weights are for Apple's chips: its base is what trains with PyTorch",
            Self::Graph => "it is a graph for inference: its base is what trains",
        })
    }

    /// Returns true if the weights' kernels or their training are not simulated.
    pub fn is_refused(self) -> bool {
        matches!(
            self,
            Self::Int8 | Self::Gptq | Self::Awq | Self::Fp8 | Self::Fp4 | Self::Compressed
        )
    }
}

fn without_end(name: &str, end: &str) -> Option<String> {
    let cut = name
        .len()
        .checked_sub(end.len())
        .filter(|cut| name.is_char_boundary(*cut))?;
    let (kept, found) = name.split_at(cut);
    (!kept.is_empty() && found.eq_ignore_ascii_case(end)).then(|| kept.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_name_tells_the_type() {
        let cases = [
            (
                "unsloth",
                "Qwen3-VL-8B-Instruct-unsloth-bnb-4bit",
                "Qwen3-VL-8B-Instruct",
                Weights::DynamicNf4,
            ),
            ("unsloth", "gemma-3-4b-it-bnb-4bit", "gemma-3-4b-it", Weights::Nf4),
            (
                "Qwen",
                "Qwen2-VL-72B-Instruct-GPTQ-Int4",
                "Qwen2-VL-72B-Instruct",
                Weights::Gptq,
            ),
            (
                "Qwen",
                "Qwen2.5-VL-7B-Instruct-AWQ",
                "Qwen2.5-VL-7B-Instruct",
                Weights::Awq,
            ),
            ("Qwen", "Qwen3-8B-FP8", "Qwen3-8B", Weights::Fp8),
            ("unsloth", "Qwen3-8B-GGUF", "Qwen3-8B", Weights::Gguf),
            ("mlx-community", "Qwen3-8B-4bit", "Qwen3-8B", Weights::Mlx),
            ("mlx-community", "Qwen3-8B-MLX-8bit", "Qwen3-8B", Weights::Mlx),
            ("RedHatAI", "Qwen3-8B-quantized.w4a16", "Qwen3-8B", Weights::Compressed),
            (
                "mistralai",
                "Ministral-3-3B-Instruct-2512-BF16",
                "Ministral-3-3B-Instruct-2512",
                Weights::Plain,
            ),
            ("Qwen", "Qwen3-8B", "Qwen3-8B", Weights::Plain),
            ("a", "-awq", "-awq", Weights::Plain),
            ("a", "é-awq", "é", Weights::Awq),
        ];
        for (owner, name, rest, weights) in cases {
            assert_eq!(Weights::split(owner, name), (rest.to_owned(), weights), "{name}");
        }
    }
}
