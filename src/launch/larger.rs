//! Losses that are not simulated, and the larger step that stands in for each: the same forward and backward with all logits,
//! and beside it every other tensor that the loss makes of them, and the other models that it compares with.

use serde_json::Value;
use vramscope_engine::setup::SavedType;
use vramscope_engine::simulate::In4Bits;

use crate::author::{self, Part};
use crate::deepspeed::zero_stage;
use crate::draft::{Draft, Weights};
use crate::loss::OtherLoss;
use crate::model_facts::ModelFacts;
use crate::processes::processes;
use crate::remark::{Note, Remark};
use crate::resolved::Resolved;
use crate::tool::Tool;

/// The loss for which a larger step stands in; `None` where the tool's own trainer is simulated. `fsdp` is its version, if it
/// shards the model.
pub(crate) fn loss_of(draft: &Draft, tool: Tool, fsdp: Option<u64>) -> Option<OtherLoss> {
    // The reference model is shared too: as TRL prepares it, but not as FSDP1 or ms-swift do.
    let is_shared_otherwise = match tool {
        Tool::TrlDpo => fsdp == Some(1),
        _ => zero_stage(draft) == Some(3) || fsdp.is_some(),
    };
    // Beside 4-bit weights there is none of DPO's.
    let has_cross_entropy = draft.has_cross_entropy == Some(true);
    let is_unknown_dpo = is_shared_otherwise || draft.bits.is_some() || has_cross_entropy;
    let has_own_dpo = draft.is_dpo == Some(true) || tool == Tool::TrlDpo;
    draft.other_loss.or(match tool {
        _ if has_own_dpo && is_unknown_dpo => Some(OtherLoss::Dpo),
        Tool::TrlGrpo if fsdp.is_some() => Some(OtherLoss::Grpo),
        _ => None,
    })
}

/// Tokens of a completion of ms-swift at most, where nothing is said (`max_completion_length`).
const COMPLETION: u64 = 512;
/// Share of a card that its vLLM takes, where nothing is said (`vllm_gpu_memory_utilization`).
const SHARE: f64 = 0.9;
/// Bytes of a MiB.
const MIB: u64 = 1 << 20;

/// Makes a case the larger step of a loss, with what it holds beside.
pub(crate) fn stand_in(loss: OtherLoss, (draft, tool): (&Draft, Tool), model: ModelFacts, out: &mut Resolved) {
    out.put("trainer", "transformers");
    let samples = out.number("batch").unwrap_or(1).saturating_mul(loss.samples());
    out.put("batch", samples);
    let texts = loss.texts(draft.negatives);
    if texts > 1 {
        join(texts, model, out);
    }
    if loss == OtherLoss::Embedding && draft.negatives.is_none() {
        out.assumed.push(Note::NoNegatives.into());
    }
    let stage = zero_stage(draft);
    // LLaMA-Factory's reward model makes logits that nothing needs (`AutoModelForCausalLMWithValueHead`).
    let is_headless = !loss.has_logits() && tool != Tool::LlamaFactory;
    if is_headless && model.has_fused_loss {
        out.put("loss", "fused_linear");
    }
    if loss.has_logits() {
        out.case.remove("loss");
    }
    for key in ["reference", "generation", "steps_per_generation", "num_iterations"] {
        out.case.remove(key);
    }
    let mut beside = 0;
    if loss.generates() {
        beside += completions((draft, tool), model, out);
    }
    out.case.remove("completion");
    // Others may turn logits into fp32 by themselves: LLaMA-Factory does, and TRL did up to 0.7.
    let in_16_bits = stage.is_some() && tool == Tool::MsSwift;
    let copies = loss.copies(in_16_bits, draft.has_cross_entropy == Some(true));
    if let Some(seq) = out.number("seq").filter(|_| copies > 0) {
        match model.vocabulary {
            Some(tokens) => beside = product(&[copies, samples, seq, tokens, 4]).saturating_add(beside),
            None => out.not_simulated.push(Note::NoVocabulary.into()),
        }
    }
    match other_models(loss, (draft, tool), model) {
        Ok(bytes) => beside = beside.saturating_add(bytes),
        Err(what) => out
            .not_simulated
            .push(Note::OtherModel.with([("what", what.to_owned())])),
    }
    hold(beside, out);
    let note = match is_headless {
        true => Note::LossWithoutLogits,
        false => Note::LargerLoss,
    };
    out.not_simulated.push(note.with([
        ("loss", loss.name().to_owned()),
        ("samples", samples.to_string()),
        ("mib", beside.div_ceil(MIB).to_string()),
    ]));
}

/// Makes samples as long as a prompt and its completion, and returns the bytes of what generates these, if the model does.
fn completions((draft, tool): (&Draft, Tool), model: ModelFacts, out: &mut Resolved) -> u64 {
    // Prompts are as long as allowed, and completions come behind them, unless the limit is the model's own.
    if let (Tool::MsSwift, Some(seq)) = (tool, draft.seq) {
        out.put("seq", seq.saturating_add(draft.completion.unwrap_or(COMPLETION)));
    }
    if draft.vllm == Some(true) {
        if draft.is_colocated != Some(false) && out.vllm_share.is_none() {
            let share = draft.vllm_share.unwrap_or(SHARE);
            out.vllm_share = Some(share);
            out.assumed.push(Note::Vllm.with([("share", share.to_string())]));
        }
        return 0;
    }
    generation((draft, tool), model, out).unwrap_or_else(|| {
        out.not_simulated.push(Note::Generation.into());
        0
    })
}

/// Most bytes of a generation by the model that trains: keys and values of all completions of a process, twice, since each layer's
/// are put together anew for a token; what samples a token of the logits in fp32, in eight tensors of their size; and under
/// stage 3 the whole model, which is gathered for it (`unwrap_model_for_generation`).
fn generation((draft, tool): (&Draft, Tool), model: ModelFacts, out: &Resolved) -> Option<u64> {
    let all = draft
        .generation_batch
        .map(|all| all.div_ceil(processes(draft, tool).world));
    let steps = draft.steps_per_generation.or(out.number("accum")).unwrap_or(1);
    let rows = all.unwrap_or(steps.saturating_mul(out.number("batch").unwrap_or(1)));
    let cache = product(&[2 * 2, rows, out.number("seq")?, model.cached?]);
    let sampling = product(&[8 * 4, rows, model.vocabulary?]);
    let gathered = match zero_stage(draft) {
        Some(3) => model.parameters.map(|all| 2 * (all.packed + all.others))?,
        _ => 0,
    };
    Some(cache.saturating_add(sampling).saturating_add(gathered))
}

/// The product of some sizes, which files may tell as they like: too large a one is refused as that, and never wraps around.
fn product(factors: &[u64]) -> u64 {
    factors.iter().fold(1, |all, factor| all.saturating_mul(*factor))
}

/// Adds bytes to what is held beside the model.
pub(crate) fn hold(bytes: u64, out: &mut Resolved) {
    let held = out.number("beside").unwrap_or_default();
    if bytes > 0 {
        out.put("beside", held.saturating_add(bytes.div_ceil(MIB)));
    }
}

/// Puts the texts of a sample behind one another in a row, with the images of all: as many positions as in rows of their own.
fn join(texts: u64, model: ModelFacts, out: &mut Resolved) {
    let multiplied = |value: &Value| match value {
        Value::Array(sizes) => Some(Value::Array((0..texts).flat_map(|_| sizes.clone()).collect())),
        value => Some(value.as_u64()?.saturating_mul(texts).into()),
    };
    for key in ["seq", "images", "image_sizes", "completion"] {
        if let Some(all) = out.case.get(key).and_then(multiplied) {
            out.put(key, all);
        }
    }
    let has_images = ["images", "image_sizes"].iter().any(|key| out.case.contains_key(*key));
    if model.images.is_some_and(|images| images.takes_several) && !has_images {
        out.put("images", texts);
    }
}

/// Most bytes on a GPU of the models that a loss compares with, which no gradient and no state belongs to: a teacher, and a
/// reference model, which beside adapters is the same model without them.
///
/// # Errors
/// If the size of one is not known; the text says which it is.
fn other_models(loss: OtherLoss, (draft, tool): (&Draft, Tool), model: ModelFacts) -> Result<u64, &'static str> {
    let stage = zero_stage(draft);
    let bytes = match draft.weights {
        Some(Weights::Fp32) if stage.is_none() => 4,
        _ => 2,
    };
    let held = |all: In4Bits, is_apart: bool| match stage {
        // Parameters below a threshold, which are of one dimension, are on each GPU.
        Some(3) if !is_apart => {
            bytes * ((all.packed + all.others).div_ceil(processes(draft, tool).world) + all.vectors)
        }
        _ => bytes * (all.packed + all.others),
    };
    let teaches = loss == OtherLoss::Distilled || draft.teacher.is_some();
    let teacher = match teaches {
        true => held(model.beside.ok_or("the teacher")?, draft.is_teacher_apart == Some(true)),
        false => 0,
    };
    let is_named = draft.other_model.is_some() && draft.other_model != draft.model;
    let is_precomputed = draft.precomputed == Some(true) || loss == OtherLoss::Grpo && draft.beta == Some(0.0);
    let is_same = draft.adapters == Some(true) && draft.other_model.is_none();
    if !loss.has_reference() || is_precomputed || is_same {
        return Ok(teacher);
    }
    let parameters = match is_named {
        // Of two names one is looked up.
        true if teaches => None,
        true => model.beside,
        false => model.parameters,
    };
    Ok(teacher + held(parameters.ok_or("the reference model")?, false))
}

/// Holds the parts that an author's program trains in full beside adapters, if their sizes are known.
pub(crate) fn hold_parts(draft: &Draft, tool: Tool, model: ModelFacts, out: &mut Resolved) {
    let parts = author::trained_beside(draft, tool);
    if parts.is_empty() {
        return;
    }
    let bytes = bytes_of_trained(draft, tool);
    let is_held = parts_beside(&parts, bytes, (tool, model), out);
    let names = parts.iter().map(|part| part.name()).collect::<Vec<_>>().join(" and ");
    out.not_simulated.push(match is_held {
        true => tables_beside(names, bytes),
        false => Note::WholeBesideAdapters.with([("parts", names)]),
    });
}

/// Holds such parts, and what they keep of each position for backward. Returns false if their sizes are not known.
fn parts_beside(parts: &[Part], bytes: u64, (tool, model): (Tool, ModelFacts), out: &mut Resolved) -> bool {
    let Some((rows, width)) = model.vocabulary.zip(model.hidden_size) else {
        return false;
    };
    let Some((batch, seq)) = out.number("batch").zip(out.number("seq")) else {
        return false;
    };
    let positions = batch.saturating_mul(seq);
    let of = |parameters: u64, kept: u64| {
        let trained = bytes.saturating_mul(parameters);
        Some(positions.saturating_mul(kept).saturating_add(trained))
    };
    let square = width.saturating_mul(width);
    let mut bytes = parts.iter().map(|part| match (tool, part) {
        (_, Part::Embeddings | Part::Head) => of(rows.saturating_mul(width), 0),
        // `resampler.py`: five maps of the width, and one of the tower's, which is narrower; 1024 patches of a slice, which takes
        // 64 positions at least, eight times in 16 bits.
        (Tool::MiniCpmV, Part::Resampler) => of(square.saturating_mul(6), width.saturating_mul(256)),
        // `mlp2x_gelu` on a tower that is narrower; eight tensors of its width in fp32.
        (Tool::Llava, Part::Connector) => of(square.saturating_mul(2), width.saturating_mul(32)),
        // `mlp1` on four patches of InternViT, of 3200 elements at most.
        (Tool::InternVl, Part::Connector) => of(
            square.saturating_add(width.saturating_mul(12_800)),
            width.saturating_mul(16).saturating_add(51_200),
        ),
        _ => None,
    });
    match bytes.try_fold(0_u64, |all, bytes| bytes.map(|bytes| all.saturating_add(bytes))) {
        Some(bytes) => {
            hold(bytes, out);
            true
        }
        None => false,
    }
}

/// Says that what trains beside adapters is held for them.
fn tables_beside(names: String, bytes: u64) -> Remark {
    Note::TablesBeside.with([("names", names), ("bytes", bytes.to_string())])
}

/// Modules that hold the table of tokens or the head, by the names that models give them.
const OF_TOKENS: [&str; 9] = [
    "embed_tokens",
    "lm_head",
    "wte",
    "embed_in",
    "embed_out",
    "word_embeddings",
    "embedding",
    "output_layer",
    "tok_embeddings",
];

/// Bytes for each parameter that trains beside adapters, at most: the module's own copy, its gradient, two states, two
/// temporaries of an update, a bucket of DDP's or a weight of DeepSpeed's, all in fp32, and what autocast makes of it.
const TRAINED: u64 = 7 * 4 + 2;

/// The same of a run's own: DeepSpeed's engine has the copy and its gradient in 16 bits, and shares between the GPUs what it
/// updates in fp32 (the weight, its gradient, two states, two temporaries), beside the gradient that it has averaged; in the
/// third stage the copy too, which is gathered while it is used (`stage_1_and_2.py`, `stage3.py` of DeepSpeed 0.19).
fn bytes_of_trained(draft: &Draft, tool: Tool) -> u64 {
    let gpus = processes(draft, tool).world;
    match zero_stage(draft) {
        Some(1 | 2) => 2 + 2 + (6_u64 * 4 + 2).div_ceil(gpus),
        Some(3) => 2 + 2 + (6_u64 * 4 + 2 + 2).div_ceil(gpus),
        _ => TRAINED,
    }
}

/// Returns true if modules that train in full beside adapters are simulated: beside weights in 16 bits or more, under tools that leave
/// peft's copies as they are or cast all of them.
fn are_simulated(names: &[String], draft: &Draft, tool: Tool) -> bool {
    let is_sharded = zero_stage(draft) == Some(3) || draft.fsdp.is_on == Some(true);
    let is_known = matches!(
        tool,
        Tool::Transformers | Tool::TrlSft | Tool::TrlDpo | Tool::LlamaFactory | Tool::MsSwift
    );
    let is_quantised = draft.bits.is_some() || draft.in_8_bits == Some(true) || draft.few_bits.is_some();
    // ms-swift's `all-embedding` and `all-norm` stand for names.
    let has_names = names.iter().all(|name| !name.starts_with("all-"));
    is_known && has_names && !is_sharded && !is_quantised && draft.adapters == Some(true) && draft.other_loss.is_none()
}

/// Takes the modules that train in full beside adapters (`modules_to_save`), or holds them if they are not simulated.
pub(crate) fn save_modules(names: &[String], (draft, tool): (&Draft, Tool), model: ModelFacts, out: &mut Resolved) {
    if !are_simulated(names, draft, tool) {
        return hold_modules(names, (draft, tool), model, out);
    }
    out.put("saved_modules", names.join(" "));
    // `cast_trainable_params_to_fp32` of `llamafactory/model/adapter.py`, 0.9.5.
    if tool == Tool::LlamaFactory && draft.pure_bf16 != Some(true) {
        out.put("saved_dtype", SavedType::Fp32.name());
    }
}

/// Holds the modules that train in full beside adapters, if they hold tokens alone.
fn hold_modules(names: &[String], (draft, tool): (&Draft, Tool), model: ModelFacts, out: &mut Resolved) {
    let last = |name: &String| name.rsplit('.').next().unwrap_or_default().to_owned();
    let is_known = names.iter().all(|name| OF_TOKENS.contains(&last(name).as_str()));
    let table = model
        .vocabulary
        .zip(model.hidden_size)
        .map(|(rows, width)| rows.saturating_mul(width));
    let all = names.join(", ");
    match table.filter(|_| is_known) {
        Some(table) => {
            let bytes = bytes_of_trained(draft, tool);
            hold(product(&[bytes, table, names.len() as u64]), out);
            out.not_simulated.push(tables_beside(all, bytes));
        }
        None => out.not_simulated.push(Note::ModulesBeside.with([("names", all)])),
    }
}

#[cfg(test)]
mod tests {
    use vramscope_engine::simulate::In4Bits;

    use crate::tests::launch;
    use crate::{Grade, ModelFacts, Resolved};

    const SIZE: In4Bits = In4Bits {
        packed: 7 << 30,
        largest: 1 << 20,
        others: 1 << 30,
        vectors: 1 << 20,
    };

    /// A model of text of which all sizes are known.
    const MODEL: ModelFacts = ModelFacts {
        takes_images: false,
        hidden_size: Some(1 << 10),
        vocabulary: Some(1 << 16),
        cached: Some(1 << 14),
        has_fused_loss: true,
        parameters: Some(SIZE),
        ..ModelFacts::UNKNOWN
    };

    fn of(command: &str, model: ModelFacts) -> Resolved {
        launch(&[command]).resolve(model)
    }

    /// MiB that are held beside.
    fn beside(resolved: &Resolved) -> u64 {
        resolved
            .case
            .get("beside")
            .and_then(serde_json::Value::as_u64)
            .unwrap_or_default()
    }

    #[test]
    fn pairs_are_two_samples_and_a_reference_model_is_shared_with_the_others() {
        let dpo = |tuner: &str, more: &str| {
            let command = format!(
                "NPROC_PER_NODE=4 swift rlhf --rlhf_type dpo --model a/b --tuner_type {tuner} --max_length 1024 \
                 --per_device_train_batch_size 2 --deepspeed zero3 {more}"
            );
            of(&command, MODEL)
        };
        // Logits of four samples in fp32.
        let logits = (4 * 1024 * (1 << 16) * 4) >> 20;
        let adapted = dpo("lora", "");
        assert_eq!(
            (&adapted.case["batch"], &adapted.case["trainer"]),
            (&4.into(), &"transformers".into())
        );
        assert_eq!(adapted.case["strategy"], "deepspeed3");
        assert_eq!((beside(&adapted), adapted.grade()), (logits, Grade::AtMost));
        let shared = (2 * (8 << 30) / 4 + (2 << 20)) >> 20;
        assert_eq!(beside(&dpo("full", "")), logits + shared);
        assert_eq!(beside(&dpo("lora", "--rpo_alpha 0.1")), 3 * logits);
        // Another model stands beside the adapters.
        let named = dpo("lora", "--ref_model c/d");
        assert_eq!(named.grade(), Grade::DryRun);
        let known = ModelFacts {
            beside: Some(SIZE),
            ..MODEL
        };
        let command = "NPROC_PER_NODE=4 swift rlhf --rlhf_type dpo --model a/b --tuner_type lora --max_length 1024 \
                       --per_device_train_batch_size 2 --deepspeed zero3 --ref_model c/d";
        assert_eq!(beside(&of(command, known)), logits + shared);
    }

    #[test]
    fn what_has_no_logits_makes_a_few_of_them() {
        let embedding = of(
            "swift sft --model a/b --task_type embedding --loss_type infonce --max_length 512 \
             --per_device_train_batch_size 3",
            MODEL,
        );
        assert_eq!(
            (&embedding.case["batch"], &embedding.case["seq"]),
            (&3.into(), &1024.into())
        );
        assert_eq!(
            (&embedding.case["loss"], beside(&embedding)),
            (&"fused_linear".into(), 0)
        );
        assert_eq!(embedding.grade(), Grade::AtMost);
        let ranked = of("swift sft --model a/b --task_type reranker --max_length 512", MODEL);
        assert_eq!(
            (&ranked.case["seq"], &ranked.case["loss"]),
            (&4096.into(), &"fused_linear".into())
        );
        let fewer = "MAX_NEGATIVE_SAMPLES=3 swift sft --model a/b --task_type generative_reranker --max_length 512";
        let fewer = of(fewer, MODEL);
        assert_eq!(fewer.case["seq"], 2048);
        assert!(!fewer.case.contains_key("loss"), "{fewer:?}");
        let reward = of(
            "trl reward --model_name_or_path a/b --max_length 512 --per_device_train_batch_size 3",
            MODEL,
        );
        assert_eq!(
            (&reward.case["batch"], &reward.case["loss"]),
            (&6.into(), &"fused_linear".into())
        );
        // Of LLaMA-Factory's, the logits are there, and unused.
        let with_logits = of(
            "llamafactory-cli train --stage rm --model_name_or_path a/b --cutoff_len 512",
            MODEL,
        );
        assert!(!with_logits.case.contains_key("loss"), "{with_logits:?}");
    }

    #[test]
    fn a_teacher_of_unknown_size_leaves_no_bound() {
        let command =
            "swift rlhf --rlhf_type gkd --model a/b --teacher_model c/d --max_length 512 --max_completion_length 256";
        assert_eq!(of(command, MODEL).grade(), Grade::DryRun);
        let known = ModelFacts {
            beside: Some(SIZE),
            ..MODEL
        };
        let resolved = of(command, known);
        assert_eq!((&resolved.case["seq"], resolved.grade()), (&768.into(), Grade::AtMost));
        let whole = (2 * (8 << 30)) >> 20;
        assert!(beside(&resolved) > whole, "{resolved:?}");
        // On-policy distillation compares with a reference model too.
        let both = of(
            &command.replace("gkd", "grpo --tuner_type full --use_vllm true --vllm_mode server"),
            known,
        );
        assert!(beside(&both) > 2 * whole, "{both:?}");
        let without_words = ModelFacts {
            vocabulary: None,
            ..known
        };
        assert_eq!(of(command, without_words).grade(), Grade::DryRun);
    }

    #[test]
    fn modules_that_train_beside_adapters_are_simulated_or_counted() {
        let of = |names: &str| {
            let command =
                format!("trl sft --model_name_or_path a/b --use_peft --max_length 512 --lora_modules_to_save {names}");
            of(&command, MODEL)
        };
        let simulated = of("embed_tokens lm_head");
        assert_eq!(simulated.case["saved_modules"], "embed_tokens lm_head");
        assert_eq!((beside(&simulated), simulated.grade()), (0, Grade::AtMost));
        // Of what FSDP and the third stage of ZeRO share they are held.
        let table = 1 << 26;
        let sharded = of("embed_tokens --nproc_per_node 2 --use_deepspeed --zero_stage 3");
        assert!(sharded.case["strategy"] == "deepspeed3", "{sharded:?}");
        assert_eq!(beside(&sharded), (18 * table) >> 20);
        let other = of("embed_tokens merger --nproc_per_node 2 --use_deepspeed --zero_stage 3");
        assert_eq!((beside(&other), other.grade()), (0, Grade::DryRun));
        // LLaMA-Factory casts what is trained to fp32, unless it is told not to.
        let llama = |more: &str| {
            let file = format!(
                "stage: sft\nmodel_name_or_path: a/b\ncutoff_len: 512\nadditional_target: lm_head\nbf16: true\n{more}"
            );
            launch(&[&file]).resolve(MODEL).case
        };
        assert_eq!(llama("")["saved_dtype"], "fp32");
        assert!(!llama("pure_bf16: true\n").contains_key("saved_dtype"));
        // Weights in 4 bits are widened in other ways by each tool.
        let quantised = of("lm_head --load_in_4bit");
        assert!(
            !quantised.case.contains_key("saved_modules") && beside(&quantised) > 0,
            "{quantised:?}"
        );
    }

    #[test]
    fn layers_over_several_cards_are_at_most_those_of_one() {
        let resolved = of("CUDA_VISIBLE_DEVICES=0,1 swift sft --model a/b --max_length 512", MODEL);
        assert_eq!((resolved.layers_over, resolved.grade()), (Some(2), Grade::AtMost));
    }
}
