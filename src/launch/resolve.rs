//! Turns what a tool was told into the setup that is simulated, and says what that rests on.

use serde_json::{Value, json};
use vramscope_engine::setup::{Freeze, FrozenType, Loading, Loss, Parts, Targets, TrainerKind};
use vramscope_engine::simulate::In4Bits;
use vramscope_plan::export::targets_in_language_model;

use crate::autocast::autocast;
use crate::deepspeed::{engine, zero_stage};
use crate::draft::{Draft, Targets as Given, Weights};
use crate::fsdp::Fsdp;
use crate::images::{Filling, ImageRules};
use crate::larger::{hold, loss_of, save_modules, stand_in};
use crate::liger::liger;
use crate::loss::OtherLoss;
use crate::model_facts::ModelFacts;
use crate::processes::{Processes, no_gpus, processes};
use crate::remark::{Note, Remark};
use crate::resolved::Resolved;
use crate::tool::Tool;

/// Samples of one step that ms-swift accumulates to if nothing is said (`_init_gradient_accumulation_steps`).
const SWIFT_SAMPLES: u64 = 16;

/// Turns a draft into a case.
pub(crate) fn resolve(draft: &Draft, tool: Tool, model: ModelFacts) -> Resolved {
    let mut out = Resolved::default();
    let takes_images = model.takes_images;
    match &draft.model {
        Some(model) => out.put("model", model.as_str()),
        None => out.missing.push(Note::NoModel.into()),
    }
    batch(draft, tool, model, &mut out);
    optimizer(draft, &mut out);
    checkpointing(draft, tool, takes_images, &mut out);
    match draft.adapters {
        Some(true) => adapters(draft, tool, model, &mut out),
        _ => trained_parts(draft, takes_images, &mut out),
    }
    // DeepSpeed's engine casts all of the model.
    let has_engine = zero_stage(draft).is_some();
    if !has_engine {
        precision(draft, tool, model, &mut out);
    }
    let other_loss = loss_of(draft, tool, sharding_version(draft, tool));
    gpus((draft, tool), other_loss.is_some(), model, &mut out);
    liger(draft, tool, model, &mut out);
    if draft.cuts_loss == Some(true) && other_loss.is_none() {
        cut_loss(model, &mut out);
    }
    loss_settings(draft, &mut out);
    if tool == Tool::TrlGrpo {
        grpo(draft, &mut out);
    }
    attention(draft, tool, model, &mut out);
    if draft.bits == Some(4) && other_loss.is_none() {
        trainer_in_4_bits(tool, &mut out);
    }
    use_cache(draft, tool, takes_images, &mut out);
    if tool == Tool::MsSwift && draft.all_logits != Some(true) {
        out.assumed.push(Note::EveryLabel.into());
    }
    if !has_engine {
        compute_in_4_bits(draft, tool, model, &mut out);
    }
    if draft.compile == Some(true) {
        out.put("compile", true);
    }
    images(draft, tool, model, &mut out);
    loading(draft, tool, &mut out);
    larger_forms((draft, tool), other_loss, model, &mut out);
    if model.is_thinker && draft.talker != Some(false) {
        out.assumed.push(Note::Thinker.into());
    }
    videos(draft, takes_images, &mut out);
    if draft.names_tokens == Some(true) {
        out.assumed.push(Note::KnownTokens.into());
    }
    if draft.is_expandable == Some(true) {
        out.assumed.push(Note::Expandable.into());
    }
    out
}

/// The loss of a step, and what goes into it.
fn loss_settings(draft: &Draft, out: &mut Resolved) {
    if draft.old_loss == Some(true) && !out.case.contains_key("loss") {
        out.put("loss", "shifted");
    }
    let asked = draft.asked_loss.filter(|loss| *loss != Loss::Full);
    if let Some(loss) = asked.filter(|_| !out.case.contains_key("loss")) {
        out.put("loss", json!(loss));
    }
    if draft.neftune == Some(true) {
        out.put("neftune", true);
    }
    if draft.precomputed == Some(true) {
        out.put("reference", "precomputed");
    }
}

/// How weights come to the GPU.
fn loading(draft: &Draft, tool: Tool, out: &mut Resolved) {
    // It casts what is trained in full to fp32 once it is loaded (`_setup_full_tuning`), one weight by one.
    let is_cast = tool == Tool::LlamaFactory && draft.adapters != Some(true) && draft.pure_bf16 != Some(true);
    match tool {
        Tool::LlamaFactory | Tool::MsSwift if !is_cast && draft.bits.is_none() => {
            out.put("loading", Loading::Loaded.name())
        }
        _ if draft.is_moved == Some(true) && draft.bits.is_none() => out.put("loading", Loading::Moved.name()),
        _ => {}
    }
}

/// Larger forms of what is not simulated: of a loss, of weights in few bits, of what trains beside adapters.
fn larger_forms((draft, tool): (&Draft, Tool), other_loss: Option<OtherLoss>, model: ModelFacts, out: &mut Resolved) {
    if let Some(loss) = other_loss {
        stand_in(loss, (draft, tool), model, out);
    }
    if let Some(name) = &draft.few_bits {
        // A byte and a half less for each; what is unpacked is one layer at a time, sixteen bytes for each of its weights.
        let is_covered = |all: In4Bits| all.packed / 2 * 3 > 16 * all.largest;
        let values = [("model", name.clone())];
        out.not_simulated.push(match model.parameters.is_some_and(is_covered) {
            true => Note::FewBits.with(values),
            false => Note::FewBitsOpen.with(values),
        });
    }
    if draft.in_8_bits == Some(true) {
        eight_bits(draft, model, out);
    }
    if let Some(names) = draft.saved.as_ref().filter(|names| !names.is_empty()) {
        save_modules(names, (draft, tool), model, out);
    }
}

/// Weights in 8 bits, for which those in 16 bits stand: a byte more for each, where adapters train beside them. Kernels keep what
/// goes into them (`MatMul8bitLt` in bitsandbytes, 0.49), of one layer under checkpointing, and peft casts the other weights to
/// fp32 and so the logits.
fn eight_bits(draft: &Draft, model: ModelFacts, out: &mut Resolved) {
    let [batch, seq] = ["batch", "seq"].map(|key| out.number(key).unwrap_or(1));
    let tokens = batch.saturating_mul(seq);
    let sizes = model.parameters.zip(model.hidden_size).zip(model.vocabulary);
    let is_covered = sizes.is_some_and(|((all, width), words)| {
        let inputs = 3 * width + all.largest / width.max(1);
        all.packed
            > tokens
                .saturating_mul(6 * inputs + 4 * words)
                .saturating_add(2 * all.others)
    });
    let checkpoints = out.case.get("ckpt").and_then(Value::as_str);
    let is_bound = is_covered && matches!(checkpoints, Some("full" | "trained" | "language"));
    out.not_simulated.push(match draft.adapters {
        Some(true) if is_bound => Note::EightBits.into(),
        Some(true) => Note::EightBitsOpen.into(),
        _ => Note::QuantizedInFull.into(),
    });
}

/// Attention, or what keeps as much in its place.
fn attention(draft: &Draft, tool: Tool, model: ModelFacts, out: &mut Resolved) {
    match draft.attention {
        Some("flash_attention_2") if model.lacks_flash_attention => {
            out.put("attn", "sdpa");
            out.not_simulated.push(Note::NoFlashAttention.into());
        }
        Some(attention) => out.put("attn", attention),
        // `Gemma3VisionLoader` and `Gemma3TextLoader` in `swift/model/models/gemma.py`, 4.6.
        None if tool == Tool::MsSwift && matches!(model.model_type, "gemma3" | "gemma3_text") => {
            out.put("attn", "eager")
        }
        None => {}
    }
}

/// What TRL's GRPO does beside 4-bit weights, where transformers' `Trainer` is simulated.
fn trainer_in_4_bits(tool: Tool, out: &mut Resolved) {
    if tool == Tool::TrlGrpo {
        let values = [("tool", tool.name().to_owned())];
        out.not_simulated.push(Note::LossIn4Bits.with(values));
    }
}

/// What is done with images, and what the files do not tell of their sizes.
fn images(draft: &Draft, tool: Tool, model: ModelFacts, out: &mut Resolved) {
    let takes_images = model.takes_images;
    out.images = ImageRules::of(draft, tool, model);
    let seq = draft.seq.or(model.positions).filter(|_| takes_images);
    let filling = seq.and_then(|seq| out.images.filling(seq, model));
    // Cross-attention reads an image that takes no positions.
    let takes_none = model.images.is_some_and(|images| images.tokens == 0);
    let note = match filling {
        Some(_) => Note::FilledWithImages,
        None if takes_none => Note::OneImage,
        None => Note::ImageOfItsOwnSize,
    };
    if let Some(seq) = seq.filter(|_| filling.is_some() && tool == Tool::MsSwift) {
        // Another sample may be all text, and so have as many labels.
        out.put("completion", seq.saturating_sub(1).max(1));
    }
    match filling {
        Some(Filling::Count(count)) => out.put("images", count),
        Some(Filling::Sizes(sizes)) => out.put("image_sizes", json!(sizes)),
        Some(Filling::Side(side)) => out.put("image", side),
        None if takes_none => out.put("images", 1),
        None => {}
    }
    if takes_images {
        out.assumed.push(note.into());
        // LLaMA-Factory's collator casts them; ms-swift's does too, and leaves masks.
        if !matches!(tool, Tool::LlamaFactory | Tool::Loop) {
            out.put("pixels", "processor");
        }
    }
    let most = [draft.pixels, draft.processor_pixels].into_iter().flatten().min();
    match most {
        _ if !takes_images => {}
        Some(pixels) => {
            let side = pixels.isqrt();
            let values = [("pixels", pixels.to_string()), ("side", side.to_string())];
            out.missing.push(Note::MostPixels.with(values));
        }
        None if draft.image_tokens.is_none() => out.missing.push(Note::NoImageSize.into()),
        None => {}
    }
    if let Some(tokens) = draft.image_tokens.filter(|_| takes_images) {
        out.missing
            .push(Note::MostTokens.with([("tokens", tokens.to_string())]));
    }
}

/// What GRPO generates and compares with.
fn grpo(draft: &Draft, out: &mut Resolved) {
    if draft.beta.unwrap_or_default() == 0.0 {
        out.put("reference", "none");
    }
    let counts = [
        ("completion", draft.completion),
        ("num_iterations", draft.num_iterations),
    ];
    for (key, count) in counts {
        if let Some(count) = count {
            out.put(key, count);
        }
    }
    let gpus = processes(draft, Tool::TrlGrpo).world;
    let of_batch = |all: u64| (all / gpus / draft.batch.unwrap_or(1)).max(1);
    if let Some(steps) = draft.steps_per_generation.or(draft.generation_batch.map(of_batch)) {
        out.put("steps_per_generation", steps);
    }
    if draft.vllm == Some(true) {
        out.put("generation", "vllm");
        if draft.is_colocated != Some(false) {
            let share = draft.vllm_share.unwrap_or_default();
            out.vllm_share = Some(share);
            out.assumed.push(Note::Vllm.with([("share", share.to_string())]));
        }
    }
}

/// Names the sizes of videos, which the files do not hold.
fn videos(draft: &Draft, takes_images: bool, out: &mut Resolved) {
    let named = [(0, "pixels each"), (1, "frames"), (2, "frames a second")];
    let told: Vec<String> = named
        .into_iter()
        .filter_map(|(at, name)| draft.video[at].map(|value| format!("{value} {name}")))
        .collect();
    if takes_images && !told.is_empty() {
        out.missing.push(Note::MostVideo.with([("most", told.join(", "))]));
    }
}

/// Keys and values that a forward keeps. Each tool switches them off in training; `Trainer` itself, in the outermost
/// configuration alone, which the language model of a vision-language model does not read.
fn use_cache(draft: &Draft, tool: Tool, takes_images: bool, out: &mut Resolved) {
    match tool {
        Tool::Transformers if takes_images => {}
        Tool::Transformers => out.put("use_cache", draft.use_cache.unwrap_or(false)),
        Tool::DeepSpeed | Tool::Accelerate => {}
        Tool::Loop => {
            if let Some(is_on) = draft.use_cache {
                out.put("use_cache", is_on);
            }
        }
        _ => out.put("use_cache", false),
    }
}

/// Cut Cross-Entropy, for which Liger's fused loss stands, if it is simulated: that has the logits of a few positions at a
/// time, where Cut Cross-Entropy has numbers for each position and each token of the vocabulary, sorted (`cut_cross_entropy/cce.py`
/// and `utils.py` of apple/ml-cross-entropy, 25.5), and both the gradients of hidden states and head.
fn cut_loss(model: ModelFacts, out: &mut Resolved) {
    /// Bytes of a token's mean logit, its place, and the same while they are sorted.
    const OF_TOKEN: u64 = 4 + 8 + 12;
    if !model.has_fused_loss {
        return;
    }
    if let Some(tokens) = model.vocabulary {
        out.put("loss", "fused_linear");
        hold(tokens.saturating_mul(OF_TOKEN), out);
    }
}

fn batch(draft: &Draft, tool: Tool, model: ModelFacts, out: &mut Resolved) {
    let gpus = processes(draft, tool).world;
    // DeepSpeed finds what is missing of three numbers; beside a trainer they are the trainer's own.
    let total = draft.total_batch.filter(|_| tool == Tool::DeepSpeed);
    let of_total = |known: Option<u64>| total.map(|total| (total / gpus / known.unwrap_or(1)).max(1));
    let batch = draft.batch.or_else(|| of_total(draft.accum)).unwrap_or(1);
    out.put("batch", batch);
    // TRL cuts prompts of text alone.
    let of_prompt = || match (tool, draft.prompt, draft.completion) {
        (Tool::TrlGrpo, Some(prompt), Some(completion)) if !model.takes_images => {
            Some(prompt.saturating_add(completion))
        }
        _ => None,
    };
    match draft.seq.or_else(of_prompt) {
        Some(seq) => {
            out.put("seq", seq);
            let positions = ("seq", seq.to_string());
            out.assumed.push(match draft.pads_to_limit {
                Some(tool) => Note::PaddedSamples.with([positions, ("tool", tool.to_owned())]),
                None => Note::LongestSamples.with([positions]),
            });
        }
        None => match model.positions {
            Some(positions) => {
                out.put("seq", positions);
                out.missing
                    .push(Note::AllPositions.with([("seq", positions.to_string())]));
            }
            None => out.missing.push(Note::NoLength.into()),
        },
    }
    if tool == Tool::LlamaFactory && draft.pads_to_limit.is_some() && model.takes_images {
        out.assumed.push(Note::ImagesOfRows.into());
    }
    if tool == Tool::LlamaFactory {
        // Whatever the stage (`pad_to_multiple_of=8` in `llamafactory/train/*/workflow.py`, 0.9.5).
        out.put("pad_to_multiple_of", 8);
    }
    let accum = match (draft.accum.or_else(|| of_total(Some(batch))), tool) {
        (Some(accum), _) => accum,
        (None, Tool::MsSwift | Tool::MsSwift2) => SWIFT_SAMPLES.div_ceil(batch.saturating_mul(gpus)),
        (None, _) => 1,
    };
    out.put("accum", accum);
}

fn optimizer(draft: &Draft, out: &mut Resolved) {
    if let Some(name) = &draft.optim {
        match vramscope_plan::optimizer_named(name) {
            Some(optim) => out.put("optim", json!(optim)),
            None if name == "adamw_hf" => {
                out.put("optim", "adamw");
                out.not_simulated.push(Note::OlderAdamw.into());
            }
            None => {
                let known: Vec<&str> = vramscope_plan::optimizer_names().collect();
                let values = [("name", name.clone()), ("known", known.join(", "))];
                out.not_simulated.push(Note::OtherOptimizer.with(values));
            }
        }
    }
    out.put("clip", draft.clip.unwrap_or(false));
}

fn checkpointing(draft: &Draft, tool: Tool, takes_images: bool, out: &mut Resolved) {
    let by_fsdp = draft.fsdp.checkpoints == Some(true) && draft.fsdp.is_on != Some(false);
    let language = draft.checkpoints.unwrap_or(false) || by_fsdp;
    let vision = draft.vision_checkpoints.unwrap_or(language);
    let word = match (language, vision) {
        (true, true) if tool == Tool::LlamaFactory && takes_images => "trained",
        (true, true) => "full",
        (true, false) => "language",
        (false, true) => "vision",
        (false, false) => "none",
    };
    out.put("ckpt", word);
    // What accelerate checkpoints for FSDP is not reentrant (`CheckpointImpl.NO_REENTRANT`).
    if (language || vision) && !by_fsdp && is_reentrant(draft, tool) {
        out.put("reentrant", true);
    }
}

/// Returns true if the tool makes reentrant checkpoints: what the file says, or else its own default.
fn is_reentrant(draft: &Draft, tool: Tool) -> bool {
    let has_engine = zero_stage(draft).is_some();
    match tool {
        // `_fix_gradient_checkpointing` in `swift/trainers/mixin.py`, 4.6: DDP would wait for gradients twice.
        Tool::MsSwift | Tool::MsSwift2 => draft.reentrant.unwrap_or_else(|| {
            let is_ddp = processes(draft, tool).world > 1 && !has_engine && sharding_version(draft, tool).is_none();
            !is_ddp
        }),
        // `prepare_model_for_training` in `llamafactory/model/model_utils/checkpointing.py`, 0.9.5.
        Tool::LlamaFactory => draft.reentrant.unwrap_or(true) && sharding_version(draft, tool) != Some(2),
        // transformers 5 and TRL take the other kind. Where TRL forces this one, the engine does.
        _ => draft.reentrant.unwrap_or(false),
    }
}

/// Adapters beside frozen weights.
fn adapters(draft: &Draft, tool: Tool, model: ModelFacts, out: &mut Resolved) {
    out.put("freeze", if draft.bits == Some(4) { "qlora" } else { "lora" });
    // TRL's own preparation is simulated with its trainers.
    let is_known = matches!(tool, Tool::Transformers | Tool::TrlSft | Tool::TrlDpo);
    if draft.bits == Some(4) && !is_known {
        out.not_simulated
            .push(Note::QloraOfTool.with([("tool", tool.name().to_owned())]));
    }
    if draft.bits == Some(4) && draft.double_quant == Some(false) {
        // What is cast to fp32 here stays in 16 bits there, unless a script has peft cast it.
        let is_cast_here = draft
            .prepared
            .map_or(tool != Tool::Transformers, |is_prepared| !is_prepared);
        let is_covered = model.parameters.is_some_and(|all| is_cast_here && covers_scales(all));
        out.not_simulated.push(match is_covered {
            true => Note::ScalesAreCovered.into(),
            false => Note::SingleQuantization.into(),
        });
    }
    if let Some(rank) = draft.rank {
        out.put("rank", rank);
    }
    if let Some(dropout) = draft.dropout {
        out.put("lora_dropout", dropout);
    }
    if draft.dora == Some(true) {
        out.put("dora", true);
    }
    let (targets, more) = targets(draft, tool, model.takes_images);
    match targets {
        Some(targets) => out.put("lora_targets", String::from(targets)),
        None => out.missing.push(Note::NoTargets.into()),
    }
    out.not_simulated.extend(more);
    if draft.lora_dtype == Some(Weights::Bf16) {
        out.put("lora_dtype", "bf16");
    }
}

/// Returns true if what casting weights to fp32 adds is more than fp32 scales take of those in 4 bits: four bytes for each 64,
/// where double quantization has one, and four for 256 of those.
const fn covers_scales(of: In4Bits) -> bool {
    2 * of.others > of.packed / 64 * 3
}

/// Returns true if what casting weights to fp32 adds is more than the largest of those in 4 bits takes in full, in fp32 and once
/// more in 16 bits.
const fn covers_weights(of: In4Bits) -> bool {
    2 * of.others > 6 * of.largest
}

/// Modules that get adapters, `None` if the launch leaves them to peft; and which of them get none in the run itself, where
/// no setting says so.
fn targets(draft: &Draft, tool: Tool, takes_images: bool) -> (Option<Targets>, Option<Remark>) {
    let is_frozen = |part: Option<bool>| takes_images && part == Some(true);
    let [vision, connector] = [draft.freeze_vision, draft.freeze_connector].map(is_frozen);
    let in_language_model = |names: &[String]| match targets_in_language_model(names) {
        Some(targets) => (Some(targets), None),
        None => (
            Some(Targets::Named(names.to_vec())),
            Some(Note::TargetsInLanguage.with([("names", names.join(", "))])),
        ),
    };
    match &draft.targets {
        None => (None, None),
        Some(Given::AllLinear) => match (tool, vision, connector) {
            // LLaMA-Factory leaves the connector out of `all` (`find_all_linear_modules`).
            (Tool::LlamaFactory, false, _) if takes_images => {
                (Some(Targets::AllLinear), Some(Note::TargetsNotInConnector.into()))
            }
            (_, false, false) => (Some(Targets::AllLinear), None),
            (Tool::LlamaFactory, true, _) | (_, true, true) => (Some(Targets::LanguageModel), None),
            _ => (Some(Targets::AllLinear), Some(Note::TargetsInOnePart.into())),
        },
        // LLaMA-Factory leaves out a frozen tower whatever the names (`patch_target_modules`).
        Some(Given::Named(names)) if tool == Tool::LlamaFactory && vision => in_language_model(names),
        Some(Given::Named(names)) => (Some(Targets::Named(names.clone())), None),
        Some(Given::InLanguageModel(names)) => in_language_model(names),
    }
}

/// Parts that train in full; a text model has no others and trains whole.
fn trained_parts(draft: &Draft, takes_images: bool, out: &mut Resolved) {
    if draft.bits.is_some() {
        out.not_simulated.push(Note::QuantizedInFull.into());
    }
    for (key, names) in [
        ("frozen_names", &draft.frozen_names),
        ("trained_names", &draft.trained_names),
    ] {
        if let Some(names) = names.as_ref().filter(|names| !names.is_empty()) {
            out.put(key, names.join(" "));
        }
    }
    let parts = [draft.freeze_vision, draft.freeze_connector, draft.freeze_language];
    let [vision, connector, language] = parts.map(|part| takes_images && part == Some(true));
    let freeze = Freeze::Parts(Parts {
        vision,
        connector,
        language,
    });
    if Freeze::ALL.contains(&freeze) {
        return out.put("freeze", freeze.name());
    }
    out.put("freeze", Freeze::NONE.name());
    let parts = "the vision tower, the connector and the language model".to_owned();
    out.not_simulated.push(Note::FreezingParts.with([("parts", parts)]));
}

/// Types of weights and compute.
fn precision(draft: &Draft, tool: Tool, model: ModelFacts, out: &mut Resolved) {
    let [bf16, fp16] = autocast(draft, tool);
    if draft.unsloth == Some(true) && model.overflows_fp16 && !bf16 && draft.weights == Some(Weights::Fp16) {
        out.put("precision", "fp32");
        out.not_simulated.push(Note::Fp32ForFp16.into());
        return;
    }
    let adapters = draft.adapters == Some(true);
    let weights = match (tool, draft.weights) {
        (Tool::LlamaFactory, _) if draft.pure_bf16 == Some(true) => Weights::Bf16,
        // It loads weights in the type of compute, and then casts those that are trained to fp32.
        (Tool::LlamaFactory, _) if !adapters => {
            if out
                .case
                .get("freeze")
                .is_some_and(|freeze| freeze != Freeze::NONE.name())
            {
                out.put("frozen_weights", FrozenType::Autocast.name());
            }
            Weights::Fp32
        }
        (Tool::LlamaFactory, _) if bf16 => Weights::Bf16,
        (Tool::LlamaFactory, _) if fp16 => Weights::Fp16,
        (_, Some(Weights::Auto) | None) if model.is_stored_in_fp32 => Weights::Fp32,
        (_, Some(Weights::Auto) | None) => {
            out.assumed.push(Note::Bf16Weights.into());
            Weights::Bf16
        }
        (_, Some(weights)) => weights,
    };
    match (weights, bf16, fp16) {
        (Weights::Fp32, true, _) => out.put("precision", "amp-bf16"),
        (Weights::Fp32, false, true) => out.put("precision", "amp-fp16"),
        (Weights::Fp32, false, false) => out.put("precision", "fp32"),
        // Its weights that are not in 4 bits are simulated in fp32.
        (Weights::Bf16 | Weights::Auto, _, true) if is_qlora(draft) => out.put("precision", "fp16-amp"),
        (Weights::Fp16, true, _) if is_qlora(draft) => out.put("precision", "bf16-amp"),
        (Weights::Fp16, false, true) => out.put("precision", "fp16-amp"),
        (Weights::Fp16, false, false) => out.put("precision", "fp16"),
        (Weights::Fp16, true, _) => {
            out.put("precision", "bf16-amp");
            out.not_simulated.push(Note::Fp16UnderBf16.into());
        }
        (Weights::Bf16 | Weights::Auto, _, true) => {
            out.put("precision", "bf16");
            out.not_simulated.push(Note::Bf16UnderFp16.into());
        }
        (Weights::Bf16 | Weights::Auto, true, false) => out.put("precision", "bf16-amp"),
        (Weights::Bf16 | Weights::Auto, false, false) => out.put("precision", "bf16"),
    }
}

const fn is_qlora(draft: &Draft) -> bool {
    matches!((draft.adapters, draft.bits), (Some(true), Some(4)))
}

/// Compute in 4-bit weights of another type than that of all else.
fn compute_in_4_bits(draft: &Draft, tool: Tool, model: ModelFacts, out: &mut Resolved) {
    let [bf16, fp16] = autocast(draft, tool);
    let name = |weights: Weights| match weights {
        Weights::Fp32 => "fp32",
        Weights::Bf16 | Weights::Auto => "bf16",
        Weights::Fp16 => "fp16",
    };
    let own = match (bf16, fp16, draft.weights) {
        (true, ..) => Weights::Bf16,
        (false, true, _) => Weights::Fp16,
        (_, _, weights) => weights.unwrap_or(Weights::Auto),
    };
    let Some(compute) = draft.compute.filter(|_| is_qlora(draft)) else {
        return;
    };
    let leaves_weights = draft.prepared.map_or(tool == Tool::Loop, |is_prepared| !is_prepared);
    let note = match (compute, own) {
        (compute, own) if name(compute) == name(own) => return,
        // What peft casts to fp32 is in fp32 in the run too; a loop of its own leaves it as it is.
        (Weights::Fp32, _) if leaves_weights && model.parameters.is_some_and(covers_weights) => Note::Fp32IsCovered,
        (Weights::Fp32, _) | (_, Weights::Fp32) => Note::ComputeInFp32,
        _ => Note::ComputeIn4Bits,
    };
    let values = [("dtype", name(compute).to_owned()), ("other", name(own).to_owned())];
    out.not_simulated.push(note.with(values));
}

fn gpus((draft, tool): (&Draft, Tool), has_other_loss: bool, model: ModelFacts, out: &mut Resolved) {
    let processes = processes(draft, tool);
    let world = processes.world;
    if processes.gpus_of_each > 1 {
        let note = match tool {
            Tool::MsSwift | Tool::MsSwift2 => {
                out.layers_over = (world == 1).then_some(processes.gpus_of_each);
                Note::DeviceMap
            }
            _ => Note::OneProcess,
        };
        out.not_simulated
            .push(note.with([("gpus", processes.gpus_of_each.to_string())]));
    }
    let zero_stage = zero_stage(draft);
    let is_fsdp = zero_stage.is_none() && is_sharded(&draft.fsdp, tool) && (world > 1 || !processes.is_stated);
    let is_several = world > 1 || zero_stage.is_some();
    let trainer = trainer(draft, tool);
    // Files that name no program.
    let has_own_loop = is_several && matches!(tool, Tool::DeepSpeed | Tool::Accelerate);
    if has_own_loop {
        out.assumed.push(Note::OwnLoop.into());
    } else if !has_other_loss {
        out.put("trainer", trainer.name());
    }
    if let Some(stage) = zero_stage {
        return engine((draft, tool), (stage, processes), model.hidden_size, out);
    }
    if is_fsdp {
        return fsdp((draft, tool), model.takes_images, processes, out);
    }
    if world > 1 {
        out.put("world", world);
        out.put("strategy", "ddp");
        if let Some(bucket) = draft.bucket {
            out.put("bucket", bucket);
        }
        return;
    }
    match processes.is_stated {
        true => {}
        false if draft.open_gpus.is_some() => {
            out.put("strategy", "ddp");
            out.put("world", world);
            out.missing.push(no_gpus(draft));
        }
        false => out.assumed.push(Note::OneGpu.into()),
    }
}

/// Returns true if FSDP shards the model of a tool's run; axolotl has it run where its settings are given.
fn is_sharded(fsdp: &Fsdp, tool: Tool) -> bool {
    fsdp.is_on == Some(true) || tool == Tool::Axolotl && *fsdp != Fsdp::default()
}

/// The version of FSDP that a tool's run has.
fn fsdp_version(draft: &Draft, tool: Tool) -> u64 {
    draft.fsdp.runs(tool != Tool::Axolotl, draft.is_before_5 == Some(true))
}

/// The same, if it shards the model.
fn sharding_version(draft: &Draft, tool: Tool) -> Option<u64> {
    is_sharded(&draft.fsdp, tool).then(|| fsdp_version(draft, tool))
}

/// Puts FSDP into a case.
fn fsdp((draft, tool): (&Draft, Tool), takes_images: bool, processes: Processes, out: &mut Resolved) {
    let given = &draft.fsdp;
    if let Some(names) = given.classes.as_ref().filter(|_| takes_images) {
        out.not_simulated
            .push(Note::WrappedClasses.with([("names", names.clone())]));
    }
    // axolotl sets accelerate's variables by itself, and no version without a key.
    let version = fsdp_version(draft, tool);
    let strategy = match (version, given.reshards) {
        (2, Some(false)) => "fsdp_no_reshard",
        (2, _) => "fsdp",
        (_, Some(false)) => "fsdp1_no_reshard",
        (_, _) => "fsdp1",
    };
    out.put("strategy", strategy);
    out.put("world", processes.world);
    if !processes.is_stated {
        out.missing.push(no_gpus(draft));
    }
    if given.offloads == Some(true) {
        out.put("offload", true);
    }
    if version == 1 && given.prefetches != Some(true) {
        out.assumed.push(Note::GatheredAhead.into());
    }
}

/// The trainer of a tool: every one that is known trains with transformers' `Trainer`, or with a subclass of it.
fn trainer(draft: &Draft, tool: Tool) -> TrainerKind {
    match tool {
        Tool::Loop => TrainerKind::Loop,
        Tool::TrlSft => TrainerKind::TrlSft,
        Tool::TrlDpo => TrainerKind::TrlDpo,
        // Other tools' own preparation of 4-bit weights is not simulated.
        _ if draft.bits.is_some() => TrainerKind::Transformers,
        Tool::MsSwift if draft.is_dpo == Some(true) => TrainerKind::MsSwiftDpo,
        Tool::MsSwift if draft.all_logits != Some(true) => TrainerKind::MsSwift,
        Tool::TrlGrpo => TrainerKind::TrlGrpo,
        _ => TrainerKind::Transformers,
    }
}
