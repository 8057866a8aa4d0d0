"""The cells of a notebook, one after the other, in one namespace."""

from __future__ import annotations

import json
import linecache
import re
import sys
import types
from typing import Any

from vramscope.dry_run.notes import Notes
from vramscope.record.errors import RecordingError

NOTES = Notes()


def cells(path: str) -> list[str]:
    """Code of each cell; raises if the file is no notebook."""
    try:
        with open(path, encoding="utf-8") as file:
            notebook = json.load(file)
        found = [c for c in notebook["cells"] if c.get("cell_type") == "code"]
        return ["".join(c["source"]) for c in found]
    except (ValueError, KeyError, TypeError) as e:
        raise RecordingError(f'"{path}" is no notebook: it does not hold the JSON of one ({e}).') from e


def plain(cell: str) -> tuple[str, list[str]]:
    """A cell without lines that are IPython's, and those lines: commands of the shell and magics."""
    if re.match(r"\s*%%(?!time|timeit|capture)", cell):
        return "", [cell.strip().splitlines()[0]]
    kept, left = [], []
    continued = False
    for line in cell.splitlines():
        # `x = !ls` and `x = %env A` are IPython's too.
        if continued:
            continued = line.rstrip().endswith("\\")
        elif re.match(r"\s*[!%?]", line) or re.match(r"\s*\w+\s*=\s*[!%]", line):
            kept.append(re.match(r"\s*", line)[0] + "pass")  # type: ignore[index]
            if not re.match(r"\s*%%?(time|timeit|capture|matplotlib|autoreload|load_ext)", line):
                left.append(line.strip())
            continued = line.rstrip().endswith("\\")
        else:
            kept.append(line)
    return "\n".join(kept), left


def run(path: str) -> None:
    """Runs the cells as a notebook's kernel does, but for lines that only IPython reads, which are noted."""
    module = types.ModuleType("__main__")
    space: dict[str, Any] = module.__dict__
    space.update(__file__=path, display=print, get_ipython=lambda: None)
    before, sys.modules["__main__"] = sys.modules["__main__"], module
    try:
        for number, source in enumerate(cells(path), 1):
            code, left = plain(source)
            for line in left:
                NOTES.tell(f"cell {number}: {line[:80]}", "not run: it is IPython's, not Python's")
            name = f"{path}[{number}]"
            linecache.cache[name] = (len(code), None, code.splitlines(True), name)
            exec(compile(code, name, "exec"), space)
    finally:
        sys.modules["__main__"] = before
