"""Drawn configurations recorded without a GPU and compared with what the engine simulates, event by event.

python3 drawn.py CASES.jsonl OUT [NUMBER...]: CASES is from `configurations.py draw`; of each line, OUT/NUMBER.vram and
OUT/NUMBER.json are written for `compare_events`, which runs if `COMPARE` names its program. Steps of a trainer are
compared as wholes (`compare_events --step`).
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
from typing import Any

import fronts
from player import apart

DEADLINE_SECONDS = 600


def record(line: dict[str, Any], path: str) -> None:
    """Two steps of a line, as `configurations.py run` measures them.

    Three where it shares: ZeRO's stage 3 gathers ahead once it has seen two passes, and DDP orders its buckets anew
    behind the first.
    """
    import torch
    import vramscope
    from vramscope.record import collectives

    case = line["case"]
    is_shared = "strategy" in case and case.get("trainer", "loop") != "loop"
    reorders = case.get("strategy") in ("ddp", "ddp_view", "zero1", "deepspeed3")
    steps = 3 if is_shared or reorders else 2
    if is_shared:
        os.environ.update(collectives.variables(case["world"]))
    with vramscope.recording(path, gpu="h200", steps=steps):
        import configurations
        import measure

        measure.build = configurations.maker(line)
        if is_shared:
            # `two_gpus.py` takes this name for the module beside it.
            sys.modules["fronts"] = fronts.truth_module()
            import trl_runs
            import two_gpus

            of_trl = str(case["trainer"]).startswith("trl_")
            trl_runs.run(case, measure.build) if of_trl else two_gpus.run(line)
        elif "strategy" in case and not case["strategy"].startswith("deepspeed"):
            import data_parallel

            os.environ.update(collectives.variables(case["world"]))
            torch.distributed.init_process_group("nccl")
            data_parallel.run({"optim": "adamw", **case}, 0, case["world"])
        elif "strategy" in case:
            fronts.truth_module().run_deepspeed(line["case"])
        elif str(case.get("trainer")).startswith("trl_"):
            sys.modules["fronts"] = fronts.truth_module()
            import trl_runs

            trl_runs.run(case, measure.build)
        elif line["case"].get("trainer", "loop") != "loop":
            fronts.truth_module().run_trainer(line["case"])
        else:
            measure.run({**line["case"], "timed": 0})


def one(number: int, line: dict[str, Any], out: str) -> dict[str, Any]:
    """Records a line, and compares it."""
    base = os.path.join(out, str(number))
    record(line, base + ".vram.gz")
    with gzip.open(base + ".vram.gz") as packed, open(base + ".vram", "wb") as file:
        shutil.copyfileobj(packed, file)
    with open(base + ".json", "w", encoding="utf-8") as file:
        json.dump({key: line[key] for key in ("config", "case")}, file)
    program = os.environ.get("COMPARE")
    if program is None:
        return {}
    case = line["case"]
    whole = ["--step"] if case.get("trainer", "loop") != "loop" else []
    # Numbers that are gathered from all ranks grow with these.
    least = [str(8 * case["world"] + 1)] if case.get("world", 1) > 4 else []
    if "strategy" in case and not whole:
        # `data_parallel.py` does not divide the loss by the micro-batches.
        least = least or ["5"]
    done = subprocess.run([program, *whole, base + ".vram", base + ".json", *least], check=False)
    return {"equal": done.returncode == 0}


def main() -> None:
    """Records lines, each in a process of its own."""
    import torch._dynamo  # noqa: F401  (before any recording replaces what it looks at)
    import transformers  # noqa: F401
    import vramscope  # noqa: F401

    cases, out = sys.argv[1], sys.argv[2]
    os.makedirs(out, exist_ok=True)
    with open(cases, encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    equal = 0
    wanted = [int(number) for number in sys.argv[3:]] or range(len(lines))
    for number in wanted:
        print(f"== {number} {lines[number]['case']}", flush=True)
        result = apart(one, number, lines[number], out, deadline=DEADLINE_SECONDS)
        equal += result.get("equal", False)
        if "error" in result:
            print(result["error"], result.get("trace", ""))
    print(f"{equal} of {len(wanted)} are equal")


if __name__ == "__main__":
    main()
