"""Families of transformers recorded, replayed by the engine, and compared with measurements on an H100.

python3 zoo.py OUT.jsonl FAMILY,...|all|measured: families that OUT holds are not recorded again; `KEEP=DIR` keeps the
recordings.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import sys
import tempfile
import time
from typing import Any

from player import MARKS, ROOT, Results, apart, off, play

DEADLINE_SECONDS = 400
TRUTH = os.path.join(ROOT, "tests", "data", "recordings", "families_h100.jsonl")


def measured() -> dict[str, Any]:
    """What an H100 took, by family."""
    with open(TRUTH, encoding="utf-8") as file:
        return {row["family"]: row for row in map(json.loads, file)}


def record(family: str, path: str) -> dict[str, Any]:
    """One family recorded, and what the engine says of it."""
    import vramscope

    import families

    began = time.monotonic()
    with vramscope.recording(path, gpu="h100"):
        found = families.train(family)
    seconds = time.monotonic() - began
    played = play(path)
    return dict(
        family=family,
        peak=played["peak_allocated"],
        steady={mark: played["steady"][mark] for mark in MARKS},
        first={mark: played["first"][mark] for mark in MARKS},
        reserved=played["reserved"]["fresh-process"],
        params=found["params"],
        seconds=round(seconds, 1),
        host_mib=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10,
        operations=played["recording"]["operations"],
        file_kib=os.path.getsize(path) >> 10,
        assumed=sorted({f"{a['what']}: {a['how']}" for a in played["recording"]["assumed"]}),
        unknown=played["recording"]["unknown"],
    )


def compared(row: dict[str, Any], truth: dict[str, Any]) -> dict[str, Any]:
    """Distances in percent of the steady step's peak and marks, and of reserved bytes."""
    return dict(
        peak=off(row["peak"], truth["peak"]),
        reserved=off(row["reserved"], truth["reserved_peak"]),
        marks={mark: off(row["steady"][mark], truth["steady"][mark]) for mark in MARKS},
    )


def summary(rows: list[dict[str, Any]]) -> str:
    """How far all are off."""
    truths = measured()
    done = [row for row in rows if "error" not in row]
    said = [f"{len(done)} of {len(rows)} recorded."]
    found = [compared(row, truths[row["family"]]) for row in done if row["family"] in truths]
    if found:
        peaks = [abs(x["peak"]) for x in found]
        marks = [abs(v) for x in found for v in x["marks"].values()]
        reserved = [abs(x["reserved"]) for x in found]
        said.append(
            f"Of {len(found)} measured: peak off by {statistics.median(peaks)}% in the median, "
            f"{sum(p <= 1 for p in peaks)} within 1%; marks {statistics.median(marks)}%; "
            f"reserved within 1% in {sum(r <= 1 for r in reserved)}."
        )
    return " ".join(said)


def main() -> None:
    """Records families one by one and sums up."""
    import torch._dynamo  # noqa: F401  (before any recording replaces what it looks at)
    import vramscope  # noqa: F401

    import families

    out, wanted = sys.argv[1:3]
    truths = measured()
    names = {"all": list(families.CLASSES), "measured": list(truths)}.get(wanted, wanted.split(","))
    keep = os.environ.get("KEEP", tempfile.gettempdir())
    results = Results(out, "family")
    for name in names:
        if name in results.rows:
            continue
        row = apart(record, name, os.path.join(keep, f"{name}.vram.gz"), deadline=DEADLINE_SECONDS)
        results.add({"family": name} | row)
        shown = compared(row, truths[name]) if name in truths and "error" not in row else ""
        print(name, shown, row.get("error", "")[:200], flush=True)
    print(summary([results.rows[name] for name in names]))


if __name__ == "__main__":
    main()
