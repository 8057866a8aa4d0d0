"""Many setups at once, as rows of a table."""

from __future__ import annotations

import itertools
import json
import subprocess
from collections.abc import Iterable
from typing import Any

from vramscope.estimates import EstimateError
from vramscope.programs import program

# Flags of the memory that a run has to fit; all else belongs to a setup.
ROOM = ("gpu", "limit_gib")


def sweep(model: str, **settings: Any) -> list[dict[str, Any]]:
    """Rows of all combinations of the settings that are lists, for `pandas.DataFrame(...)`.

    `sweep("gpt2", batch=[1, 2, 4], precision=["bf16", "fp32"], gpu="4090")` has six rows, each with its settings,
    `peak_allocated` and `peak_reserved` in bytes and, with `gpu` or `limit_gib`, `needed` and `outcome` (`fits`,
    `tight`, `oom`). Settings are those of a case: `batch`, `seq`, `images`, `freeze`, `optim` and so on. A setup that
    is refused has the reason in `error`. Raises EstimateError if the program refuses all of it, such as a card of no
    name.
    """
    room = {name: settings.pop(name) for name in ROOM if settings.get(name) is not None}
    keys = list(settings)
    values = [value if is_list(value) else [value] for value in settings.values()]
    cases = [{"model": model, **dict(zip(keys, row, strict=True))} for row in itertools.product(*values)]
    flags = [word for name, value in room.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    answers = checked([json.dumps(case) for case in cases], flags) if room else predicted(cases)
    return [{**case, **answer} for case, answer in zip(cases, answers, strict=True)]


def is_list(value: Any) -> bool:
    """True of several values of one setting."""
    return isinstance(value, Iterable) and not isinstance(value, (str, bytes, dict))


def checked(cases: list[str], flags: list[str]) -> list[dict[str, Any]]:
    """Memory and outcome of each case in the room of these flags."""
    words = ["check", *cases, *flags, "--format", "json"]
    document = answer_of(words, "")
    kept = ("outcome", "needed", "peak_allocated", "peak_reserved", "peak_phase")
    return [
        {"error": run["message"]} if run["outcome"] == "error" else {key: run[key] for key in kept if key in run}
        for run in json.loads(document)["runs"]
    ]


def predicted(cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Memory of each case."""
    lines = answer_of(["estimate", "--cases", "-", "--format", "jsonl"], "\n".join(map(json.dumps, cases)))
    kept = ("error", "peak_allocated", "peak_reserved")
    return [{key: line[key] for key in kept if key in line} for line in map(json.loads, lines.splitlines())]


def answer_of(words: list[str], given: str) -> str:
    """What the program prints; raises EstimateError with its words if that is nothing."""
    done = subprocess.run(
        [program(), "--color", "never", *words], input=given, capture_output=True, encoding="utf-8", check=False
    )
    if not done.stdout.strip():
        raise EstimateError(done.stderr.strip().removeprefix("error: "))
    return done.stdout
