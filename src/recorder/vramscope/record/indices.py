"""Indices that a CUDA kernel would stop at (a device-side assert), found while recording."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from vramscope.record import values
from vramscope.record.errors import RecordingError
from vramscope.record.tensors import Constant, Emulated


@dataclass
class Index:
    """One index of an operation: which elements it picks along a dimension of `size`."""

    elements: Any
    size: int
    dim: int | None
    from_end: bool = False  # negative ones count from the end
    ignored: int | None = None
    what: str = "index"

    def outside(self) -> int | None:
        """An element that the kernel would stop at, if there is one that is certain."""
        x = self.elements
        if not isinstance(x, torch.Tensor) or x.numel() == 0 or x.dtype.is_floating_point or x.dtype == torch.bool:
            return None
        if isinstance(x, Emulated):
            if x._vs.assumed or x._vs.values is None:
                return None
            if type(x._vs.values) is Constant:
                only = int(x._vs.values.value)
                return None if self.allows(only) else only
        known = values.of(x)
        if known is None:
            return None
        if self.ignored is not None:
            known = known[known != self.ignored]
            if known.numel() == 0:
                return None
        least, most = (int(bound) for bound in torch.aminmax(known))
        return next((bound for bound in (most, least) if not self.allows(bound)), None)

    def allows(self, element: int) -> bool:
        """True if the kernel takes this element."""
        return (-self.size if self.from_end else 0) <= element < self.size or element == self.ignored


def _along(argument: str, from_end: bool = False) -> Callable[[dict[str, Any]], Iterator[Index]]:
    def find(given: dict[str, Any]) -> Iterator[Index]:
        x, dim = given["self"], given["dim"]
        if isinstance(dim, int):
            dim %= max(1, x.dim())
            yield Index(given[argument], x.shape[dim] if x.dim() else 1, dim, from_end)

    return find


def _rows(given: dict[str, Any]) -> Iterator[Index]:
    yield Index(given["indices"], given["weight"].shape[0], 0)


def _flat(given: dict[str, Any]) -> Iterator[Index]:
    yield Index(given["index"], given["self"].numel(), None, from_end=True)


def _each(given: dict[str, Any]) -> Iterator[Index]:
    dim = 0
    for index in given["indices"]:
        if index is not None and index.dtype in (torch.bool, torch.uint8):
            dim += index.dim()
            continue
        if index is not None:
            yield Index(index, given["self"].shape[dim], dim, from_end=True)
        dim += 1


def _labels(given: dict[str, Any]) -> Iterator[Index]:
    x = given["self"]
    dim = 1 if x.dim() > 1 else 0
    yield Index(given["target"], x.shape[dim], dim, ignored=given["ignore_index"], what="label")


# What each operation's kernel checks, as `CUDA_KERNEL_ASSERT` in `aten/src/ATen/native/cuda` (`Indexing.cu`,
# `IndexKernel.cu`, `ScatterGatherKernel.cu`, `EmbeddingBag.cu`, `Loss.cu`, `NLLLoss2d.cu`).
CHECKS: dict[str, Callable[[dict[str, Any]], Iterator[Index]]] = {
    "embedding": _rows,
    "_embedding_bag": _rows,
    "_embedding_bag_forward_only": _rows,
    "take": _flat,
    "put_": _flat,
    "nll_loss_forward": _labels,
    "nll_loss2d_forward": _labels,
    **dict.fromkeys(("index", "index_put", "index_put_", "_index_put_impl_"), _each),
    **dict.fromkeys(("index_fill", "index_fill_"), _along("index", from_end=True)),
    **dict.fromkeys(
        """index_select gather scatter scatter_ scatter_add scatter_add_ scatter_reduce scatter_reduce_ index_add
        index_add_ index_copy index_copy_ index_reduce index_reduce_""".split(),
        _along("index"),
    ),
}


def check(func: Any, name: str, args: tuple, kwargs: dict[str, Any], module: str) -> None:
    """Raises at the first index that a GPU would stop at, in `module`."""
    given = {argument.name: argument.default_value for argument in func._schema.arguments}
    given.update(zip((argument.name for argument in func._schema.arguments), args, strict=False))
    given.update(kwargs)
    for index in CHECKS[name](given):
        outside = index.outside()
        if outside is not None:
            raise RecordingError(_words(func, index, outside, module))


def _words(func: Any, index: Index, outside: int, module: str) -> str:
    where = f"{module}: " if module else ""
    of = f"dimension {index.dim}" if index.dim is not None else "the tensor"
    least = -index.size if index.from_end else 0
    also = f", or {index.ignored} for those without a label" if index.ignored is not None else ""
    return (
        f"{where}{func} gets {index.what} {outside}, but {of} has size {index.size}: {least} to {index.size - 1} are "
        f"allowed{also}. On a GPU the step stops there with a device-side assert. Give ids within the model's table, "
        "or a sequence no longer than its positions."
    )
