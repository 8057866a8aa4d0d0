"""Plans: what an operation returns for arguments of given shapes, worked out once and used again."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils import _pytree as pytree

from vramscope.record.metas import ALLOCATED, METAS
from vramscope.record.tensors import META, CudaTensor, Emulated, HostTensor, bare
from vramscope.record.writer import Writer, scalar, text


class Unplannable(Exception):
    """An argument that no plan can be kept for."""


@dataclass(slots=True)
class Out:
    """One output: an argument itself, a view of one, new memory, or a plain value."""

    argument: int = -1
    itself: bool = False
    shape: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()
    dtype: torch.dtype = torch.float32
    offset: int = 0
    group: int = -1
    value: Any = None
    # True for a view that C++ makes of its argument as it is: of the same type, with no bits of its own.
    strided: bool = False


@dataclass(slots=True)
class Plan:
    """Outputs, memory to make for them, and the line that the recording gets."""

    outs: list[Out]
    spec: pytree.TreeSpec | None
    news: list[int]
    kind: type[Emulated]
    single: bool
    template: str = ""
    references: list[tuple[int, bool]] = field(default_factory=list)
    written: bool = False
    mutates: bool = False
    # True if all that comes back is one tensor that fills the memory which it is made in.
    alone: bool = False


PLAIN = (int, float, bool, str, type(None), torch.dtype, torch.device, torch.layout, torch.memory_format, complex)


def scan(args: Any, key: list[Any], tensors: list[torch.Tensor]) -> None:
    """Adds what plans depend on to `key`, and tensors to `tensors`, in order."""
    for a in args:
        kind = type(a)
        if kind is CudaTensor or kind is HostTensor:
            key.append((kind, a.shape, a.stride(), a.storage_offset() != 0, a.dtype))
            tensors.append(a)
        elif kind is int or kind is float or kind is bool:
            key.append(kind)
            key.append(a)
        elif kind is list or kind is tuple or kind is torch.Size:
            key.append("(")
            scan(a, key, tensors)
            key.append(")")
        elif isinstance(a, torch.Tensor):
            if a.layout is not torch.strided:
                raise Unplannable
            key.append((a.device.type, a.shape, a.stride(), a.storage_offset() != 0, a.dtype))
            tensors.append(a)
        elif isinstance(a, torch.Generator):
            key.append("generator")
        elif isinstance(a, PLAIN):
            key.append(a)
        else:
            raise Unplannable


def _twin(a: Any) -> Any:
    """An argument for a meta kernel."""
    if isinstance(a, Emulated):
        return bare(a)
    if isinstance(a, torch.Tensor):
        if a.device.type == "meta":
            return a
        return torch.empty_strided(a.shape, a.stride(), dtype=a.dtype, device=META)
    if isinstance(a, torch.device):
        return META
    if isinstance(a, torch.Generator):
        return None
    return a


def meta_call(func: Any, args: tuple, kwargs: dict[str, Any]) -> tuple[Any, list[Any]]:
    """Result of `func` on meta tensors, and the arguments that it was given, flat."""
    flat, spec = pytree.tree_flatten((args, kwargs))
    twins = [_twin(a) for a in flat]
    a, k = pytree.tree_unflatten(twins, spec)
    if "pin_memory" in k:
        k["pin_memory"] = None
    special = METAS.get(func._schema.name.split("::")[-1])
    with torch._C.DisableTorchFunction():
        try:
            return (special(func, *a, **k) if special is not None else func(*a, **k)), twins
        except NotImplementedError:
            from torch._decomp import decomposition_table

            decomposed = decomposition_table.get(func)
            if decomposed is None:
                raise
            return decomposed(*a, **k), twins


def make(func: Any, args: tuple, kwargs: dict[str, Any], kind: type[Emulated]) -> Plan:
    """The plan of `func` for arguments like these, with new memory of this kind."""
    result, twins = meta_call(func, args, kwargs)
    sources = [t for t in twins if isinstance(t, torch.Tensor)]
    where = {}
    for i, t in enumerate(sources):
        where.setdefault(t.untyped_storage()._cdata, i)
    single = isinstance(result, torch.Tensor)
    leaves, spec = ([result], None) if single else pytree.tree_flatten(result)
    groups: dict[int, int] = {}
    news: list[int] = []
    outs: list[Out] = []
    for i in ALLOCATED.get(func._schema.name.split("::")[-1], ()):
        if i < len(leaves) and isinstance(leaves[i], torch.Tensor) and leaves[i].device.type == "meta":
            groups[leaves[i].untyped_storage()._cdata] = len(news)
            news.append(leaves[i].untyped_storage().nbytes())
    for leaf in leaves:
        if not isinstance(leaf, torch.Tensor) or leaf.device.type != "meta":
            outs.append(Out(value=leaf))
            continue
        itself = next((i for i, t in enumerate(sources) if t is leaf), -1)
        if itself >= 0:
            outs.append(Out(argument=itself, itself=True))
            continue
        storage = leaf.untyped_storage()
        lie = dict(shape=tuple(leaf.shape), strides=tuple(leaf.stride()), dtype=leaf.dtype)
        source = where.get(storage._cdata, -1)
        if source >= 0:
            offset = leaf.storage_offset() - sources[source].storage_offset()
            strided = leaf.dtype == sources[source].dtype and not leaf.dtype.is_complex
            outs.append(Out(argument=source, offset=offset, strided=strided, **lie))
            continue
        if storage._cdata not in groups:
            groups[storage._cdata] = len(news)
            news.append(storage.nbytes())
        outs.append(Out(group=groups[storage._cdata], offset=leaf.storage_offset(), **lie))
    mutable = bool(func._schema.is_mutable)
    first = outs[0] if single and len(news) == 1 else None
    alone = first is not None and first.group == 0 and first.offset == 0 and extent(first) == news[0]
    return Plan(outs=outs, spec=spec, news=news, kind=kind, single=single, mutates=mutable, alone=alone)


def extent(out: Out) -> int:
    """Bytes that a tensor reaches over, from its first element to its last."""
    if 0 in out.shape:
        return 0
    last = sum((n - 1) * stride for n, stride in zip(out.shape, out.strides, strict=True))
    return (last + 1) * out.dtype.itemsize


class Lines:
    """Templates of lines: JSON with a place for each storage and offset."""

    def __init__(self, writer: Writer) -> None:
        """Templates for this file."""
        self.writer = writer

    def encode(self, value: Any, references: list[tuple[Any, bool]]) -> Any:
        """A value as JSON holds it, tensors as places that `references` fill in order."""
        if isinstance(value, torch.Tensor):
            meta = self.writer.meta(value.dtype, tuple(value.shape), tuple(value.stride()))
            offset = value.storage_offset() != 0
            references.append((value, offset))
            return f"#\0:{meta}:\0" if offset else f"#\0:{meta}"
        if isinstance(value, (list, tuple)):
            return [self.encode(v, references) for v in value]
        return scalar(value)

    def template(
        self, func: Any, args: tuple, kwargs: dict[str, Any], outs: Any, references: list[tuple[Any, bool]]
    ) -> str:
        """Begin of an op line, with `%s` for each place; the caller adds memory and the rest."""
        number = self.writer.declare("fn", func, name=str(func))
        given = text(self.encode(args, references))
        named = text({k: self.encode(v, references) for k, v in kwargs.items()}) if kwargs else ""
        line = f'{{"t":"op","f":{number}'
        if args:
            line += f',"a":{given}'
        if named:
            line += f',"k":{named}'
        if outs is not None:
            shown = outs if isinstance(outs, (list, tuple)) else [outs]
            line += f',"o":{text(self.encode(shown, references))}'
        return line.replace("%", "%%").replace("\\u0000", "%s")


def place(x: torch.Tensor) -> str | int:
    """What stands for the storage of `x` in a line."""
    return x._vs.id if type(x) is CudaTensor else "h"
