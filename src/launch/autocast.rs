//! The type in which a launch has its model compute.

use crate::draft::{Draft, Weights};
use crate::tool::Tool;

/// Autocast to bf16, and to fp16. ms-swift takes what its weights' type suggests (`_init_mixed_precision`).
pub(crate) fn autocast(draft: &Draft, tool: Tool) -> [bool; 2] {
    // bf16 is TRL's default where nobody asks for fp16 (`_BaseConfig.__post_init__` in trl/trainer/base_config.py, 1.16).
    if tool.is_trl() && draft.fp16 == Some(true) && draft.takes_default_bf16 == Some(true) {
        return [false, true];
    }
    let suggested = match (tool, draft.weights) {
        (Tool::MsSwift | Tool::MsSwift2, Some(Weights::Fp16 | Weights::Fp32)) => [false, true],
        (Tool::MsSwift | Tool::MsSwift2, _) => [true, false],
        _ => [false, false],
    };
    [draft.bf16.unwrap_or(suggested[0]), draft.fp16.unwrap_or(suggested[1])]
}
