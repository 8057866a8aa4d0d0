"""Recording a script, or the usual step of a model, from Python: in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence

from vramscope.flags import Flag, words_of
from vramscope.record.errors import RecordingError


def record(
    script: str | os.PathLike[str] | None = None,
    arguments: Sequence[str] = (),
    *,
    out: str | os.PathLike[str] | None = None,
    python: str | None = None,
    **flags: Flag,
) -> str:
    """Records a script with its arguments, or with `model=` the usual step of a model; returns the path of the file.

    `flags` are those of `vramscope record`, with `_` for `-`: `record("train.py", ["--lr", "1e-5"], gpu="a100")`,
    `record(model="./Qwen2-VL-7B", batch=2, seq=2048)`. Without `out` the file lies in a temporary folder. `python` is
    the interpreter, this one if not given. What the script prints is passed on. Raises RecordingError with the
    recorder's words. For model, optimizer and batch in a notebook's own cells, use `with vramscope.recording(path):`.
    """
    if out is None:
        out = os.path.join(tempfile.mkdtemp(prefix="vramscope-"), "run.vram.gz")
    words = ["-o", os.fspath(out)]
    words += words_of(flags)
    if script is not None:
        words += [os.fspath(script), *map(str, arguments)]
    status, said = run(python or sys.executable, words)
    if status:
        raise RecordingError(said)
    return os.fspath(out)


def run(python: str, words: list[str]) -> tuple[int, str]:
    """Exit status of the recorder, and the last words of its standard error, all of which is passed on."""
    process = subprocess.Popen(
        [python, "-m", "vramscope.record", *words],
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
    )
    lines: list[str] = []
    for line in process.stdout:
        # A notebook shows what is printed, and not what a child writes to the terminal.
        print(line, end="", flush=True)
        lines.append(line)
    status = process.wait()
    own = next((i for i in reversed(range(len(lines))) if lines[i].startswith("vramscope record: ")), len(lines) - 20)
    return status, "".join(lines[max(0, own) :]).removeprefix("vramscope record: ").strip()


def environment() -> dict[str, str]:
    """Variables of a process that finds this package, wherever it lies."""
    home = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    known = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": home + (os.pathsep + known if known else "")}
