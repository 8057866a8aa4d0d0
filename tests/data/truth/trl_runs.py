"""Steps of TRL's trainers on drawn configurations, as people start them: the model lies in a folder and the trainer loads it.

`run(case, build)`: `build` makes a model and a function that makes its inputs, as in measure.py. Cases are measure.py's, with
`trainer` "trl_sft", "trl_dpo" or "trl_grpo"; `completion`: tokens of each sample that the loss counts; `lengths`: tokens of each
sample of a micro-batch; `reference` "precomputed" (DPO) or "none" (GRPO: `beta` 0). Text goes through TRL's own collators, images
through one that gives what the family's processor gives (for DPO twice: chosen and rejected).

GRPO: `batch` completions a micro-batch, `steps_per_generation` (absent: `accum`), `num_iterations`; the rest of a sample is the
prompt. The last step is one that generates.
"""
import gc, os, shutil, tempfile
import torch
import two_gpus

STEPS = 4
LORA = r".*(language_model|model\.layers).*\.(q_proj|k_proj|v_proj|o_proj|gate_proj|up_proj|down_proj)"  # as in measure.py

def lengths(case):
    return case.get("lengths") or [case["seq"]] * case["batch"]

def sft_rows(case, vocab):
    """Token ids, and labels of the last `completion` of them."""
    kept, samples = case.get("completion"), lengths(case)
    for r in range(case.get("accum", 1) * STEPS * case.get("world", 1)):
        for n in samples:
            ids = [3 + (r + i) % (vocab - 3) for i in range(n)]
            yield dict(input_ids=ids, **({} if kept is None else dict(labels=[-100] * (n - min(kept, n)) + ids[n - min(kept, n):])))

def dpo_rows(case):
    """Words, as many as tokens: the prompt is what `completion` leaves, and TRL adds the last token of each answer."""
    text = lambda n, at: " ".join(f"w{(at + i) % 4000}" for i in range(n))
    for r in range(case.get("accum", 1) * STEPS * case.get("world", 1)):
        for n in lengths(case):
            kept = min(case.get("completion") or n - 1, n - 1)
            yield dict(prompt=text(n - kept, r), chosen=" " + text(kept - 1, r + 1), rejected=" " + text(kept - 1, r + 2))

def grpo_rows(case):
    """Prompts, as many words as tokens."""
    for r in range(4096):
        yield dict(prompt=" ".join(f"w{(r + i) % 4000}" for i in range(case["seq"] - case["completion"])))

def grpo_steps(case):
    """Optimizer steps, of which the last generates."""
    accum = case.get("accum", 1)
    every = max(1, (case.get("steps_per_generation") or accum) * case.get("num_iterations", 1) // accum)
    return next(n for n in range(STEPS, 64) if (n - 1) % every == 0)

def by_length(completions, **_):
    """A reward of Python numbers."""
    return [float(len(text) % 7) for text in completions]

def without_end(trainer):
    """Lets no completion end before its last token, without processors of logits that would take memory."""
    trainer.eos_token_ids = [-1]
    trainer.generation_config.eos_token_id = [-1]
    return trainer

def collator(case, made):
    """Batches with images, made once and given again and again."""
    turn = [0]
    def collate(rows):
        batch = dict(made[turn[0] % len(made)]); turn[0] += 1
        n, kept = batch["input_ids"].size(1), case.get("completion")
        counted = torch.arange(n) >= n - (n if kept is None else kept)
        if case["trainer"] == "trl_sft":
            batch["labels"] = batch["labels"].masked_fill(~counted, -100)
            return batch
        rows = 2 * batch["input_ids"].size(0)
        return {"completion_mask" if k == "labels" else k: counted.long().expand(rows, n).contiguous() if k == "labels" else torch.cat([v, v]) for k, v in batch.items()}
    return collate

def arguments(case, folder):
    p, ck = case["precision"], case.get("ckpt", "none") != "none"
    if case["trainer"] == "trl_grpo":
        accum = case.get("accum", 1)
        own = dict(max_completion_length=case["completion"], beta=0.0 if case.get("reference") == "none" else 0.04, num_iterations=case.get("num_iterations", 1),
            steps_per_generation=case.get("steps_per_generation"), num_generations=case.get("generations") or case["batch"] * (case.get("steps_per_generation") or accum), max_steps=grpo_steps(case))
        common = arguments(dict(case, trainer="trl_sft", reference=None), folder)
        return {**{k: v for k, v in common.items() if k not in ("max_length", "remove_unused_columns")}, **own}
    more = dict(precompute_ref_log_probs=True) if case.get("reference") == "precomputed" else {}
    if "strategy" in case: more.update(two_gpus.sharing(two_gpus.front(case), case))
    if case["trainer"] == "trl_sft" and case.get("loss") == "dft": more.update(loss_type="dft")
    if case["trainer"] == "trl_sft" and case.get("packing") == "packed": more.update(padding_free=True)
    limit = None if case.get("packing") == "packed" or case.get("images", 0) else max(lengths(case))
    return dict(output_dir=os.path.join(folder, "o"), max_steps=STEPS, per_device_train_batch_size=len(lengths(case)), gradient_accumulation_steps=case.get("accum", 1), save_strategy="no", report_to=[],
        logging_steps=1, max_length=limit, disable_tqdm=True, bf16=p in ("amp-bf16", "bf16-amp"), fp16=p == "amp-fp16", optim=two_gpus.OPTIMIZERS[case.get("optim", "adamw_fused")], gradient_checkpointing=ck, gradient_checkpointing_kwargs=dict(use_reentrant=True) if ck and case.get("reentrant") else None,
        learning_rate=1e-6, train_sampling_strategy="sequential", max_grad_norm=1.0 if case.get("clip", True) else 0.0, remove_unused_columns=not case.get("images"),
        model_init_kwargs=dict(dtype="bfloat16" if p in ("bf16", "bf16-amp") else "float32", attn_implementation=case.get("attn", "sdpa")), **more)

def run(case, build):
    from datasets import Dataset
    from peft import LoraConfig
    from trl import DPOConfig, DPOTrainer, GRPOConfig, GRPOTrainer, SFTConfig, SFTTrainer
    import fronts
    folder = tempfile.mkdtemp()
    c = dict(case, precision="fp32", freeze="none")  # whose pixel values nobody casts; the trainer loads weights as `arguments` say
    model, inp = build(c, torch.Generator(device="cuda").manual_seed(0))
    vocab = model.config.get_text_config().vocab_size
    made = [{k: v.cpu() if torch.is_tensor(v) else v for k, v in inp().items()} for _ in range(case.get("accum", 1))] if case.get("images") else []
    if case["trainer"] == "trl_grpo":  # keys and values are kept while it generates, as published models say
        model.config.use_cache = True; model.generation_config.use_cache = True
    model.save_pretrained(folder)
    del model, inp; gc.collect(); torch.cuda.empty_cache()
    rows = list(sft_rows(case, vocab) if case["trainer"] == "trl_sft" else grpo_rows(case) if case["trainer"] == "trl_grpo" else dpo_rows(case))
    lora = None
    if case.get("freeze") in ("lora", "qlora"): lora = LoraConfig(r=case.get("rank", 16), lora_alpha=32, lora_dropout=case.get("lora_dropout", 0.0), target_modules=case.get("targets", LORA), modules_to_save=case.get("saved_modules", "").split() or None, task_type="CAUSAL_LM")
    args, marks = arguments(case, folder), []
    if case.get("freeze") == "qlora":
        from transformers import BitsAndBytesConfig
        args["model_init_kwargs"]["quantization_config"] = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True, bnb_4bit_compute_dtype=torch.bfloat16)
    if made: args.update(remove_unused_columns=False)
    given = dict(model=folder, train_dataset=Dataset.from_list(rows), processing_class=fronts.words(vocab), peft_config=lora, callbacks=[fronts.meter(marks)], data_collator=collator(case, made) if made else None)
    torch.cuda.reset_peak_memory_stats(); torch.cuda.reset_accumulated_memory_stats()
    if case["trainer"] == "trl_grpo":
        del given["data_collator"]
        t = without_end(GRPOTrainer(args=GRPOConfig(**args), reward_funcs=by_length, **given))
    else: t = SFTTrainer(args=SFTConfig(**args), **given) if case["trainer"] == "trl_sft" else DPOTrainer(args=DPOConfig(**args), **given)
    if case.get("freeze") in ("vision", "all-but-connector"): raise ValueError("TRL freezes nothing by itself")
    r = dict(case=case, params=sum(x.numel() for x in t.model.parameters()), trainable=sum(x.numel() for x in t.model.parameters() if x.requires_grad), after_model=torch.cuda.memory_allocated())
    t.train()
    shutil.rmtree(folder, ignore_errors=True)
    return fronts.settled(r, marks)
