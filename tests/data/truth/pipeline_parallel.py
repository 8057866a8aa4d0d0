"""Per-GPU memory of pipeline-parallel training, as torch.distributed.pipelining does it.
torchrun --nproc-per-node N pipeline_parallel.py CASES.json OUT.jsonl deadline_s

Each case is a JSON object as measure.py takes it, with `strategy` pipeline (Schedule1F1B) or pipeline_gpipe
(ScheduleGPipe), `world` stages and `accum` micro-batches of `batch` samples; "events" writes what the allocator did in
the fourth step to OUT.jsonl.RANK.events.json. Every stage writes a row of its own. Where `world` is not N, or "alone" is
set, nothing is sent: the processes share the stages that `stages` names and run one after the other, in a process group
that answers at once (torch.testing's FakeStore), so that buffers hold whatever lay there.

A stage is the model without the blocks of the others: `layers[rank * n : (rank + 1) * n]`. The first has the table of
tokens and whatever makes images into embeddings, the last has the norm and the head. Stages are told the shapes of what
they get and give: asked for, torch would run each once on zeros, which hold no image tokens.
"""
import gc, json, os, sys, time, traceback
import torch, torch.distributed as dist
import measure as M
import recorded
import transformers
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe
from transformers.loss.loss_utils import ForCausalLMLoss

CUDA = torch.cuda.is_available()
SCHEDULES = dict(pipeline=Schedule1F1B, pipeline_gpipe=ScheduleGPipe)


class Stage(torch.nn.Module):
    def __init__(self, model, rank, world, amp):
        super().__init__()
        body = model.model
        text = getattr(body, "language_model", getattr(body, "text_model", body))
        if len(text.layers) % world: raise ValueError(f"{len(text.layers)} blocks in {world} stages")
        n = len(text.layers) // world
        text.layers = text.layers[rank * n:(rank + 1) * n]
        if rank > 0: text.embed_tokens = None
        if rank < world - 1: text.norm = torch.nn.Identity()
        self.body = body if rank == 0 else text
        self.lm_head = model.lm_head if rank == world - 1 else None
        self.first, self.amp = rank == 0, amp

    def forward(self, x, **kw):
        with torch.autocast("cuda" if CUDA else "cpu", dtype=self.amp, enabled=self.amp is not None):
            if self.first: h = self.body(input_ids=x, use_cache=False, **kw).last_hidden_state
            else: h = self.body(inputs_embeds=x, use_cache=False, **kw).last_hidden_state
            return h if self.lm_head is None else self.lm_head(h)


def run(c, rank, world, events, talks):
    gc.collect()
    if CUDA:
        torch.cuda.empty_cache(); torch._C._cuda_clearCublasWorkspaces(); torch.cuda.reset_peak_memory_stats()
    r = dict(case=c, rank=rank, talks=talks, base=M.A())
    amp = {"amp-bf16": torch.bfloat16}.get(c["precision"]); accum = c.get("accum", 1)
    # every rank sees the same batch
    g = torch.Generator(device="cuda" if CUDA else "cpu").manual_seed(0)
    model, inp = M.build({**c, "batch": c["batch"] * accum}, g); model = M.freeze(model, c); model.train()
    if c.get("ckpt", "none") != "none": model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    text = model.config.get_text_config(); hidden, vocab = text.hidden_size, text.vocab_size
    module = Stage(model, rank, world, amp); del model
    # the other stages' memory is given back, so that this stage's lies as if nothing else had been there
    module.cpu(); gc.collect()
    if CUDA: torch.cuda.empty_cache()
    module.to(M.dev); gc.collect()
    if CUDA: torch.cuda.empty_cache(); torch.cuda.reset_peak_memory_stats()
    r["params_local"] = sum(p.numel() for p in module.parameters())
    r["after_model"] = M.A(); r["reserved_after_model"] = torch.cuda.memory_reserved()
    opt = M.optimizer(module, c)
    like = lambda *shape: torch.empty(*shape, device="meta", dtype=torch.float32 if amp else M.DT[c["precision"]])
    between, ids = like(c["batch"], c["seq"], hidden), torch.empty(c["batch"], c["seq"], device="meta", dtype=torch.long)
    logits = torch.empty(c["batch"], c["seq"], vocab, device="meta", dtype=amp or M.DT[c["precision"]])
    stage = PipelineStage(module, rank, world, torch.device(M.dev), input_args=ids if rank == 0 else between,
                          output_args=logits if rank == world - 1 else between)
    loss_fn = lambda out, labels: ForCausalLMLoss(out, labels, vocab)
    schedule = SCHEDULES[c["strategy"]](stage, n_microbatches=accum, loss_fn=loss_fn)
    first_backward, backward = [None], stage.backward_one_chunk

    def marked(*a, **kw):
        if first_backward[0]: first_backward[0](); first_backward[0] = None
        return backward(*a, **kw)
    stage.backward_one_chunk = marked

    def step(meter, record=False):
        out = {}; e = [torch.cuda.Event(enable_timing=True) for _ in range(4)] if CUDA else [recorded.Mute()] * 4
        b = inp()
        if rank > 0: b = {k: v for k, v in b.items() if k in ("input_ids", "labels", "attention_mask")}
        batch = {k: (v.to(M.DT[c["precision"]]) if (k == "pixel_values" and amp is None) else v) for k, v in b.items()}
        del b
        if record: torch.cuda.memory._record_memory_history(context="alloc", stacks="python", max_entries=400000)
        cut = lambda: out.setdefault("cuts", []).append(traces()) if record else None

        def turn():
            e[1].record()
            cut()
            if meter: out["after_forward"] = M.A(); out["peak_forward"] = M.P(); M.R()
        first_backward[0] = turn
        if meter: out["before_forward"] = M.A(); M.R()
        cut(); e[0].record()
        losses = []; x, labels = batch.pop("input_ids"), batch.pop("labels")
        given = (x,) if rank == 0 else ()
        schedule.step(*given, target=labels if rank == world - 1 else None, losses=losses, return_outputs=False, **batch)
        e[2].record()
        cut()
        if meter: out["after_backward"] = M.A(); out["peak_backward"] = M.P(); M.R()
        del losses, batch, given, x, labels
        opt.step()
        cut()
        if meter: out["peak_optimizer"] = M.P()
        opt.zero_grad(set_to_none=True); e[3].record()
        cut()
        if meter: out["end"] = M.A()
        return out, e

    def traces():
        return len(torch.cuda.memory._snapshot()["device_traces"][torch.cuda.current_device()])
    r["first"] = step(True)[0]; r["second"] = step(True)[0]; r["steady"] = step(True)[0]
    if CUDA:
        r["reserved_peak"] = torch.cuda.memory_stats()["reserved_bytes.all.peak"]
        f, t = torch.cuda.mem_get_info(); r["outside_torch"] = t - f - torch.cuda.memory_reserved()
    r["peak_steady"] = max(r["steady"][k] for k in ("peak_forward", "peak_backward", "peak_optimizer"))
    if c.get("events") and CUDA:
        cuts = step(False, True)[0]["cuts"]
        trace = torch.cuda.memory._snapshot()["device_traces"][torch.cuda.current_device()]
        torch.cuda.memory._record_memory_history(enabled=None)
        events.write(json.dumps(dict(case=c, rank=rank, talks=talks, cuts=cuts, **recorded.compact(trace, "free_requested"))) + "\n"); events.flush()
    ts = []
    for _ in range(4 if CUDA and talks else 0):
        dist.barrier(); torch.cuda.synchronize(); t = time.time()
        _, e = step(False); torch.cuda.synchronize(); ts.append([e[i].elapsed_time(e[i + 1]) for i in range(3)])
    if ts: ts.sort(key=sum); r["ms"] = dict(forward=ts[1][0], backward=ts[1][1], optimizer=ts[1][2])
    return r


def main():
    rank = int(os.environ["LOCAL_RANK"]); gpus = int(os.environ["WORLD_SIZE"])
    if CUDA: torch.cuda.set_device(rank); M.dev = f"cuda:{rank}"
    else: M.dev = "cpu"; M.A = M.P = lambda: 0; M.R = lambda: None; torch.cuda.memory_reserved = lambda: 0
    transformers.logging.set_verbosity_error()
    out = open(sys.argv[2] + f".{rank}", "a"); events = open(sys.argv[2] + f".{rank}.events.json", "a"); dl = time.time() + float(sys.argv[3])
    if rank == 0:
        out.write(json.dumps(dict(env=dict(torch=torch.__version__, transformers=transformers.__version__, gpu=torch.cuda.get_device_name() if CUDA else "none", gpus=gpus))) + "\n")

    def tried(i, c, stage, talks):
        t = time.time()
        try: r = run(c, stage, c["world"], events, talks)
        except Exception as e: r = dict(case=c, rank=stage, error=repr(e)[:300], tb=traceback.format_exc()[-900:])
        r["wall"] = round(time.time() - t, 1); out.write(json.dumps(r) + "\n"); out.flush()
        print(i, c["model"], stage, r.get("peak_steady", 0) / 2**30, r.get("error", ""), r.get("tb", "") if "error" in r else "", r["wall"], flush=True)

    cases = json.load(open(sys.argv[1])); alone = lambda c: c.get("alone") or c["world"] != gpus
    together = [c for c in cases if not alone(c)]
    if together:
        dist.init_process_group("nccl" if CUDA else "gloo", **(dict(device_id=torch.device("cuda", rank)) if CUDA else {}))
        for i, c in enumerate(together):
            stop = torch.tensor([time.time() > dl], device=M.dev).int(); dist.all_reduce(stop)
            if stop.item(): print("deadline", i); break
            del stop
            tried(i, c, rank, True)
        dist.destroy_process_group()
    from torch.testing._internal.distributed.fake_pg import FakeStore
    runs = [(c, stage) for c in cases if alone(c) for stage in c.get("stages", range(c["world"]))]
    for i, (c, stage) in enumerate(runs):
        if i % gpus != rank or time.time() > dl: continue
        dist.init_process_group("fake", store=FakeStore(), rank=stage, world_size=c["world"])
        tried(i, c, stage, False)
        dist.destroy_process_group()


if __name__ == "__main__": main()
