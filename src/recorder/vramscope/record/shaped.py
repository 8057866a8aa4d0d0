"""Operations whose result depends on elements: what the host reads, and shapes that follow from values."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch.utils import _pytree as pytree

from vramscope.record import values
from vramscope.record.tensors import CudaTensor, Emulated, HostTensor

if TYPE_CHECKING:
    from vramscope.record.mode import Recorder

aten = torch.ops.aten
Handler = Callable[["Recorder", Any, tuple, dict[str, Any]], Any]
HANDLERS: dict[str, Handler] = {}


def handles(*names: str) -> Callable[[Handler], Handler]:
    """Registers a function that answers these operations, or returns NotImplemented."""

    def register(f: Handler) -> Handler:
        for name in names:
            HANDLERS[name] = f
        return f

    return register


def _tensors(args: Any, kwargs: Any) -> list[torch.Tensor]:
    return [x for x in pytree.tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]


def _emulated(args: Any, kwargs: Any = None) -> list[Emulated]:
    return [x for x in _tensors(args, kwargs) if isinstance(x, Emulated)]


@handles("_local_scalar_dense", "item")
def _item(r: Recorder, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    x = args[0]
    if not isinstance(x, Emulated):
        return NotImplemented
    if type(x) is CudaTensor:
        r.write_made(func, args, kwargs, [])
    return r.need(x, "item").reshape(()).item()


@handles("is_nonzero")
def _is_nonzero(r: Recorder, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    return bool(r.need(args[0], "is_nonzero").item()) if isinstance(args[0], Emulated) else NotImplemented


@handles("equal")
def _equal(r: Recorder, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    if not _emulated(args):
        return NotImplemented
    known = [values.of(x) for x in args[:2]]
    if any(x is None for x in known):
        r.noted.note("equal", "tensors of the same shape are equal", r.place.module())
        return args[0].shape == args[1].shape
    return torch.equal(*known)


@handles("_pin_memory", "pin_memory")
def _pin(r: Recorder, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    return args[0]


@handles("is_pinned")
def _is_pinned(r: Recorder, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    return False


@handles("record_stream")
def _record_stream(r: Recorder, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    return None


def _result(r: Recorder, func: Any, args: tuple, kwargs: dict[str, Any], real: Any) -> Any:
    """Emulated tensors for what an operation gave on the host."""
    kind = CudaTensor if any(type(x) is CudaTensor for x in _emulated(args, kwargs)) else HostTensor
    outs: list[Any] = []
    for x in [real] if isinstance(real, torch.Tensor) else real:
        if isinstance(x, torch.Tensor):
            out = r.new(x.shape, x.dtype, kind)
            values.put(out, x)
            outs.append(out)
        else:
            outs.append(x)
    values.follow_assumptions(_tensors(args, kwargs), outs)
    r.write_made(func, args, kwargs, outs)
    return outs[0] if isinstance(real, torch.Tensor) else tuple(outs)


def _needed(r: Recorder, name: str, x: Any) -> Any:
    if not isinstance(x, torch.Tensor):
        return values.on_host(x)
    return r.need(x, name)


@handles(
    "nonzero",
    "repeat_interleave",
    "_unique2",
    "unique_dim",
    "unique_consecutive",
    "_unique",
    "bincount",
    "nonzero_numpy",
)
def _counted(r: Recorder, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    if not _emulated(args, kwargs) or func is aten.repeat_interleave.self_int:
        return NotImplemented
    name = func._schema.name.split("::")[-1]
    a, k = pytree.tree_map(lambda x: _needed(r, name, x), (args, kwargs))
    return _result(r, func, args, kwargs, func(*a, **k))


@handles("masked_select")
def _masked_select(r: Recorder, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    if not _emulated(args):
        return NotImplemented
    x, mask = args
    chosen = r.need(mask, "masked_select")
    count = int(chosen.broadcast_to(torch.broadcast_shapes(chosen.shape, x.shape)).sum())
    kind = CudaTensor if any(type(t) is CudaTensor for t in _emulated(args)) else HostTensor
    out = r.new((count,), x.dtype, kind)
    r.write_made(func, args, kwargs, [out])
    known = values.of(x)
    if known is not None and count <= values.limit(x.dtype):
        values.put(out, torch.masked_select(known, chosen))
    values.follow_assumptions(args, [out])
    return out


def _is_mask(x: Any) -> bool:
    return isinstance(x, torch.Tensor) and x.dtype in (torch.bool, torch.uint8)


@handles("index", "_unsafe_index")
def _index(r: Recorder, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Indices by mask become the places of the mask; the line keeps the mask."""
    if not any(_is_mask(i) for i in args[1]) or not _emulated(args):
        return NotImplemented
    places = _places(r, args[1])
    x = args[0]
    kind = CudaTensor if any(type(t) is CudaTensor for t in _emulated(args)) else HostTensor
    lies = _bare_index(x, places)
    out = r.new(lies.shape, x.dtype, kind, lies.stride())
    r.write_made(func, args, kwargs, [out])
    known = values.of(x)
    if known is not None and out.numel() <= values.limit(x.dtype):
        values.put(out, aten.index(known, places))
    values.follow_assumptions(_tensors(args, kwargs), [out])
    return out


def _bare_index(x: torch.Tensor, places: list[torch.Tensor | None]) -> torch.Tensor:
    plain = torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device="meta")
    return aten.index.Tensor(plain, [None if p is None else p.to("meta") for p in places])


def _places(r: Recorder, indices: Any) -> list[torch.Tensor | None]:
    """Indices as real tensors, masks as the coordinates that they mark."""
    places: list[torch.Tensor | None] = []
    for i in indices:
        if _is_mask(i):
            places.extend(r.need(i, "index by mask").nonzero().unbind(1))
        else:
            places.append(None if i is None else r.need(i, "index"))
    return places


def _scalar_type(dtype: torch.dtype) -> str:
    """Name of a type in messages of C++."""
    words = {"float32": "Float", "float64": "Double", "float16": "Half", "bfloat16": "BFloat16", "int64": "Long"}
    name = str(dtype).removeprefix("torch.")
    return words.get(name, name.rstrip("0123456789").capitalize())


@handles("index_put", "index_put_", "_index_put_impl_", "_unsafe_index_put")
def _index_put(r: Recorder, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """As an index by mask; what is put in place stays where it is."""
    if not any(_is_mask(i) for i in args[1]) or not _emulated(args):
        return NotImplemented
    x, value = args[0], args[2]
    if not isinstance(x, Emulated):
        return NotImplemented
    # `make_index_put_iterator`; a number from the host becomes `masked_fill_` (`canDispatchToMaskedFill`).
    if value.dtype != x.dtype and not (value.numel() == 1 and value.device.type == "cpu"):
        raise RuntimeError(
            "Index put requires the source and destination dtypes match, "
            f"got {_scalar_type(x.dtype)} for the destination and {_scalar_type(value.dtype)} for the source."
        )
    known = [values.of(t) for t in _tensors(args, kwargs)]
    if func._schema.is_mutable:
        r.write_made(func, args, kwargs, [])
        if all(v is not None for v in known) and x._vs.values is not None:
            values.spell_out(x)
            func(values.of(x), _places(r, args[1]), values.of(args[2]), *args[3:], **kwargs)
        else:
            x._vs.values = None
        values.follow_assumptions(_tensors(args, kwargs), [x])
        return x
    copy = torch.empty_like(torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device="meta"))
    out = r.new(x.shape, x.dtype, type(x), copy.stride())
    r.write_made(func, args, kwargs, [out])
    if all(v is not None for v in known) and x.numel() <= values.limit(x.dtype):
        values.put(out, func(values.of(x), _places(r, args[1]), values.of(args[2]), *args[3:], **kwargs))
    values.follow_assumptions(_tensors(args, kwargs), [out])
    return out
