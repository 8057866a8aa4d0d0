//! Settings of DeepSpeed in a launch.

use serde_json::Map;

use crate::draft::{Draft, SIZES_OF_TRAINER};
use crate::remark::Note;
use crate::resolve::{Resolved, autocast};
use crate::tool::Tool;

/// DeepSpeed's stage; accelerate takes the second where none is given.
pub(crate) fn zero_stage(draft: &Draft) -> Option<u64> {
    draft.zero_stage.or((draft.is_deepspeed == Some(true)).then_some(2))
}

/// DeepSpeed's engine, which casts the model to bf16.
pub(crate) fn engine(draft: &Draft, tool: Tool, stage: u64, world: u64, out: &mut Resolved) {
    if autocast(draft, tool) != [true, false] {
        out.not_simulated.push(Note::DeepspeedWithoutBf16.into());
    }
    out.put("precision", "bf16");
    out.put("strategy", format!("deepspeed{stage}"));
    out.put("world", world);
    if draft.gpus.is_none() {
        out.assumed.push(Note::OneGpu.into());
    }
    let (open, zero): (Map<_, _>, Map<_, _>) = draft.zero.clone().into_iter().partition(|(_, value)| *value == "auto");
    let counts = |key: &str| stage == 3 || stage > 0 && key == SIZES_OF_TRAINER[0];
    for key in SIZES_OF_TRAINER
        .iter()
        .filter(|key| counts(key) && open.contains_key(**key))
    {
        out.not_simulated
            .push(Note::AutoSize.with([("key", (*key).to_owned())]));
    }
    if !zero.is_empty() {
        out.put("zero", zero);
    }
    out.assumed.push(Note::ZeroDefaults.into());
    match draft.host {
        [_, Some(true)] => out.put("offload", "optimizer,param"),
        [Some(true), _] => out.put("offload", "optimizer"),
        _ => {}
    }
}
