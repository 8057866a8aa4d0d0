//! Writes Python lines for settings that no configuration file has: freezing or checkpointing one part of the model.

use vramscope_engine::Setup;
use vramscope_engine::setup::{Checkpointing, Freeze, Parts};

/// Attribute names of the vision tower in transformers 5 (LLaVA and Gemma 3, Qwen-VL, Mllama and SmolVLM).
const VISION: &str = r#"("vision_tower", "visual", "vision_model")"#;
/// Attribute names of the decoder beside a vision tower.
const LANGUAGE: &str = r#"("language_model", "text_model")"#;

/// Statements that a script runs on `model` between loading and training.
pub(super) fn preparation(setup: &Setup) -> Vec<String> {
    let mut lines = match setup.freeze {
        Freeze::Parts(frozen) if !frozen.is_empty() => freeze(&named(frozen)),
        Freeze::Parts(_) | Freeze::Lora | Freeze::Qlora => Vec::new(),
    };
    match setup.ckpt {
        Checkpointing::Vision => lines.extend(checkpoint(VISION, setup.reentrant)),
        Checkpointing::Language => lines.extend(checkpoint(LANGUAGE, setup.reentrant)),
        Checkpointing::None | Checkpointing::Full | Checkpointing::Trained => {}
    }
    lines
}

/// Condition that the names of frozen parameters meet.
fn named(frozen: Parts) -> String {
    // Qwen-VL's projector is inside its tower.
    let tower = r#"any(part in name for part in ("vision_tower.", "visual.", "vision_model."))"#;
    let connector = r#"any(part in name for part in ("multi_modal_projector", "merger", "connector", "qformer", "language_projection"))"#;
    match (frozen.vision, frozen.connector, frozen.language) {
        (true, false, false) => format!(r#"{tower} and not {connector}"#),
        (true, true, _) => format!("{tower} or {connector}"),
        (false, true, false) => connector.to_owned(),
        (true, false, true) => format!("not {connector}"),
        (false, true, true) => format!("{connector} or not {tower}"),
        (false, false, _) => format!("not ({tower} or {connector})"),
    }
}

fn freeze(which: &str) -> Vec<String> {
    vec![
        "for name, parameter in model.named_parameters():".to_owned(),
        format!("    if {which}:"),
        "        parameter.requires_grad_(False)".to_owned(),
    ]
}

/// Enables checkpointing on one part. The tool's own setting would enable it on both. It must follow the adapters: if a
/// part is already checkpointed, `PeftModel.__init__` of peft 0.21 requires gradients of every tower's input.
fn checkpoint(names: &str, is_reentrant: bool) -> Vec<String> {
    let reentrant = if is_reentrant { "True" } else { "False" };
    vec![
        format!("part = next(m for name, m in model.named_modules() if name.split(\".\")[-1] in {names})"),
        format!(
            r#"part.gradient_checkpointing_enable(gradient_checkpointing_kwargs={{"use_reentrant": {reentrant}}})"#
        ),
    ]
}
