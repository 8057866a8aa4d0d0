//! Settings of DeepSpeed in a launch.

use serde_json::Map;

use crate::autocast::autocast;
use crate::draft::{Draft, SIZES_OF_TRAINER};
use crate::processes::{Processes, no_gpus};
use crate::remark::Note;
use crate::resolved::Resolved;
use crate::tool::Tool;

/// DeepSpeed's stage; accelerate takes the second where none is given.
pub(crate) fn zero_stage(draft: &Draft) -> Option<u64> {
    draft.zero_stage.or((draft.is_deepspeed == Some(true)).then_some(2))
}

/// DeepSpeed's engine, which casts the model to bf16 or to fp16.
pub(crate) fn engine(
    (draft, tool): (&Draft, Tool),
    (stage, processes): (u64, Processes),
    hidden_size: Option<u64>,
    out: &mut Resolved,
) {
    let precision = match autocast(draft, tool) {
        [true, false] => "bf16",
        [false, true] => "fp16",
        _ => {
            out.not_simulated.push(Note::DeepspeedWithoutBf16.into());
            "bf16"
        }
    };
    out.put("precision", precision);
    out.put("strategy", format!("deepspeed{stage}"));
    out.put("world", processes.world);
    match processes.is_stated {
        true => {}
        // Each of several GPUs holds a share of what one holds.
        false if stage > 0 || draft.open_gpus.is_some() => out.missing.push(no_gpus(draft)),
        false => out.assumed.push(Note::OneGpu.into()),
    }
    let (open, mut zero): (Map<_, _>, Map<_, _>) =
        draft.zero.clone().into_iter().partition(|(_, value)| *value == "auto");
    let made = match stage {
        0 => 0,
        1 | 2 => 1,
        _ => SIZES_OF_TRAINER.len(),
    };
    for key in SIZES_OF_TRAINER[..made].iter().filter(|key| open.contains_key(**key)) {
        match hidden_size.map(|width| size_of_trainer(key, width)) {
            Some(size) => _ = zero.insert((*key).to_owned(), size.into()),
            None => out
                .not_simulated
                .push(Note::AutoSize.with([("key", (*key).to_owned())])),
        }
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

/// Elements that transformers takes for a size that is "auto", of a model of this width (`trainer_config_finalize` in
/// `integrations/deepspeed.py`, 5.17).
fn size_of_trainer(key: &str, width: u64) -> u64 {
    match key {
        "stage3_prefetch_bucket_size" => width * width * 9 / 10,
        "stage3_param_persistence_threshold" => 10 * width,
        _ => width * width,
    }
}
