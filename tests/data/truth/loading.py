"""Measure what lies before and after the steps: loading a model, merging its adapters, saving it; on the card and on the host.

usage: loading.py OUT.jsonl [deadline_s] [several_at_once] [models, such as llama,gpt2]
Each way runs in a process of its own, which has imported the packages and made a CUDA context before it starts. `allocated` and
`reserved` are the highest of PyTorch's allocator meanwhile. `anonymous`, `file` and `shared` are the highest RssAnon, RssFile and
RssShmem of the process meanwhile, read every millisecond by another process, less those before; `after` those at the end.
"""
import gc, importlib.metadata, json, multiprocessing, os, shutil, sys, tempfile, time, traceback

SHAPES = {
    "llama": dict(model_type="llama", vocab_size=32000, hidden_size=2048, intermediate_size=5632, num_hidden_layers=22, num_attention_heads=32, num_key_value_heads=4, max_position_embeddings=2048, tie_word_embeddings=False),
    "qwen2": dict(model_type="qwen2", vocab_size=151936, hidden_size=896, intermediate_size=4864, num_hidden_layers=24, num_attention_heads=14, num_key_value_heads=2, max_position_embeddings=4096, tie_word_embeddings=True),
    "gemma": dict(model_type="gemma", vocab_size=256000, hidden_size=2048, intermediate_size=8192, num_hidden_layers=10, num_attention_heads=8, num_key_value_heads=1, head_dim=256, max_position_embeddings=4096, hidden_act="gelu_pytorch_tanh"),
    "mistral": dict(model_type="mistral", vocab_size=32768, hidden_size=4096, intermediate_size=14336, num_hidden_layers=12, num_attention_heads=32, num_key_value_heads=8, max_position_embeddings=4096, tie_word_embeddings=False),
    "gpt2": dict(model_type="gpt2", vocab_size=50257, n_embd=1600, n_head=25, n_layer=24, n_positions=1024),
    "qwen2_vl": dict(model_type="qwen2_vl", tie_word_embeddings=True, image_token_id=151655, vision_start_token_id=151652, vision_end_token_id=151653, video_token_id=151656,
        text_config=dict(model_type="qwen2_vl_text", vocab_size=151936, hidden_size=1536, intermediate_size=8960, num_hidden_layers=28, num_attention_heads=12, num_key_value_heads=2, max_position_embeddings=4096, tie_word_embeddings=True, rope_parameters=dict(rope_type="default", mrope_section=[16, 24, 24], rope_theta=1e6)),
        vision_config=dict(depth=32, embed_dim=1280, hidden_size=1536, num_heads=16, mlp_ratio=4, in_channels=3, patch_size=14, spatial_merge_size=2, temporal_patch_size=2)),
    "llava": dict(model_type="llava", image_token_index=32000, image_seq_length=576, vision_feature_select_strategy="default", vision_feature_layer=-2, projector_hidden_act="gelu", tie_word_embeddings=False,
        text_config=dict(model_type="llama", vocab_size=32064, hidden_size=2048, intermediate_size=5632, num_hidden_layers=16, num_attention_heads=32, num_key_value_heads=8, max_position_embeddings=4096, tie_word_embeddings=False),
        vision_config=dict(model_type="clip_vision_model", hidden_size=1024, intermediate_size=4096, num_hidden_layers=24, num_attention_heads=16, image_size=336, patch_size=14, projection_dim=768)),
    "qwen3_moe": dict(model_type="qwen3_moe", vocab_size=32000, hidden_size=2048, intermediate_size=4096, moe_intermediate_size=768, num_hidden_layers=6, num_attention_heads=16, num_key_value_heads=4, head_dim=128, num_experts=64, num_experts_per_tok=4, max_position_embeddings=4096, tie_word_embeddings=False),
}
LORA = r".*(language_model|model\.layers).*\.(q_proj|k_proj|v_proj|o_proj|gate_proj|up_proj|down_proj)"  # as in measure.py

def plan():
    """(model, type in the file, ways) in the order of their use."""
    yield "llama", "bf16", ["moved", "mapped", "cast", "saved", "nf4", "merged", "merged_nf4", "optimizer_saved", "loader"]
    yield "llama", "fp32", ["host_bf16", "moved", "mapped_bf16", "moved_bf16", "saved"]
    yield "mistral", "bf16", ["moved", "mapped", "nf4", "merged", "merged_nf4", "saved"]
    yield "qwen2", "bf16", ["moved", "mapped", "cast", "saved", "nf4"]
    yield "qwen3_moe", "bf16", ["moved", "mapped", "mapped_again"]
    yield "llava", "bf16", ["moved", "mapped", "nf4", "merged"]
    yield "gpt2", "fp32", ["moved", "mapped", "cast", "host_bf16", "saved", "optimizer_saved"]
    yield "qwen2_vl", "bf16", ["moved", "mapped", "nf4", "merged"]
    yield "gemma", "bf16", ["mapped", "nf4", "saved"]
    yield "llama_again", "bf16", ["nf4", "optimizer_saved", "loader"]

class Images:
    def __len__(self): return 1000
    def __getitem__(self, i):
        import torch
        return torch.full((3, 448, 448), float(i))

def rss(pid="self"):
    with open(f"/proc/{pid}/status") as f: lines = dict(l.split(":", 1) for l in f.read().splitlines() if l.startswith("Rss"))
    return [int(lines[k].split()[0]) * 1024 for k in ("RssAnon", "RssFile", "RssShmem")]

def watch(pid, box, stop):
    """The highest figures of a process, from another one."""
    while not stop.value:
        try: now = rss(pid)
        except (FileNotFoundError, KeyError, ProcessLookupError): return
        for i, n in enumerate(now): box[i] = max(box[i], n)
        box[3] = max(box[3], sum(now))
        time.sleep(0.001)

def auto(config):
    import transformers as T
    return T.AutoModelForImageTextToText if "vision_config" in config else T.AutoModelForCausalLM

def make(config, dtype, folder):
    """A random model in a folder; its weights are not those of an initialisation, whose time is saved."""
    import torch, transformers as T
    from transformers.initialization import no_init_weights
    c = T.AutoConfig.for_model(**config)
    with torch.device("cuda"):
        with no_init_weights():
            model = auto(config).from_config(c, dtype=dict(bf16=torch.bfloat16, fp32=torch.float32)[dtype])
    model.tie_weights()
    for p in model.parameters(): p.data.fill_(0.01)
    model.save_pretrained(folder)

def adapted(model):
    from peft import LoraConfig, get_peft_model
    return get_peft_model(model, LoraConfig(r=16, lora_alpha=32, target_modules=LORA))

def nf4(A, folder):
    import torch, transformers as T
    q = T.BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True, bnb_4bit_compute_dtype=torch.bfloat16)
    return A.from_pretrained(folder, quantization_config=q, dtype=torch.bfloat16)

def way_of(way, config, dtype, folder):
    """Returns (what runs before, what is measured)."""
    import torch
    A, own = auto(config), dict(bf16=torch.bfloat16, fp32=torch.float32)[dtype]
    bf16, out = torch.bfloat16, folder + "-out"
    def save(m): m.save_pretrained(out)
    def optimizer(m):
        o = torch.optim.AdamW(m.parameters(), fused=True)
        for p in m.parameters(): p.grad = torch.zeros_like(p)
        o.step(); o.zero_grad(set_to_none=True)
        return m, o
    def trained(m):
        import peft
        return adapted(peft.prepare_model_for_kbit_training(m, use_gradient_checkpointing=False))
    load = lambda **k: A.from_pretrained(folder, **k)
    def loader(_):
        """A `DataLoader` of images with four workers; their own pages at the fifth batch, and the batch's bytes."""
        from torch.utils.data import DataLoader
        it = iter(DataLoader(Images(), batch_size=16, num_workers=4, pin_memory=True))
        for _ in range(5): batch = next(it)
        time.sleep(0.5)
        private = lambda pid: sum(int(l.split()[1]) * 1024 for l in open(f"/proc/{pid}/smaps_rollup") if l.startswith("Private"))
        return dict(workers=[private(w.pid) for w in it._workers], batch=batch.nbytes)
    return {
        "moved": (None, lambda _: load(dtype=own).to("cuda")),
        "moved_bf16": (None, lambda _: load(dtype=bf16).to("cuda")),
        "mapped": (None, lambda _: load(dtype=own, device_map="cuda")),
        "mapped_again": (None, lambda _: load(dtype=own, device_map="cuda")),
        "mapped_bf16": (None, lambda _: load(dtype=bf16, device_map="cuda")),
        "cast": (None, lambda _: load(dtype=torch.float32).to("cuda").to(bf16)),
        "nf4": (None, lambda _: trained(nf4(A, folder))),
        "merged": (lambda: adapted(load(dtype=own, device_map="cuda")), lambda m: m.merge_and_unload()),
        "merged_nf4": (lambda: trained(nf4(A, folder)), lambda m: m.merge_and_unload()),
        "saved": (lambda: load(dtype=own, device_map="cuda"), save),
        "optimizer_saved": (lambda: optimizer(load(dtype=own, device_map="cuda")), lambda m: torch.save(m[1].state_dict(), out)),
        "loader": (None, loader),
        "host_bf16": (None, lambda _: load(dtype=bf16)),
    }[way]

def one(case, config, folder, to):
    import torch, peft
    if "nf4" in case["way"]: import bitsandbytes, transformers.integrations.bitsandbytes
    try:
        before, run = way_of(case["way"], config, case["file"], folder)
        x = torch.ones(64, 64, device="cuda"); (x @ x).sum().item(); del x
        given = (before() if before else None,)
        gc.collect()
        torch.cuda.synchronize(); torch.cuda.empty_cache(); torch.cuda.reset_peak_memory_stats()
        held = torch.cuda.memory_allocated()
        if case["way"].startswith("mapped"): torch._C._cuda_clearCublasWorkspaces(); torch.cuda.empty_cache(); torch.cuda.reset_peak_memory_stats(); held = torch.cuda.memory_allocated()
        box, stop = multiprocessing.Array("q", 4), multiprocessing.Value("i", 0)
        base = rss()
        for i, n in enumerate(base): box[i] = n
        box[3] = sum(base)
        w = multiprocessing.get_context("fork").Process(target=watch, args=(os.getpid(), box, stop), daemon=True); w.start()
        start = time.time(); result = run(given[0]); given = None; took = time.time() - start
        now = rss(); time.sleep(0.005); stop.value = 1; w.join()
        top = [max(a, b) for a, b in zip(box, now)]
        r = dict(case=case, s=round(took, 2), base=base, anonymous=top[0] - base[0], file=top[1] - base[1], shared=top[2] - base[2], total=max(box[3], sum(now)) - sum(base), after=[a - b for a, b in zip(now, base)])
        torch.cuda.synchronize(); r.update(before=held, allocated=torch.cuda.max_memory_allocated(), reserved=torch.cuda.max_memory_reserved(), end=torch.cuda.memory_allocated())
        if case["way"] == "loader": r.update(result)
        del result
    except Exception as e: r = dict(case=case, error=repr(e)[:300], tb=traceback.format_exc()[-900:])
    with open(to, "w") as f: json.dump(r, f)

def files(folder):
    return sum(os.path.getsize(os.path.join(folder, n)) for n in os.listdir(folder) if n.endswith(".safetensors"))

def main():
    args = sys.argv[1:]
    path, deadline, at_once = args[0], time.time() + float(args[1] if len(args) > 1 else 280), int(args[2] if len(args) > 2 else 1)
    import torch, transformers, safetensors.torch, accelerate  # before the processes are forked, and CUDA only after it; bitsandbytes makes a context
    out, fork = open(path, "w"), multiprocessing.get_context("fork")
    env = dict(threads=os.cpu_count())
    for package in ("torch", "transformers", "peft", "accelerate", "safetensors", "bitsandbytes"):
        try: env[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError: pass
    out.write(json.dumps(dict(env=env)) + "\n")
    root = tempfile.mkdtemp(); jobs = []
    def collect(wait):
        while jobs and (wait or len(jobs) >= at_once):
            for job in list(jobs):
                p, case, to, folder = job
                p.join(0.02)
                if p.is_alive(): continue
                jobs.remove(job)
                r = dict(case=case, error="the process ended without a result")
                if os.path.exists(to): r = json.load(open(to)); os.remove(to)
                shutil.rmtree(folder + "-out", ignore_errors=True) if os.path.isdir(folder + "-out") else os.path.exists(folder + "-out") and os.remove(folder + "-out")
                out.write(json.dumps(r) + "\n"); out.flush()
                print(case["model"], case["file"], case["way"], r.get("allocated"), r.get("reserved"), r.get("anonymous"), r.get("file"), r.get("s"), r.get("error", ""), r.get("tb", "")[-300:] if "error" in r else "", flush=True)
    only = args[3].split(",") if len(args) > 3 else None
    for model, dtype, ways in plan():
        if only and model not in only: continue
        model = model.removesuffix("_again")
        if time.time() > deadline: print("deadline at", model, dtype); break
        config, folder = SHAPES[model], os.path.join(root, model + dtype)
        p = fork.Process(target=make, args=(config, dtype, folder)); p.start(); p.join()
        if not os.path.isdir(folder): print("not made", model, dtype); continue
        size = files(folder)
        for way in ways:
            if time.time() > deadline: break
            case = dict(model=model, file=dtype, way=way, bytes=size)
            to = os.path.join(root, f"{model}{dtype}{way}.json")
            own = folder + way; os.symlink(folder, own)  # so that outputs of two ways do not meet
            collect(False)
            p = fork.Process(target=one, args=(case, config, own, to)); p.start(); jobs.append((p, case, to, own))
        collect(True)
        shutil.rmtree(folder, ignore_errors=True)
    out.write(json.dumps(dict(shapes=SHAPES)) + "\n")

if __name__ == "__main__": main()
