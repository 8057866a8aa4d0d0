"""Recordings against what PyTorch's allocator recorded: python3 events.py NAME... of tests/data/recorded/."""

from __future__ import annotations

import glob
import gzip
import json
import os
import sys
import tempfile
from collections import Counter
from difflib import SequenceMatcher
from typing import Any

from player import ROOT, lines

PHASES = ("forward", "backward", "optimizer", "zero_grad")


def phases(path: str, wanted: int) -> dict[str, list[tuple[int, str]]]:
    """Births of one step by phase, `(bytes, operation)`; of several micro-batches the last."""
    names: dict[int, str] = {}
    rows: dict[int, str] = {}
    found: dict[str, list[tuple[int, str]]] = {}
    step, phase = 0, ""
    for line in lines(path):
        kind = line["t"]
        if kind == "fn":
            names[line["id"]] = line["name"]
        elif kind == "line":
            rows[line["id"]] = f"{line['file']}:{line['line']}"
        elif kind == "mark":
            at = line["at"]
            step = line.get("step", step) if at == "step" else step
            if at == "forward":
                phase = "forward"
            elif at == "backward":
                phase = "backward"
            elif at == "backward_end":
                phase = "optimizer"
            elif at == "optimizer_end":
                phase = "zero_grad"
            else:
                continue
            if step == wanted and at in ("forward", "backward", "backward_end"):
                found[phase] = []
        elif kind == "op" and step == wanted and phase in found:
            for _, size in line.get("n", ()):
                if size:
                    found[phase].append((size, names[line["f"]] + " " + rows.get(line.get("l"), "")))
    return found


def record(case: dict[str, Any], path: str) -> None:
    """Two steps of a case, as the recordings of the allocator were made."""
    import vramscope

    with vramscope.recording(path, gpu="h200", steps=2):
        import measure

        measure.run({**case, "timed": 0})


def compare(name: str, verbose: bool) -> dict[str, Any]:
    """Counts of equal, missing and spurious allocations by phase."""
    with gzip.open(os.path.join(ROOT, "tests/data/recorded", name + ".json.gz"), "rt") as file:
        theirs = json.load(file)
    path = os.path.join(tempfile.gettempdir(), name + ".vram.gz")
    record(theirs["case"], path)
    ours = phases(path, 2)
    result: dict[str, Any] = dict(name=name)
    for phase in PHASES:
        expected = [s for s in theirs["steady"].get(phase, []) if s > 0]
        got = ours.get(phase, [])
        sizes = [s for s, _ in got]
        matcher = SequenceMatcher(None, expected, sizes, autojunk=False) if len(sizes) < 4000 else None
        if matcher is None:
            missing, spurious = Counter(expected) - Counter(sizes), Counter(sizes) - Counter(expected)
            who = dict(got)
        else:
            missing, spurious, who = Counter(), Counter(), {}
            for tag, i1, i2, j1, j2 in matcher.get_opcodes():
                if tag != "equal":
                    missing.update(expected[i1:i2])
                    spurious.update(sizes[j1:j2])
                    who.update(dict(got[j1:j2]))
        result[phase] = [len(expected), sum(missing.values()), sum(spurious.values())]
        if verbose:
            print("  ", phase, "missing", missing.most_common(8))
            print("  ", phase, "spurious", [(s, n, who.get(s)) for s, n in spurious.most_common(8)])
    return result


if __name__ == "__main__":
    verbose = "-v" in sys.argv
    for name in [a for a in sys.argv[1:] if a != "-v"]:
        for path in sorted(glob.glob(os.path.join(ROOT, "tests/data/recorded", name + ".json.gz"))):
            try:
                print(json.dumps(compare(os.path.basename(path)[: -len(".json.gz")], verbose)), flush=True)
            except Exception as e:
                print(json.dumps(dict(name=name, error=repr(e)[:300])), flush=True)
