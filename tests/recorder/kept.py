"""The kept tables of recorded against measured.

python3 kept.py FAMILIES.jsonl ROWS.jsonl takes over what `zoo.py` and `truth.py` wrote, and writes the page anew.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
from collections.abc import Iterable
from typing import Any

from player import MARKS, PEAKS, ROOT, off

FOLDER = os.path.join(ROOT, "tests", "data", "recordings")
FAMILIES = os.path.join(FOLDER, "families_recorded.jsonl")
MEASURED_FAMILIES = os.path.join(FOLDER, "families_h100.jsonl")
ROWS = os.path.join(FOLDER, "training_steps_recorded.jsonl")
TRUTH = os.path.join(ROOT, "tests", "data", "truth")
PAGE = os.path.join(ROOT, "tests", "data", "recorded_vs_measured.md")

# What a case holds if it does not say so.
DEFAULTS = dict(
    ckpt="none", attn="sdpa", accum=1, freeze="none", images=1, clip=None, lora_dropout=0.0, drop_outputs=True
)


def lines(path: str) -> list[dict[str, Any]]:
    """Objects of a file, one a line."""
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def compared(recorded: dict[str, Any], measured: dict[str, Any], reserved: int) -> dict[str, float]:
    """Distances in percent by mark, of the steady step's peak, and of reserved bytes."""
    found = {mark: off(recorded["steady"][mark], measured["steady"][mark]) for mark in MARKS}
    found["peak"] = off(recorded["peak"], max(measured["steady"][mark] for mark in PEAKS))
    found["reserved"] = off(reserved, measured["reserved_peak"])
    return found


def families() -> dict[str, dict[str, float]]:
    """Every family that was recorded and measured."""
    recorded = {row["family"]: row for row in lines(FAMILIES) if "error" not in row}
    measured = {row["family"]: row for row in lines(MEASURED_FAMILIES)}
    both = sorted(set(recorded) & set(measured))
    return {name: compared(recorded[name], measured[name], recorded[name]["reserved"]) for name in both}


def _key(case: dict[str, Any]) -> str:
    told = {k: v for k, v in case.items() if k not in ("timed", "process") and DEFAULTS.get(k, "") != v}
    return json.dumps(told, sort_keys=True)


def rows(file: str) -> dict[int, dict[str, float]]:
    """Every row of `training_steps.jsonl` that was recorded, against its case in one of the measured files.

    `training_steps.jsonl` was measured case after case in one process, whose allocator held segments of those before;
    `own_process.jsonl` holds cases in a process of their own, as a script that trains is.
    """
    cases = [row["case"] for row in lines(os.path.join(TRUTH, "training_steps.jsonl")) if "case" in row]
    measured = {_key(x["case"]): x for x in lines(os.path.join(TRUTH, file)) if "steady" in x}
    layout = "fresh-process" if file == "own_process.jsonl" else "used-process"
    found: dict[int, dict[str, float]] = {}
    for row in lines(ROWS):
        truth = measured.get(_key(cases[row["row"]]))
        if "steady" in row and truth is not None:
            found[row["row"]] = compared(row, truth, row["reserved"][layout])
    return found


def figures(values: Iterable[float]) -> str:
    """Median, nine in ten, highest."""
    ordered = sorted(abs(value) for value in values)
    nine = ordered[max(0, round(0.9 * len(ordered)) - 1)]
    return f"{statistics.median(ordered):.4f}% | {nine:.4f}% | {ordered[-1]:.4f}%"


def summary(name: str, found: dict[Any, dict[str, float]]) -> list[str]:
    """Lines of the table of figures."""
    marks = [row[mark] for row in found.values() for mark in MARKS]
    return [
        f"| {name}: peak | {len(found)} | {figures(row['peak'] for row in found.values())} |",
        f"| {name}: seven marks | {len(marks)} | {figures(marks)} |",
        f"| {name}: reserved | {len(found)} | {figures(row['reserved'] for row in found.values())} |",
    ]


def page() -> str:
    """The page as Markdown."""
    zoo = lines(FAMILIES)
    equal = [row for row in lines(ROWS) if row.get("steady") and row["steady"] == row["simulated"]]
    recorded = [row for row in lines(ROWS) if "steady" in row]
    text = [
        "# Recorded against measured",
        "",
        "What `python -m vramscope.record` recorded without a GPU, played by the engine, against what an H100 took",
        "(the families, `recordings/families_h100.jsonl`) and an H200 (the rows of `truth/training_steps.jsonl`, and",
        "those of their cases that were also measured in a process of their own, `truth/own_process.jsonl`).",
        "Distances are recorded ÷ measured - 1, of the third step. Written by `tests/recorder/kept.py`; a test holds",
        "the limits.",
        "",
        f"{sum('error' not in row for row in zoo)} of {len(zoo)} families record. {len(equal)} of {len(recorded)} rows",
        "have the bytes of the engine's own simulation of the case at every mark. Rows 86 and 97 overflowed in fp16",
        "when they were measured, so that no optimizer ran (`truth/settled_fp16.jsonl`). shieldgemma2, recorded",
        "operation for operation as gemma3, ran short of memory on the card that four processes shared, and PyTorch",
        "gave its cache back: a recording that does so too has every measured byte (`test_families.py`).",
        "",
        "| figure | n | median | nine in ten | highest |",
        "| --- | --: | --: | --: | --: |",
        *summary("families", families()),
        *summary("rows", rows("training_steps.jsonl")),
        *summary("rows, each in a process of its own", rows("own_process.jsonl")),
        "",
        "| family | peak | before fwd | after fwd | peak fwd | after bwd | peak bwd | peak opt | end | reserved |",
        "| --- | --: | --: | --: | --: | --: | --: | --: | --: | --: |",
    ]
    for name, row in families().items():
        text.append(f"| {name} | " + " | ".join(f"{row[k]:.4f}%" for k in ("peak", *MARKS, "reserved")) + " |")
    failed = [row for row in zoo if "error" in row]
    if failed:
        text += ["", "| family that does not record | why |", "| --- | --- |"]
        text += [f"| {row['family']} | `{row['error'][:120]}` |" for row in failed]
    return "\n".join(text) + "\n"


def take_over(source: str, target: str, key: str) -> None:
    """Copies results in the order of their names, without what differs from machine to machine."""
    kept = sorted(lines(source), key=lambda row: row[key])
    with open(target, "w", encoding="utf-8") as file:
        for row in kept:
            row.pop("trace", None)
            file.write(json.dumps(row) + "\n")


def main() -> None:
    """Takes results over and writes the page."""
    if len(sys.argv) > 1:
        take_over(sys.argv[1], FAMILIES, "family")
        take_over(sys.argv[2], ROWS, "row")
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(page())


if __name__ == "__main__":
    main()
