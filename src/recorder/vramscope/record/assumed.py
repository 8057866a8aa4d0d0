"""Assumptions about floats that nobody knows: what is chosen, compared and read from them."""

from __future__ import annotations

import functools
from collections import Counter
from typing import Any

import torch

from vramscope.record import values
from vramscope.record.tensors import CPU, Emulated

CHOICES = frozenset(
    """topk sort argsort argmax argmin max min multinomial searchsorted bucketize kthvalue median mode""".split()
)
COMPARISONS = frozenset(
    ["eq", "ne", "lt", "le", "gt", "ge", "isnan", "isinf", "isfinite", "logical_not", "signbit", "isposinf", "isneginf"]
)
TRUE_COMPARISONS = frozenset(["ne", "isfinite", "logical_not"])
# What comparing a tensor with itself gives, as `isfinite` and `isnan` do in C++.
REFLEXIVE = {"eq": True, "ne": False, "lt": False, "le": True, "gt": False, "ge": True}


class Assumptions:
    """Counts what was assumed, by kind and module."""

    def __init__(self) -> None:
        """None so far."""
        self.counts: Counter[tuple[str, str, int | None]] = Counter()

    def note(self, what: str, how: str, module: int | None) -> None:
        """Counts one assumption."""
        self.counts[(what, how, module)] += 1


def element(x: torch.Tensor) -> float | int | bool:
    """What an element is assumed to be that is read by the host: 1.0, 0 or False."""
    if x.dtype == torch.bool:
        return False
    return 1.0 if x.dtype.is_floating_point else 0


def read(x: torch.Tensor, what: str, noted: Assumptions, module: int | None) -> torch.Tensor:
    """Elements of `x`, assumed where nobody knows them."""
    known = values.of(x)
    if known is not None:
        return known
    value = element(x)
    noted.note(what, f"every element is {value}", module)
    if isinstance(x, Emulated) and values.covers(x) and x.numel() <= values.limit(x.dtype):
        values.put_constant(x, value)
        x._vs.assumed = True
    return torch.full((), value, dtype=x.dtype, device=CPU).expand(x.shape).clone()


def choose(name: str, args: tuple, kwargs: dict[str, Any], outs: list[Emulated]) -> str:
    """Gives the indices among `outs` values as if choices were balanced; returns the assumption in words."""
    x = args[0]
    how = "the first"
    for out in outs:
        if out.dtype.is_floating_point:
            continue
        out._vs.assumed = True
        if name in ("topk", "sort", "argsort", "kthvalue"):
            how = _ranked(name, x, args, kwargs, out)
        elif name in ("searchsorted", "bucketize"):
            values.put_constant(out, 0)
        else:
            choices = max(1, x.numel() // max(1, out.numel()))
            how = f"balanced: each of {choices} is chosen as often"
            # From the middle on: a vocabulary's first tokens end a text that is generated.
            values.put(out, ((torch.arange(out.numel(), device=CPU) + choices // 2) % choices).reshape(out.shape))
    return how


def _ranked(name: str, x: torch.Tensor, args: tuple, kwargs: dict[str, Any], out: Emulated) -> str:
    """Indices of the highest: each of the choices as often for `topk`, in order else."""
    dim = kwargs.get("dim", -1)
    if name == "topk" and len(args) > 2:
        dim = args[2]
    if name in ("sort", "argsort"):
        dim = next((a for a in args[1:] if isinstance(a, int) and not isinstance(a, bool)), dim)
    dim %= max(1, x.dim())
    choices = x.shape[dim] if x.dim() else 1
    chosen = out.shape[dim] if out.dim() else 1
    rows = out.numel() // max(1, chosen)
    arange = functools.partial(torch.arange, device=CPU)
    if name == "topk":
        picked = (arange(rows)[:, None] * chosen + arange(chosen)[None]) % max(1, choices)
    else:
        picked = arange(chosen)[None].expand(rows, chosen)
    rest = list(out.shape[:dim]) + list(out.shape[dim + 1 :])
    picked = picked.reshape([*rest, chosen]).movedim(-1, dim) if out.dim() else picked.reshape(())
    values.put(out, picked.contiguous())
    return f"balanced: each of {choices} is chosen as often" if name == "topk" else "in the order given"


def compare(name: str, args: tuple, outs: list[Emulated]) -> bool:
    """Gives comparisons of unknown floats a value: nothing is missing, infinite, or equal to anything but itself."""
    itself = name in REFLEXIVE and len(args) > 1 and _same(args[0], args[1])
    for out in outs:
        if out.dtype != torch.bool:
            return False
        values.put_constant(out, REFLEXIVE[name] if itself else name in TRUE_COMPARISONS)
        out._vs.assumed = True
    return True


def _same(a: Any, b: Any) -> bool:
    """True if both are the same elements of one storage."""
    if not isinstance(a, Emulated) or not isinstance(b, Emulated):
        return False
    lie = [(x.storage_offset(), x.shape, x.stride(), x.dtype) for x in (a, b)]
    return a._vs is b._vs and lie[0] == lie[1]
