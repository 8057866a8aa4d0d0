"""Python names outside PyTorch that hold tensors."""

from __future__ import annotations

import inspect
import itertools
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

import torch

from vramscope.record.place import Place
from vramscope.record.tensors import CudaTensor

# Steps from a name to a tensor (`batch.images[0]` has two), and entries of a container that are looked at.
DEPTH = 3
ENTRIES = 4096

# What holds no tensor of its own, or names it otherwise; containers that begin with one are not looked at.
SKIPPED = (torch.nn.Module, torch.optim.Optimizer, str, bytes, type, int, float, complex)


def names(place: Place) -> Iterator[tuple[str, int | None, CudaTensor]]:
    """Tensors that running functions hold, each with its name and the function's line, innermost first."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if place.is_foreign(frame.f_code):
            line = place.declared(frame)
            for name, value in _locals(frame).items():
                for path, x in _within(name, value, DEPTH):
                    yield path, line, x
        frame = frame.f_back


def _locals(frame: FrameType) -> dict[str, Any]:
    """Variables of a frame, without leaving references in it.

    Before Python 3.13 the first look makes a dictionary that the frame keeps, and `locals()` returns.
    """
    kept = frame.f_locals
    found = dict(kept)
    if sys.version_info < (3, 13) and frame.f_code.co_flags & inspect.CO_OPTIMIZED and sys.getrefcount(kept) <= 3:
        kept.clear()
    return found


def _within(path: str, value: Any, depth: int) -> Iterator[tuple[str, CudaTensor]]:
    """Tensors at and within a value."""
    if isinstance(value, torch.Tensor):
        if type(value) is CudaTensor:
            yield path, value
        return
    if depth == 0 or isinstance(value, SKIPPED):
        return
    if isinstance(value, (dict, list, tuple, set)):
        begin = itertools.islice(dict.values(value) if isinstance(value, dict) else value, 8)
        if all(x is None or isinstance(x, SKIPPED) for x in begin):
            return
    entries: list[tuple[str, Any]] = []
    if isinstance(value, dict):
        entries = [(f"{path}.{k}" if str(k).isidentifier() else f"{path}[{k!r}]", v) for k, v in dict.items(value)]
    elif isinstance(value, (list, tuple, set)):
        entries = [(f"{path}[{i}]", v) for i, v in enumerate(value)]
    elif type(value).__module__.partition(".")[0] not in ("torch", "builtins", "vramscope"):
        entries = [(f"{path}.{k}", v) for k, v in getattr(value, "__dict__", {}).items()]
    for name, entry in entries[:ENTRIES]:
        yield from _within(name, entry, depth - 1)
