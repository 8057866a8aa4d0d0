"""Per-GPU memory of tensor-parallel training, as transformers does it.
torchrun --nproc-per-node N tensor_parallel.py CASES.json OUT.jsonl deadline_s

Each case is a JSON object as measure.py takes it; "events" writes what the allocator did in the third step to
OUT.jsonl.RANK.events.json. Models get random weights by the code that loads a checkpoint:
`from_pretrained(distributed_config=DistributedConfig(tp_size, tp_plan="auto"))` of none.
"""
import gc, json, os, sys, time, traceback
import torch, torch.distributed as dist
import measure as M
import recorded
import transformers
from transformers import PreTrainedModel
from transformers.distributed import DistributedConfig

CUDA = torch.cuda.is_available()


def whole(cls, config, **kw):
    """Stands in for `_from_config` in measure.build; parts of a model are made as ever."""
    if "attn_implementation" not in kw: return PARTS(cls, config, **kw)
    text = getattr(config, "text_config", None)
    if text is not None and text.base_model_tp_plan and "ForConditionalGeneration" in cls.__name__:
        # measure.py says in the section of the text that weights are tied; published files say it of the whole
        text.base_model_tp_plan = {k: v for k, v in text.base_model_tp_plan.items() if k != "embed_tokens"}
    distributed = DistributedConfig(tp_size=dist.get_world_size(), tp_plan="auto")
    dtype = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)
    return cls.from_pretrained(None, config=config, state_dict={}, distributed_config=distributed, dtype=dtype,
                               attn_implementation=kw["attn_implementation"])


PARTS = PreTrainedModel._from_config.__func__
PreTrainedModel._from_config = classmethod(whole)


def local(p):
    return p.to_local() if hasattr(p, "to_local") else p


def run(c, rank, world, events):
    gc.collect()
    if CUDA:
        torch.cuda.empty_cache(); torch._C._cuda_clearCublasWorkspaces(); torch.cuda.reset_peak_memory_stats()
    r = dict(case=c, world=world, base=M.A())
    # every rank sees the same batch
    g = torch.Generator(device="cuda" if CUDA else "cpu").manual_seed(0)
    model, inp = M.build(c, g); model = M.freeze(model, c); model.train()
    if c.get("ckpt", "none") != "none": model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    r["params_local"] = sum(local(p).numel() for p in model.parameters())
    r["split"] = sum(hasattr(p, "to_local") for p in model.parameters())
    gc.collect()
    if CUDA: torch.cuda.empty_cache()
    r["after_model"] = M.A(); r["reserved_after_model"] = torch.cuda.memory_reserved()
    opt = M.optimizer(model, c) if c["optim"] == "adamw_loop" else torch.optim.SGD(
        [p for p in model.parameters() if p.requires_grad], lr=1e-6, momentum=0.9 if c["optim"] == "sgdm" else 0.0, foreach=False)
    amp = {"amp-bf16": torch.bfloat16}.get(c["precision"])

    def step(meter, record=False):
        out = {}; accum = c.get("accum", 1); e = [torch.cuda.Event(enable_timing=True) for _ in range(4)] if CUDA else [recorded.Mute()] * 4
        for _ in range(accum - 1):
            batch = {k: (v.to(M.DT[c["precision"]]) if (k == "pixel_values" and amp is None) else v) for k, v in inp().items()}
            with torch.autocast("cuda" if CUDA else "cpu", dtype=amp, enabled=amp is not None): loss = model(**batch).loss
            (loss / accum).backward()
            del loss, batch
        batch = {k: (v.to(M.DT[c["precision"]]) if (k == "pixel_values" and amp is None) else v) for k, v in inp().items()}
        if record: torch.cuda.memory._record_memory_history(context="alloc", stacks="python", max_entries=400000)
        cut = lambda: out.setdefault("cuts", []).append(traces()) if record else None
        if meter: out["before_forward"] = M.A(); M.R()
        cut(); e[0].record()
        with torch.autocast("cuda" if CUDA else "cpu", dtype=amp, enabled=amp is not None): loss = model(**batch).loss
        e[1].record()
        cut()
        if meter: out["after_forward"] = M.A(); out["peak_forward"] = M.P(); M.R()
        (loss / accum if accum > 1 else loss).backward(); e[2].record()
        cut()
        if meter: out["after_backward"] = M.A(); out["peak_backward"] = M.P(); M.R()
        del loss, batch
        opt.step()
        cut()
        if meter: out["peak_optimizer"] = M.P()
        opt.zero_grad(set_to_none=True); e[3].record()
        cut()
        if meter: out["end"] = M.A()
        return out, e

    def traces():
        return sum(len(t) for t in torch.cuda.memory._snapshot()["device_traces"][rank:rank + 1])
    r["first"] = step(True)[0]; r["second"] = step(True)[0]; r["steady"] = step(True)[0]
    if CUDA:
        r["reserved_peak"] = torch.cuda.memory_stats()["reserved_bytes.all.peak"]
        f, t = torch.cuda.mem_get_info(); r["outside_torch"] = t - f - torch.cuda.memory_reserved()
    r["peak_steady"] = max(r["steady"][k] for k in ("peak_forward", "peak_backward", "peak_optimizer"))
    if c.get("events") and CUDA:
        cuts = step(False, True)[0]["cuts"]
        trace = torch.cuda.memory._snapshot()["device_traces"][rank]
        torch.cuda.memory._record_memory_history(enabled=None)
        events.write(json.dumps(dict(case=c, world=world, cuts=cuts, **recorded.compact(trace, "free_completed"))) + "\n"); events.flush()
    ts = []
    for _ in range(3 if CUDA else 0):
        _, e = step(False); torch.cuda.synchronize(); ts.append([e[i].elapsed_time(e[i + 1]) for i in range(3)])
    if ts: ts.sort(key=sum); r["ms"] = dict(forward=ts[1][0], backward=ts[1][1], optimizer=ts[1][2])
    return r


def main():
    rank = int(os.environ["LOCAL_RANK"])
    if CUDA:
        torch.cuda.set_device(rank); dist.init_process_group("nccl", device_id=torch.device("cuda", rank)); M.dev = f"cuda:{rank}"
    else:
        dist.init_process_group("gloo"); M.dev = "cpu"; M.A = M.P = lambda: 0; M.R = lambda: None
    world = dist.get_world_size(); transformers.logging.set_verbosity_error()
    out = open(sys.argv[2] + f".{rank}", "a"); events = open(sys.argv[2] + f".{rank}.events.json", "a"); dl = time.time() + float(sys.argv[3])
    if rank == 0:
        out.write(json.dumps(dict(env=dict(torch=torch.__version__, transformers=transformers.__version__, gpu=torch.cuda.get_device_name() if CUDA else "none", world=world))) + "\n")
    dist.barrier()
    for i, c in enumerate(json.load(open(sys.argv[1]))):
        stop = torch.tensor([time.time() > dl], device=M.dev).int(); dist.all_reduce(stop)
        if stop.item(): print("deadline", i); break
        del stop
        t = time.time()
        try: r = run(c, rank, world, events)
        except Exception as e: r = dict(case=c, error=repr(e)[:300], tb=traceback.format_exc()[-900:])
        r["wall"] = round(time.time() - t, 1); out.write(json.dumps(r) + "\n"); out.flush()
        if rank == 0: print(i, c["model"], r.get("peak_steady", 0) / 2**30, r.get("error", ""), r.get("tb", "") if "error" in r else "", r["wall"], flush=True)
        r = None
    dist.destroy_process_group()


if __name__ == "__main__": main()
