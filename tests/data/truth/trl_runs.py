"""Steps of TRL's trainers on drawn configurations, as people start them: the model lies in a folder and the trainer loads it.

`run(case, build)`: `build` makes a model and a function that makes its inputs, as in measure.py. Cases are measure.py's, with
`trainer` "trl_sft" or "trl_dpo"; `completion`: tokens of each sample that the loss counts; `lengths`: tokens of each sample of a
micro-batch; `reference` "precomputed" (DPO). Text goes through TRL's own collators, images through one that gives what the family's
processor gives (for DPO twice: chosen and rejected).
"""
import gc, os, shutil, tempfile
import torch

STEPS = 4
LORA = r".*(language_model|model\.layers).*\.(q_proj|k_proj|v_proj|o_proj|gate_proj|up_proj|down_proj)"  # as in measure.py
OPTIM = {"adamw_fused": "adamw_torch_fused", "adamw": "adamw_torch", "adafactor": "adafactor", "sgd": "sgd", "adamw8bit": "adamw_bnb_8bit"}

def lengths(case):
    return case.get("lengths") or [case["seq"]] * case["batch"]

def sft_rows(case, vocab):
    """Token ids, and labels of the last `completion` of them."""
    kept, samples = case.get("completion"), lengths(case)
    for r in range(case.get("accum", 1) * STEPS):
        for n in samples:
            ids = [3 + (r + i) % (vocab - 3) for i in range(n)]
            yield dict(input_ids=ids, **({} if kept is None else dict(labels=[-100] * (n - min(kept, n)) + ids[n - min(kept, n):])))

def dpo_rows(case):
    """Words, as many as tokens: the prompt is what `completion` leaves, and TRL adds the last token of each answer."""
    text = lambda n, at: " ".join(f"w{(at + i) % 4000}" for i in range(n))
    for r in range(case.get("accum", 1) * STEPS):
        for n in lengths(case):
            kept = min(case.get("completion") or n - 1, n - 1)
            yield dict(prompt=text(n - kept, r), chosen=" " + text(kept - 1, r + 1), rejected=" " + text(kept - 1, r + 2))

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
    more = dict(precompute_ref_log_probs=True) if case.get("reference") == "precomputed" else {}
    if case["trainer"] == "trl_sft" and case.get("packing") == "packed": more.update(padding_free=True)
    limit = None if case.get("packing") == "packed" or case.get("images", 0) else max(lengths(case))
    return dict(output_dir=os.path.join(folder, "o"), max_steps=STEPS, per_device_train_batch_size=len(lengths(case)), gradient_accumulation_steps=case.get("accum", 1), save_strategy="no", report_to=[],
        logging_steps=1, max_length=limit, disable_tqdm=True, bf16=p in ("amp-bf16", "bf16-amp"), fp16=p == "amp-fp16", optim=OPTIM[case.get("optim", "adamw_fused")], gradient_checkpointing=ck,
        learning_rate=1e-6, train_sampling_strategy="sequential", max_grad_norm=1.0 if case.get("clip", True) else 0.0, remove_unused_columns=not case.get("images"),
        model_init_kwargs=dict(dtype="bfloat16" if p in ("bf16", "bf16-amp") else "float32", attn_implementation=case.get("attn", "sdpa")), **more)

def run(case, build):
    from datasets import Dataset
    from peft import LoraConfig
    from trl import DPOConfig, DPOTrainer, SFTConfig, SFTTrainer
    import fronts
    folder = tempfile.mkdtemp()
    c = dict(case, precision="fp32")  # whose pixel values nobody casts; the trainer loads weights in the type of `arguments`
    model, inp = build(c, torch.Generator(device="cuda").manual_seed(0))
    vocab = model.config.get_text_config().vocab_size
    made = [{k: v.cpu() if torch.is_tensor(v) else v for k, v in inp().items()} for _ in range(case.get("accum", 1))] if case.get("images") else []
    model.save_pretrained(folder)
    del model, inp; gc.collect(); torch.cuda.empty_cache()
    rows = list(sft_rows(case, vocab) if case["trainer"] == "trl_sft" else dpo_rows(case))
    lora = None
    if case.get("freeze") == "lora": lora = LoraConfig(r=case.get("rank", 16), lora_alpha=32, lora_dropout=case.get("lora_dropout", 0.0), target_modules=case.get("targets", LORA), task_type="CAUSAL_LM")
    args, marks = arguments(case, folder), []
    if made: args.update(remove_unused_columns=False)
    given = dict(model=folder, train_dataset=Dataset.from_list(rows), processing_class=fronts.words(vocab), peft_config=lora, callbacks=[fronts.meter(marks)], data_collator=collator(case, made) if made else None)
    torch.cuda.reset_peak_memory_stats(); torch.cuda.reset_accumulated_memory_stats()
    t = SFTTrainer(args=SFTConfig(**args), **given) if case["trainer"] == "trl_sft" else DPOTrainer(args=DPOConfig(**args), **given)
    if case.get("freeze") in ("vision", "all-but-connector"): raise ValueError("TRL freezes nothing by itself")
    r = dict(case=case, params=sum(x.numel() for x in t.model.parameters()), trainable=sum(x.numel() for x in t.model.parameters() if x.requires_grad), after_model=torch.cuda.memory_allocated())
    t.train()
    shutil.rmtree(folder, ignore_errors=True)
    return fronts.settled(r, marks)
