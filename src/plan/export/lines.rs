//! Lines of Python for what no tool's file can say: one part of a model frozen or checkpointed alone.

use vramscope_engine::Setup;
use vramscope_engine::setup::{Checkpointing, Freeze};

/// Names that transformers 5 gives to a vision tower (LLaVA and Gemma 3, Qwen-VL, Mllama and SmolVLM).
const VISION: &str = r#"("vision_tower", "visual", "vision_model")"#;
/// Names that it gives to the decoder beside one.
const LANGUAGE: &str = r#"("language_model", "text_model")"#;

/// What a script does to `model` between loading it and training it.
pub(super) fn preparation(setup: &Setup) -> Vec<String> {
    let mut lines: Vec<String> = match setup.freeze {
        // The projector that Qwen-VL keeps within its tower is trained.
        Freeze::Vision => freeze(
            r#"any(part in name for part in ("vision_tower.", "visual.", "vision_model.")) and "merger" not in name"#,
        ),
        Freeze::AllButConnector => freeze(
            r#"not any(part in name for part in ("multi_modal_projector", "merger", "connector", "qformer", "language_projection"))"#,
        ),
        Freeze::None | Freeze::Lora | Freeze::Qlora => Vec::new(),
    };
    match setup.ckpt {
        Checkpointing::Vision => lines.extend(checkpoint(VISION)),
        Checkpointing::Language => lines.extend(checkpoint(LANGUAGE)),
        Checkpointing::None | Checkpointing::Full => {}
    }
    lines
}

fn freeze(which: &str) -> Vec<String> {
    vec![
        "for name, parameter in model.named_parameters():".to_owned(),
        format!("    if {which}:"),
        "        parameter.requires_grad_(False)".to_owned(),
    ]
}

/// The part's own switch. The tool's takes both parts; and `PeftModel.__init__` of peft 0.21 asks for gradients of every
/// tower's input where some part is checkpointed by then, so this comes after the adapters.
fn checkpoint(names: &str) -> Vec<String> {
    vec![
        format!("part = next(m for name, m in model.named_modules() if name.split(\".\")[-1] in {names})"),
        r#"part.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})"#.to_owned(),
    ]
}
