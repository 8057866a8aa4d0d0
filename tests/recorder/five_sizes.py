"""Eight families at five sizes: polynomials from other sizes against recordings there, line by line.

python3 five_sizes.py FOLDER MODEL,... records each model at the sizes of FIT as `fronts.py` does, makes one `.sizes.gz`
of them, and compares what it says at the five sizes of `tests/data/truth/fronts_h100.jsonl` with the recordings that
`fronts.py` left in FOLDER. Writes `tests/data/five_sizes.jsonl`, one line a size.
"""

from __future__ import annotations

import gzip
import json
import multiprocessing
import os
import sys
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from fronts import DEADLINE_SECONDS, ROOT, record, truths, warm_up

RESULTS = os.path.join(ROOT, "tests", "data", "five_sizes.jsonl")

# None of the measured ones: a square in the length, a line in the batch, and one to check; then the batch of one, which
# PyTorch lays out otherwise.
FIT = [(2, 704), (2, 832), (2, 1152), (3, 704), (3, 832), (3, 1152), (5, 1280)]
ALONE = [(1, 704), (1, 832), (1, 1152), (1, 1280)]


def evaluated(path: str, point: tuple[int, ...]) -> list[list[str]]:
    """Lines of each structure of a `.sizes.gz` at a size."""
    found: list[list[str]] = []
    values: list[str] = []
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            line = line.rstrip("\n")
            if line.startswith('{"t":"structure"'):
                head = json.loads(line)
                values = list(at(head, point))
                found.append([])
            elif found and not line.startswith(('{"t":"assumed"', '{"t":"end"')):
                found[-1].append(substituted(line, values))
    return found


def at(structure: dict[str, Any], point: tuple[int, ...]) -> Iterator[str]:
    """Values of a structure's polynomials at a size."""
    for coefficients in structure["polynomials"]:
        total = Fraction(0)
        for coefficient, exponents in zip(coefficients, structure["basis"], strict=True):
            product = Fraction(coefficient)
            for base, power in zip(point, exponents, strict=True):
                product *= base**power
            total += product
        yield str(total)


def substituted(line: str, values: list[str]) -> str:
    """A line with each `$k` replaced."""
    pieces = line.split("$")
    whole = pieces[0]
    for piece in pieces[1:]:
        digits = len(piece) - len(piece.lstrip("0123456789"))
        whole += (values[int(piece[:digits])] if digits else "$") + piece[digits:]
    return whole


def canonical(path: str, point: tuple[int, ...]) -> list[str]:
    """Lines of a recording with layouts spelled out, as polynomials give them."""
    from vramscope.record import sizes

    read = sizes.read(path, point)
    lines = []
    for around, numbers in zip(read.texts, read.numbers, strict=True):
        pieces = around.split("\0")
        lines.append(pieces[0] + "".join(n + p for n, p in zip(numbers, pieces[1:], strict=True)))
    return lines


def child(case: dict[str, Any], path: str) -> None:
    """Records in a process of its own."""
    record(case, path)


def fitted(case: dict[str, Any], point: tuple[int, int], folder: str) -> str:
    """The recording of a case at a size, made if it is not there."""
    batch, seq = point
    path = os.path.join(folder, f"{case['model']}-{batch}-{seq}.vram.gz")
    if not os.path.exists(path):
        process = multiprocessing.get_context("fork").Process(
            target=child, args=({**case, "batch": batch, "seq": seq}, path + ".part")
        )
        process.start()
        process.join(DEADLINE_SECONDS)
        if process.exitcode != 0:
            process.kill()
            raise RuntimeError(f"{case['model']} could not be recorded at {point}")
        os.rename(path + ".part", path)
    return path


def compare(model: str, cases: list[dict[str, Any]], folder: str) -> list[dict[str, Any]]:
    """Each measured size of a model: how many lines of its recording the polynomials give, and how many they do not."""
    from vramscope.record import sizes

    points = FIT + (ALONE if any(c["case"]["batch"] == 1 for c in cases) else [])
    recordings = [sizes.read(fitted(cases[0]["case"], p, folder), p) for p in points]
    merged = os.path.join(folder, f"{model}.sizes.gz")
    report = sizes.write(merged, ["batch", "seq"], recordings)
    rows = []
    for truth in cases:
        point = (truth["case"]["batch"], truth["case"]["seq"])
        wanted = canonical(os.path.join(folder, f"{truth['i']}.vram.gz"), point)
        least = len(wanted)
        for lines in evaluated(merged, point):
            if len(lines) == len(wanted):
                least = min(least, sum(a != b for a, b in zip(lines, wanted, strict=True)))
        rows.append(dict(i=truth["i"], model=model, batch=point[0], seq=point[1], lines=len(wanted), differ=least))
        rows[-1]["structures"] = len(report["structures"])
    return rows


def main() -> None:
    """Compares models one by one; keeps the rows of those not named."""
    folder, wanted = sys.argv[1:3]
    os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false")
    warm_up()
    kept: list[dict[str, Any]] = []
    if os.path.exists(RESULTS):
        with open(RESULTS, encoding="utf-8") as file:
            kept = [json.loads(line) for line in file]
    for model in wanted.split(","):
        cases = [t for t in truths().values() if t["case"]["front"] == "loop" and t["case"]["model"] == model]
        rows = compare(model, cases, folder)
        kept = sorted([*(r for r in kept if r["model"] != model), *rows], key=lambda r: r["i"])
        with open(RESULTS, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\n" for row in kept)
        for row in rows:
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
