//! Tables against the keys that the tools themselves declare (`keys/fields`).

use serde_json::Value;

use super::*;
use crate::Fate;
use crate::off::is_off;
use crate::remark::Note;

/// Keys of each table, and their defaults, as `keys/fields.py` lists them.
const FIELDS: &[(&str, &str)] = &[
    ("launchers", include_str!("fields/launchers.tsv")),
    ("transformers", include_str!("fields/transformers.tsv")),
    ("trl_sft", include_str!("fields/trl_sft.tsv")),
    ("trl_dpo", include_str!("fields/trl_dpo.tsv")),
    ("trl_grpo", include_str!("fields/trl_grpo.tsv")),
    ("llama_factory", include_str!("fields/llama_factory.tsv")),
    ("ms_swift", include_str!("fields/ms_swift.tsv")),
    ("ms_swift2", include_str!("fields/ms_swift2.tsv")),
    ("ms_swift_rlhf", include_str!("fields/ms_swift_rlhf.tsv")),
    ("axolotl", include_str!("fields/axolotl.tsv")),
    ("deepspeed", include_str!("fields/deepspeed.tsv")),
    ("accelerate", include_str!("fields/accelerate.tsv")),
    ("qwen", include_str!("fields/qwen.tsv")),
    ("qwen_vl", include_str!("fields/qwen_vl.tsv")),
    ("internvl", include_str!("fields/internvl.tsv")),
    ("minicpm_v", include_str!("fields/minicpm_v.tsv")),
    ("peft_sft", include_str!("fields/peft_sft.tsv")),
    ("llava", include_str!("fields/llava.tsv")),
    ("qwen_vl_series", include_str!("fields/qwen_vl_series.tsv")),
    ("showui", include_str!("fields/showui.tsv")),
    ("glm4", include_str!("fields/glm4.tsv")),
    ("run_clm", include_str!("fields/run_clm.tsv")),
];

/// Rows that are no field of the tool's classes, and why they are there: table, key, reason.
fn others() -> impl Iterator<Item = [&'static str; 3]> {
    include_str!("fields/others.tsv")
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            let cells: Vec<&str> = line.split('\t').collect();
            cells.try_into().unwrap_or_else(|cells| panic!("{cells:?}"))
        })
}

fn fields(name: &str) -> BTreeMap<&'static str, &'static str> {
    let text = FIELDS.iter().find(|(own, _)| *own == name).map(|(_, text)| *text);
    let lines = text.unwrap_or_else(|| panic!("{name}")).lines();
    lines
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.split_once('\t').unwrap_or_else(|| panic!("{line}")))
        .collect()
}

/// Returns true for a key within an object.
fn is_within(key: &str, object: &str) -> bool {
    key.strip_prefix(object).is_some_and(|rest| rest.starts_with('.'))
}

#[test]
fn every_row_of_the_tables_is_read() {
    for (name, text) in TABLES {
        let mut seen = std::collections::BTreeSet::new();
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let cells: Vec<&str> = line.split('\t').collect();
            let is_table = cells[0] == "include" && TABLES.iter().any(|(name, _)| *name == cells[1]);
            let is_row = cells.len() == 3 && (is_table || meaning(cells[1], cells[2]).is_some());
            assert!(is_row, "{name}: {line}");
            assert!(is_table || seen.insert(cells[0]), "{name} lists {line} twice");
        }
    }
}

#[test]
fn simulated_keys_are_known_to_the_draft() {
    for (name, _) in TABLES {
        for (key, meaning) in keys_of(name) {
            if let Meaning::Simulated(knob, default) = meaning {
                let mut draft = crate::draft::Draft::default();
                let value = match default {
                    "" => Value::Null,
                    text => Value::String(text.to_owned()),
                };
                let set = draft.set(knob, &value);
                assert!(set.is_ok(), "{name} {key}: {set:?}");
            }
        }
    }
}

#[test]
fn every_key_that_a_tool_declares_has_a_row() {
    for (name, _) in FIELDS {
        let known = keys_of(name);
        let missing: Vec<&str> = fields(name)
            .into_keys()
            // Of an object the table may have the keys alone.
            .filter(|key| find(&known, key).is_none() && !known.keys().any(|own| is_within(own, key)))
            .collect();
        assert!(missing.is_empty(), "{name}: {missing:?}");
    }
}

#[test]
fn every_row_is_a_key_of_its_tool_or_says_why_not() {
    let others: Vec<[&str; 3]> = others().collect();
    for (name, _) in TABLES {
        // Rows that several tables share are keys of each of those that have them.
        let of: Vec<BTreeMap<&str, &str>> = match *name {
            "trl" => vec![fields("trl_sft"), fields("trl_dpo"), fields("trl_grpo")],
            "trl_samples" => vec![fields("trl_sft"), fields("trl_dpo")],
            name => vec![fields(name)],
        };
        for [key, ..] in rows(name).filter(|[_, what, value]| meaning(what, value).is_some()) {
            let is_other = others.iter().any(|[table, other, _]| table == name && *other == key);
            let is_field = of.iter().all(|fields| {
                fields.contains_key(key) || fields.keys().any(|own| is_within(own, key) || is_within(key, own))
            });
            assert_ne!(is_field, is_other, "{name}: {key}");
        }
        for [_, key, why] in others.iter().filter(|[table, ..]| table == name) {
            assert!(
                rows(name).any(|[own, ..]| own == *key) && !why.is_empty(),
                "{name}: {key}"
            );
        }
    }
}

/// Defaults of what is off by itself: a plugin, the loss of a command (`swift rlhf`), which the command's reader says, and what
/// is of some losses alone.
const OFF_BY_THEMSELVES: [(&str, &str); 11] = [
    ("axolotl", "cut_cross_entropy"),
    ("axolotl", "load_in_8bit"),
    ("ms_swift_rlhf", "rlhf_type"),
    ("ms_swift_rlhf", "max_completion_length"),
    ("ms_swift_rlhf", "use_vllm"),
    ("ms_swift_rlhf", "vllm_gpu_memory_utilization"),
    ("llama_factory", "pref_loss"),
    ("llama_factory", "pref_ftx"),
    ("trl_sft", "load_in_8bit"),
    ("trl_dpo", "load_in_8bit"),
    ("trl_grpo", "load_in_8bit"),
];

/// They were "no key of this tool".
#[test]
fn options_of_reinforcement_learning_are_keys_of_ms_swift() {
    let known = keys(Tool::MsSwift);
    for key in ["num_generations", "epsilon", "gkd_logits_topk"] {
        assert_eq!(find(&known, key), Some(Meaning::NoEffect(NoEffect::Part)), "{key}");
    }
    let launch = crate::read(&[crate::Source {
        name: "x",
        text: "swift rlhf --rlhf_type grpo --use_vllm true --num_generations 8",
    }]);
    let resolved = launch.unwrap().resolve(crate::ModelFacts::UNKNOWN);
    let notes: Vec<_> = resolved.not_simulated.iter().map(|remark| remark.note).collect();
    let wanted = [Note::Vllm, Note::NoVocabulary, Note::OtherModel, Note::LargerLoss];
    assert!(notes.iter().all(|note| wanted.contains(note)), "{notes:?}");
    assert!(notes.contains(&Note::LargerLoss) && resolved.another_run().next().is_none());
}

#[test]
fn defaults_are_the_tools_own() {
    let number = |value: Value| match value {
        Value::Number(number) => serde_json::json!(number.as_f64()),
        other => other,
    };
    for (name, _) in FIELDS {
        let known = keys_of(name);
        // These only add to another tool's settings, whose defaults hold.
        let adds = ["launchers", "deepspeed", "accelerate"].contains(name);
        for (key, listed) in fields(name) {
            // What is no literal, or settled later by the tool's code, the list does not tell.
            let Ok(value) = serde_json::from_str::<Value>(listed) else {
                continue;
            };
            match known.get(key) {
                Some(Meaning::Simulated(..)) if OFF_BY_THEMSELVES.contains(&(*name, key)) => {}
                Some(Meaning::Simulated(_, ours)) if !(value.is_null() || adds && ours.is_empty()) => {
                    let ours = serde_json::from_str(ours).unwrap_or_else(|_| Value::String((*ours).to_owned()));
                    assert_eq!(number(ours), number(value), "{name}: {key}");
                }
                Some(Meaning::NotSimulated(_, ours)) if !OFF_BY_THEMSELVES.contains(&(*name, key)) => {
                    assert!(is_off(&value, ours), "{name}: {key} is {value} where nothing is said");
                }
                _ => {}
            }
        }
    }
}

#[test]
fn options_of_what_is_off_are_off_too() {
    let text = r#"{"zero_optimization": {"stage": 1}, "fp16": {"enabled": false, "auto_cast": true},
        "sparse_attention": {"mode": "fixed"}, "eigenvalue": {"enabled": false, "max_iter": 100}}"#;
    let launch = crate::read(&[crate::Source { name: "x", text }]).unwrap();
    let fate = |key: &str| &launch.lines.iter().find(|line| line.entry.key == key).unwrap().fate;
    assert_eq!(fate("fp16.auto_cast"), &Fate::Off(NotSimulated::Precision));
    assert_eq!(fate("eigenvalue.max_iter"), &Fate::Off(NotSimulated::Kernels));
    assert!(matches!(fate("sparse_attention.mode"), Fate::NotSimulated(_)));
}

/// Options by which a run is told to be of an older transformers are none of the version whose fields are listed.
#[test]
fn what_version_5_has_no_more_is_no_field_of_it() {
    for key in crate::lines::BEFORE_5 {
        assert!(!fields("transformers").contains_key(key), "{key}");
    }
}
