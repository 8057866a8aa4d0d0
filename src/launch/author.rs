//! Programs of models' authors: how their commands are told apart, and what they train beside what their options say.

use crate::draft::Draft;
use crate::entry::Entry;
use crate::remark::{Note, Remark};
use crate::tool::Tool;

/// Options that only one program has, and parts of the names of its scripts.
const MARKS: &[(Tool, &[&str], &[&str])] = &[
    (
        Tool::InternVl,
        &[
            "use_llm_lora",
            "use_backbone_lora",
            "max_dynamic_patch",
            "down_sample_ratio",
        ],
        &["internvl_chat_finetune", "internvl_chat_pretrain"],
    ),
    (
        Tool::QwenVl,
        &[
            "tune_mm_llm",
            "tune_mm_vision",
            "tune_mm_mlp",
            "dataset_use",
            "data_flatten",
        ],
        &["train_qwen.py"],
    ),
    (
        Tool::Llava,
        &[
            "mm_projector_type",
            "mm_tunable_parts",
            "mm_vision_select_layer",
            "tune_mm_mlp_adapter",
            "image_aspect_ratio",
        ],
        &["llava/train/"],
    ),
    (Tool::MiniCpmV, &["tune_vision", "llm_type"], &[]),
    (
        Tool::PeftSft,
        &["use_peft_lora", "use_nested_quant", "use_4bit_quantization"],
        &[],
    ),
    (
        Tool::QwenVlSeries,
        &["freeze_merger", "freeze_vision_tower", "unfreeze_topk_llm"],
        &[],
    ),
    (Tool::ShowUi, &["ds_zero", "attn_imple", "lm_skip_layer"], &[]),
    (Tool::Qwen, &["lazy_preprocess", "fix_vit"], &[]),
];

/// Finds the author's program that a command of these words and options starts.
pub(crate) fn program_of(words: &[&str], entries: &[Entry]) -> Option<Tool> {
    // Scripts of other losses take the same options, and are none of these.
    let is_other = |word: &str| ["dpo", "grpo", "cls", "trl"].iter().any(|part| word.contains(part));
    let script = words
        .iter()
        .rev()
        .find(|word| word.ends_with(".py"))
        .copied()
        .unwrap_or_default();
    let name = script.rsplit('/').next().unwrap_or_default();
    if is_other(name) {
        return None;
    }
    let has = |key: &&str| entries.iter().any(|entry| entry.key.replace('-', "_") == **key);
    let by_script = MARKS
        .iter()
        .find(|(_, _, parts)| parts.iter().any(|part| script.contains(part)));
    let by_options = || MARKS.iter().find(|(_, keys, _)| keys.iter().any(&has));
    by_script.or_else(by_options).map(|(tool, ..)| *tool)
}

/// What an author's program trains in full beside adapters, which is not simulated.
pub(crate) fn trained_beside(draft: &Draft, tool: Tool) -> Option<Remark> {
    if draft.adapters != Some(true) {
        return None;
    }
    let name = draft.model.as_deref().unwrap_or_default().to_ascii_lowercase();
    let parts: Vec<&str> = match tool {
        // `modules_to_save`, but for chat models, whose tokens are known; its script for images saves them always.
        Tool::Qwen if !name.contains("chat") || name.contains("-vl") => {
            vec!["the embeddings", "the head"]
        }
        Tool::InternVl | Tool::QwenVlSeries => [
            (draft.freeze_vision, "the vision tower"),
            (draft.freeze_connector, "the connector"),
        ]
        .into_iter()
        .filter_map(|(is_frozen, part)| (is_frozen != Some(true)).then_some(part))
        .collect(),
        Tool::MiniCpmV => vec!["the embeddings", "what is not frozen of tower and resampler"],
        _ => Vec::new(),
    };
    let parts = parts.join(" and ");
    (!parts.is_empty()).then(|| Note::WholeBesideAdapters.with([("parts", parts)]))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::tests::{launch, open};
    use crate::{Fate, ModelFacts, Tool};

    fn case(text: &str, takes_images: bool) -> (Tool, serde_json::Map<String, serde_json::Value>, Vec<String>) {
        let launch = launch(&[text]);
        let resolved = launch.resolve(ModelFacts {
            takes_images,
            ..ModelFacts::UNKNOWN
        });
        let open = resolved.not_simulated.iter().map(ToString::to_string).collect();
        (launch.tool, resolved.case, open)
    }

    #[test]
    fn authors_programs_are_told_apart_by_script_and_options() {
        for (command, tool) in [
            (
                "torchrun internvl/train/internvl_chat_finetune.py --bf16 True",
                Tool::InternVl,
            ),
            ("torchrun train.py --use_llm_lora 16 --freeze_llm True", Tool::InternVl),
            ("torchrun qwenvl/train/train_qwen.py --bf16", Tool::QwenVl),
            ("deepspeed llava/train/train_mem.py --bf16 True", Tool::Llava),
            (
                "torchrun finetune.py --tune_vision true --llm_type qwen2",
                Tool::MiniCpmV,
            ),
            ("python train.py --use_peft_lora True --lora_r 8", Tool::PeftSft),
            (
                "deepspeed src/train/train_sft.py --freeze_merger False --use_liger True",
                Tool::QwenVlSeries,
            ),
            ("deepspeed train.py --ds_zero zero2 --batch_size 1", Tool::ShowUi),
            ("python finetune.py --lazy_preprocess True --use_lora", Tool::Qwen),
            ("python finetune.py --output_dir x", Tool::Transformers),
        ] {
            assert_eq!(launch(&[command]).tool, tool, "{command}");
        }
    }

    #[test]
    fn their_options_and_defaults_become_setups() {
        let (_, case_of, open) = case(
            "python finetune.py --model_name_or_path Qwen/Qwen-7B-Chat --use_lora --lazy_preprocess True --bf16 True \
             --gradient_checkpointing",
            false,
        );
        assert_eq!(case_of["seq"], 8192);
        assert_eq!(case_of["rank"], 64);
        assert_eq!(case_of["lora_targets"], "all-linear");
        assert_eq!(open, Vec::<String>::new());
        let (_, case_of, open) = case(
            "torchrun --nproc_per_node 2 internvl_chat_finetune.py --model_name_or_path a/b --use_llm_lora 16 --freeze_llm True \
             --freeze_mlp True --freeze_backbone True --max_seq_length 4096 --bf16 True --grad_checkpoint True",
            true,
        );
        assert_eq!(case_of["rank"], 16);
        assert_eq!(case_of["freeze"], "lora");
        assert_eq!(case_of["attn"], "flash_attention_2");
        assert_eq!(case_of["ckpt"], "full");
        assert_eq!(open, Vec::<String>::new());
        let (_, case_of, open) = case(
            "torchrun qwenvl/train/train_qwen.py --model_name_or_path a/b --tune_mm_vision False --tune_mm_mlp True \
             --tune_mm_llm True --bf16 --model_max_length 4096 --max_pixels 50176",
            true,
        );
        assert_eq!((&case_of["freeze"], &case_of["seq"]), (&json!("vision"), &json!(4096)));
        assert_eq!(open, Vec::<String>::new());
    }

    #[test]
    fn what_trains_in_full_beside_adapters_is_said() {
        for command in [
            "python finetune.py --model_name_or_path Qwen/Qwen-7B --use_lora --lazy_preprocess True",
            "python internvl_chat_finetune.py --use_llm_lora 16 --freeze_backbone True --max_seq_length 9",
            "python finetune.py --use_lora true --llm_type qwen2",
            "python train.py --lora_enable True --freeze_merger False --freeze_vision_tower True",
        ] {
            let open = open(&launch(&[command]));
            assert!(
                open.iter().any(|text| text.contains("beside the adapters")),
                "{command}: {open:?}"
            );
        }
    }

    #[test]
    fn a_shortened_option_is_the_only_one_that_begins_so() {
        let launch = launch(&["python train.py --use_peft_lora True --max_seq_len 2048"]);
        let line = launch
            .lines
            .iter()
            .find(|line| line.entry.key == "max_seq_len")
            .unwrap();
        assert_eq!(line.fate, Fate::Simulated);
        assert_eq!(launch.resolve(ModelFacts::UNKNOWN).case["seq"], 2048);
    }
}
