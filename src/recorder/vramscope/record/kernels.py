"""Triton kernels: a launch allocates nothing, so it is written down and not run."""

from __future__ import annotations

import importlib.util
import types
from typing import Any

import torch

from vramscope.record.cards import Card
from vramscope.record.mode import Recorder
from vramscope.record.patches import Patches
from vramscope.record.tensors import Emulated
from vramscope.record.writer import text


class Launches:
    """Writes launches down."""

    def __init__(self, recorder: Recorder) -> None:
        """Launches of this recording."""
        self.recorder = recorder

    def write(self, name: str, grid: Any, args: tuple, kwargs: dict[str, Any]) -> None:
        """Writes one launch."""
        references: list[tuple[Any, bool]] = []
        lines = self.recorder.lines
        given = text([lines.encode(a, references) for a in args])
        named = text({k: lines.encode(v, references) for k, v in kwargs.items()})
        filled: list[Any] = []
        for x, offset in references:
            filled.append(x._vs.id if isinstance(x, Emulated) and x._vs.recorder is not None else "h")
            if offset:
                filled.append(x.storage_offset())
        line = f'{{"t":"triton","name":{text(name)},"grid":{text(_extents(grid))},"a":{given},"k":{named}'
        line = line.replace("%", "%%").replace("\\u0000", "%s") % tuple(filled)
        self.recorder.writer.line(line + self.recorder.place.tail() + "}")


def _extents(grid: Any) -> list[int]:
    try:
        return [int(n) for n in grid]
    except TypeError:
        return []


def _named(function: Any, args: tuple, kwargs: dict[str, Any]) -> dict[str, Any]:
    """Arguments by name, for a grid that is a function of them."""
    names = getattr(function, "arg_names", [])
    known = {name: p.default for name, p in zip(names, getattr(function, "params", []), strict=False) if p.has_default}
    return {**known, **dict(zip(names, args, strict=False)), **kwargs}


def install(recorder: Recorder, card: Card, patches: Patches) -> None:
    """Replaces launches if Triton is there."""
    if importlib.util.find_spec("triton") is None:
        return
    from triton.runtime import driver
    from triton.runtime.autotuner import Autotuner, Heuristics
    from triton.runtime.jit import JITFunction

    launches = Launches(recorder)

    def run(self: Any, *args: Any, grid: Any = (), warmup: bool = False, **kwargs: Any) -> None:
        if callable(grid):
            grid = grid(_named(self, args, kwargs))
        launches.write(self.__name__, grid, args, kwargs)

    def tuned(self: Any, *args: Any, **kwargs: Any) -> Any:
        config = self.configs[0]
        return self.fn.run(*args, **{**kwargs, **config.kwargs})

    def heuristic(self: Any, *args: Any, **kwargs: Any) -> Any:
        for name, value in self.values.items():
            kwargs[name] = value({**dict(zip(self.arg_names, args, strict=False)), **kwargs})
        return self.fn.run(*args, **kwargs)

    patches.set(JITFunction, "run", run)
    patches.set(Autotuner, "run", tuned)
    patches.set(Heuristics, "run", heuristic)
    stand_in = _driver(card)
    patches.set(type(driver), "active", property(lambda self: stand_in))


def _driver(card: Card) -> types.SimpleNamespace:
    """Triton's driver of the emulated card."""
    major, minor = card.capability
    target = types.SimpleNamespace(backend="cuda", arch=major * 10 + minor, warp_size=32)
    properties = dict(
        max_shared_mem=232448 if major >= 9 else 101376,
        max_num_regs=65536,
        multiprocessor_count=card.sms,
        warpSize=32,
        sm_clock_rate=1980000,
        mem_clock_rate=2619000,
        mem_bus_width=5120,
    )
    return types.SimpleNamespace(
        get_current_target=lambda: target,
        get_current_device=lambda: 0,
        get_current_stream=lambda device=None: 0,
        get_active_torch_device=lambda: torch.device("cuda", 0),
        get_device_interface=lambda: torch.cuda,
        get_device_capability=lambda device=None: card.capability,
        utils=types.SimpleNamespace(get_device_properties=lambda device=None: properties),
        is_active=lambda: True,
    )
