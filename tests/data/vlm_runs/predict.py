"""Asks `vramscope estimate --launch` about each case, as a user would and with the shapes that the run had.

usage: predict.py VRAMSCOPE CONFIGS RESULTS.jsonl --launch FOLDER [--out predictions.jsonl] [--only A,B] [--each]
CONFIGS is a folder of model folders with config.json (`tests/data/dry_runs/make_models.py FOLDER --no-weights`), FOLDER has the
launch files, RESULTS what each run took (`run.py` beside them): a line with `case`, `model`, `data` and `record`. Two questions
for each case: `file`, the file, the configuration, the largest image of the data and nothing else; `fed`, the lengths, labels
and images of each sample of a micro-batch besides. Every micro-batch of the steps after the first that no other one exceeds in
positions, patches and labels is asked about, and the highest answer counts; with --each, every micro-batch. Prints a line for
each case: measured, said, and how far off.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import subprocess
import sys
from typing import Any

PATCH = {"qwen25vl": 14, "qwen3vl": 16, "qwen35": 16, "glm4v": 14, "qwen2vl": 14}
# Models that take an image of any size beside others of the same number of tokens.
FIXED = {"llava": 576, "gemma3": 256, "paligemma": 256}
# What no line of a file tells, since a script of one's own reads it.
BY_HAND = {
    "hf_smolvlm_lora": [
        *("--freeze", "lora", "--rank", "8", "--lora-dropout", "0.1"),
        *("--lora-targets", "down_proj,o_proj,k_proj,q_proj,gate_proj,up_proj,v_proj"),
    ]
}


def flag(name: str, default: str = "") -> str:
    """The word after a flag."""
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else default


class Case:
    """One run, and what is asked about it."""

    def __init__(self, row: dict[str, Any], program: str, configs: str, launch: str) -> None:
        self.row, self.program, self.configs = row, program, configs
        self.name, self.model = row["case"], row["model"]
        self.file = next(
            os.path.join(launch, name) for name in os.listdir(launch) if name.rsplit(".", 1)[0] == self.name
        )
        self.batch = int(row["record"]["run"]["args"]["per_device_train_batch_size"])

    def ask(self, flags: list[str]) -> dict[str, Any]:
        """What the program says."""
        config = os.path.join(self.configs, self.model, "config.json")
        asked = ["estimate", "--launch", self.file, "--config", config, *flags, *BY_HAND.get(self.name, [])]
        run = subprocess.run(
            [self.program, *asked, "--gpu", "h100", "--format", "json"], capture_output=True, text=True, check=False
        )
        said: dict[str, Any] = {"flags": flags, "rc": run.returncode, "stderr": run.stderr.splitlines()}
        if run.returncode == 0:
            answer = json.loads(run.stdout)
            kept = (
                "setup",
                "params",
                "trainable",
                "steady",
                "peak_allocated",
                "peak_reserved",
                "grade",
                "least",
                "not_this_run",
            )
            said.update({key: answer[key] for key in kept if key in answer})
        return said

    def peak(self) -> int:
        """Highest bytes of the steps after the first."""
        steps = self.row["record"]["steps"][1:] or self.row["record"]["steps"]
        def of_step(s):
            return max(
                    max(m["peak"] for m in s["micro"]), s["before_optimizer"]["peak"], s["optimizer"]["peak"]
                )
        return max(map(of_step, steps))

    def micro_batches(self) -> list[list[str]]:
        """Flags of each micro-batch that no other exceeds, or of every one."""
        steps = self.row["record"]["steps"][1:] or self.row["record"]["steps"]
        found: dict[tuple[str, ...], tuple[int, ...]] = {}
        for step in steps:
            forwards = [f for f in step.get("forwards", []) if f.get("grad")]
            held = [inputs_of(micro) for micro in step["micro"]]
            for i, micro in enumerate(step["micro"]):
                flags, size = self.fed(micro, forwards[i] if i < len(forwards) else {})
                if flags and len(held) > 1:
                    flags += ["--fetched", str(round((sum(held) - held[i]) / 2**20))]
                if flags:
                    found[tuple(flags)] = size
        def exceeds(a, b):
            return a != b and all(x >= y for x, y in zip(a, b, strict=True))
        kept = [
            f for f, size in found.items() if "--each" in sys.argv or not any(exceeds(o, size) for o in found.values())
        ]
        return [list(flags) for flags in kept]

    def fed(self, micro: dict[str, Any], forward: dict[str, Any]) -> tuple[list[str], tuple[int, ...]]:
        """Flags of a micro-batch, and its size: positions, patches or images, labels."""
        inputs = micro["inputs"] if isinstance(micro["inputs"], dict) else {}
        shapes = (inputs.get("input_ids"), forward.get("input_ids"), forward.get("inputs_embeds"))
        shape = next((x[1] for x in shapes if isinstance(x, list)), None)
        if shape is None:
            return [], ()
        # Chosen and rejected samples are in one batch.
        times = 2 if "dpo" in self.name and shape[0] == 2 * self.batch else 1
        rows = shape[0] // times
        lengths = micro.get("attention_mask_sum") or [shape[1]] * shape[0]
        labels = micro.get("label_positions") or micro.get("completion_mask_sum") or []
        def together(x):
            return [max(x[i::rows]) for i in range(rows)]
        lengths, labels = together(lengths), together(labels) if labels else []
        flags = ["--lengths", ",".join(map(str, lengths))] if set(lengths) != {shape[1]} else ["--seq", str(shape[1])]
        if flags[0] == "--seq" and rows != self.batch:
            flags += ["--batch", str(rows)]
        if labels and self.name.startswith(("trl_", "swift_")):
            flags += ["--labels", ",".join(map(str, labels))]
        images, size = self.images(micro, inputs.get("pixel_values"), (lengths, labels, times))
        return flags + images, (rows * shape[1], size, sum(labels), max(lengths))

    def images(
        self, micro: dict[str, Any], pixels: Any, samples: tuple[list[int], list[int], int]
    ) -> tuple[list[str], int]:
        """Flags of the images of a micro-batch, and how much they are."""
        lengths, labels, times = samples
        patch = PATCH.get(self.model)
        if patch and micro.get("image_grid_thw"):
            grids = micro["image_grid_thw"][: len(micro["image_grid_thw"]) // times]
            sizes = ",".join(f"{h * patch}x{w * patch}" for _, h, w in grids)
            counts = split([h * w // 4 + 2 for _, h, w in grids], lengths, labels)
            patches = sum(h * w for _, h, w in grids)
            return ["--image-sizes", sizes, *([] if len(counts) == 1 else ["--image-counts", comma(counts)])], patches
        if not isinstance(pixels, list):
            return [], 0
        if len(pixels[1]) == 5:
            return ["--images", str(pixels[1][1])], pixels[1][0] * pixels[1][1]
        count = pixels[1][0] // times
        if count % len(lengths) == 0 and self.model not in FIXED:
            return ["--images", str(count // len(lengths))], count
        counts = split([FIXED.get(self.model, 1)] * count, lengths, labels)
        same = len(set(counts)) == 1
        return ["--images", str(counts[0])] if same else ["--image-counts", comma(counts)], count


WIDTHS = {"int64": 8, "float32": 4, "int32": 4, "bfloat16": 2, "float16": 2, "bool": 1, "uint8": 1}


def inputs_of(micro: dict[str, Any]) -> int:
    """Bytes of a micro-batch's inputs on the GPU."""
    given = micro["inputs"].values() if isinstance(micro["inputs"], dict) else []
    return sum(WIDTHS[x[0]] * math.prod(x[1]) for x in given if isinstance(x, list) and len(x) == 3 and x[2] == "cuda")


def comma(numbers: list[int]) -> str:
    """Numbers as a flag lists them."""
    return ",".join(map(str, numbers))


def split(tokens: list[int], lengths: list[int], labels: list[int]) -> list[int]:
    """Images of each sample, of images in order: those that leave the rest of the samples most alike."""
    rows = len(lengths)
    best: tuple[float, list[int]] | None = None
    for cuts in itertools.combinations(range(1, len(tokens)), rows - 1):
        bounds = [0, *cuts, len(tokens)]
        counts = [b - a for a, b in itertools.pairwise(bounds)]
        rest = [lengths[i] - sum(tokens[bounds[i] : bounds[i + 1]]) for i in range(rows)]
        of_text = [r - (labels[i] if labels and labels[i] < lengths[i] else 0) for i, r in enumerate(rest)]
        if min(rest) < 0:
            continue
        mean = sum(of_text) / rows
        spread = sum((r - mean) ** 2 for r in of_text)
        if best is None or spread < best[0]:
            best = (spread, counts)
    return best[1] if best else [len(tokens) // rows] * rows


def main() -> None:
    """Prints a line for each case."""
    program, configs, results = sys.argv[1:4]
    launch = flag("--launch", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "dry_runs", "launch"))
    only = flag("--only").split(",") if flag("--only") else None
    with open(results, encoding="utf-8") as file:
        rows = [row for row in map(json.loads, file) if row.get("record", {}).get("steps")]
    with open(flag("--out", os.devnull), "w", encoding="utf-8") as out:
        for row in rows:
            if only and row["case"] not in only:
                continue
            case = Case(row, program, configs, launch)
            size = "480x640" if row["data"] == "same" else "1080x1920"
            count = "1" if row["data"] == "same" else "2"
            alone = case.ask(
                ["--images", count] if row["model"] in FIXED else ["--image-sizes", ",".join([size] * int(count))]
            )
            answers = [case.ask(flags) for flags in case.micro_batches()]
            fed = max((a for a in answers if a["rc"] == 0), key=lambda a: a["peak_allocated"], default=None)
            peak, run = case.peak(), row["record"]["run"]
            answer: dict[str, Any] = {
                "case": case.name,
                "measured": peak,
                "file": alone,
                "fed": fed,
                "refused": [a for a in answers if a["rc"]],
            }
            note = ""
            if fed:
                answer["off_percent"] = round(100 * (fed["peak_allocated"] / peak - 1), 3)
                said = fed["params"], fed["trainable"]
                is_same = said == (sum(run["parameters"].values()), sum(run["trainable"].values()))
                note = "" if is_same else "  OTHER PARAMETERS"
            why = [left["why"] for left in (fed or alone).get("not_this_run", [])]
            errors = [
                line for a in answers if a["rc"] for line in a["stderr"] if line.strip() and not line.startswith("note")
            ]
            out.write(json.dumps(answer) + "\n")
            def gib(a):
                return f"{a['peak_allocated'] / 2**30:.4f}" if a and a["rc"] == 0 else "-"
            print(
                f"{case.name:32} measured {peak / 2**30:9.4f}  file {gib(alone):>9} {alone.get('grade', '')}  fed {gib(fed):>9}"
                f"  off {answer.get('off_percent')}%{note}  {'; '.join(why)[:300]} {' '.join(errors)[:300]}",
                flush=True,
            )


if __name__ == "__main__":
    main()
