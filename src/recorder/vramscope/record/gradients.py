"""Autograd's sums of gradients: in place where PyTorch would add in place on a GPU."""

from __future__ import annotations

import os
import sys
from typing import Any

import torch

from vramscope.record.tensors import CudaTensor

aten = torch.ops.aten
GRAPH = os.path.join("torch", "autograd", "graph.py")


# Formulas of derivatives that add into fresh zeros, but not where a dispatch mode runs
# (`areAnyTensorSubclassLike` in `torch/csrc/autograd/FunctionsManual.cpp`).
IN_PLACE: dict[str, Any] = {
    "index_put": aten._index_put_impl_.default,
    "scatter_add": aten.scatter_add_.default,
    "scatter": aten.scatter_.src,
    "index_add": aten.index_add_.default,
    "put": aten.put_.default,
    "masked_scatter": aten.masked_scatter_.default,
}

# Those that do so only if they accumulate: `IndexPutBackward` puts zeros into a copy of the gradient
# (`grad.index_put(indices, zeros_like(values), false)`, `tools/autograd/derivatives.yaml`).
ACCUMULATING = frozenset(("index_put", "put"))


class UseCounts:
    """Tells an addition by the engine that it may do in place, by who holds the sum so far.

    The engine adds in place if it holds the last reference to a dense tensor (`can_accumulate_inplace`,
    `torch/csrc/autograd/input_buffer.cpp`). Emulated tensors have a Python object each, which holds
    references too, by version of PyTorch: so the counts that mean "the last one" are observed once.
    """

    def __init__(self) -> None:
        """Nothing observed yet."""
        self.last: tuple[int, int] | None = None
        self.observing: list[tuple[int, int]] | None = None

    def accumulated(self, func: Any, args: tuple) -> tuple[Any, tuple]:
        """The addition that a GPU would see: `add_` for `add` where the engine holds the last reference."""
        if func is not aten.add.Tensor or len(args) != 2 or torch.is_grad_enabled():
            return func, args
        a, b = args
        if type(a) is not CudaTensor or type(b) is not CudaTensor or not self.by_engine():
            return func, args
        counts = (a._use_count(), torch._C._storage_Use_Count(a.untyped_storage()._cdata))
        if self.observing is not None:
            self.observing.append(counts)
            return func, args
        if counts != self.last or not _dense(a):
            return func, args
        return aten.add_.Tensor, args

    def in_place(self, name: str, func: Any, args: tuple) -> Any:
        """The operation that a GPU would see for one that a formula of the engine runs out of place."""
        if torch.is_grad_enabled() or type(args[0]) is not CudaTensor or not self.by_engine():
            return func
        if name in ACCUMULATING and not (len(args) > 3 and args[3]):
            return func
        if name == "scatter" and func is not aten.scatter.src:
            return func
        return IN_PLACE[name]

    def by_engine(self) -> bool:
        """True if the engine itself dispatches, not a function in Python."""
        frame = sys._getframe(1)
        while frame.f_code.co_filename.endswith(
            (os.path.join("record", "gradients.py"), os.path.join("record", "mode.py"))
        ):
            frame = frame.f_back
        return frame.f_code.co_filename.endswith(GRAPH)

    def observe(self, leaf: torch.Tensor) -> None:
        """Runs a small backward that adds in place, and notes the counts."""
        self.observing = []
        x = leaf * 2
        (x * 3 + x * 4).sum().backward()
        (self.last,) = self.observing
        self.observing = None


def _dense(x: torch.Tensor) -> bool:
    """True if no two elements of `x` share memory and none lies between them."""
    expected = 1
    for extent, stride in sorted(
        ((n, s) for n, s in zip(x.shape, x.stride(), strict=True) if n != 1), key=lambda p: p[1]
    ):
        if stride != expected:
            return False
        expected *= extent
    return True
