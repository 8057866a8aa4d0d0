"""The engine's player of recordings, by its command line."""

from __future__ import annotations

import gzip
import json
import multiprocessing
import os
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
SOURCE = os.path.join(ROOT, "src", "recorder")
sys.path[:0] = [path for path in (SOURCE, os.path.join(ROOT, "tests", "data", "truth"), HERE) if path not in sys.path]

PEAKS = ("peak_forward", "peak_backward", "peak_optimizer")
MARKS = ("before_forward", "after_forward", "peak_forward", "after_backward", *PEAKS[1:], "end")


def command() -> str:
    """The command line that was built: `VRAMSCOPE`, or the newest of the folder `target`."""
    named = os.environ.get("VRAMSCOPE")
    if named:
        return named
    built = [os.path.join(ROOT, "target", kind, "vramscope") for kind in ("release", "debug")]
    built = [path for path in built if os.path.exists(path)]
    if not built:
        raise FileNotFoundError("There is no vramscope in target/; run `cargo build -p vramscope-cli` first.")
    return max(built, key=os.path.getmtime)


def lines(path: str) -> Iterator[dict[str, Any]]:
    """Lines of a recording."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


def written(path: str) -> list[dict[str, Any]]:
    """Lines of a recording that the engine reads; raises with what it refuses if it does not."""
    done = subprocess.run(
        [command(), "estimate", "--recording", path, "--format", "json"], capture_output=True, text=True, check=False
    )
    found = list(lines(path))
    # A part of a script without a step has no peak to show, but its lines are read before that is found.
    if not done.stdout and "no whole step" not in done.stderr:
        raise AssertionError(f"The engine refuses what was recorded: {done.stderr.strip()}")
    return found


def play(path: str) -> dict[str, Any]:
    """What the engine says of a recording."""
    return asked("--recording", path)


def asked(*words: str) -> dict[str, Any]:
    """What the engine says: marks of the `first` and the `steady` step, peaks, reserved bytes by layout."""
    done = subprocess.run(
        [command(), "estimate", *words, "--format", "json"], capture_output=True, text=True, check=False
    )
    if not done.stdout:
        raise RuntimeError(f"The engine refuses {words}: {done.stderr.strip()}")
    answer = json.loads(done.stdout)
    answer["reserved"] = {layout["layout"]: layout["bytes"] for layout in answer["reserved"]}
    return answer


def off(ours: float, theirs: float) -> float:
    """Distance in percent."""
    return round(100 * (ours / theirs - 1), 4)


class Results:
    """Rows of a file, to which each is added as soon as it is known: what was stopped goes on where it was."""

    def __init__(self, path: str, key: str) -> None:
        """Those that the file holds, by their `key`."""
        self.path, self.key = path, key
        self.rows: dict[Any, dict[str, Any]] = {}
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                self.rows = {row[key]: row for row in map(json.loads, file)}

    def add(self, row: dict[str, Any]) -> None:
        """One more."""
        self.rows[row[self.key]] = row
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")


def apart(work: Callable[..., dict[str, Any]], *args: Any, deadline: float) -> dict[str, Any]:
    """Result of `work` in a process of its own, or why there is none: what a recording leaves behind goes with it."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(work, args, sender))
    process.start()
    sender.close()
    try:
        found = receiver.recv() if receiver.poll(deadline) else {"error": f"not done after {deadline:.0f} s"}
    except EOFError:
        found = {"error": "the process died"}
    process.kill()
    process.join()
    return found


def _child(work: Callable[..., dict[str, Any]], args: tuple[Any, ...], sender: Any) -> None:
    try:
        sender.send(work(*args))
    except BaseException as e:
        sender.send({"error": repr(e)[:300], "trace": traceback.format_exc()[-4000:]})
