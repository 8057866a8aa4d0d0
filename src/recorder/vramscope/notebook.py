"""Jupyter: `%load_ext vramscope`, then `%vramscope` for a setup and `%%vramscope` for what starts a run.

%vramscope qwen2.5-vl-7b --freeze lora --gpu 4090

%%vramscope --gpu 4090
swift sft --model Qwen/Qwen2.5-VL-3B-Instruct --tuner_type lora --max_length 2048

%%vramscope record --gpu h100
model = ...            # a cell of Python that trains: it runs here, without a GPU, and is recorded
"""

from __future__ import annotations

import html
import json
import os
import shlex
import subprocess
import tempfile
from typing import Any

from vramscope.estimates import EstimateError
from vramscope.programs import program

GIB = 1 << 30
# Points of a step in the order in which it passes them.
POINTS = (
    ("before_forward", "begin"),
    ("peak_forward", "forward"),
    ("after_forward", ""),
    ("peak_backward", "backward"),
    ("after_backward", ""),
    ("peak_optimizer", "optimizer"),
    ("end", "end"),
)
COLORS = {"fits": "#2e7d32", "tight": "#b26a00", "oom": "#c62828", "not known": "#5f6368"}
WIDTH, HEIGHT = 560, 120


class Answer(dict[str, Any]):
    """What `vramscope estimate --format json` says, shown as a verdict and a step's memory over time."""

    def _repr_html_(self) -> str:
        """Drawn by a notebook."""
        return "".join(
            ['<div style="font-family:sans-serif;max-width:600px">', self._verdict(), self._curve(), "</div>"]
        )

    def __repr__(self) -> str:
        """A line for a terminal."""
        peak = self.get("peak_allocated")
        of = f"{gib(peak)} at the peak, in {self.get('peak_phase', 'one of its phases')}" if peak else "no figure"
        return f"<{self.get('model') or 'run'}: {self.verdict}, {of}>"

    @property
    def verdict(self) -> str:
        """`fits`, `tight`, `oom`, or `not known` where the figure does not settle it or no card is named."""
        verdict = (self.get("target") or {}).get("verdict")
        grade = self.get("grade", "exact")
        settled = grade == "exact" or (verdict, grade) in {
            ("fits", "at_most"),
            ("fits", "between"),
            ("oom", "at_least"),
        }
        return verdict if verdict and settled else "not known"

    def _verdict(self) -> str:
        """The verdict over a bar of what the run needs of the card."""
        target = self.get("target")
        model = html.escape(str(self.get("model") or "run"))
        if not target:
            said = f"{gib(self['peak_allocated'])} at the peak" if "peak_allocated" in self else "no figure"
            return f"<p><b>{model}</b>: {said}; name a card with --gpu for a verdict</p>"
        needed, room = target["needed"], target["room"]
        color = COLORS[self.verdict]
        share = min(100.0, 100 * needed / room)
        return (
            f'<p><b style="color:{color}">{self.verdict.upper()}</b> <b>{model}</b> needs {gib(needed)} of {gib(room)} '
            f"on {html.escape(target['name'])}</p>"
            f'<div style="background:#8884;height:10px"><div style="background:{color};width:{share:.1f}%;height:10px">'
            "</div></div>"
        )

    def _curve(self) -> str:
        """Memory in tensors over a steady step, from one mark to the next."""
        steady = self.get("steady") or {}
        marks = [(steady[key], label) for key, label in POINTS if key in steady]
        if len(marks) < 2:
            return ""
        most = max(value for value, _ in marks) or 1
        step = WIDTH / (len(marks) - 1)
        places = [
            (at * step, HEIGHT - value / most * (HEIGHT - 20), value, label) for at, (value, label) in enumerate(marks)
        ]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y, _, _ in places)
        dots = "".join(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="#1a73e8">'
            f"<title>{label or 'after'}: {gib(value)}</title></circle>"
            for x, y, value, label in places
        )
        labels = "".join(
            f'<text x="{x:.1f}" y="{HEIGHT + 16}" text-anchor="middle" font-size="11" fill="currentColor">'
            f"{label}</text>"
            for x, _, _, label in places
            if label
        )
        return (
            f'<svg viewBox="-40 0 {WIDTH + 80} {HEIGHT + 24}" role="img" aria-label="memory over a step">'
            f'<polyline points="{line}" fill="none" stroke="#1a73e8" stroke-width="2"/>{dots}{labels}</svg>'
        )


def gib(value: float) -> str:
    """Bytes as people read them."""
    return f"{value / GIB:.2f} GiB"


def ask(words: list[str], given: str | None = None) -> Answer:
    """Asks the program; raises EstimateError with its words where it has no figure."""
    done = subprocess.run(
        [program(), "--color", "never", "estimate", *words, "--format", "json"],
        input=given,
        stdin=subprocess.DEVNULL if given is None else None,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    if done.returncode or not done.stdout.strip():
        raise EstimateError(done.stderr.strip().removeprefix("error: "))
    return Answer(json.loads(done.stdout))


def of_line(line: str) -> Answer:
    """The line magic: words of `vramscope estimate`, with or without the command's name."""
    words = shlex.split(line)
    return ask(words[1:] if words[:1] == ["estimate"] else words)


def of_cell(line: str, cell: str) -> Answer:
    """The cell magic for what starts a run: a command, a tool's file, a config.json or a case."""
    words = shlex.split(line)
    try:
        value = json.loads(cell)
    except ValueError:
        value = None
    if isinstance(value, dict) and "model_type" in value:
        return ask(["--config", "-", *words], cell)
    if isinstance(value, dict) and ("model" in value or "case" in value):
        return ask(["--case", cell, *words])
    return ask(["--launch", "-", *words], cell)


def recorded(words: list[str], run: Any) -> Answer:
    """Records what `run` does on an emulated card, which `--gpu` names, for `--steps` optimizer steps at most."""
    import argparse

    from vramscope.record.session import recording

    known = argparse.ArgumentParser(prog="%%vramscope record", add_help=False, exit_on_error=False)
    known.add_argument("--gpu", default="h100")
    known.add_argument("--steps", type=int)
    given, rest = known.parse_known_args(words)
    with tempfile.TemporaryDirectory(prefix="vramscope-") as folder:
        path = os.path.join(folder, "cell.vram.gz")
        with recording(path, gpu=given.gpu, steps=given.steps):
            run()
        return ask(["--recording", path, "--gpu", given.gpu, *rest])


def load_ipython_extension(shell: Any) -> None:
    """Registers the magics: called by `%load_ext vramscope`."""

    def vramscope(line: str, cell: str | None = None) -> Answer:
        """Estimates a setup (one line), what starts a run (a cell), or records a cell of Python."""
        if cell is None:
            return of_line(line)
        words = shlex.split(line)
        if words[:1] != ["record"]:
            return of_cell(line, cell)

        def run() -> None:
            """Runs the cell as it would run without the magic."""
            shell.run_cell(cell).raise_error()

        return recorded(words[1:], run)

    shell.register_magic_function(vramscope, "line_cell", "vramscope")
