"""TRL's trainers on drawn configurations: recorded without a GPU and compared with what the engine simulates.

python3 trl_drawn.py CASES.jsonl OUT [NUMBER...]: CASES is from `configurations.py draw … trl`; of each line,
OUT/NUMBER.vram and OUT/NUMBER.json are written for `compare_events --step`, which runs if `COMPARE` names its program.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
from typing import Any

from fronts import truth_module
from player import apart

DEADLINE_SECONDS = 600


def record(line: dict[str, Any], path: str) -> None:
    """Two steps of a line, as `trl_runs.py` measures them."""
    import vramscope

    sys.modules["fronts"] = truth_module()
    with vramscope.recording(path, gpu="h200", steps=2):
        import configurations
        import trl_runs

        trl_runs.run(line["case"], configurations.maker(line))


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
    done = subprocess.run([program, "--step", base + ".vram", base + ".json"], check=False)
    return {"equal": done.returncode == 0}


def main() -> None:
    """Records lines, each in a process of its own."""
    from fronts import warm_up

    cases, out = sys.argv[1], sys.argv[2]
    os.makedirs(out, exist_ok=True)
    os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", HF_DATASETS_DISABLE_PROGRESS_BARS="1")
    os.environ["TMPDIR"] = os.path.abspath(out)
    warm_up()
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
