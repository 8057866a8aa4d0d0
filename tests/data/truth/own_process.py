"""Measure training steps each in a process of its own.

usage: own_process.py CASES.json OUT.jsonl [deadline_s]
As measure.py, whose cases and steps these are; but the allocator of each case starts empty, as that of a script that
trains does. Packages are imported once, before each process is forked, and CUDA only after it.
"""
import json, multiprocessing, os, sys, tempfile, time, traceback
import torch, transformers
import measure

LONGEST_S = 120

def one(case, to):
    torch.backends.cuda.matmul.allow_tf32 = False
    try: r = measure.run(case)
    except torch.cuda.OutOfMemoryError as e: r = dict(case=case, oom=str(e))
    except Exception as e: r = dict(case=case, error=repr(e)[:300], tb=traceback.format_exc()[-600:])
    with open(to, "w") as f: json.dump(dict(r, process="own"), f)

def main():
    cases = json.load(open(sys.argv[1])); out = open(sys.argv[2], "a")
    deadline = time.time() + float(sys.argv[3] if len(sys.argv) > 3 else 560)
    out.write(json.dumps(dict(env=dict(torch=torch.__version__, transformers=transformers.__version__, cuda=torch.version.cuda))) + "\n")
    to = os.path.join(tempfile.mkdtemp(), "case.json")
    for i, c in enumerate(cases):
        if time.time() > deadline: print("deadline at", i, len(cases)); break
        process = multiprocessing.get_context("fork").Process(target=one, args=(c, to))
        process.start(); process.join(LONGEST_S)
        if process.is_alive(): process.kill(); process.join()
        r = dict(case=c, error=f"the process ended without a result, or took over {LONGEST_S} s")
        if os.path.exists(to):
            r = json.load(open(to)); os.remove(to)
        out.write(json.dumps(r) + "\n"); out.flush()
        print(i, c["model"], r.get("peak"), r.get("reserved_peak"), r.get("error", ""), r.get("oom", "")[:60], flush=True)

if __name__ == "__main__": main()
