//! Liger's loss and its other kernels, by the rules of the tool that switches them on.

use vramscope_engine::setup::LigerKernels;

use crate::draft::Draft;
use crate::model_facts::{LigerKnowledge, ModelFacts};
use crate::remark::Note;
use crate::resolved::Resolved;
use crate::tool::Tool;

/// Types of models for which LLaMA-Factory 0.9.5 asks for Liger's kernels (`llamafactory/model/model_utils/liger_kernel.py`);
/// others stay as they are.
const OF_LLAMA_FACTORY: [&str; 24] = [
    "gemma",
    "gemma2",
    "gemma3",
    "gemma3_text",
    "glm",
    "glm4",
    "glm4v",
    "gpt_oss",
    "granite",
    "llama",
    "llava",
    "mistral",
    "mixtral",
    "mllama",
    "olmo2",
    "paligemma",
    "phi3",
    "qwen2",
    "qwen2_5_vl",
    "qwen2_vl",
    "qwen3",
    "qwen3_5",
    "qwen3_moe",
    "qwen3_next",
];

/// Puts Liger's loss and kernels into a case.
pub(crate) fn liger(draft: &Draft, tool: Tool, model: ModelFacts, out: &mut Resolved) {
    let is_on = draft.liger == Some(true);
    let kernels = kernels(draft, tool);
    if !is_on && kernels.is_empty() {
        return;
    }
    let is_passed_over =
        tool == Tool::LlamaFactory && !model.model_type.is_empty() && !OF_LLAMA_FACTORY.contains(&model.model_type);
    if is_passed_over || model.liger == LigerKnowledge::None {
        out.assumed.push(Note::LigerIgnored.into());
        return;
    }
    // TRL's head takes the place of Liger's loss.
    let has_loss = is_on && !tool.is_trl();
    if model.liger == LigerKnowledge::NotSimulated {
        if has_loss && model.has_fused_loss {
            out.put("loss", "fused_linear");
        }
        out.not_simulated.push(Note::LigersModel.into());
        return;
    }
    if has_loss {
        out.put("loss", "fused_linear");
    }
    if !kernels.is_empty() {
        out.put("liger", kernels.name());
    }
}

/// Kernels beside the loss, and when they take their places.
fn kernels(draft: &Draft, tool: Tool) -> LigerKernels {
    let is_on = draft.liger == Some(true);
    let is_used = |given: Option<bool>| match tool {
        // It switches all of them with the loss.
        Tool::LlamaFactory => is_on,
        Tool::Axolotl => given == Some(true),
        _ => is_on && given == Some(true),
    };
    LigerKernels {
        rope: is_used(draft.liger_rope),
        norms: is_used(draft.liger_norms),
        mlps: is_used(draft.liger_mlps),
        before: matches!(tool, Tool::LlamaFactory | Tool::Axolotl),
    }
}
