//! Generates runs: a configuration of any family with some entries changed, and a setup.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::sync::OnceLock;

use flate2::read::GzDecoder;
use serde_json::{Map, Value, json};
use vramscope_engine::simulate::{evaluate, generate, simulate_parallel};
use vramscope_engine::tape::Gpu;
use vramscope_engine::{Case, Model, python_json, simulate};

use super::mutate::Random;

/// Sections of a vision-language configuration.
const SECTIONS: [&str; 4] = ["text_config", "vision_config", "qformer_config", "rope_parameters"];

/// Typical, extreme and absurd counts.
const COUNTS: [i64; 24] = [
    0,
    1,
    2,
    3,
    4,
    5,
    7,
    8,
    12,
    14,
    16,
    30,
    32,
    64,
    100,
    127,
    128,
    224,
    256,
    1000,
    4096,
    65_536,
    1 << 20,
    -1,
];

const OPTIMIZERS: [&str; 13] = [
    "adamw",
    "adamw_fused",
    "adamw_loop",
    "sgd",
    "sgdm",
    "adafactor",
    "adafactor_torch",
    "adamw_8bit",
    "adagrad",
    "lion",
    "lion_8bit",
    "paged_lion_8bit",
    "paged_lion",
];

const LORA_TARGETS: [&str; 7] = [
    "projections",
    "attention",
    "all-linear",
    "language-model",
    "q_proj",
    "proj,fc1",
    "nothing",
];

const STRATEGIES: [&str; 8] = [
    "ddp",
    "ddp_view",
    "zero1",
    "fsdp",
    "fsdp_no_reshard",
    "tensor",
    "pipeline",
    "pipeline_gpipe",
];

/// Default configurations of all families in transformers, of additional families, and of the catalogue.
fn bases() -> &'static [Value] {
    static BASES: OnceLock<Vec<Value>> = OnceLock::new();
    BASES.get_or_init(|| {
        let of = |file: &str, key: &'static str| {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/coverage").join(file);
            let lines = BufReader::new(GzDecoder::new(File::open(path).expect("a part of the repository"))).lines();
            let row =
                |line: std::io::Result<String>| python_json::read(&line.expect("it is a text")).expect("it is JSON");
            let configs = lines.map(row).filter_map(move |row| row.get(key).cloned());
            configs.filter(Value::is_object).collect::<Vec<_>>()
        };
        let catalogue = Model::catalogue().into_iter();
        let known = catalogue.filter_map(|name| serde_json::from_str(Model::catalogue_config(name).ok()?).ok());
        let all = of("configs.jsonl.gz", "config")
            .into_iter()
            .chain(of("variations.jsonl.gz", "base"));
        // Supported families are listed three times, so that they are chosen more often.
        let all: Vec<Value> = all.chain(known).collect();
        let read = |config: &&Value| Model::from_config(&config.to_string()).is_ok();
        let more: Vec<Value> = all.iter().filter(read).cloned().collect();
        all.into_iter()
            .chain(more.iter().cloned())
            .chain(more.iter().cloned())
            .collect()
    })
}

fn one<T: Copy>(random: &mut Random, of: &[T]) -> T {
    of[random.below(of.len())]
}

/// A replacement for a value.
fn changed(random: &mut Random, value: &Value) -> Value {
    let words = [
        "silu",
        "gelu",
        "relu",
        "gelu_new",
        "quick_gelu",
        "full_attention",
        "sliding_attention",
        "default",
        "full",
        "yarn",
        "llama",
        "gemma2",
        "qwen3",
        "gemma3_text",
        "rms_norm",
        "",
    ];
    match value {
        _ if random.one_in(12) => Value::Null,
        Value::Bool(flag) => (!flag).into(),
        Value::String(_) => one(random, &words).into(),
        Value::Array(list) => {
            let mut list = list.clone();
            match random.below(4) {
                0 => list.truncate(random.below(list.len() + 1)),
                1 => list.extend(list.clone()),
                2 => list.push(one(random, &COUNTS).into()),
                _ => list.reverse(),
            }
            list.into()
        }
        Value::Number(number) => match (number.as_i64(), random.below(6)) {
            (Some(n), 0) => (n + 1).into(),
            (Some(n), 1) => (n / 2).into(),
            (Some(n), 2) => n.saturating_mul(2).into(),
            (None, 0..4) => one(random, &[0.0, 0.1, 0.5, 1.0, -1.0, 1e9]).into(),
            _ => one(random, &COUNTS).into(),
        },
        _ => one(random, &COUNTS).into(),
    }
}

/// The object of a section; the whole configuration for `None`.
fn object<'a>(config: &'a mut Value, section: Option<&str>) -> Option<&'a mut Map<String, Value>> {
    match section {
        Some(section) => config.get_mut(section)?.as_object_mut(),
        None => config.as_object_mut(),
    }
}

/// A configuration with up to six changed entries, usually with few layers.
fn config(random: &mut Random) -> Value {
    let mut config = bases()[random.below(bases().len())].clone();
    let is_section = |key: &&str| config[*key].is_object();
    let mut sections: Vec<Option<&str>> = vec![None, None];
    sections.extend(SECTIONS.into_iter().filter(is_section).flat_map(|key| [Some(key); 2]));
    if !random.one_in(6) {
        for section in &sections {
            for (key, value) in object(&mut config, *section).into_iter().flatten() {
                if ["num_hidden_layers", "n_layer", "depth", "num_global_layers"].contains(&key.as_str()) {
                    *value = one(random, &[1, 2, 3, 4]).into();
                }
            }
            object(&mut config, *section).map(|object| object.shift_remove("layer_types"));
        }
    }
    for _ in 0..[0, 0, 1, 1, 2, 3, 6][random.below(7)] {
        let section = one(random, &sections);
        let Some(object) = object(&mut config, section).filter(|object| !object.is_empty()) else {
            continue;
        };
        let (at, dropped) = (random.below(object.len()), random.one_in(10));
        let Some((key, value)) = object.iter_mut().nth(at) else {
            continue;
        };
        if dropped {
            let key = key.clone();
            object.shift_remove(&key);
        } else {
            *value = changed(random, value);
        }
    }
    config
}

/// Settings that a case may give: in one of how many cases, the key, and the values to choose from.
fn settings() -> Vec<(usize, &'static str, Value)> {
    vec![
        (2, "batch", json!([1, 2, 3, 8, 64, 65_536, 0])),
        (
            2,
            "seq",
            json!([1, 2, 16, 77, 512, 1000, 1024, 4096, 131_072, 4_194_304, 0]),
        ),
        (3, "images", json!([1, 2, 5, 64, 4096, 0])),
        (3, "image", json!([1, 14, 30, 224, 336, 1000, 16_384, 0])),
        (4, "grid", json!([[2, 2], [24, 24], [3, 5], [64, 128], [0, 0]])),
        (4, "frames", json!([1, 2, 3, 16, 64, 0])),
        (4, "lengths", json!([[1, 5, 3], [100, 1000], [0], [7, 7]])),
        (
            6,
            "image_sizes",
            json!([[[480, 640]], [[1, 200], [30, 30]], [[16_000, 100]]]),
        ),
        (4, "packing", json!(["padded", "packed"])),
        (2, "precision", json!(["fp32", "bf16", "amp-bf16", "amp-fp16"])),
        (2, "optim", json!(OPTIMIZERS)),
        (2, "ckpt", json!(["none", "full", "vision", "language"])),
        (2, "attn", json!(["sdpa", "eager", "flash_attention_2"])),
        (
            2,
            "freeze",
            json!(["none", "vision", "all-but-connector", "lora", "qlora"]),
        ),
        (4, "rank", json!([1, 8, 64, 8192, 0])),
        (4, "lora_targets", json!(LORA_TARGETS)),
        (4, "accum", json!([1, 2, 3, 64])),
        (4, "loss", json!(["full", "fused_linear"])),
        (4, "clip", json!([true, false])),
        (4, "ema", json!([true, false])),
        (
            4,
            "trainer",
            json!(["loop", "transformers", "trl_sft", "trl_dpo", "trl_grpo"]),
        ),
        (4, "completion", json!([1, 40, 1000, 0])),
        (4, "reference", json!(["every_step", "precomputed", "none"])),
        (4, "generation", json!(["transformers", "vllm"])),
        (4, "steps_per_generation", json!([1, 2, 4, 0])),
        (4, "num_iterations", json!([1, 2, 0])),
        (4, "use_cache", json!([true, false])),
        (4, "autocast_cache", json!([true, false])),
    ]
}

/// A case with some of its settings given.
fn case(random: &mut Random) -> Value {
    let mut case = Map::from_iter([("model".to_owned(), json!("x"))]);
    for (often, key, values) in settings() {
        if random.one_in(often) {
            let values = values.as_array().expect("a list of values");
            case.insert(key.to_owned(), values[random.below(values.len())].clone());
        }
    }
    if random.one_in(4) {
        case.insert("strategy".into(), one(random, &STRATEGIES).into());
        case.insert("world".into(), one(random, &[1, 2, 3, 4, 8]).into());
        case.insert("mp".into(), random.one_in(2).into());
        case.insert("offload".into(), random.one_in(4).into());
    }
    case.into()
}

/// Generates a run as text.
pub fn write(random: &mut Random) -> Vec<u8> {
    json!({"config": config(random), "case": case(random)})
        .to_string()
        .into_bytes()
}

/// Simulates a run; returns true if the engine answers.
pub fn feed(input: &[u8]) -> bool {
    let Some(Value::Object(run)) = str::from_utf8(input).ok().and_then(|text| python_json::read(text).ok()) else {
        return false;
    };
    let (Some(config), Some(case)) = (run.get("config"), run.get("case")) else {
        return false;
    };
    let Ok(Some(case)) = Case::from_json(&case.to_string()) else {
        return false;
    };
    let Ok(model) = Model::from_config_for(&config.to_string(), &case.setup) else {
        return false;
    };
    match (case.parallel, input.len() % 8) {
        (Some(parallel), _) => simulate_parallel(&model, &case.setup, &parallel, Gpu::H200).is_ok(),
        (None, 0) => evaluate(&model, &case.setup, Gpu::H200).is_ok(),
        (None, 1) => generate(&model, &case.setup, 3, Gpu::H200).is_ok(),
        _ => simulate(&model, &case.setup).is_ok(),
    }
}
