"""Rows of `training_steps.jsonl` recorded: what the engine says of the recording and of the case itself.

python3 truth.py OUT.jsonl [ROW...]: rows that OUT holds are not recorded again; `KEEP=DIR` keeps the recordings.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile
import time
from typing import Any

from player import MARKS, ROOT, Results, apart, asked, off, play

DEADLINE_SECONDS = 1500


def measured() -> list[dict[str, Any]]:
    """The measured rows."""
    with open(os.path.join(ROOT, "tests/data/truth/training_steps.jsonl"), encoding="utf-8") as file:
        found = [json.loads(line) for line in file]
    return [row for row in found if "case" in row]


def record(number: int, case: dict[str, Any], path: str) -> dict[str, Any]:
    """One row recorded as `measure.py` runs it, and its marks as the engine plays and as it simulates them."""
    import vramscope

    began = time.monotonic()
    with vramscope.recording(path, gpu="h200"):
        import measure

        measure.run({**case, "timed": 0})
    seconds = time.monotonic() - began
    played, simulated = play(path), asked("--case", json.dumps(case))
    return dict(
        row=number,
        model=case["model"],
        peak=played["peak_allocated"],
        steady={mark: played["steady"][mark] for mark in MARKS},
        simulated={mark: simulated["steady"][mark] for mark in MARKS},
        reserved=played["reserved"],
        seconds=round(seconds, 1),
        host_mib=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10,
        operations=played["recording"]["operations"],
        file_kib=os.path.getsize(path) >> 10,
    )


def main() -> None:
    """Records rows one by one."""
    import torch._dynamo  # noqa: F401  (before any recording replaces what it looks at)
    import transformers  # noqa: F401
    import vramscope  # noqa: F401

    out, wanted = sys.argv[1], [int(number) for number in sys.argv[2:]]
    keep = os.environ.get("KEEP", tempfile.gettempdir())
    results = Results(out, "row")
    for number, row in enumerate(measured()):
        if number in results.rows or (wanted and number not in wanted):
            continue
        path = os.path.join(keep, f"row{number}.vram.gz")
        found = apart(record, number, row["case"], path, deadline=DEADLINE_SECONDS)
        found = dict(row=number, model=row["case"]["model"]) | found
        results.add(found)
        distance = off(found["peak"], row["peak_steady"]) if "peak" in found and "steady" in row else ""
        print(number, found["model"], distance, found.get("steady") == found.get("simulated"), flush=True)


if __name__ == "__main__":
    main()
