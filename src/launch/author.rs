//! Programs of models' authors: how their commands are told apart, and what they train beside what their options say.

use crate::Parsed;
use crate::draft::{Draft, PROJECTIONS, Targets};
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
    (Tool::RunClm, &[], &["run_clm.py"]),
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

/// Settings of GLM-4's finetune.py by the names of the classes that take them; its command names the data, and then the model.
pub(crate) fn adopt_glm(parsed: &mut Parsed) {
    for entry in &mut parsed.entries {
        let groups = ["training_args.", "peft_config.", "data_config."];
        if let Some(key) = groups.iter().find_map(|group| entry.key.strip_prefix(group)) {
            entry.key = key.to_owned();
        }
    }
    let script = parsed.words.iter().position(|word| word.ends_with(".py"));
    if let Some(model) = script.and_then(|at| parsed.words.get(at + 2)) {
        parsed.entries.push(Entry {
            key: "model_name_or_path".to_owned(),
            value: model.as_str().into(),
            line: 1,
            cell: None,
        });
    }
}

/// What LLaVA's program makes of what it is told: a model of its own of a language model and a tower, adapters on all maps of
/// the language model (`find_all_linear_names`).
pub(crate) fn compose_llava(draft: &mut Draft) {
    if let Some(name) = draft
        .model
        .as_deref()
        .and_then(|model| composed(model, draft.tower.as_deref()))
    {
        draft.model = Some(name.to_owned());
    }
    if draft.adapters == Some(true) && draft.targets.is_none() {
        draft.targets = Some(Targets::InLanguageModel(PROJECTIONS.map(str::to_owned).into()));
    }
}

/// Returns true for a program that pads each sample to the limit of lengths: Qwen's `preprocess`, and InternVL's unless it
/// groups samples by length (`padding=False if group_by_length else 'max_length'`). run_clm.py's blocks are full (`group_texts`),
/// as are LLaMA-Factory's where texts are packed, which they are without being told to in stage `pt`: rows of questions and
/// answers are filled up with padding that attention sees too, so that there is no mask (`PackedSupervisedDatasetProcessor` and
/// `PretrainDatasetProcessor` of `llamafactory/data/processor`, 0.9.5).
pub(crate) fn pads_to_limit(tool: Tool, draft: &Draft) -> bool {
    match tool {
        Tool::Qwen | Tool::RunClm => true,
        Tool::InternVl => !draft.groups_by_length.unwrap_or(false),
        // Pairs are not packed.
        Tool::LlamaFactory => draft.other_loss.is_none() && draft.fills_rows.or(draft.pretrains).unwrap_or(false),
        _ => false,
    }
}

/// True for programs that name a transformers up to 4.47 as theirs (requirements of InternVL: 4.37.2, MiniCPM-V: 4.40, LLaVA:
/// 4.37.2), and for GLM-4's, whose model brings its own code: they cast all logits to fp32 and copy them for the loss.
pub(crate) const fn has_old_loss(tool: Tool) -> bool {
    matches!(tool, Tool::InternVl | Tool::MiniCpmV | Tool::Llava | Tool::Glm4)
}

/// True for a model whose repository brings code that casts all logits to fp32 and copies them for the loss
/// (`modeling_chatglm.py` of GLM-4, 2024).
pub(crate) fn brings_old_loss(model: &str, tool: Tool) -> bool {
    let name = last_part(model).to_ascii_lowercase();
    let has_code = ["glm-4-9b", "glm-4-9b-chat", "glm-4-9b-chat-1m", "glm-4v-9b"].contains(&name.as_str());
    has_code && matches!(tool.trainer(), Tool::Transformers | Tool::LlamaFactory | Tool::Axolotl)
}

/// LLaVA 1.5 by the language model and the tower that it was made of.
fn composed(model: &str, tower: Option<&str>) -> Option<&'static str> {
    match (last_part(model), last_part(tower?)) {
        ("vicuna-7b-v1.5", TOWER) => Some("llava-hf/llava-1.5-7b-hf"),
        ("vicuna-13b-v1.5", TOWER) => Some("llava-hf/llava-1.5-13b-hf"),
        _ => None,
    }
}

const TOWER: &str = "clip-vit-large-patch14-336";

fn last_part(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or(path)
}

/// A tower beside a language model that no model known by name is made of.
pub(crate) fn other_tower(draft: &Draft) -> Option<Remark> {
    let model = draft.model.as_deref().unwrap_or_default().to_ascii_lowercase();
    let tower = draft.tower.as_deref()?;
    let is_known = model.contains("llava-1.5") || model.contains("llava-v1.5");
    let values = [("tower", tower.to_owned())];
    (!is_known || last_part(tower) != TOWER).then(|| Note::OtherTower.with(values))
}

/// A part of a model that an author's program trains in full beside adapters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Embeddings,
    Head,
    Resampler,
    Connector,
    Tower,
}

impl Part {
    /// Name in remarks.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Embeddings => "the embeddings",
            Self::Head => "the head",
            Self::Resampler => "the resampler",
            Self::Connector => "the connector",
            Self::Tower => "the vision tower",
        }
    }
}

/// Parts that an author's program trains in full beside adapters.
pub(crate) fn trained_beside(draft: &Draft, tool: Tool) -> Vec<Part> {
    if draft.adapters != Some(true) {
        return Vec::new();
    }
    let name = draft.model.as_deref().unwrap_or_default().to_ascii_lowercase();
    match tool {
        // `modules_to_save`, but for chat models, whose tokens are known; its script for images saves them always.
        Tool::Qwen if !name.contains("chat") || name.contains("-vl") => {
            vec![Part::Embeddings, Part::Head]
        }
        Tool::InternVl | Tool::QwenVlSeries => [
            (draft.freeze_vision, Part::Tower),
            (draft.freeze_connector, Part::Connector),
        ]
        .into_iter()
        .filter_map(|(is_frozen, part)| (is_frozen != Some(true)).then_some(part))
        .collect(),
        Tool::Llava if draft.freeze_connector != Some(true) => vec![Part::Connector],
        Tool::MiniCpmV if draft.freeze_vision == Some(true) => vec![Part::Embeddings, Part::Resampler],
        Tool::MiniCpmV => vec![Part::Embeddings, Part::Resampler, Part::Tower],
        _ => Vec::new(),
    }
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
    fn llava_is_a_language_model_and_a_tower_whose_parts_train_as_they_are_told() {
        let of = |more: &str| {
            launch(&[&format!(
                "deepspeed llava/train/train_mem.py --model_name_or_path lmsys/vicuna-7b-v1.5 --bf16 True \
                 --vision_tower openai/clip-vit-large-patch14-336 --model_max_length 2048 {more}"
            )])
        };
        for (more, freeze) in [
            ("", "vision"),
            ("--tune_mm_mlp_adapter True", "all-but-connector"),
            (
                "--mm_tunable_parts mm_vision_tower,mm_mlp_adapter,mm_language_model",
                "none",
            ),
        ] {
            let launch = of(more);
            assert_eq!(launch.model(), Some("llava-hf/llava-1.5-7b-hf"));
            assert_eq!(launch.resolve(ModelFacts::UNKNOWN).case["freeze"], freeze, "{more}");
        }
        let adapters = of("--lora_enable True");
        assert_eq!(
            adapters.resolve(ModelFacts::UNKNOWN).case["lora_targets"],
            "projections"
        );
        assert!(open(&adapters).iter().any(|text| text.contains("the connector")));
        // No model that is known is made of another tower.
        let other = of("--vision_tower google/siglip-so400m-patch14-384");
        assert!(other.resolve(ModelFacts::UNKNOWN).another_run().next().is_some());
    }

    #[test]
    fn settings_of_glm_stand_in_groups_beside_a_command_that_names_the_model() {
        let file = "max_input_length: 512\nmax_output_length: 256\ntraining_args:\n  per_device_train_batch_size: 3\n  \
                    generation_config:\n    max_new_tokens: 9\npeft_config:\n  peft_type: LORA\n  r: 16\n  \
                    target_modules: [\"query_key_value\"]\n";
        let launch = launch(&["python finetune.py data/ THUDM/glm-4-9b-chat lora.yaml", file]);
        let resolved = launch.resolve(ModelFacts {
            takes_images: false,
            ..ModelFacts::UNKNOWN
        });
        assert_eq!((launch.tool, launch.model()), (Tool::Glm4, Some("THUDM/glm-4-9b-chat")));
        let case = &resolved.case;
        assert_eq!(
            (&case["batch"], &case["seq"], &case["rank"]),
            (&json!(3), &json!(769), &json!(16))
        );
        assert_eq!(
            (&case["ckpt"], &case["lora_targets"]),
            (&json!("full"), &json!("q_proj,k_proj,v_proj"))
        );
        assert_eq!(case["loss"], "shifted");
        assert_eq!(open(&launch), Vec::<String>::new());
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
