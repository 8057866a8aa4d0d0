"""Draws questions at random and writes what `vramscope plan` recommends for each.

usage: draw.py VRAMSCOPE OUT.json [SEED] [COUNT]
A question is a model, a limit of PyTorch's allocator, the length and images of a sample, a precision and what is
trained; optimizer, checkpointing, attention, loss and micro-batch are the plan's to choose. What no setup fits is drawn
again, and counted.
"""
import json, random, subprocess, sys

# name: lengths, most images of a sample (0: none), whether a part can be frozen
MODELS = {
    "gpt2-medium": ([512, 1024], 0, False),
    "gpt2-xl": ([512, 1024], 0, False),
    "llama3.2-1b": ([1024, 2048], 0, False),
    "llama3.1-8b": ([1024, 2048], 0, False),
    "qwen2.5-1.5b": ([1024, 2048], 0, False),
    "qwen2.5-3b": ([1024, 2048], 0, False),
    "tinyllava-1.5b": ([1024, 2048], 1, True),
    "llava-1.5-7b": ([1024, 2048], 1, True),
    "qwen2-vl-2b": ([1024, 2048], 3, True),
    "qwen2.5-vl-3b": ([1024, 2048], 3, True),
    "qwen2.5-vl-7b": ([1024, 2048], 3, True),
    "internvl3-1b": ([1536], 4, True),
    "internvl3-2b": ([1536], 4, True),
    "gemma3-4b": ([1024], 2, True),
    "vit-large": ([0], 0, False),
    "videomae-base": ([0], 0, False),
}
# what PyTorch can have of cards of 8 to 80 GB
LIMITS = [7.25, 11.0, 15.0, 23.0, 39.0, 47.0, 79.0]


def question(rng):
    model = rng.choice(sorted(MODELS))
    lengths, images, parts = MODELS[model]
    precision = rng.choice(["bf16", "amp-bf16", "fp32"])
    freezes = ["none"] + (["vision"] if parts else []) + ([] if model.startswith(("gpt2", "vit", "videomae")) else ["lora"])
    q = {"model": model, "limit_gib": rng.choice(LIMITS), "precision": precision, "freeze": rng.choice(freezes), "seq": rng.choice(lengths)}
    if images:
        q["images"] = rng.randint(1, images)
    if model.startswith("qwen") and "-vl-" in model:
        q["grid"] = rng.choice([[16, 16], [24, 24], [24, 32]])
    return q


def plan(binary, q):
    args = [binary, "plan", q["model"], "--format", "json", "--limit-gib", str(q["limit_gib"]), "--precision", q["precision"], "--freeze", q["freeze"], "--seq", str(q["seq"])]
    if "images" in q:
        args += ["--images", str(q["images"])]
    if "grid" in q:
        args += ["--grid", "x".join(map(str, q["grid"]))]
    done = subprocess.run(args, capture_output=True, text=True)
    if done.returncode != 0:
        return None, done.stderr.strip()
    return json.loads(done.stdout), ""


def main():
    binary, out = sys.argv[1:3]
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 8
    count = int(sys.argv[4]) if len(sys.argv) > 4 else 10
    rng = random.Random(seed)
    kept, without = [], 0
    while len(kept) < count:
        q = question(rng)
        answer, why = plan(binary, q)
        best = answer and answer.get("recommended")
        if not best:
            without += 1
            print("nothing fits:", json.dumps(q), why, flush=True)
            continue
        kept.append({"question": q, "planned": answer["planned"], "recommended": best})
        s = best["setup"]
        print(json.dumps(q), "->", s["batch"], s["optim"], s["ckpt"], s["loss"], "reserved", best["peak_reserved"] >> 20, "next", best.get("next_batch"), flush=True)
    json.dump({"seed": seed, "drawn_again": without, "plans": kept}, open(out, "w"), indent=1)


main()
