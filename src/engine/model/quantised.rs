//! Weights that a `quantization_config` says to be stored in few bits, and what transformers 5.17 makes of them.

use serde_json::{Map, Value};

use super::ModelError;
use crate::dtype::DType;

/// Weights as they are in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stored {
    /// In the type of the setup's precision.
    Plain,
    /// Experts are stored in MXFP4, and dequantised to bf16 when they are loaded without the package `kernels`
    /// (`quantizer_mxfp4.py`).
    Mxfp4,
    /// Linear layers are kept in NF4 with double quantisation by bitsandbytes, and multiplied in this type.
    Nf4(DType),
}

/// Methods whose quantisers say that they do not train (`is_trainable`).
const UNTRAINED: [&str; 12] = [
    "auto-round",
    "fbgemm_fp8",
    "fp8",
    "gemma",
    "gguf",
    "higgs",
    "metal",
    "mxfp8",
    "nvfp4",
    "quark",
    "spqr",
    "vptq",
];

/// Methods that train adapters beside weights that kernels of other packages multiply.
const BY_PACKAGES: [&str; 13] = [
    "aqlm",
    "awq",
    "bitnet",
    "compressed-tensors",
    "eetq",
    "fouroversix",
    "fp_quant",
    "gptq",
    "hqq",
    "mxfp4",
    "quanto",
    "sinq",
    "torchao",
];

const ALLOWED: &str = "simulated are: no `quantization_config`; mxfp4 of gpt_oss; fp8 and mxfp8 with `dequantize` true; and \
                       bitsandbytes in 4 bits, nf4 with double quantisation, for `freeze` qlora. Delete \
                       `quantization_config` to simulate weights in the type of `precision`";

/// Reads what a configuration says of its weights.
///
/// # Errors
/// When transformers does not train such weights, or how it does is not simulated.
pub(super) fn read(config: &Map<String, Value>) -> Result<Stored, ModelError> {
    let Some(given) = config.get("quantization_config").filter(|value| !value.is_null()) else {
        return Ok(Stored::Plain);
    };
    let Some(given) = given.as_object() else {
        return Err(ModelError(format!(
            "`quantization_config` is no JSON object; {ALLOWED}"
        )));
    };
    let is = |key: &str| given.get(key).and_then(Value::as_bool) == Some(true);
    if is("load_in_4bit") {
        return nf4(given);
    }
    let method = given.get("quant_method").and_then(Value::as_str);
    match method {
        _ if is("load_in_8bit") => refuse(
            "bitsandbytes in 8 bits",
            "adapters train beside it by kernels that are not simulated",
        ),
        Some("mxfp4") if config.get("model_type").and_then(Value::as_str) == Some("gpt_oss") => Ok(Stored::Mxfp4),
        Some("fp8" | "mxfp8") if is("dequantize") => Ok(Stored::Plain),
        Some(method) if UNTRAINED.contains(&method) => refuse(method, "transformers 5.17 does not train such weights"),
        Some(method) if BY_PACKAGES.contains(&method) => {
            refuse(method, "adapters train beside it by kernels that are not simulated")
        }
        Some(method) => refuse(&shortened(method), "transformers 5.17 knows no such method"),
        None => refuse("no `quant_method`", "transformers 5.17 fails without one"),
    }
}

fn refuse<T>(given: &str, why: &str) -> Result<T, ModelError> {
    Err(ModelError(format!(
        "`quantization_config` names {given}: {why}; {ALLOWED}"
    )))
}

fn shortened(text: &str) -> String {
    text.chars().take(60).collect()
}

/// Reads the configuration of 4-bit weights (`BitsAndBytesConfig`).
fn nf4(given: &Map<String, Value>) -> Result<Stored, ModelError> {
    let text = |key: &str, default: &'static str| match given.get(key).filter(|value| !value.is_null()) {
        None => default.to_owned(),
        Some(Value::String(text)) => shortened(text),
        Some(other) => shortened(&other.to_string()),
    };
    let only = |key: &str, default: &'static str, allowed: &str| {
        let given = text(key, default);
        if given == allowed {
            return Ok(());
        }
        refuse(
            &format!("bitsandbytes in 4 bits with `{key}` {given}"),
            &format!("it is simulated with {allowed}"),
        )
    };
    only("bnb_4bit_quant_type", "fp4", "nf4")?;
    only("bnb_4bit_use_double_quant", "false", "true")?;
    only("bnb_4bit_quant_storage", "uint8", "uint8")?;
    let skipped = given.get("llm_int8_skip_modules").filter(|value| !value.is_null());
    if skipped.is_some_and(|skipped| *skipped != serde_json::json!(["lm_head"])) {
        return refuse(
            "bitsandbytes in 4 bits with `llm_int8_skip_modules`",
            "it is simulated with the head alone left out, which null and [\"lm_head\"] say",
        );
    }
    match &*text("bnb_4bit_compute_dtype", "float32") {
        "float32" => Ok(Stored::Nf4(DType::F32)),
        "float16" => Ok(Stored::Nf4(DType::F16)),
        "bfloat16" => Ok(Stored::Nf4(DType::Bf16)),
        other => refuse(
            &format!("bitsandbytes in 4 bits with `bnb_4bit_compute_dtype` {other}"),
            "it is simulated with float32, float16 and bfloat16",
        ),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(quantisation: &Value) -> Result<Stored, String> {
        let config = json!({"model_type": "gpt_oss", "quantization_config": quantisation});
        read(config.as_object().unwrap()).map_err(|error| error.0)
    }

    #[test]
    fn weights_that_are_dequantised_or_kept_in_nf4_are_read() {
        assert_eq!(of(&Value::Null), Ok(Stored::Plain));
        let skipped = ["model.layers.*.self_attn", "lm_head"];
        assert_eq!(
            of(&json!({"quant_method": "mxfp4", "modules_to_not_convert": skipped})),
            Ok(Stored::Mxfp4)
        );
        for method in ["fp8", "mxfp8"] {
            assert_eq!(
                of(&json!({"quant_method": method, "dequantize": true})),
                Ok(Stored::Plain)
            );
        }
        let nf4 = json!({"load_in_4bit": true, "load_in_8bit": false, "quant_method": "bitsandbytes",
            "bnb_4bit_quant_type": "nf4", "bnb_4bit_use_double_quant": true, "bnb_4bit_compute_dtype": "bfloat16",
            "bnb_4bit_quant_storage": "uint8", "llm_int8_skip_modules": null, "llm_int8_threshold": 6.0});
        assert_eq!(of(&nf4), Ok(Stored::Nf4(DType::Bf16)));
    }

    #[test]
    fn refusals_name_the_method_and_the_way_out() {
        for method in UNTRAINED
            .iter()
            .chain(&BY_PACKAGES)
            .filter(|method| **method != "mxfp4")
        {
            let why = of(&json!({"quant_method": method})).unwrap_err();
            assert!(
                why.contains(method) && why.contains("Delete `quantization_config`"),
                "{why}"
            );
        }
        let of_others = [
            (json!("awq"), "no JSON object"),
            (json!({}), "no `quant_method`"),
            (json!({"quant_method": "modelopt"}), "modelopt"),
            (json!({"load_in_8bit": true}), "8 bits"),
            (json!({"load_in_4bit": true}), "`bnb_4bit_quant_type` fp4"),
            (
                json!({"load_in_4bit": true, "bnb_4bit_quant_type": "nf4"}),
                "`bnb_4bit_use_double_quant` false",
            ),
        ];
        for (given, part) in of_others {
            let why = of(&given).unwrap_err();
            assert!(why.contains(part) && why.contains("Delete"), "{why}");
        }
        let llama = json!({"model_type": "llama", "quantization_config": {"quant_method": "mxfp4"}});
        assert!(read(llama.as_object().unwrap()).is_err());
    }
}
