"""Measures what PyTorch reserves after training steps of many lengths, in a process of its own for each case.

usage: lengths.py draw CASES.jsonl
       lengths.py run CASES.jsonl NUMBER OUT.jsonl

Each case has its steps' lengths in "steps"; see measure.py for what else a case may name. A row has the highest reserved bytes
after the first step, after as many steps as each power of two, and at the end.
"""
import json
import random
import sys

CASES = (
    {"model": "qwen2.5-0.5b", "batch": 2, "seq": 2048, "precision": "bf16", "optim": "adamw_fused", "ckpt": "none"},
    {"model": "llama3.2-1b", "batch": 1, "seq": 4096, "precision": "bf16", "optim": "adamw_fused", "ckpt": "full"},
    {"model": "qwen2.5-1.5b", "batch": 1, "seq": 3000, "precision": "amp-bf16", "optim": "adamw", "ckpt": "full", "clip": True},
    {"model": "gpt2-medium", "batch": 4, "seq": 1024, "precision": "fp32", "optim": "adamw", "accum": 2},
    {"model": "tinyllama-1.1b", "batch": 3, "seq": 2048, "precision": "bf16", "optim": "sgd", "ckpt": "full"},
)
LENGTHS, STEPS = 32, 192


def draw(path):
    chance = random.Random(20261129)
    with open(path, "w") as out:
        for case in CASES:
            most = case["seq"]
            lengths = [-(-most * k // LENGTHS) for k in range(1, LENGTHS + 1)]
            steps = [chance.choice(lengths) for _ in range(STEPS)]
            out.write(json.dumps({"case": dict(case, attn="sdpa"), "steps": steps}) + "\n")


def run(path, number, out):
    import measure
    import torch
    import transformers

    row = [json.loads(line) for line in open(path)][number]
    case, now = row["case"], [0]
    ids = measure.ids
    measure.ids = lambda batch, _seq, vocab, g: ids(batch, now[0], vocab, g)
    g = torch.Generator(device="cuda").manual_seed(0)
    model, inputs = measure.build(case, g)
    if case.get("ckpt", "none") != "none":
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    torch.cuda.empty_cache()
    optimizer = measure.optimizer(model, case)
    amp = {"amp-bf16": torch.bfloat16}.get(case["precision"])
    accum, reserved = case.get("accum", 1), {}
    torch.cuda.reset_peak_memory_stats()
    for number, now[0] in enumerate(row["steps"], 1):
        for _ in range(accum):
            batch = inputs()
            with torch.autocast("cuda", dtype=amp, enabled=amp is not None):
                o = model(**batch)
                loss = o.loss
            del o
            (loss / accum).backward()
            del loss, batch
        if case.get("clip"):
            torch.nn.utils.clip_grad_norm_(list(model.parameters()), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if number & (number - 1) == 0 or number == len(row["steps"]):
            reserved[number] = torch.cuda.max_memory_reserved()
    row["reserved"] = reserved
    row["peak"] = torch.cuda.max_memory_allocated()
    row["retries"] = torch.cuda.memory_stats()["num_alloc_retries"]
    env = {"torch": torch.__version__, "transformers": transformers.__version__, "gpu": torch.cuda.get_device_name()}
    with open(out, "a") as rows:
        if rows.tell() == 0:
            rows.write(json.dumps({"env": env}) + "\n")
        rows.write(json.dumps(row) + "\n")
    print(case["model"], {n: round(b / 2**30, 2) for n, b in reserved.items()}, round(row["peak"] / 2**30, 2), flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "draw":
        draw(sys.argv[2])
    else:
        run(sys.argv[2], int(sys.argv[3]), sys.argv[4])
