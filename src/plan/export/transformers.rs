//! Exports `transformers.TrainingArguments` (5.17).

use serde_json::{Value, json};

use super::{Exported, targets, yaml};
use vramscope_engine::dtype::DType;
use vramscope_engine::setup::{Checkpointing, ExpertAdapters, Freeze, LigerKernels, Loss, Parallel, Strategy};

/// Arguments in the order of their documentation.
pub(super) fn arguments(of: &Exported<'_>) -> Result<Vec<(&'static str, Value)>, String> {
    let setup = of.setup();
    let [bf16, fp16] = of.autocast();
    let mut out = vec![
        ("output_dir", json!("output")),
        ("per_device_train_batch_size", json!(setup.batch)),
        ("gradient_accumulation_steps", json!(setup.accum)),
        ("bf16", json!(bf16)),
        ("fp16", json!(fp16)),
        ("optim", json!(of.optim()?)),
        ("max_grad_norm", json!(of.max_grad_norm())),
        ("gradient_checkpointing", json!(setup.ckpt == Checkpointing::Full)),
    ];
    if setup.ckpt == Checkpointing::Full {
        out.push((
            "gradient_checkpointing_kwargs",
            json!({"use_reentrant": setup.reentrant}),
        ));
    }
    if of.has_liger() {
        let LigerKernels { rope, norms, mlps, .. } = setup.liger;
        let is_fused = setup.loss == Loss::FusedLinear;
        out.push(("use_liger_kernel", json!(true)));
        out.push((
            "liger_kernel_config",
            json!({"fused_linear_cross_entropy": is_fused, "rope": rope, "rms_norm": norms, "swiglu": mlps, "cross_entropy": false}),
        ));
    }
    out.extend(of.noise());
    out.extend(of.smoothing());
    let is_ddp = |parallel: &&Parallel| matches!(parallel.strategy, Strategy::Ddp | Strategy::DdpView);
    if let Some(parallel) = of.parallel().filter(is_ddp) {
        out.push(("ddp_bucket_cap_mb", json!(parallel.bucket)));
        out.push(("ddp_find_unused_parameters", json!(false)));
    }
    Ok(out)
}

pub(super) fn yaml(of: &Exported<'_>) -> Result<String, String> {
    Ok(yaml::document(&of.notes_with_lines(true), &arguments(of)?))
}

/// The argument of `LoraConfig` that names modules trained in full beside the adapters.
fn saved_modules(of: &Exported<'_>) -> String {
    let names = of.saved_modules().map(|names| literal(&json!(names)));
    names.map_or_else(String::new, |names| format!(", modules_to_save={names}"))
}

/// Python that loads the model, freezes or adapts it, and constructs the arguments.
pub(super) fn python(of: &Exported<'_>) -> Result<String, String> {
    let setup = of.setup();
    let mut out: String = of.notes(false).iter().map(|note| format!("# {note}\n")).collect();
    out += "from transformers import TrainingArguments\n";
    let parts = match of.is_tensor_parallel() {
        true => {
            out += "from transformers.distributed import DistributedConfig\n";
            format!(", distributed_config=DistributedConfig(tp_size={})", of.plan.gpus)
        }
        false => String::new(),
    };
    out += &format!(
        "\nmodel_id = \"{}\"\nmodel_kwargs = dict(dtype=\"{}\", attn_implementation=\"{}\"{parts})\n",
        of.model_id(),
        of.weights(),
        of.attn()
    );
    if setup.freeze == Freeze::Qlora {
        let compute = match setup.precision.products() {
            DType::F32 => "float32",
            DType::F16 => "float16",
            _ => "bfloat16",
        };
        out += &format!(
            "quantization = dict(load_in_4bit=True, bnb_4bit_quant_type=\"nf4\", bnb_4bit_use_double_quant=True, \
             bnb_4bit_compute_dtype=\"{compute}\")  # BitsAndBytesConfig(**quantization)\n"
        );
    }
    if of.has_adapters() {
        let excluded = targets::exclude_modules(&setup.lora_targets);
        let excluded = excluded.map(|pattern| format!(", exclude_modules={}", literal(&json!(pattern))));
        let excluded = excluded.unwrap_or_default();
        let parameters = match setup.lora_experts {
            ExpertAdapters::Targets => "",
            ExpertAdapters::All => ", target_parameters=[\"gate_up_proj\", \"down_proj\"]",
        };
        let dora = if setup.dora { ", use_dora=True" } else { "" };
        let saved = saved_modules(of);
        out += &format!(
            "lora = dict(r={}, lora_alpha={}, lora_dropout={:?}, target_modules={}{excluded}{parameters}{dora}{saved})  # peft.LoraConfig(**lora)\n",
            setup.rank,
            2 * setup.rank,
            setup.lora_dropout,
            literal(&targets::target_modules(&setup.lora_targets)),
        );
    }
    let lines = of.preparation();
    if !lines.is_empty() {
        out += "\n\ndef prepare(model):  # once it is loaded and its adapters are in place\n";
        for line in lines {
            out += &format!("    {line}\n");
        }
        out += "\n";
    }
    out += "\nargs = TrainingArguments(\n";
    for (key, value) in arguments(of)? {
        out += &format!("    {key}={},\n", literal(&value));
    }
    Ok(out + ")\n")
}

/// Formats a value as a Python literal.
fn literal(value: &Value) -> String {
    match value {
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Null => "None".to_owned(),
        Value::Object(map) => {
            let entries: Vec<String> = map
                .iter()
                .map(|(key, value)| format!("\"{key}\": {}", literal(value)))
                .collect();
            format!("{{{}}}", entries.join(", "))
        }
        Value::Array(list) => format!("[{}]", list.iter().map(literal).collect::<Vec<_>>().join(", ")),
        other => other.to_string(),
    }
}
