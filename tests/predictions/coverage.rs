//! Simulates every family of transformers 5.17 as its configuration class writes it, and random variations: the
//! parameters are exact, or the configuration is refused.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::panic::catch_unwind;
use std::path::Path;

use flate2::read::GzDecoder;
use serde_json::{Map, Value};
use vramscope_engine::{Model, Setup, python_json, simulate};
use vramscope_tests::kept;

/// Families for which all parameters are simulated, by the class that loads them; the list must not shrink.
const EXACT: &[&str] = &[
    "itt aria",
    "itt blip",
    "itt blip-2",
    "itt cohere2_vision",
    "itt cosmos3_edge",
    "itt cosmos3_omni",
    "itt deepseek_vl",
    "itt deepseek_vl_hybrid",
    "itt ernie4_5_vl_moe",
    "itt fuyu",
    "itt gemma3",
    "itt gemma4",
    "itt gemma4_unified",
    "itt git",
    "itt glm_ocr",
    "itt got_ocr2",
    "itt idefics",
    "itt idefics2",
    "itt instructblip",
    "itt instructblipvideo",
    "itt internvl",
    "itt janus",
    "itt kimi_k25",
    "itt kosmos-2",
    "itt kosmos-2.5",
    "itt lfm2_vl",
    "itt lighton_ocr",
    "itt llava",
    "itt llava_next",
    "itt llava_next_video",
    "itt llava_onevision",
    "itt minicpmv4_6",
    "itt minimax_m3_vl",
    "itt mistral3",
    "itt mistral4",
    "itt mllama",
    "itt paddleocr_vl",
    "itt paligemma",
    "itt pix2struct",
    "itt pp_chart2table",
    "itt pp_formulanet",
    "itt qianfan_ocr",
    "itt qwen2_5_vl",
    "itt qwen2_vl",
    "itt qwen3_5",
    "itt qwen3_5_moe",
    "itt qwen3_vl",
    "itt qwen3_vl_moe",
    "itt shieldgemma2",
    "itt video_llama_3",
    "itt video_llava",
    "itt vipllava",
    "lm afmoe",
    "lm apertus",
    "lm arcee",
    "lm aria_text",
    "lm axk1",
    "lm axk2",
    "lm bamba",
    "lm bart",
    "lm bert",
    "lm bert-generation",
    "lm big_bird",
    "lm bigbird_pegasus",
    "lm biogpt",
    "lm bitnet",
    "lm blenderbot",
    "lm blenderbot-small",
    "lm bloom",
    "lm camembert",
    "lm codegen",
    "lm cohere",
    "lm cohere2",
    "lm cohere2_moe",
    "lm cpmant",
    "lm ctrl",
    "lm cwm",
    "lm data2vec-text",
    "lm deepseek_v3",
    "lm deepseek_v32",
    "lm diffllama",
    "lm doge",
    "lm electra",
    "lm emu3",
    "lm ernie",
    "lm ernie4_5",
    "lm ernie4_5_moe",
    "lm exaone4",
    "lm exaone_moe",
    "lm falcon",
    "lm falcon_h1",
    "lm falcon_mamba",
    "lm flex_olmo",
    "lm fuyu",
    "lm gemma",
    "lm gemma2",
    "lm gemma3",
    "lm gemma3_text",
    "lm gemma3n_text",
    "lm gemma4",
    "lm gemma4_text",
    "lm gemma4_unified",
    "lm gemma4_unified_text",
    "lm git",
    "lm glm",
    "lm glm4",
    "lm glm4_moe",
    "lm glm4_moe_lite",
    "lm glm_moe_dsa",
    "lm got_ocr2",
    "lm gpt-sw3",
    "lm gpt2",
    "lm gpt_bigcode",
    "lm gpt_neo",
    "lm gpt_neox",
    "lm gpt_neox_japanese",
    "lm gpt_oss",
    "lm gptj",
    "lm granite",
    "lm granite_swa",
    "lm granitemoe",
    "lm granitemoe_swa",
    "lm granitemoehybrid",
    "lm granitemoeshared",
    "lm helium",
    "lm hrm_text",
    "lm hy_v3",
    "lm hy_v4",
    "lm hyperclovax",
    "lm jais2",
    "lm jamba",
    "lm jetmoe",
    "lm kimi_linear",
    "lm laguna",
    "lm lfm2",
    "lm llama",
    "lm llama4",
    "lm llama4_text",
    "lm longcat_flash",
    "lm mamba",
    "lm mamba2",
    "lm marian",
    "lm mbart",
    "lm megatron-bert",
    "lm mellum",
    "lm mimo_v2_flash",
    "lm minicpm3",
    "lm minimax",
    "lm minimax_m2",
    "lm minimax_m3_vl_text",
    "lm ministral3",
    "lm mistral",
    "lm mixtral",
    "lm mllama",
    "lm modernbert-decoder",
    "lm moshi",
    "lm mpt",
    "lm mvp",
    "lm nanochat",
    "lm nemotron_h",
    "lm olmo",
    "lm olmo2",
    "lm olmo3",
    "lm olmo_hybrid",
    "lm olmoe",
    "lm openai-gpt",
    "lm opt",
    "lm pegasus",
    "lm persimmon",
    "lm phi",
    "lm phi3",
    "lm phi4_multimodal",
    "lm phimoe",
    "lm plbart",
    "lm prophetnet",
    "lm qwen2",
    "lm qwen2_moe",
    "lm qwen3",
    "lm qwen3_5",
    "lm qwen3_5_moe",
    "lm qwen3_5_moe_text",
    "lm qwen3_5_text",
    "lm qwen3_moe",
    "lm qwen3_next",
    "lm recurrent_gemma",
    "lm rembert",
    "lm roberta",
    "lm roberta-prelayernorm",
    "lm roc_bert",
    "lm roformer",
    "lm seed_oss",
    "lm smollm3",
    "lm solar_open",
    "lm stablelm",
    "lm starcoder2",
    "lm trocr",
    "lm vaultgemma",
    "lm whisper",
    "lm xglm",
    "lm xlm",
    "lm xlm-roberta",
    "lm xlm-roberta-xl",
    "lm xmod",
    "lm youtu",
    "lm zamba",
    "lm zamba2",
];

/// Outcome for a configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    /// The number of parameters is correct.
    Exact,
    /// An error explains why the configuration is refused.
    Refused,
    /// The number of parameters is wrong.
    Wrong,
    /// The engine panics.
    Panicked,
    /// The engine answers for a configuration that transformers cannot build.
    Answered,
}

impl Outcome {
    const ALL: [(Self, &str); 5] = [
        (Self::Exact, "exact"),
        (Self::Refused, "refused"),
        (Self::Wrong, "wrong"),
        (Self::Panicked, "panicked"),
        (Self::Answered, "answered, though transformers does not build it"),
    ];

    /// Simulates a configuration at its default length, with enough positions for its images; without images, if it
    /// runs with none. The widths of some default configurations let text run, and no image.
    fn of(config: &Value, params: Option<u64>) -> (Self, String) {
        let text = bare(config);
        let answer = catch_unwind(|| {
            let model = Model::from_config(&text).map_err(|error| error.to_string())?;
            let params = |images| {
                let setup = Setup {
                    seq: model.default_seq(),
                    images,
                    ..Setup::default()
                };
                simulate(&model, &setup).map(|report| report.params)
            };
            let with_image = params(1);
            match with_image {
                Err(_) if model.takes().text_alone => params(0).or(with_image),
                _ => with_image,
            }
            .map_err(|error| error.to_string())
        });
        match (answer, params) {
            (Err(_), _) => (Self::Panicked, String::new()),
            (Ok(Err(why)), _) => (Self::Refused, why),
            (Ok(Ok(given)), None) => (Self::Answered, given.to_string()),
            (Ok(Ok(given)), Some(params)) if given == params => (Self::Exact, String::new()),
            (Ok(Ok(given)), Some(params)) => (Self::Wrong, format!("{given} parameters, truly {params}")),
        }
    }
}

/// Text of a configuration as Python writes it, with bare words for non-finite numbers.
fn bare(config: &Value) -> String {
    let words = ["-Infinity", "Infinity", "NaN"];
    words.iter().fold(config.to_string(), |text, word| {
        text.replace(&format!("\"{word}\""), word)
    })
}

/// The lines of a file in `data/coverage`.
fn rows(file: &str) -> Vec<Map<String, Value>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/coverage").join(file);
    let lines = BufReader::new(GzDecoder::new(File::open(path).expect("a part of the repository"))).lines();
    let row = |line: String| match python_json::read(&line) {
        Ok(Value::Object(row)) => row,
        other => panic!("{file}: {other:?}"),
    };
    lines.map(|line| row(line.expect("it is a text"))).collect()
}

fn name(row: &Map<String, Value>) -> String {
    format!("{} {}", row["kind"].as_str().unwrap(), row["type"].as_str().unwrap())
}

/// Formats counts of outcomes as a table.
fn counted(outcomes: &BTreeMap<Outcome, usize>) -> String {
    let mut table = String::from("| outcome | configurations |\n| --- | --- |\n");
    for (outcome, label) in Outcome::ALL {
        let count = outcomes.get(&outcome).copied().unwrap_or(0);
        writeln!(table, "| {label} | {count} |").expect("a text grows");
    }
    table
}

#[test]
fn every_default_is_exact_or_refused_as_in_the_kept_table() {
    let (mut counts, mut exact, mut faults) = (BTreeMap::new(), Vec::new(), Vec::new());
    for row in rows("configs.jsonl.gz") {
        let Some(config) = row.get("config").filter(|config| config.is_object()) else {
            continue;
        };
        let (outcome, why) = Outcome::of(config, row["params"].as_u64());
        *counts.entry(outcome).or_default() += 1;
        match outcome {
            Outcome::Exact => exact.push(name(&row)),
            Outcome::Refused => assert!(!why.is_empty()),
            _ => faults.push(format!("{}: {outcome:?} {why}", name(&row))),
        }
    }
    println!("{}", counted(&counts));
    assert_eq!(faults, [""; 0], "each is exact or refused");
    let lost: Vec<_> = EXACT
        .iter()
        .filter(|family| !exact.contains(&family.to_string()))
        .collect();
    assert!(lost.is_empty(), "no longer exact: {lost:?}");
    let list: String = exact.iter().map(|family| format!("- {family}\n")).collect();
    let table = format!(
        "# Families of transformers 5.17, each with its default configuration\n\n{}\nExact:\n\n{list}",
        counted(&counts)
    );
    kept::hold("tests/data/coverage/defaults.md", &table);
}

/// A default configuration with the changes of a row applied.
fn varied(mut config: Value, row: &Map<String, Value>) -> Value {
    let place = |config: &mut Value, path: &str, value: Option<&Value>| {
        let (section, key) = path.split_once('.').unwrap_or(("", path));
        let object = if section.is_empty() {
            config
        } else {
            &mut config[section]
        };
        let object = object.as_object_mut().expect("a section");
        match value {
            Some(value) => drop(object.insert(key.to_owned(), value.clone())),
            None => drop(object.remove(key)),
        }
    };
    for (path, value) in row["set"].as_object().expect("an object") {
        place(&mut config, path, Some(value));
    }
    for path in row["drop"].as_array().expect("a list") {
        place(&mut config, path.as_str().expect("a path"), None);
    }
    config
}

#[test]
fn every_variation_is_exact_or_refused_as_in_the_kept_table() {
    let mut bases: BTreeMap<String, Value> = rows("configs.jsonl.gz")
        .iter()
        .map(|row| (name(row), row["config"].clone()))
        .collect();
    let (mut counts, mut families, mut faults) = (BTreeMap::new(), BTreeMap::<String, [usize; 5]>::new(), Vec::new());
    for row in rows("variations.jsonl.gz") {
        if let Some(base) = row.get("base") {
            bases.insert(name(&row), base.clone());
            continue;
        }
        let (outcome, why) = Outcome::of(&varied(bases[&name(&row)].clone(), &row), row["params"].as_u64());
        *counts.entry(outcome).or_default() += 1;
        families.entry(name(&row)).or_default()[outcome as usize] += 1;
        if std::env::var_os("VRAMSCOPE_REFUSALS").is_some() && outcome == Outcome::Refused && row["params"].is_u64() {
            println!("{} {} {}: {why}", name(&row), row["set"], row["drop"]);
        }
        if !matches!(outcome, Outcome::Exact | Outcome::Refused) {
            faults.push(format!(
                "{}: {outcome:?} {why} {} {} {}",
                name(&row),
                row["set"],
                row["drop"],
                row["why"]
            ));
        }
    }
    println!("{}", counted(&counts));
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
    let mut table = format!(
        "# Random variations of default configurations\n\n{}\n| family | exact | refused |\n| --- | --- | --- |\n",
        counted(&counts)
    );
    for (family, [exact, refused, ..]) in &families {
        writeln!(table, "| {family} | {exact} | {refused} |").expect("a text grows");
    }
    kept::hold("tests/data/coverage/variations.md", &table);
}
