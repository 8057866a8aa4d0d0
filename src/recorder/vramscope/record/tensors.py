"""Tensors without data: on the emulated card, or on the host where they are too large to hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from vramscope.record.mode import Recorder

CUDA = torch.device("cuda", 0)
CPU = torch.device("cpu")
META = torch.device("meta")


class Constant:
    """A value that every element of a storage has."""

    __slots__ = ("value",)

    def __init__(self, value: float | bool) -> None:
        """Holds `value`."""
        self.value = value


class Storage:
    """Memory that tensors share. All tensors of a storage refer to it, so that it dies with the last one."""

    __slots__ = ("__weakref__", "assumed", "cdata", "id", "nbytes", "recorder", "values")

    def __init__(self, recorder: Recorder | None, number: int, nbytes: int, cdata: int) -> None:
        """A storage `number` on the card of `recorder`, or on the host if it has no recorder."""
        self.recorder = recorder
        self.id = number
        self.nbytes = nbytes
        self.cdata = cdata
        self.values: torch.Tensor | Constant | None = None
        self.assumed = False  # true if the values follow from an assumption

    def __del__(self) -> None:
        """Tells the recorder that the memory is free."""
        if self.recorder is not None:
            self.recorder.freed(self)


_CLASS = object.__dict__["__class__"]


def _seen_as(x: Any) -> Any:
    return x.__dict__.get("_seen_as") or type(x)


class Emulated(torch.Tensor):
    """A tensor without data. To C++ its device is `meta`, with the dispatch keys of the device that Python sees."""

    __torch_function__ = torch._C._disabled_torch_function_impl
    _vs: Storage
    home: torch.device = CPU
    # A library's own class of weights, which such a tensor passes for where `_seen_as` names it (`bitsandbytes.py`).
    __class__ = property(_seen_as, _CLASS.__set__)  # type: ignore[assignment]

    def __getattr__(self, name: str) -> Any:
        """An attribute of the class that the tensor passes for."""
        cls = self.__dict__.get("_seen_as")
        if cls is None or name.startswith("__"):
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        found = getattr(cls, name)
        return found.__get__(self) if hasattr(found, "__get__") else found

    def __deepcopy__(self, memo: dict[int, Any]) -> torch.Tensor:
        """Copies storage and, for a parameter, what makes it one."""
        if id(self) in memo:
            return memo[id(self)]
        with torch.no_grad():
            copy = self.detach().clone(memory_format=torch.preserve_format)
        if getattr(self, "_is_param", False):
            copy = torch.nn.Parameter(copy, self.requires_grad)
        else:
            copy.requires_grad_(self.requires_grad)
        memo[id(self)] = copy
        return copy

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        """Shape, type and device; there are no elements to show."""
        return f"tensor(..., device='{self.home}', size={tuple(self.shape)}, dtype={self.dtype})"

    def __format__(self, spec: str) -> str:
        """A single element as the number that it is, as `Tensor.__format__` does."""
        return format(self.item(), spec) if self.dim() == 0 else object.__format__(self, spec)

    def __reduce_ex__(self, protocol: int) -> Any:
        """Pickles as zeros of the shape, so that checkpoints can be written."""
        return torch.zeros, (tuple(self.shape),)


class CudaTensor(Emulated):
    """A tensor on the emulated card."""

    home = CUDA


class HostTensor(Emulated):
    """A tensor on the host that is too large to hold, or whose values nobody knows."""

    home = CPU


def is_emulated(x: Any) -> bool:
    """True if `x` holds no data."""
    return isinstance(x, Emulated)


def is_cuda(x: Any) -> bool:
    """True if `x` is on the emulated card."""
    return isinstance(x, CudaTensor)


_make_subclass = torch.Tensor._make_subclass


def dress(bare: torch.Tensor, kind: type[Emulated], storage: Storage) -> Emulated:
    """A tensor of this kind over the memory of `bare`, a plain tensor without data."""
    out = _make_subclass(kind, bare, False, device_for_backend_keys=kind.home)
    out._vs = storage
    return out


def bare(x: torch.Tensor) -> torch.Tensor:
    """A plain meta tensor that lies as `x` does in the same storage."""
    with torch._C.DisableTorchFunction():
        out = torch.empty(0, dtype=x.dtype, device=META)
        return out.set_(x.untyped_storage(), x.storage_offset(), x.shape, x.stride())


def normal_device(device: Any) -> torch.device | None:
    """`device` as a `torch.device`, CUDA's with an index."""
    if device is None:
        return None
    device = torch.device("cuda", device) if isinstance(device, int) else torch.device(device)
    if device.type == "cuda":
        return CUDA
    return device
