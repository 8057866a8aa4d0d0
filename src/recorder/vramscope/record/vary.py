"""Recording at several sizes, each in a process of its own, and what holds at all of them."""

from __future__ import annotations

import argparse
import itertools
import os
import subprocess
import sys

from vramscope.record import sizes
from vramscope.record.errors import RecordingError
from vramscope.runs import environment

# Sizes of `--vary batch,seq` without values: enough for a square in the length and one to check.
BATCHES = (2, 3, 4)
LENGTHS = (0, 128, 256, 384)


class Size:
    """A size that varies: its name, the argument that sets it, and its values."""

    def __init__(self, words: str) -> None:
        """Reads `batch=--batch-size:1,2,4`, or `seq:512,1024` and `seq` for `--model`."""
        name, _, rest = words.partition("=")
        self.argument, _, values = rest.rpartition(":") if rest else ("", "", "")
        if not rest:
            name, _, values = words.partition(":")
        self.name = name
        try:
            self.values = [int(v) for v in values.split(",")] if values else []
        except ValueError:
            raise RecordingError(
                f'--vary takes whole numbers such as batch=--batch-size:1,2,4; "{words}" was given.'
            ) from None


def points(options: argparse.Namespace) -> tuple[list[Size], list[tuple[int, ...]]]:
    """Sizes that vary, and the points to record."""
    words = [
        w for given in options.vary for w in (given.split(",") if "=" not in given and ":" not in given else [given])
    ]
    varied = [Size(w) for w in words]
    for size in varied:
        if size.argument == "" and not options.model:
            raise RecordingError(
                f"--vary {size.name} needs the argument that sets it, such as {size.name}=--{size.name}:1,2,4."
            )
        if options.model and size.name not in ("batch", "seq", "images"):
            raise RecordingError(f'--model varies batch, seq or images; "{size.name}" was given.')
        if not size.values:
            base = getattr(options, size.name)
            size.values = [base + n for n in LENGTHS] if size.name == "seq" else list(BATCHES)
    grid = list(itertools.product(*(s.values for s in varied)))
    return varied, grid


def run(options: argparse.Namespace, script: list[str]) -> int:
    """Records at every point and writes one file for all sizes beside one for each."""
    varied, grid = points(options)
    names = [s.name for s in varied]
    out = options.out or "run.vram.gz"
    stem = out.removesuffix(".vram.gz")
    recordings: list[sizes.Recorded] = []
    for point in grid:
        path = f"{stem}-{'-'.join(f'{n}{v}' for n, v in zip(names, point, strict=True))}.vram.gz"
        done = subprocess.run(
            [sys.executable, "-m", "vramscope.record", *command(options, script, varied, point, path)],
            env=environment(),
            check=False,
        )
        if done.returncode:
            raise RecordingError(f"The script could not be recorded at {dict(zip(names, point, strict=True))}.")
        recordings.append(sizes.read(path, point))
    merged = f"{stem}.sizes.gz"
    report = sizes.write(merged, names, recordings)
    for found in report["structures"]:
        print(
            f"Exact for {found['ranges']}, checked at {found['checked']}: {found['polynomials']} polynomials.",
            file=sys.stderr,
        )
    for lone in report["lone"]:
        print(f"Not for all sizes: {lone['points']} ({lone['reason']}).", file=sys.stderr)
    print(f"Sizes written to {merged} ({os.path.getsize(merged) / 1e6:.2f} MB).", file=sys.stderr)
    return 0


def command(
    options: argparse.Namespace, script: list[str], varied: list[Size], point: tuple[int, ...], path: str
) -> list[str]:
    """Words after `vramscope record` for one point."""
    words = ["-o", path, "--gpu", options.gpu, "--steps", str(options.steps), "--world", str(options.world)]
    if not options.model:
        changed = list(script)
        for size, n in zip(varied, point, strict=True):
            changed = replaced(changed, size.argument, n)
        return words + changed
    return words + model_words(options, {s.name: n for s, n in zip(varied, point, strict=True)})


def model_words(options: argparse.Namespace, sizes: dict[str, int]) -> list[str]:
    """Flags that record the usual step of the same model, at these sizes where they name one."""
    words: list[str] = []
    for name in ("model", "batch", "seq", "images", "image", "precision", "optim", "attn", "lora"):
        given = sizes.get(name, getattr(options, name))
        if given not in ("", None):
            words += [f"--{name}", str(given)]
    return [*words, "--ckpt"] if options.ckpt else words


def replaced(words: list[str], argument: str, value: int) -> list[str]:
    """A script's arguments with one set to `value`, added if it is absent."""
    for i, word in enumerate(words):
        if word == argument and i + 1 < len(words):
            return [*words[: i + 1], str(value), *words[i + 2 :]]
        if word.startswith(argument + "="):
            return [*words[:i], f"{argument}={value}", *words[i + 1 :]]
    return [*words, argument, str(value)]
