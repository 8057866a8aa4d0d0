"""Measure drawn configurations as `configurations.py run` does, with each allocation of the last step.

usage: traced.py CASES.jsonl OUT.jsonl TRACES [DEADLINE_S]
TRACES/NUMBER.json.gz holds the last step of the line NUMBER as recorded.py compacts it, which the engine's example
`compare_events` sets beside the simulated one (gunzip it first). That of a trainer begins behind the batches that it fetches.
A line with `"full": true` also gets `full`, [action, address, bytes, stream, time] of the whole run.
"""
import gzip, json, os, sys, time
import torch

plain, times = torch.cuda.reset_peak_memory_stats, []

def marked():
    """Notes when a phase begins; the trace has the same clock."""
    times.append(time.time_ns() // 1000)
    return plain()

torch.cuda.reset_peak_memory_stats = marked  # before measure.py takes it
import measure, recorded, configurations, fronts  # noqa: E402, F401
import accelerate, peft, transformers.trainer  # noqa: E402, F401  once, before each process is forked

def first_of_last_step(case):
    """When it began: a trainer's meter resets the peak twice in a step, the loop at its begin and thrice in a micro-batch."""
    return times[-2] if case.get("trainer", "loop") != "loop" else times[-1 - 3 * case.get("accum", 1)]

def traced(one, folder):
    def run(line, to):
        # Python's stacks would name the tensors, and now and then end a run with a SystemError.
        torch.cuda.memory._record_memory_history(max_entries=4_000_000, context=None)
        one(line, to)
        trace = torch.cuda.memory._snapshot()["device_traces"][0]
        begin = first_of_last_step(line["case"])
        out = recorded.compact([t for t in trace if t["time_us"] >= begin and t["action"] in ("alloc", "free_requested")], "free_requested")
        if line.get("full"): out["full"] = [[t["action"], t["addr"], t["size"], t["stream"], t["time_us"]] for t in trace]
        with gzip.open(os.path.join(folder, f"{line['number']}.json.gz"), "wt") as f: json.dump(out, f)
    return run

if __name__ == "__main__":
    cases, to, folder = sys.argv[1:4]
    os.makedirs(folder, exist_ok=True)
    numbered = os.path.join(folder, "cases.jsonl")
    with open(cases) as f, open(numbered, "w") as out:
        for number, line in enumerate(f): out.write(json.dumps(dict(json.loads(line), number=number)) + "\n")
    configurations.one = traced(configurations.one, folder)
    configurations.run(numbered, to, time.time() + float(sys.argv[4] if len(sys.argv) > 4 else 560))
