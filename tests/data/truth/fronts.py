"""Peak memory of training steps as people start them: transformers' Trainer, TRL, DeepSpeed, torch.compile.

usage: fronts.py CASES.json OUT.jsonl WORKERS DEADLINE_S
A case is measure.py's, with `front`: "trainer" (transformers.Trainer), "trl_sft" or "trl_dpo" (text models, loaded from a folder as TRL does by default, `dtype` of the weights), "trl_grpo" (trl_runs.py's), "deepspeed" (`stage`, or `strategy` deepspeedN; `world`, `zero`, `offload`, `clip`: one rank of N over the fake process group), "compile" (the bare loop, model compiled) or "loop"; `gb`: a guess of its memory, so that several run side by side, each in a process of its own (CAP: of all).
precision "bf16-amp" is weights in bf16 under TrainingArguments(bf16=True), what most scripts do.
"""
import gc, json, multiprocessing as mp, os, sys, tempfile, time, traceback
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import torch, transformers, measure

def one(case, to):
    torch.backends.cuda.matmul.allow_tf32 = False
    try:
        r = {"trainer": run_trainer, "compile": run_compile, "loop": run_loop, "deepspeed": run_deepspeed, "trl_sft": run_trl, "trl_dpo": run_trl, "trl_grpo": run_grpo}[case["front"]](case)
    except torch.cuda.OutOfMemoryError as e: r = dict(case=case, oom=str(e))
    except Exception as e: r = dict(case=case, error=repr(e)[:300], tb=traceback.format_exc()[-1500:])
    json.dump(r, open(to, "w"))

def made(case):
    g = torch.Generator(device="cuda").manual_seed(0)
    c = dict(case); c["precision"] = {"bf16-amp": "bf16"}.get(case["precision"], case["precision"])
    model, inp = measure.build(c, g)
    return measure.freeze(model, c), inp

def meter(marks):
    """A callback that appends a step's marks."""
    from transformers import TrainerCallback
    class Meter(TrainerCallback):
        def on_step_begin(self, a, s, c, **k):
            torch.cuda.synchronize(); self.began = time.perf_counter(); self.before = torch.cuda.memory_allocated(); torch.cuda.reset_peak_memory_stats()
        def on_pre_optimizer_step(self, a, s, c, **k):
            self.peak_fb = torch.cuda.max_memory_allocated(); self.after_backward = torch.cuda.memory_allocated(); torch.cuda.reset_peak_memory_stats()
        def on_optimizer_step(self, a, s, c, **k): self.peak_opt = torch.cuda.max_memory_allocated()
        def on_step_end(self, a, s, c, **k):
            torch.cuda.synchronize(); ms = round((time.perf_counter() - self.began) * 1e3, 2)
            marks.append(dict(ms=ms, before=self.before, peak_fb=self.peak_fb, after_backward=self.after_backward, peak_opt=max(self.peak_opt, torch.cuda.max_memory_allocated()), end=torch.cuda.memory_allocated()))
    return Meter()

def settled(r, marks):
    r["steps"] = marks
    s = marks[-1]; r["steady"] = s; r["peak_steady"] = max(s["peak_fb"], s["peak_opt"]); r["reserved_peak"] = torch.cuda.memory_stats()["reserved_bytes.all.peak"]
    return r

def words(vocabulary):
    """A tokenizer with one token for each word w0, w1, …"""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast
    names = ["<pad>", "<eos>", "<unk>", *(f"w{i}" for i in range(min(vocabulary, 4096) - 3))]
    inner = Tokenizer(models.WordLevel({w: i for i, w in enumerate(names)}, unk_token="<unk>"))
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=inner, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>")

def run_trl(case):
    """TRL's trainers on a model that lies in a folder; every sample has `seq` tokens (of a pair, half is the prompt)."""
    import shutil
    from datasets import Dataset
    from peft import LoraConfig
    from trl import DPOConfig, DPOTrainer, SFTConfig, SFTTrainer
    folder = tempfile.mkdtemp()
    g = torch.Generator(device="cuda").manual_seed(0)
    model, _ = measure.build(dict(case, precision="bf16"), g)
    reader = words(model.config.vocab_size)
    model.save_pretrained(folder)
    del model; gc.collect(); torch.cuda.empty_cache()
    B, accum, steps, seq = case["batch"], case.get("accum", 1), 4, case["seq"]
    text = lambda n, at: " ".join(f"w{(at + i) % 4000}" for i in range(n))
    rows = range(B * accum * steps)
    common = dict(output_dir=os.path.join(folder, "o"), max_steps=steps, per_device_train_batch_size=B, gradient_accumulation_steps=accum, save_strategy="no", report_to=[], logging_steps=1,
        max_length=seq, disable_tqdm=True, model_init_kwargs=dict(dtype=case.get("dtype", "float32"), attn_implementation=case.get("attn", "sdpa")), **case.get("args", {}))
    lora = LoraConfig(r=case.get("rank", 16), lora_alpha=32, target_modules=["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"], task_type="CAUSAL_LM") if case.get("freeze") == "lora" else None
    marks = []
    if case["front"] == "trl_sft":
        data = Dataset.from_list([dict(input_ids=[3 + (r + i) % 4000 for i in range(seq)]) for r in rows])
        make = lambda: SFTTrainer(model=folder, args=SFTConfig(**common), train_dataset=data, processing_class=reader, peft_config=lora, callbacks=[meter(marks)])
    else:
        half = seq // 2
        data = Dataset.from_list([dict(prompt=text(half, r), chosen=" " + text(seq - half - 1, r + 1), rejected=" " + text(seq - half - 1, r + 2)) for r in rows])
        make = lambda: DPOTrainer(model=folder, args=DPOConfig(**common), train_dataset=data, processing_class=reader, peft_config=lora, callbacks=[meter(marks)])
    torch.cuda.reset_peak_memory_stats(); torch.cuda.reset_accumulated_memory_stats()
    t = make()
    r = dict(case=case, params=sum(x.numel() for x in t.model.parameters()), trainable=sum(x.numel() for x in t.model.parameters() if x.requires_grad), after_model=torch.cuda.memory_allocated())
    t.train()
    shutil.rmtree(folder, ignore_errors=True)
    return settled(r, marks)

def run_grpo(case):
    """TRL's GRPOTrainer on a model of measure.py's that lies in a folder."""
    import trl_runs
    return dict(trl_runs.run(dict(case, trainer="trl_grpo"), measure.build), case=case)

def run_trainer(case):
    import two_gpus
    from transformers import Trainer, TrainingArguments
    model, inp = made(case)
    accum, steps = case.get("accum", 1), 4
    p = case["precision"]
    optim = two_gpus.OPTIMIZERS[case.get("optim", "adamw_fused")]
    B = case["batch"]
    samples = []
    for _ in range(accum):
        b = inp()
        samples.append({k: v.cpu() if torch.is_tensor(v) else v for k, v in b.items()})
        del b  # its tensors would stay on the GPU beside those of the steps
    class Data(torch.utils.data.Dataset):
        def __len__(self): return B * accum * steps
        def __getitem__(self, i): return i
    n = [0]
    def collate(ix):
        b = samples[n[0] % accum]; n[0] += 1
        if p in ("bf16", "bf16-amp"): b = {k: (v.to(torch.bfloat16) if k == "pixel_values" else v) for k, v in b.items()}
        return dict(b)
    ck = case.get("ckpt", "none") != "none"
    args = TrainingArguments(output_dir=os.path.join(tempfile.gettempdir(), "o"), max_steps=steps, per_device_train_batch_size=B, gradient_accumulation_steps=accum,
        bf16=p in ("amp-bf16", "bf16-amp"), fp16=p == "amp-fp16", optim=optim, gradient_checkpointing=ck,
        gradient_checkpointing_kwargs=dict(use_reentrant=case.get("reentrant", False)) if ck else None, save_strategy="no", report_to=[], logging_steps=1,
        neftune_noise_alpha=5 if case.get("neftune") else None, label_smoothing_factor=0.1 if case.get("loss") == "smoothed" else 0.0, dataloader_num_workers=0, remove_unused_columns=False, learning_rate=1e-6, max_grad_norm=1.0 if case.get("clip", True) else 0.0, disable_tqdm=True)
    marks = []
    gc.collect(); torch.cuda.empty_cache()
    r = dict(case=case, params=sum(x.numel() for x in model.parameters()), trainable=sum(x.numel() for x in model.parameters() if x.requires_grad), after_model=torch.cuda.memory_allocated())
    t = Trainer(model=model, args=args, train_dataset=Data(), data_collator=collate, callbacks=[meter(marks)], compute_loss_func=own_loss(case))
    t.train()
    return settled(r, marks)

def own_loss(case):
    """The `compute_loss_func` that LLaMA-Factory gives its trainer, from its file: the package itself asks for older transformers and TRL."""
    if case.get("loss") != "dft": return None
    import ast, importlib.util, typing
    path = os.path.join(importlib.util.find_spec("llamafactory").submodule_search_locations[0], "train", "trainer_utils.py")
    with open(path, encoding="utf-8") as file: tree = ast.parse(file.read())
    tree.body = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name in ("dft_loss_func", "_dft_cross_entropy")]
    names = dict(torch=torch, Optional=typing.Optional); exec(compile(tree, path, "exec"), names)
    return names["dft_loss_func"]

def run_compile(case):
    import torch._inductor.config
    model, inp = made(case)
    c = dict(case)
    gc.collect(); torch.cuda.empty_cache()
    r = dict(case=case, after_model=torch.cuda.memory_allocated())
    opt = measure.optimizer(model, c)
    model.compile() if hasattr(model, "compile") else None
    amp = torch.bfloat16 if c["precision"] == "amp-bf16" else None
    marks = []
    for i in range(4):
        torch.cuda.reset_peak_memory_stats()
        b = inp()
        if c["precision"] == "bf16": b = {k: (v.to(torch.bfloat16) if k == "pixel_values" else v) for k, v in b.items()}
        m = dict(before=torch.cuda.memory_allocated())
        with torch.autocast("cuda", dtype=amp, enabled=amp is not None): o = model(**b); loss = o.loss
        del o
        m["peak_forward"] = torch.cuda.max_memory_allocated(); m["after_forward"] = torch.cuda.memory_allocated(); torch.cuda.reset_peak_memory_stats()
        loss.backward(); del loss, b
        m["peak_backward"] = torch.cuda.max_memory_allocated(); torch.cuda.reset_peak_memory_stats()
        opt.step(); m["peak_optimizer"] = torch.cuda.max_memory_allocated(); opt.zero_grad(set_to_none=True); m["end"] = torch.cuda.memory_allocated()
        marks.append(m)
    r["steps"] = marks; s = marks[-1]; r["steady"] = s; r["peak_steady"] = max(s["peak_forward"], s["peak_backward"], s["peak_optimizer"]); r["reserved_peak"] = torch.cuda.memory_stats()["reserved_bytes.all.peak"]
    return r

def run_loop(case):
    c = {k: v for k, v in case.items() if k not in ("front", "gb")}
    c["timed"] = 0
    r = measure.run(c); r["case"] = case
    return r

def run_deepspeed(case):
    import torch.distributed as dist
    from torch.testing._internal.distributed.fake_pg import FakeStore
    os.environ.update(LOCAL_RANK="0", RANK="0", WORLD_SIZE=str(case["world"]), MASTER_ADDR="127.0.0.1", MASTER_PORT="29511")
    dist.init_process_group(backend="fake", rank=0, world_size=case["world"], store=FakeStore())
    import deepspeed
    deepspeed.init_distributed(dist_init_required=False)
    model, inp = made(case)
    if case.get("ckpt", "none") != "none": model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": case.get("reentrant", False)})
    gc.collect(); torch.cuda.empty_cache()
    r = dict(case=case, after_model=torch.cuda.memory_allocated())
    z = dict(stage=int(case["strategy"][-1]) if "strategy" in case else case["stage"], **case.get("zero", {}))
    if case.get("offload"): z["offload_optimizer"] = dict(device="cpu", pin_memory=True)
    if case.get("offload") == "optimizer,param": z["offload_param"] = dict(device="cpu", pin_memory=True)
    # cases of a strategy say if they clip, as those of measure.py
    conf = dict(train_micro_batch_size_per_gpu=case["batch"], gradient_accumulation_steps=case.get("accum", 1), gradient_clipping=1.0 if case.get("clip", "strategy" not in case) else 0.0,
                bf16=dict(enabled=True), zero_optimization=z, zero_allow_untested_optimizer=True, zero_force_ds_cpu_optimizer=False)
    opt = measure.optimizer(model, dict(case, optim=case.get("optim", "adamw_fused")))
    ema = None
    if case.get("ema"):
        from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
        ema = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.999), use_buffers=True)
    engine, *_ = deepspeed.initialize(model=model, optimizer=opt, config=conf, dist_init_required=False)
    marks = []
    r["after_init"] = torch.cuda.memory_allocated()
    for i in range(3 * case.get("accum", 1)):
        torch.cuda.reset_peak_memory_stats()
        b = inp(); b = {k: (v.to(torch.bfloat16) if k == "pixel_values" else v) for k, v in b.items()}
        m = dict(before=torch.cuda.memory_allocated())
        loss = engine(**b).loss
        m["peak_forward"] = torch.cuda.max_memory_allocated(); m["after_forward"] = torch.cuda.memory_allocated(); torch.cuda.reset_peak_memory_stats()
        engine.backward(loss); del loss, b
        m["peak_backward"] = torch.cuda.max_memory_allocated(); m["after_backward"] = torch.cuda.memory_allocated(); torch.cuda.reset_peak_memory_stats()
        engine.step()
        if ema is not None and (i + 1) % case.get("accum", 1) == 0: ema.update_parameters(model)
        m["peak_optimizer"] = torch.cuda.max_memory_allocated(); m["end"] = torch.cuda.memory_allocated()
        marks.append(m)
    r["steps"] = marks; s = marks[-1]; r["steady"] = s; r["peak_steady"] = max(s["peak_forward"], s["peak_backward"], s["peak_optimizer"]); r["reserved_peak"] = torch.cuda.memory_stats()["reserved_bytes.all.peak"]
    return r

def main():
    cases = json.load(open(sys.argv[1])); out = open(sys.argv[2], "a"); workers = int(sys.argv[3]); deadline = time.time() + float(sys.argv[4])
    import transformers.trainer, peft  # before fork
    if any(c["front"].startswith("trl") for c in cases): import trl, datasets
    out.write(json.dumps(dict(env=dict(torch=torch.__version__, transformers=transformers.__version__, accelerate=__import__("accelerate").__version__, peft=peft.__version__))) + "\n")
    ctx = mp.get_context("fork"); running, i = [], 0
    weight = lambda c: c.get("gb", 10)
    cap = float(os.environ.get("CAP", "70"))
    while i < len(cases) or running:
        while i < len(cases) and len(running) < workers and sum(w for *_, w in running) + weight(cases[i]) <= cap and time.time() < deadline:
            to = os.path.join(tempfile.gettempdir(), f"case{i}.json")
            p = ctx.Process(target=one, args=(cases[i], to)); p.start(); running.append((p, i, to, time.time(), weight(cases[i]))); i += 1
        if time.time() >= deadline and i < len(cases): print("deadline at", i, "of", len(cases)); i = len(cases)
        for x in list(running):
            p, k, to, t0, _ = x
            if not p.is_alive() or time.time() - t0 > 240:
                if p.is_alive(): p.kill()
                p.join(); running.remove(x)
                r = json.load(open(to)) if os.path.exists(to) else dict(case=cases[k], error="no result")
                r["i"] = k; r["wall"] = round(time.time() - t0, 1)
                out.write(json.dumps(r) + "\n"); out.flush()
                print(k, cases[k]["model"], cases[k]["front"], round(r.get("peak_steady", 0) / 2**30, 3), r.get("error", "")[:160], r.get("oom", "")[:80], r["wall"], flush=True)
        time.sleep(0.2)
if __name__ == "__main__": main()
