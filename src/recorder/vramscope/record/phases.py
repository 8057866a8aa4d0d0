"""Phases of a step: hooks on modules, autograd and optimizers."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.nn.modules import module as modules
from torch.optim.optimizer import (
    Optimizer,
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

from vramscope.record.errors import Finished
from vramscope.record.mode import Recorder
from vramscope.record.patches import Patches
from vramscope.record.reasons import Reasons


class Phases:
    """Writes marks, names modules, and ends the run after so many steps."""

    def __init__(self, recorder: Recorder, patches: Patches, steps: int | None, progress: Any = None) -> None:
        """Phases of this recording, which ends after `steps` if given, and calls `progress` after each."""
        self.progress = progress
        self.recorder = recorder
        self.patches = patches
        self.reasons = Reasons(recorder)
        self.last_step = steps
        self.step = self.done = 0
        self.open = False
        self.updated = False
        self.in_backward = 0
        self.passed = 0  # backward passes of the step that is open
        self.in_optimizer = 0
        self.names: dict[int, tuple[str, int | None]] = {}
        self.roots: list[torch.nn.Module] = []
        self.handles: list[Any] = []
        # Arguments by name of the call that is about to enter its module. PyTorch's global pre-hooks are given the
        # positional ones alone.
        self.pending_kwargs: dict[str, Any] = {}

    def install(self) -> None:
        """Registers hooks and wraps the engine's entry."""
        self.handles = [
            modules.register_module_forward_pre_hook(self.enter_module),
            modules.register_module_forward_hook(self.leave_module, always_call=True),
            register_optimizer_step_pre_hook(self.before_optimizer),
            register_optimizer_step_post_hook(self.after_optimizer),
        ]
        for name in ("backward", "grad"):
            self.patches.set(torch.autograd, name, self.around(getattr(torch.autograd, name)))
        self.patches.set(Optimizer, "zero_grad", self.zeroing(Optimizer.zero_grad))
        self.patches.set(torch.nn.Module, "zero_grad", self.zeroing(torch.nn.Module.zero_grad))
        self.patches.set(torch.nn.Module, "__call__", self.calling(torch.nn.Module.__call__))
        self.reasons.install(self.patches)

    def remove(self) -> None:
        """Takes the hooks away."""
        for handle in self.handles:
            handle.remove()
        self.handles.clear()

    def mark(self, at: str, **keys: Any) -> None:
        """Writes a mark."""
        self.recorder.writer.write("mark", at=at, **keys)

    # Steps

    def begin_step(self) -> None:
        """Begins a step unless one is open."""
        if not self.open:
            self.step += 1
            self.passed = 0
            self.open = True
            self.mark("step", step=self.step)

    def end_step(self) -> None:
        """Ends the step after its update; raises if it was the last that was asked for."""
        self.updated = False
        self.open = False
        self.done = self.step
        self.reasons.held()
        self.mark("step_end", step=self.step)
        if self.progress is not None:
            self.progress(self.step, self.recorder.writer.ops)
        if self.last_step is not None and self.step >= self.last_step:
            self.recorder.finished = True
            raise Finished
        self.begin_step()

    # Modules

    def calling(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """Wraps `Module.__call__`, so that the global pre-hook can see keyword arguments too."""

        def run(module: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
            self.pending_kwargs = {} if self.recorder.place.modules else kwargs
            return call(module, *args, **kwargs)

        return run

    def enter_module(self, module: torch.nn.Module, args: Any) -> None:
        """Puts a module on the stack, the outermost with a mark."""
        place = self.recorder.place
        if not place.modules and torch._C._current_graph_task_id() == -1:
            if self.updated:
                self.end_step()
            self.begin_step()
            self.name(module)
            self.mark("forward")
            self.reasons.batch(args, self.pending_kwargs)
        self.pending_kwargs = {}
        name, parent = self.names.get(id(module), (type(module).__name__, place.module()))
        place.modules.append(place.enter(module, name, parent))

    def leave_module(self, module: torch.nn.Module, args: Any, output: Any) -> None:
        """Takes a module from the stack."""
        place = self.recorder.place
        if place.modules:
            place.modules.pop()
            if not place.modules and torch._C._current_graph_task_id() == -1:
                self.mark("forward_end")

    def name(self, root: torch.nn.Module) -> None:
        """Names all modules within a root, and its parameters and buffers."""
        if any(root is known for known in self.roots):
            return
        self.roots.append(root)
        for path, module in root.named_modules():
            if id(module) not in self.names:
                parent = self.names.get(id(_parent(root, path))) if path else None
                number = self.recorder.writer.known("module", parent[0]) if parent else None
                self.names[id(module)] = (path, number)
                self.recorder.place.enter(module, path, number)
        self.reasons.parameters(root, self.names)

    # Backward

    def around(self, run: Callable[..., Any]) -> Callable[..., Any]:
        """Wraps autograd's entry, so that every backward is marked."""

        def run_backward(tensors: Any, *args: Any, **kwargs: Any) -> Any:
            with self.backward(tensors):
                return run(tensors, *args, **kwargs)

        return run_backward

    @contextlib.contextmanager
    def backward(self, tensors: Any) -> Iterator[None]:
        """Marks a backward from these tensors, the outermost only."""
        if torch._C._current_graph_task_id() != -1 or self.in_backward:
            yield
            return
        self.begin_step()
        self.mark("backward")
        self.reasons.saved(tensors)
        self.reasons.held()
        self.in_backward += 1
        held, self.recorder.place.modules = self.recorder.place.modules, []
        try:
            yield
        finally:
            self.recorder.place.modules = held
            self.in_backward -= 1
            self.passed += 1
            self.reasons.gradients()
            self.mark("backward_end")

    # Optimizer

    @contextlib.contextmanager
    def update(self, name: str) -> Iterator[None]:
        """Marks the step() of a library that wraps one optimizer or several, such as DeepSpeed's engine."""
        self.begin_update(name)
        try:
            yield
        finally:
            self.end_update()

    def begin_update(self, name: str) -> None:
        """Marks the beginning of an update, the outermost only."""
        if self.in_optimizer == 0:
            self.begin_step()
            self.reasons.held()
            self.mark("optimizer", name=name)
        self.in_optimizer += 1

    def end_update(self) -> None:
        """Marks the end of an update."""
        self.in_optimizer -= 1
        if self.in_optimizer == 0:
            self.mark("optimizer_end")

    def before_optimizer(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        """Begins the update of an optimizer."""
        self.begin_update(type(optimizer).__name__)

    def after_optimizer(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        """Ends the update of an optimizer."""
        self.reasons.states(optimizer)
        self.end_update()
        self.updated = True

    def zeroing(self, real: Callable[..., Any]) -> Callable[..., Any]:
        """Wraps `zero_grad`: called after an update, it ends the step."""

        def zero_grad(owner: Any, *args: Any, **kwargs: Any) -> None:
            real(owner, *args, **kwargs)
            if self.updated and not self.in_optimizer:
                self.end_step()

        return zero_grad


def _parent(root: torch.nn.Module, path: str) -> torch.nn.Module:
    """The module around the one at `path`."""
    return root.get_submodule(path.rpartition(".")[0])
