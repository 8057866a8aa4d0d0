"""VRAMscope in Python: record a training step without a GPU, and see what any step takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vramscope.estimates import estimate
    from vramscope.first_step import warning
    from vramscope.record.session import recording
    from vramscope.runs import record
    from vramscope.sweeps import sweep
    from vramscope.watch import Watch, watching

__all__ = ["Watch", "estimate", "record", "recording", "sweep", "warning", "watching"]
__version__ = "0.1.0"

# Imported when first asked for: `estimate` needs no PyTorch.
_HOMES = {
    "estimate": "vramscope.estimates",
    "recording": "vramscope.record.session",
    "load_ipython_extension": "vramscope.notebook",
    "sweep": "vramscope.sweeps",
    "warning": "vramscope.first_step",
    "Watch": "vramscope.watch",
    "watching": "vramscope.watch",
}


def __getattr__(name: str) -> Any:
    """Something of this package, from the module that holds it."""
    import importlib

    if name == "record":
        # Any import of the package `vramscope.record` sets this attribute to the package, so the name gives it before
        # that, too. The package can be called, as the function `vramscope.runs.record`.
        return importlib.import_module("vramscope.record")
    if name not in _HOMES:
        raise AttributeError(f"module 'vramscope' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
