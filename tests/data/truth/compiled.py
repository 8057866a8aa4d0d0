"""Measure steps of models that torch.compile compiled, beside the same steps in eager mode.

usage: compiled.py draw SEED PER_FAMILY CASES.jsonl
       compiled.py run CASES.jsonl OUT.jsonl [deadline_s [PROCESSES]]
Lines are those of configurations.py, whose families, sizes and batches these are, with few layers. `run` measures each in
two processes of its own, eager and then compiled (`compile` in the case: `torch.compile(model)`, Inductor, its defaults), several
at once, and writes what is done as it is done. torchao uses CUDA when it is imported, and transformers imports it if it can: put
it in a folder of its own, and that folder's name in TORCHAO. Of a case whose optimizer's name begins with `adamw_torchao` or is `muon` the eager
steps alone are measured, and the allocations of the second update recorded (`update`).
"""
import json, multiprocessing, os, sys, tempfile, time, traceback

# Kernels are compiled where they are asked for: as many processes as cores are busy anyway.
os.environ.update(TORCHINDUCTOR_COMPILE_THREADS="1", OMP_NUM_THREADS="1", PYTORCH_NVML_BASED_CUDA_CHECK="1")

import configurations
from drawn.common import R, ch, maybe, some

FAMILIES = ["llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "gemma3_text", "phi3", "gpt2", "opt", "phi",
            "llava", "qwen2_5_vl", "qwen3_vl", "internvl", "paligemma", "vit", "clip", "siglip", "videomae"]
OPTIMIZERS = ["muon", "muon", "adamw_torchao_8bit", "adamw_torchao_4bit", "adamw_torchao_fp8"]
MOST_LOGITS = 1 << 28  # elements: 1 GiB in fp32
SIZES = (30e6, 220e6)  # parameters, roughly
LONGEST_S = 240

def fewer(config):
    """The same configuration with two to four layers in each part."""
    for key in ("num_hidden_layers", "n_layer", "depth"):
        if isinstance(config.get(key), int): config[key] = min(config[key], 4)
    if "layer_types" in config: config["layer_types"] = config["layer_types"][:config["num_hidden_layers"]]; config["max_window_layers"] = sum(t == "full_attention" for t in config["layer_types"])
    if "deepstack_visual_indexes" in config: config["deepstack_visual_indexes"] = [i for i in config["deepstack_visual_indexes"] if i < config["depth"]]
    for part in ("text_config", "vision_config"):
        if part in config: fewer(config[part])

def size(config):
    """Parameters of the blocks and the tables of a configuration, roughly; 0 if it is narrower than models that people train."""
    parts = [config[part] for part in ("text_config", "vision_config") if part in config] or [config]
    total = 0
    for c in parts:
        h = c.get("hidden_size", c.get("n_embd", c.get("embed_dim", 0))); layers = c.get("num_hidden_layers", c.get("n_layer", c.get("depth", 0))); inner = c.get("intermediate_size", c.get("ffn_dim", 4 * h)) or 4 * h
        if h < 512 or c.get("vocab_size", 32000) < 32000: return 0
        total += layers * (4 * h * h + 3 * h * inner) + c.get("vocab_size", 0) * h * (1 if c.get("tie_word_embeddings") else 2)
    return total

def drawn(t):
    while True:
        line = configurations.draw(t); c, config = line["case"], line["config"]; fewer(config)
        if SIZES[0] < size(config) < SIZES[1]: break
    if t in configurations.TEXT:
        c["batch"] = ch(1, 2, 4); c["seq"] = ch(512, 1024, 2048); vocab = config["vocab_size"]
        while c["batch"] * c["seq"] * vocab > MOST_LOGITS and c["seq"] > 256: c["seq"] //= 2
        c["seq"] = min(c["seq"], config.get("max_position_embeddings", config.get("n_positions", 1024)))
    else: c["batch"] = ch(4, 8, 16) if t in configurations.OTHERS else ch(2, 4, 8)
    c.update(precision=ch("bf16", "bf16", "bf16-amp", "amp-bf16", "fp32"), optim=ch("adamw_fused", "adamw_fused", "adamw", "sgd"), ckpt=ch("none", "none", "full"),
             attn=ch("sdpa", "sdpa", "sdpa", "eager"), accum=1, timed=0)
    if c.get("freeze") not in ("lora",): c["freeze"] = "none"
    return line

def small(t, optim):
    """A step with one of the optimizers that are recorded."""
    line = configurations.draw(t); c = line["case"]; fewer(line["config"])
    c.update(optim=optim, precision=ch("bf16", "bf16", "fp32", "amp-bf16"), ckpt="none", attn="sdpa", accum=1, timed=0)
    return line

def recorded(case): return case["optim"] == "muon" or case["optim"].startswith("adamw_torchao")

def trace(measure):
    """Lets measure.py's optimizers record the allocations of their second update."""
    import torch
    make, update = measure.optimizer, []
    def optimizer(model, c):
        opt, calls = make(model, c), []
        step = opt.step
        def traced(*args, **kwargs):
            calls.append(0)
            if len(calls) != 2: return step(*args, **kwargs)
            torch.cuda.memory._record_memory_history("all", context=None, max_entries=1 << 20)
            step(*args, **kwargs); torch.cuda.synchronize()
            for event in torch.cuda.memory._snapshot()["device_traces"][0]:
                if event["action"] in ("alloc", "free_completed"): update.append(event["size"] * (1 if event["action"] == "alloc" else -1))
            torch.cuda.memory._record_memory_history(None)
        opt.step = traced
        return opt
    measure.optimizer = optimizer
    return update

def one(line, to):
    import torch, measure
    if "torchao" in line["case"]["optim"] and "TORCHAO" in os.environ: sys.path.insert(0, os.environ["TORCHAO"])
    torch.set_num_threads(1); torch.backends.cuda.matmul.allow_tf32 = False; measure.build = configurations.maker(line)
    update = trace(measure) if recorded(line["case"]) else None
    begun = time.time()
    try: r = measure.run(line["case"])
    except torch.cuda.OutOfMemoryError as e: r = dict(oom=str(e)[:200])
    except Exception as e: r = dict(error=repr(e)[:300], tb=traceback.format_exc()[-900:])
    if update is not None: r["update"] = update
    if line["case"].get("compile"):
        from torch._dynamo.utils import counters
        r["graphs"] = counters["stats"]["unique_graphs"]; r["breaks"] = {k[:60]: v for k, v in counters["graph_break"].items()}
    r["wall"] = round(time.time() - begun, 1)
    with open(to, "w") as f: json.dump(dict(line, **{k: v for k, v in r.items() if k not in ("case", "outside_torch", "device_total")}, process="own"), f)

def preload():
    """Imports what a child needs; true if a child that is forked after it can still use the GPU."""
    import torch, transformers, measure
    import torch._dynamo, torch._inductor.compile_fx, torch._inductor.codegen.triton, torch._functorch.aot_autograd

def probe():
    import torch
    torch.zeros(1, device="cuda").sum().item()

def probe_after_preload():
    preload(); child = multiprocessing.get_context("fork").Process(target=probe); child.start(); child.join(); os._exit(child.exitcode or 0)

def run(cases, to, deadline, most):
    import torch, transformers, measure
    context = multiprocessing.get_context("fork")
    child = context.Process(target=probe_after_preload); child.start(); child.join()
    if child.exitcode == 0: preload()
    print("preloaded" if child.exitcode == 0 else f"not preloaded: {child.exitcode}", round(deadline - time.time()), flush=True)
    lines = [json.loads(l) for l in open(cases)]
    jobs = [l for l in lines if recorded(l["case"])] + [l for l in lines if not recorded(l["case"])]
    jobs += [dict(l, case=dict(l["case"], compile=True)) for l in lines if not recorded(l["case"])]
    folder = tempfile.mkdtemp(); live = {}; i = 0
    with open(to, "w") as out:
        out.write(json.dumps(dict(env=dict(torch=torch.__version__, transformers=transformers.__version__, cuda=torch.version.cuda))) + "\n"); out.flush()
        while i < len(jobs) or live:
            late = time.time() > deadline
            for p in list(live):
                n, begun = live[p]
                if p.is_alive() and (late or time.time() - begun > LONGEST_S): p.kill()
                if p.is_alive() and not late: continue
                p.join(); del live[p]; path = os.path.join(folder, str(n))
                r = open(path).read() if os.path.exists(path) else json.dumps(dict(jobs[n], error="the process ended without a result"))
                out.write(r + "\n"); out.flush(); r = json.loads(r)
                print(n, r["case"]["model"], r["case"]["optim"], "compiled" if r["case"].get("compile") else "eager", r.get("wall"), r.get("peak_steady"), r.get("graphs", ""), r.get("error", r.get("oom", ""))[:200], flush=True)
            if late: print("deadline at", i, "of", len(jobs), flush=True); break
            while i < len(jobs) and len(live) < most:
                p = context.Process(target=one, args=(jobs[i], os.path.join(folder, str(i)))); p.start(); live[p] = (i, time.time()); i += 1
            time.sleep(.02)

if __name__ == "__main__":
    if sys.argv[1] == "draw":
        R.seed(int(sys.argv[2])); each = int(sys.argv[3])
        with open(sys.argv[4], "w") as out:
            for _ in range(each):  # one of each family, then the next: a run that ends early has them all
                for t in FAMILIES: out.write(json.dumps(drawn(t)) + "\n")
            for k, t in enumerate(FAMILIES * 2): out.write(json.dumps(small(t, OPTIMIZERS[k % len(OPTIMIZERS)])) + "\n")
    else: run(sys.argv[2], sys.argv[3], time.time() + float(sys.argv[4] if len(sys.argv) > 4 else 540), int(sys.argv[5]) if len(sys.argv) > 5 else 16)
