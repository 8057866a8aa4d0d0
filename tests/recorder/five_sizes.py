"""Eight families at five sizes: polynomials from other sizes against recordings there, line by line.

python3 five_sizes.py FOLDER MODEL,... records each model at sizes that were not measured as `fronts.py` does, makes one
`.sizes.gz` of them, and compares what it says at the five sizes of `tests/data/truth/fronts_h100.jsonl` with the
recordings that `fronts.py` left in FOLDER: each line, and what the engine says of both. Writes
`tests/data/five_sizes.jsonl`, one line a size. The engine is that of `player.py`.
"""

from __future__ import annotations

import gzip
import json
import multiprocessing
import os
import re
import sys
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from fronts import DEADLINE_SECONDS, ROOT, record, truths, warm_up
from player import asked, play

RESULTS = os.path.join(ROOT, "tests", "data", "five_sizes.jsonl")

DECLARED = re.compile(r'\{"t":"line","id":(\d+),(.*)\}')
LINE = re.compile(r'"l":(\d+)')

# No measured size. Three lengths give a square, and two batches a line; the longest length checks both.
LENGTHS = (608, 704, 832)
LONGEST = 1408
# GPT-2 has as many positions.
LONGEST_OF = {"gpt2": 1024}
# Models that run operations for each image, so that each batch is a structure of its own: `unbind` of all images'
# features and `cat` of the list in LLaVA, positions of one image after another in Qwen2-VL.
IMAGE_BY_IMAGE = ("tinyllava-1.5b", "qwen2-vl-2b")


def chosen(model: str, batches: set[int]) -> list[tuple[int, int]]:
    """Sizes to fit, `(batch, length)`, so that polynomials hold at `batches`."""
    longest = LONGEST_OF.get(model, LONGEST)
    if model in IMAGE_BY_IMAGE:
        return [(batch, seq) for batch in sorted(batches) for seq in (*LENGTHS, longest)]
    points = [(batch, seq) for batch in (2, 3) for seq in LENGTHS] + [(5, longest)]
    # PyTorch lays a batch of one out otherwise.
    return points + [(1, seq) for seq in (*LENGTHS, longest) if 1 in batches]


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


def without_lines(lines: list[str]) -> list[str]:
    """Lines with `l` spelled out and no declarations of it, which also name the programs that recorded."""
    known: dict[str, str] = {}
    found = []
    for line in lines:
        declared = DECLARED.fullmatch(line)
        if declared:
            known[declared[1]] = declared[2]
        else:
            found.append(LINE.sub(lambda m: f'"l":{{{known[m[1]]}}}', line))
    return found


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


def said(answer: dict[str, Any]) -> dict[str, Any]:
    """Bytes of an answer of the engine: each mark of the first and the steady step, and what is reserved."""
    return {key: answer[key] for key in ("first", "steady", "peak_allocated", "reserved")}


def compare(model: str, cases: list[dict[str, Any]], folder: str) -> list[dict[str, Any]]:
    """Each measured size of a model.

    Lines of its recording, how many of them the polynomials do not give, the engine's peak of the polynomials and of
    the recording, and if all marks and reserved bytes of both are the same.
    """
    from vramscope.record import sizes

    points = chosen(model, {c["case"]["batch"] for c in cases})
    recordings = [sizes.read(fitted(cases[0]["case"], p, folder), p) for p in points]
    merged = os.path.join(folder, f"{model}.sizes.gz")
    report = sizes.write(merged, ["batch", "seq"], recordings)
    for lone in report["lone"]:
        print(f"{model}: no polynomial for {lone['points']}: {lone['reason']}", flush=True)
    rows = []
    for truth in cases:
        point = (truth["case"]["batch"], truth["case"]["seq"])
        recording = os.path.join(folder, f"{truth['i']}.vram.gz")
        wanted = without_lines(canonical(recording, point))
        least = len(wanted)
        for lines in map(without_lines, evaluated(merged, point)):
            if len(lines) == len(wanted):
                least = min(least, sum(a != b for a, b in zip(lines, wanted, strict=True)))
        row = dict(i=truth["i"], model=model, batch=point[0], seq=point[1], lines=len(wanted), differ=least)
        row["structures"] = len(report["structures"])
        ours = said(asked("--recording", merged, "--batch", str(point[0]), "--seq", str(point[1])))
        theirs = said(play(recording))
        row["peak"] = [ours["peak_allocated"], theirs["peak_allocated"]]
        row["all_marks"] = ours == theirs
        rows.append(row)
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
