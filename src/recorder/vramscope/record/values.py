"""Values of tensors whose elements are known: integers, booleans, small floats."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch.utils import _pytree as pytree

from vramscope.record.tensors import CPU, Constant, Emulated

# Elements up to which values are kept.
INTEGERS = 1 << 27
FLOATS = 1 << 24

# Operations whose floating-point results depend on chance.
RANDOM = frozenset(
    """rand randn normal bernoulli rand_like randn_like native_dropout normal_ uniform_ bernoulli_ exponential_
    randint_like trunc_normal_ multinomial log_normal_ geometric_ cauchy_ normal_functional""".split()
)

# Operations that make memory without writing to it.
EMPTY = frozenset(["empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided"])

# Operations that fill new memory with what they are told, whatever their first argument holds.
FILLS = frozenset(("full_like", "ones_like", "zeros_like", "new_full", "new_ones", "new_zeros"))

# What those and their like fill it with, and the place of the argument that says so where it is not in the name.
FILLED = {"zeros": 0, "zeros_like": 0, "new_zeros": 0, "ones": 1, "ones_like": 1, "new_ones": 1}
FILLED_BY = {"full": 1, "full_like": 1, "new_full": 2}

# Operations whose result holds what their first argument does.
COPIES = frozenset(("_to_copy", "clone"))

# Products, and elements of their results up to which they are worked out: runs ask for numbers, never for activations.
PRODUCTS = frozenset(("convolution", "mm", "addmm", "bmm", "baddbmm"))
PRODUCED = 1 << 16

# Operations that multiply each element by one number.
SCALINGS = frozenset(("mul_", "_foreach_mul_"))

# Elements of a parameter up to which its values stay known when it moves to the card or is cast. Larger ones hold what
# was drawn or loaded, differ after each step, and are cast in each: following them cost half of a recording's time.
PARAMETER = 1 << 12


def limit(dtype: torch.dtype) -> int:
    """Elements of this type up to which values are kept."""
    return FLOATS if dtype.is_floating_point or dtype.is_complex else INTEGERS


def of(x: torch.Tensor) -> torch.Tensor | None:
    """Elements of `x` on the host, or None if nobody knows them."""
    if not isinstance(x, Emulated):
        return x if x.device.type == "cpu" else None
    values = x._vs.values
    if values is None:
        return None
    if type(values) is Constant:
        return torch.full((), values.value, dtype=x.dtype, device=CPU).expand(x.shape)
    if values.dtype != x.dtype:
        try:
            values = values.view(x.dtype)
        except RuntimeError:
            return None
    return values.as_strided(x.shape, x.stride(), x.storage_offset())


def put(x: Emulated, real: torch.Tensor) -> None:
    """Makes `real` the elements of `x`, which covers its storage."""
    elements = x._vs.nbytes // max(1, x.element_size())
    real = real.detach().to(x.dtype)
    if x.storage_offset() == 0 and real.numel() == elements and real.is_contiguous() and x.is_contiguous():
        flat = real.reshape(-1)
        x._vs.values = flat.clone() if flat.untyped_storage().nbytes() != elements * flat.element_size() else flat
        return
    flat = torch.zeros(elements, dtype=x.dtype, device=CPU)
    flat.as_strided(x.shape, x.stride(), x.storage_offset()).copy_(real.reshape(x.shape))
    x._vs.values = flat


def put_constant(x: Emulated, value: float | bool) -> None:
    """Makes every element of the storage of `x` this value."""
    x._vs.values = Constant(value)


def uniform(name: str, args: tuple, kwargs: dict[str, Any]) -> float | bool | None:
    """What every element of an operation's result is, where that is known without making them; None otherwise."""
    if name in COPIES:
        source = args[0]._vs.values if isinstance(args[0], Emulated) else None
        return source.value if type(source) is Constant else None
    if name in FILLED_BY:
        place = FILLED_BY[name]
        value = args[place] if len(args) > place else kwargs.get("fill_value")
        return value if isinstance(value, (bool, int, float)) else None
    return FILLED.get(name)


def is_weight(x: Any) -> bool:
    """True for a parameter of numbers that nothing depends on."""
    parameter = isinstance(x, torch.nn.Parameter) or getattr(x, "_is_param", False)
    return parameter and x.dtype.is_floating_point and x.numel() > PARAMETER


def follow_assumptions(sources: Iterable[Any], outs: Iterable[Any]) -> None:
    """Marks values that were computed from assumed ones."""
    for source in sources:
        if isinstance(source, Emulated) and source._vs.assumed:
            for x in outs:
                if isinstance(x, Emulated):
                    x._vs.assumed = True
            return


def covers(x: Emulated) -> bool:
    """True if `x` is all of its storage."""
    return x.numel() * x.element_size() == x._vs.nbytes


def spell_out(x: Emulated) -> None:
    """Writes a constant out, element by element, so that parts of it can change."""
    values = x._vs.values
    if type(values) is Constant:
        elements = x._vs.nbytes // max(1, x.element_size())
        if elements > limit(x.dtype):
            x._vs.values = None
        else:
            x._vs.values = torch.full((elements,), values.value, dtype=x.dtype, device=CPU)


def on_host(value: Any) -> Any:
    """An argument as it is given on the host."""
    if isinstance(value, torch.device):
        return CPU
    return value


def _stand_in(x: torch.Tensor) -> torch.Tensor:
    """Elements of `x`, or zeros of its shape for an operation that does not look at them."""
    known = of(x)
    return known if known is not None else torch.zeros((), dtype=x.dtype, device=CPU).expand(x.shape)


def evaluate(func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Runs `func` on the values of its arguments, all of which are known. Raises what it raises."""
    flat, spec = pytree.tree_flatten((args, kwargs))
    flat = [_stand_in(a) if isinstance(a, torch.Tensor) else on_host(a) for a in flat]
    args, kwargs = pytree.tree_unflatten(flat, spec)
    if kwargs.get("pin_memory"):
        kwargs = {**kwargs, "pin_memory": False}
    return func(*args, **kwargs)


def written(func: Any, args: tuple, kwargs: dict[str, Any]) -> list[torch.Tensor]:
    """Arguments that `func` writes to."""
    found: list[torch.Tensor] = []
    for i, argument in enumerate(func._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            given = args[i] if i < len(args) else kwargs.get(argument.name)
            items = given if isinstance(given, (list, tuple)) else [given]
            found.extend(x for x in items if isinstance(x, torch.Tensor))
    return found


def mutate(func: Any, name: str, args: tuple, kwargs: dict[str, Any], tensors: list[torch.Tensor]) -> None:
    """Follows what `func` writes to its arguments; values that are no longer known are forgotten."""
    if name.startswith("_amp_"):
        return  # no gradient overflows, and the scale stays
    targets = written(func, args, kwargs)
    follow_assumptions(tensors, targets)
    emulated = [x for x in targets if isinstance(x, Emulated)]
    if not emulated:
        if targets and all(of(t) is not None for t in tensors) and name not in RANDOM:
            evaluate(func, args, kwargs)
        return
    if not any(x._vs.values is not None for x in emulated) and not _begins(name, emulated, tensors):
        return
    if name in SCALINGS and scale(func, args, kwargs, targets, tensors):
        return
    known = all(of(t) is not None for t in tensors)
    if known and (name not in RANDOM or not emulated[0].dtype.is_floating_point):
        for x in emulated:
            spell_out(x)
        try:
            evaluate(func, args, kwargs)
            return
        except (RuntimeError, TypeError, IndexError, NotImplementedError):
            pass
    for x in emulated:
        x._vs.values = None


def scale(func: Any, args: tuple, kwargs: dict[str, Any], targets: list[torch.Tensor], tensors: list) -> bool:
    """Multiplies constants by a number without writing them out, as an optimizer does in its first step."""
    if len(tensors) > len(targets):
        return False
    if not all(isinstance(x, Emulated) and type(x._vs.values) is Constant and covers(x) for x in targets):
        return False
    if any(x.numel() > limit(x.dtype) for x in targets):
        return False  # too large to be followed further
    one = {id(x): torch.full((), x._vs.values.value, dtype=x.dtype, device=CPU) for x in targets}
    flat, spec = pytree.tree_flatten((args, kwargs))
    args, kwargs = pytree.tree_unflatten([one.get(id(a), a) for a in flat], spec)
    func(*args, **kwargs)
    for x in targets:
        put_constant(x, one[id(x)].item())
    return True


def _begins(name: str, targets: list[Emulated], tensors: list[torch.Tensor]) -> bool:
    """True if a storage without values gets them all, for which room is then made."""
    x = targets[0]
    if len(targets) > 1 or name not in ("copy_", "fill_", "zero_") or not covers(x):
        return False
    if x.numel() > limit(x.dtype) or not all(of(t) is not None for t in tensors if t is not x):
        return False
    x._vs.values = torch.zeros(x._vs.nbytes // x.element_size(), dtype=x.dtype, device=CPU)
    return True


def derive(func: Any, name: str, args: tuple, kwargs: dict[str, Any], outs: list[Emulated]) -> bool:
    """Computes the values of new tensors from those of the arguments, all known; False if it can't."""
    if any(x.dtype.is_complex for x in outs) or sum(x.numel() for x in outs) > min(limit(x.dtype) for x in outs):
        return False
    if name in RANDOM and any(x.dtype.is_floating_point for x in outs):
        return False
    if name in EMPTY:
        for x in outs:
            if not x.dtype.is_floating_point:
                put_constant(x, 0)
        return True
    if name in COPIES and is_weight(args[0]):
        return False
    value = uniform(name, args, kwargs)
    if value is not None:
        for x in outs:
            put_constant(x, torch.full((), value, dtype=x.dtype, device=CPU).item())
        return True
    if name in PRODUCTS and sum(x.numel() for x in outs) > PRODUCED:
        return False
    try:
        result = evaluate(func, args, kwargs)
    except (RuntimeError, TypeError, IndexError, NotImplementedError):
        return False
    leaves = [x for x in pytree.tree_leaves(result) if isinstance(x, torch.Tensor)]
    fresh = [x for x in leaves if isinstance(x, torch.Tensor)]
    if len(fresh) != len(outs):
        return False
    for out, real in zip(outs, fresh, strict=True):
        if out.shape == real.shape and out._vs.values is None:
            put(out, real)
    return True
