"""Measure fp16 training steps once GradScaler takes them.

usage: settled.py CASES.json OUT.jsonl [deadline_s]
As measure.py, whose cases and steps these are; but where gradients overflow, the scaler leaves the
optimizer out and halves its scale, so that the first steps make no optimizer states. Here steps go on
until three in a row were taken: `steady` is the third of them, `reserved_peak` is over the whole run.
`skipped` is how many steps came before, `scales` the scale of each step; `first` and `second` are the
first two steps that were taken, `third` is the run's third step, whatever the scaler did with it.
"""
import gc, json, sys, time, traceback
import torch
from measure import A, P, R, DT, build, dev, freeze, optimizer

MOST = 60

def run(c):
    gc.collect(); torch.cuda.empty_cache(); R()
    r = dict(case=c)
    g = torch.Generator(device=dev).manual_seed(0)
    model, inp = build(c, g)
    model = freeze(model, c)
    if c.get("ckpt", "none") != "none":
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        if c.get("freeze") in ("lora", "all-but-connector"): model.enable_input_require_grads()
    r["params"] = sum(p.numel() for p in model.parameters())
    r["trainable"] = sum(p.numel() for p in model.parameters() if p.requires_grad)
    gc.collect(); torch.cuda.empty_cache()
    opt = optimizer(model, c)
    scaler = torch.amp.GradScaler("cuda")
    accum = c.get("accum", 1)
    def step():
        out = {}; R()
        for _ in range(accum):
            batch = inp()
            out["before_forward"] = A(); R()
            with torch.autocast("cuda", dtype=torch.float16, cache_enabled=c.get("autocast_cache", True)):
                o = model(**batch); loss = o.loss
            del o
            out["after_forward"] = A(); out["peak_forward"] = P(); R()
            scaler.scale(loss / accum).backward()
            out["after_backward"] = A(); out["peak_backward"] = P(); R()
            del loss, batch
        if c.get("clip"): torch.nn.utils.clip_grad_norm_([p for p in model.parameters() if p.requires_grad], 1.0)
        before = scaler.get_scale()
        scaler.step(opt); scaler.update()
        out["peak_optimizer"] = P()
        opt.zero_grad(set_to_none=True)
        out["end"] = A()
        return out, before, scaler.get_scale() >= before
    r["scales"], taken = [], 0
    for number in range(MOST):
        figures, scale, was_taken = step()
        r["scales"].append(scale)
        taken = taken + 1 if was_taken else 0
        if number == 2: r["third"] = figures
        if taken == 1: r["first"] = figures
        if taken == 2: r["second"] = figures
        if taken == 3:
            r["steady"] = figures
            r["peak_steady"] = max(figures[k] for k in ("peak_forward", "peak_backward", "peak_optimizer"))
            break
    r["skipped"] = len(r["scales"]) - taken
    r["reserved_peak"] = torch.cuda.memory_stats()["reserved_bytes.all.peak"]
    return r

def main():
    cases = json.load(open(sys.argv[1])); out = open(sys.argv[2], "a")
    deadline = time.time() + float(sys.argv[3] if len(sys.argv) > 3 else 560)
    torch.backends.cuda.matmul.allow_tf32 = False
    for i, c in enumerate(cases):
        if time.time() > deadline: print("deadline at", i, len(cases)); break
        t = time.time()
        try: r = run(c)
        except Exception as e: r = dict(case=c, error=repr(e)[:300], tb=traceback.format_exc()[-600:])
        r["i"] = i; r["wall"] = round(time.time() - t, 2)
        out.write(json.dumps(r) + "\n"); out.flush()
        print(i, c["model"], r.get("skipped"), r.get("scales", [])[-4:], r.get("steady"), r.get("error", ""), r["wall"], flush=True)
        r = None
        gc.collect(); torch.cuda.empty_cache()
if __name__ == "__main__": main()
