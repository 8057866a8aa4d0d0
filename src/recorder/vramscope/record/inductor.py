"""Compiled models: Inductor's own code, whose buffers are recorded and whose kernels are not run.

Dynamo traces the model with emulated tensors, AOTAutograd and Inductor work out forward and backward, and what
Inductor generates runs as any other code. Its kernels are Triton's, a launch of which allocates nothing.
"""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.nn.modules import module as modules
from torch.overrides import _get_current_function_mode_stack, _pop_mode, _push_mode

from vramscope.record.cuda import nothing
from vramscope.record.errors import RecordingError
from vramscope.record.kernels import Launches
from vramscope.record.methods import MetaRequests
from vramscope.record.mode import Recorder
from vramscope.record.patches import Patches
from vramscope.record.phases import Phases
from vramscope.record.tensors import META, Emulated, dress

INSTEAD = "Record without torch.compile; `vramscope estimate` tells what compiling changes for built-in models."
HOOKS = (
    "_global_forward_pre_hooks",
    "_global_forward_hooks",
    "_global_forward_hooks_with_kwargs",
    "_global_forward_hooks_always_called",
)

# Nothing is taken from caches that other runs share, or put there; no other process compiles.
SETTINGS = dict(fx_graph_cache=False, fx_graph_remote_cache=False, compile_threads=1, shape_padding=False)


class Kernel:
    """A kernel that Inductor generated."""

    def __init__(self, name: str, launches: Launches) -> None:
        """Launches are written down by this name."""
        self.name, self.launches = name, launches

    def run(self, *args: Any, stream: Any = None, grid: Any = (), **kwargs: Any) -> None:
        """One launch."""
        self.launches.write(self.name, grid, args, kwargs)


class Compiler:
    """Replaces `torch.compile` and `Module.compile`."""

    def __init__(self, recorder: Recorder, phases: Phases, patches: Patches) -> None:
        """Compiles for this recording."""
        self.recorder, self.phases, self.patches = recorder, phases, patches
        self.call = torch.nn.Module.__call__
        self.compile = torch.compile
        self.ready = False
        self.depth = 0

    def install(self) -> None:
        """Replaces both."""
        self.patches.set(torch, "compile", self.compiled)

        def compile_in_place(module: torch.nn.Module, *args: Any, **kwargs: Any) -> None:
            """`Module.compile`, after which calls of the module run what was compiled."""
            run = self.made(module._call_impl, kwargs)

            def call(*args: Any, **kwargs: Any) -> Any:
                self.phases.enter_module(module, args)
                try:
                    return run(*args, **kwargs)
                finally:
                    self.phases.leave_module(module, args, None)

            module._compiled_call_impl = call  # type: ignore[assignment]

        self.patches.set(torch.nn.Module, "compile", compile_in_place)

    def compiled(self, model: Any = None, **kwargs: Any) -> Any:
        """`torch.compile`."""
        if model is None:
            return lambda function: self.compiled(function, **kwargs)
        if kwargs.get("disable"):
            return model
        if not isinstance(model, torch.nn.Module):
            return self.function(model, kwargs)
        made = self.made(model, kwargs)
        made.forward = self.around(made.forward)
        return made

    def function(self, function: Callable[..., Any], kwargs: dict[str, Any]) -> Callable[..., Any]:
        """A compiled function, or the function itself where Triton is missing, which the file says."""
        if importlib.util.find_spec("triton") is None:
            self.recorder.noted.note("torch.compile", "a compiled function allocates what it does uncompiled", None)
            return function
        return self.around(self.made(function, kwargs))

    def made(self, what: Any, kwargs: dict[str, Any]) -> Any:
        """What PyTorch makes of something to compile; raises if its kernels are chosen by trying them."""
        if importlib.util.find_spec("triton") is None:
            raise RecordingError(f"torch.compile needs Triton, which is not installed. Install it, or: {INSTEAD}")
        if kwargs.get("mode") not in (None, "default") or kwargs.get("options"):
            raise RecordingError(
                "torch.compile with a mode or options chooses kernels by trying them on a GPU, or keeps memory of "
                f"CUDA graphs. Record with mode=None. {INSTEAD}"
            )
        if kwargs.get("backend", "inductor") != "inductor":
            raise RecordingError(f"torch.compile is recorded with the backend inductor alone. {INSTEAD}")
        self.prepare()
        with self.inside():
            return self.compile(what, fullgraph=True, dynamic=kwargs.get("dynamic"), backend=self.backend)

    def prepare(self) -> None:
        """Makes what Inductor's code calls take emulated tensors."""
        if self.ready:
            return
        self.ready = True
        from torch._dynamo.device_interface import CudaInterface, caching_worker_device_properties
        from torch._inductor.async_compile import AsyncCompile

        launches = Launches(self.recorder)
        guards = torch._C._dynamo.guards
        patches = self.patches
        patches.set_existing(guards, _empty_strided_cuda=empty_strided, _reinterpret_tensor=reinterpret)
        patches.set(AsyncCompile, "triton", lambda self, name, *args, **kwargs: Kernel(name, launches))
        patches.set_existing(torch._subclasses.fake_tensor, init_gpu_context=nothing, init_cuda_context=nothing)
        cuda = torch.cuda
        for name in ("current_device", "device_count", "synchronize", "get_device_properties", "memory_allocated"):
            patches.set(CudaInterface, name, staticmethod(getattr(cuda, name)))
        patches.set(CudaInterface, "get_raw_stream", staticmethod(lambda *args: 0))
        patches.set(CudaInterface, "is_bf16_supported", staticmethod(cuda.is_bf16_supported))
        for name in ("exchange_device", "maybe_exchange_device"):
            patches.set(CudaInterface, name, staticmethod(lambda device: device))
        caching_worker_device_properties.pop("cuda", None)

    def around(self, run: Callable[..., Any]) -> Callable[..., Any]:
        """A call of something compiled, with nothing on the way that the recorder put there."""

        def call(*args: Any, **kwargs: Any) -> Any:
            with self.inside():
                return run(*args, **kwargs)

        return call

    @contextlib.contextmanager
    def inside(self) -> Iterator[None]:
        """Takes away for a while what Dynamo would trace into: hooks for all modules, and a mode for functions."""
        if self.depth:
            yield
            return
        self.depth += 1
        hooks = [(known, dict(known)) for known in (getattr(modules, name) for name in HOOKS)]
        call = torch.nn.Module.__call__
        torch.nn.Module.__call__ = self.call  # type: ignore[method-assign]
        for known, _ in hooks:
            known.clear()
        popped: list[Any] = []
        while any(isinstance(mode, MetaRequests) for mode in _get_current_function_mode_stack()):
            popped.append(_pop_mode())
        others = [mode for mode in popped if not isinstance(mode, MetaRequests)]
        for mode in reversed(others):
            _push_mode(mode)
        try:
            with torch._inductor.config.patch(SETTINGS), torch._functorch.config.patch(enable_autograd_cache=False):
                yield
        finally:
            for _ in others:
                _pop_mode()
            for mode in reversed(popped):
                _push_mode(mode)
            for known, before in hooks:
                known.update(before)
            torch.nn.Module.__call__ = call  # type: ignore[method-assign]
            self.depth -= 1

    def backend(self, graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Callable[..., Any]:
        """Inductor, without an operation of its own work being recorded."""
        from torch._inductor.compile_fx import compile_fx, compile_fx_inner

        def inner(*args: Any, **kwargs: Any) -> Any:
            before, self.recorder.off = self.recorder.off, True
            try:
                with torch._inductor.config.patch(SETTINGS):
                    return compile_fx_inner(*args, **kwargs)
            finally:
                self.recorder.off = before

        return compile_fx(graph, inputs, inner_compile=inner)


def empty_strided(size: Any, stride: Any, dtype: torch.dtype) -> torch.Tensor:
    """`at::detail::empty_strided_cuda`."""
    return torch.empty_strided(size, stride, dtype=dtype, device="cuda")


def reinterpret(x: torch.Tensor, size: Any, stride: Any, offset: int = 0) -> torch.Tensor:
    """`_reinterpret_tensor`: a view that autograd does not know (`torch/csrc/inductor/inductor_ops.cpp`)."""
    if not isinstance(x, Emulated):
        return torch.ops.inductor._reinterpret_tensor(x, size, stride, offset)
    with torch._C.DisableTorchFunction():
        plain = torch.empty(0, dtype=x.dtype, device=META)
        plain.set_(x.untyped_storage(), x.storage_offset() + offset, tuple(size), tuple(stride))
    return dress(plain, type(x), x._vs)
