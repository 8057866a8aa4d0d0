"""Drawn runs of transformers' Trainer and TRL's on two GPUs (`configurations.py draw … shared` and `combined`), measured one after the other.

usage: shared_runs.py CASES.jsonl OUT.jsonl DEADLINE_S [NUMBER...]
Each case whose `world` is 2 runs in two processes, forked from one that has imported everything and has not touched a GPU; rank 0's steps are a line of OUT.jsonl, with the case's number.
"""
import json, os, sys, tempfile, time, traceback
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import multiprocessing as mp

def rank(line, rank, port, to):
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE="2", LOCAL_WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    sys.stdout = open(os.devnull, "w")
    import torch, configurations, trl_runs, two_gpus
    def run():
        if not line["case"].get("trainer", "loop").startswith("trl_"): return two_gpus.run(line)
        torch.cuda.set_device(rank); torch.backends.cuda.matmul.allow_tf32 = False
        return trl_runs.run(line["case"], configurations.maker(line))
    try: r = run()
    except Exception as e: r = dict(error=repr(e)[:300], tb=traceback.format_exc()[-1200:])
    if rank == 0: json.dump(r, open(to, "w"))
    os._exit(0)

def main():
    lines = [json.loads(line) for line in open(sys.argv[1])]
    out, deadline = open(sys.argv[2], "a"), time.time() + float(sys.argv[3])
    wanted = [int(n) for n in sys.argv[4:]] or [at for at, line in enumerate(lines) if line["case"]["world"] == 2]
    import torch, transformers, transformers.trainer, accelerate, peft, deepspeed, two_gpus, fronts, measure, configurations  # noqa: F401
    if any(line["case"].get("trainer", "").startswith("trl_") for line in lines): import datasets, trl  # noqa: F401
    out.write(json.dumps(dict(env={m.__name__: m.__version__ for m in (torch, transformers, accelerate, peft, deepspeed)})) + "\n")
    ctx = mp.get_context("fork")
    for at in wanted:
        if time.time() > deadline: print("deadline at", at); break
        to, began = os.path.join(tempfile.gettempdir(), f"shared{at}.json"), time.time()
        ranks = [ctx.Process(target=rank, args=(lines[at], r, 29600 + at % 300, to)) for r in (0, 1)]
        for p in ranks: p.start()
        for p in ranks: p.join(60)
        for p in ranks:
            if p.is_alive(): p.kill()
        r = json.load(open(to)) if os.path.exists(to) else dict(error="no answer")
        out.write(json.dumps(dict(r, at=at, seconds=round(time.time() - began, 1))) + "\n"); out.flush()
        print(at, lines[at]["case"]["strategy"], r.get("peak_steady"), r.get("error", "")[:100], round(time.time() - began, 1), flush=True)

if __name__ == "__main__": main()
