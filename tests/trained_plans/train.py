"""Trains what was planned: each setup in a process of its own under the planned limit, then the next larger batch.

usage: train.py PLANS.json OUT.jsonl        where there is a GPU, PyTorch, transformers and peft
       train.py --one CASE.json                       (what each process runs)
PLANS.json is made by draw.py. `measure.py` (tests/data/truth) makes models and inputs. Five steps run, with
`set_per_process_memory_fraction` set to the planned limit.
"""
import concurrent.futures, json, os, subprocess, sys, threading, time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "data", "truth"), HERE]
STEPS = 5


def one(path):
    import torch
    import measure as M

    job = json.load(open(path))
    c, limit = job["case"], job["limit"]
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction(min(1.0, limit / total))
    out = {"batch": c["batch"], "steps": 0}
    try:
        g = torch.Generator(device="cuda").manual_seed(0)
        model, inp = M.build(c, g)
        model = M.freeze(model, c)
        checkpoint(model, c)
        if c.get("loss") == "fused_linear":
            from liger_kernel.transformers.monkey_patch import _apply_liger_kernel_to_instance

            base = model.get_base_model() if hasattr(model, "get_base_model") else model
            off = {"rope": False, "rms_norm": False, "swiglu": False, "geglu": False, "layer_norm": False, "cross_entropy": False}
            apply(_apply_liger_kernel_to_instance, base, off)
        opt = optimizer(M, model, c)
        amp = {"amp-bf16": torch.bfloat16, "amp-fp16": torch.float16}.get(c["precision"])
        for _ in range(STEPS):
            batch = {k: (v.to(M.DT[c["precision"]]) if (k == "pixel_values" and amp is None) else v) for k, v in inp().items()}
            with torch.autocast("cuda", dtype=amp, enabled=amp is not None):
                loss = model(**batch).loss
            loss.backward()
            opt.step()
            opt.zero_grad(set_to_none=True)
            del loss, batch
            torch.cuda.synchronize()
            out["steps"] += 1
        out["ran"] = True
    except torch.cuda.OutOfMemoryError as error:
        out["ran"], out["why"] = False, str(error).split(".")[0]
    stats = torch.cuda.memory_stats()
    out["allocated_peak"], out["reserved_peak"] = torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved()
    out["retries"] = stats["num_alloc_retries"]
    print("RESULT " + json.dumps(out), flush=True)


def apply(patch, model, off):
    """Turns off everything but the fused loss, as far as this model's patch has a switch."""
    import inspect
    from liger_kernel.transformers.monkey_patch import MODEL_TYPE_TO_APPLY_LIGER_FN

    takes = inspect.signature(MODEL_TYPE_TO_APPLY_LIGER_FN[model.config.model_type]).parameters
    patch(model=model, fused_linear_cross_entropy=True, **{k: v for k, v in off.items() if k in takes})


def checkpoint(model, c):
    kind, how = c.get("ckpt", "none"), dict(gradient_checkpointing_kwargs={"use_reentrant": False})
    if kind == "full":
        model.gradient_checkpointing_enable(**how)
    elif kind != "none":
        base = model.get_base_model() if hasattr(model, "get_base_model") else model
        parts = {n: m for n, m in base.named_modules() if n.split(".")[-1] in ("language_model", "vision_tower", "visual", "vision_model")}
        for name, module in parts.items():
            if (name.split(".")[-1] == "language_model") == (kind == "language") and hasattr(module, "gradient_checkpointing_enable"):
                module.gradient_checkpointing_enable(**how)
                break
        else:
            raise SystemExit(f"no part to checkpoint in {list(parts)}")
    # Of one part alone, its own `gradient_checkpointing_enable` asks for gradients of its own input. Asked of the whole,
    # as peft asks where it finds a checkpointed part, the other tower would keep its activations too.
    if kind == "full" and c.get("freeze") in ("lora", "all-but-connector"):
        model.enable_input_require_grads()


def optimizer(M, model, c):
    if c["optim"] == "adamw_8bit":
        import bitsandbytes as bnb

        return bnb.optim.AdamW8bit([p for p in model.parameters() if p.requires_grad], lr=1e-6)
    return M.optimizer(model, c)


def case(plan, batch):
    q, s = plan["question"], plan["recommended"]["setup"]
    keys = ["seq", "images", "grid", "image", "frames", "precision", "optim", "ckpt", "attn", "freeze", "rank", "lora_dropout", "accum", "clip", "loss"]
    c = {k: s[k] for k in keys if s.get(k) is not None}
    return dict(c, model=q["model"], batch=batch)


def run(job):
    path = f"/tmp/case-{os.getpid()}-{job['i']}-{job['case']['batch']}.json"
    json.dump(job, open(path, "w"))
    t = time.time()
    done = subprocess.run([sys.executable, __file__, "--one", path], capture_output=True, text=True)
    lines = [l for l in done.stdout.splitlines() if l.startswith("RESULT ")]
    if not lines:
        return job, {"error": (done.stderr or done.stdout)[-1500:]}
    return job, dict(json.loads(lines[-1][7:]), wall=round(time.time() - t, 1))


class Room:
    """The card's memory: processes run beside each other as long as their limits fit."""

    def __init__(self, total):
        self.left, self.change = total, threading.Condition()

    def use(self, size, work):
        with self.change:
            self.change.wait_for(lambda: self.left >= size)
            self.left -= size
        try:
            return work()
        finally:
            with self.change:
                self.left += size
                self.change.notify_all()


def main():
    plans = json.load(open(sys.argv[1]))["plans"]
    jobs, room = [], Room(int(sys.argv[3]) << 30 if len(sys.argv) > 3 else 125 << 30)
    for i, plan in enumerate(plans):
        best = plan["recommended"]
        batch = best["setup"]["batch"]
        following = best["next_batch"][0] if best.get("next_batch") else batch + 1
        for b in (batch, following):
            jobs.append({"i": i, "limit": plan["planned"], "case": case(plan, b)})
    jobs.sort(key=lambda job: -job["limit"])
    results = {}
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        for job, result in pool.map(lambda job: room.use(job["limit"] + (2 << 30), lambda: run(job)), jobs):
            results[job["i"], job["case"]["batch"]] = result
            print(job["i"], job["case"]["model"], "batch", job["case"]["batch"], json.dumps(result), flush=True)
            with open(sys.argv[2], "w") as out:
                for i, plan in enumerate(plans):
                    tries = [r for (k, b), r in sorted(results.items()) if k == i]
                    out.write(json.dumps(dict(plan, tries=tries)) + "\n")


if sys.argv[1] == "--one":
    one(sys.argv[2])
else:
    main()
