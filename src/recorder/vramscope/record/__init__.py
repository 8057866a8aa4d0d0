"""The recorder: PyTorch believes in a CUDA card that holds no data, and every operation is written down.

The module is callable, as `vramscope.runs.record`, whose name `vramscope.record` it has.
"""

import sys
import types
from typing import Any


class _Callable(types.ModuleType):
    def __call__(self, *args: Any, **kwargs: Any) -> str:
        """Records a script, or the usual step of a model; see `vramscope.runs.record`."""
        from vramscope.runs import record

        return record(*args, **kwargs)


sys.modules[__name__].__class__ = _Callable
