"""Sets what `vramscope estimate --launch` says beside a dry run of the same file, for files whose samples are all of one size.

usage: recorded.py VRAMSCOPE CONFIGS RECORDINGS --launch FOLDER [FOLDER ...] [--keep OUT.jsonl]
RECORDINGS has NAME.vram.gz of each launch file (`vramscope dry-run --out`), CONFIGS a folder for each model that files name
(models/NAME). The shapes of the last recorded step are fed: positions, labels and images of its largest micro-batch, which
has a 640x480 image if its grid is asked for. Prints a row of Markdown for each: recorded, said, how far off.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
from typing import Any

from predict import PATCH, WIDTHS

LONG = {
    "i64": "int64",
    "f32": "float32",
    "i32": "int32",
    "bf16": "bfloat16",
    "f16": "float16",
    "bool": "bool",
    "u8": "uint8",
}
Shapes = dict[str, tuple[str, list[int]]]


def batches(path: str, number: int) -> list[Shapes]:
    """Shapes of the batches of a step, by name, one for each forward."""
    metas: dict[int, tuple[str, list[int]]] = {}
    tensors: dict[int, int] = {}
    steps: list[list[Shapes]] = []
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in map(json.loads, file):
            match line:
                case {"t": "meta"}:
                    metas[line["id"]] = (line["dtype"], line["shape"])
                case {"t": "op"}:
                    for x in line.get("o") or []:
                        if isinstance(x, str) and re.match(r"#\d", x):
                            storage, meta = x[1:].split(":")[:2]
                            tensors[int(storage)] = int(meta)
                case {"t": "mark", "at": "step"}:
                    steps.append([])
                case {"t": "mark", "at": "forward"} if steps:
                    steps[-1].append({})
                case {"t": "why", "is": "batch"} if steps and steps[-1] and line["s"] in tensors:
                    steps[-1][-1][line["name"]] = metas[tensors[line["s"]]]
    return [shapes for shapes in steps[number] if "input_ids" in shapes or "pixel_values" in shapes]


def size(shapes: Shapes) -> int:
    """Bytes of a batch."""
    total = 0
    for dtype, shape in shapes.values():
        count = WIDTHS[LONG[dtype]]
        for extent in shape:
            count *= extent
        total += count
    return total


def flags(name: str, model: str, found: list[Shapes], labels: int | None) -> list[str]:
    """What is fed of the largest micro-batch."""
    largest = max(found, key=size)
    rows, positions = largest["input_ids"][1]
    times = 2 if "dpo" in name else 1
    fed = ["--seq", str(positions), "--batch", str(rows // times)]
    if len(found) > 1:
        fed += ["--fetched", str(round(sum(map(size, found)) - size(largest)) >> 20)]
    kept = largest.get("labels", ("", [0, positions]))[1][-1]
    if name.startswith("swift"):
        # Of one sample its labels and the position before them; of several all from the first label.
        fed += ["--completion", str(max(kept - 1, 1))] if kept < positions else []
    if "dpo" in name and labels:
        # Those of chosen and of rejected samples.
        fed += ["--completion", str(labels // rows)]
    if name.startswith("trl_sft"):
        fed += ["--completion", str(positions)]
    pixels = largest.get("pixel_values")
    if pixels is None:
        return fed
    if model in PATCH:
        token = 2 * PATCH[model]
        images = largest["image_grid_thw"][1][0] // rows
        tokens = pixels[1][0] // 4 // (rows * images)
        height = next(h for h in range(int(tokens**0.5), 0, -1) if tokens % h == 0)
        return [*fed, "--image-sizes", ",".join([f"{height * token}x{tokens // height * token}"] * images)]
    return [*fed, "--images", str(pixels[1][1] if len(pixels[1]) == 5 else pixels[1][0] // rows)]


def answer(command: list[str]) -> dict[str, Any] | str:
    """What the program says, or why it says nothing."""
    run = subprocess.run([*command, "--gpu", "h100", "--format", "json"], capture_output=True, text=True, check=False)
    if run.returncode:
        return " ".join(line for line in run.stderr.splitlines() if not line.startswith("note"))
    return json.loads(run.stdout)


def main() -> None:
    """Prints a row for each recording."""
    program, configs, recordings = sys.argv[1:4]
    words = sys.argv[sys.argv.index("--launch") + 1 :]
    kept = open(words[words.index("--keep") + 1], "w", encoding="utf-8") if "--keep" in words else None
    folders = words[: words.index("--keep")] if "--keep" in words else words
    files = {
        name.rsplit(".", 1)[0]: os.path.join(f, name) for f in folders for name in sorted(os.listdir(f)) if "." in name
    }
    print("| launch file | recorded, GiB | said, GiB | off | not this run |\n| --- | --: | --: | --: | --- |")
    for name, path in files.items():
        recording = os.path.join(recordings, name + ".vram.gz")
        if not os.path.exists(recording):
            continue
        with open(path, encoding="utf-8") as file:
            model = re.search(r"models/(\w+)", file.read()).group(1)  # type: ignore[union-attr]
        truth = answer([program, "estimate", "--recording", recording])
        if isinstance(truth, str):
            print(f"| {name} | | | | {truth[:200]} |", flush=True)
            continue
        steps = truth["recording"]["batches"]["steps"][1:]
        highest = max(range(len(steps)), key=lambda i: steps[i]["peak_allocated"])
        fed = flags(name, model, batches(recording, highest + 1), steps[highest].get("labels"))
        config = os.path.join(configs, model, "config.json")
        said = answer([program, "estimate", "--launch", path, "--config", config, *fed])
        def peak(of):
            return max(v for k, v in of["steady"].items() if k.startswith("peak_"))
        row: dict[str, Any] = {"case": name, "model": model, "fed": fed}
        if isinstance(said, str):
            row["error"] = said
            print(f"| {name} | | | | {row['error'][:200]} |", flush=True)
        else:
            row |= {"recorded": steps[highest]["peak_allocated"], "said": peak(said)}
            off = 100 * (row["said"] / row["recorded"] - 1)
            why = "; ".join(
                left["why"] for left in said.get("not_this_run", []) if left["what"] not in ("length", "images")
            )
            print(
                f"| {name} | {row['recorded'] / 2**30:.4f} | {row['said'] / 2**30:.4f} | {off:+.3f}% | {why} |",
                flush=True,
            )
        if kept:
            kept.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
