"""What can't be recorded truly, refused by name when a script comes to it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import torch

from vramscope.record.errors import RecordingError
from vramscope.record.mode import Recorder
from vramscope.record.patches import Patches

FLEX = "torch.nn.attention.flex_attention"


def refuse(what: str, instead: str) -> Callable[..., Any]:
    """A function that says that `what` can't be recorded, and what to do instead."""

    def call(*args: Any, **kwargs: Any) -> Any:
        raise RecordingError(f"{what} runs compiled CUDA code that can't be recorded without a GPU. {instead}")

    return call


def compiler(recorder: Recorder, patches: Patches) -> None:
    """Refuses compiled models and FlexAttention; another compiled function runs as it is written, which the file says.

    Inductor's graph of backward is traced by autograd's C++ threads, which want a CUDA context.
    """
    instead = "Record without torch.compile; `vramscope estimate` tells what compiling changes for built-in models."
    refused = refuse("torch.compile of a model", instead)

    def compile_(model: Any = None, **kwargs: Any) -> Any:
        if model is None:
            return lambda function: compile_(function, **kwargs)
        if kwargs.get("disable"):
            return model
        if isinstance(model, torch.nn.Module):
            return refused()
        if getattr(model, "__module__", None) == FLEX:
            # Uncompiled it would keep the scores of all positions, which its kernel never has.
            return refuse("FlexAttention", 'Record with attn_implementation="sdpa".')
        recorder.noted.note("torch.compile", "a compiled function allocates what it does uncompiled", None)
        return model

    patches.set(torch, "compile", compile_)
    patches.set(torch.nn.Module, "compile", refuse("Module.compile", instead))
    dynamo = sys.modules.get("torch._dynamo.eval_frame")
    if dynamo is not None:
        # Compiled before the recording began; Dynamo would leave it out while a dispatch mode runs.
        patches.set(dynamo.OptimizedModule, "__call__", refused)
