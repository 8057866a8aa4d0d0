"""Reasons that storages live: parameters, batch, saved for backward, gradients, optimizer states."""

from __future__ import annotations

import weakref
from typing import Any

import torch
from torch.autograd.graph import saved_tensors_hooks

from vramscope.record import held
from vramscope.record.mode import Recorder
from vramscope.record.patches import Patches
from vramscope.record.tensors import CudaTensor
from vramscope.record.writer import text


def part(x: Any) -> Any:
    """What this rank holds of a tensor that is spread over ranks; the tensor itself if it is not.

    ZeRO-3 keeps its part beside the parameter, which is empty between uses; FSDP2 and tensor parallelism within it.
    """
    kept = getattr(x, "ds_tensor", None)
    return kept if kept is not None else getattr(x, "_local_tensor", x)


class Reasons:
    """Writes each reason once for each storage."""

    def __init__(self, recorder: Recorder) -> None:
        """Nothing told yet."""
        self.recorder = recorder
        self.told: set[tuple[int, str]] = set()
        self.explained: set[int] = set()
        self.ids: dict[int, tuple[weakref.ref[torch.Tensor], int]] = {}
        self.hooked: list[tuple[int, int]] = []
        self.entered: list[int] = []
        self.attributes: dict[type, list[str]] = {}

    def tell(self, x: Any, reason: str, **keys: Any) -> None:
        """Writes why the storage of `x` lives, if it is on the card."""
        x = part(x)
        if type(x) is not CudaTensor:
            return
        key = (x._vs.id, reason)
        if key not in self.told:
            self.told.add(key)
            self.explained.add(x._vs.id)
            line = f'{{"t":"why","s":{key[0]},"is":"{reason}"'
            for name, value in keys.items():
                if value is not None:
                    line += f',"{name}":{value if type(value) is int else text(value)}'
            self.recorder.writer.line(line + "}")

    def install(self, patches: Patches) -> None:
        """Notes where saved tensors go through hooks, which must not be called to look at them."""
        enter, leave = saved_tensors_hooks.__enter__, saved_tensors_hooks.__exit__
        now = torch._C._autograd._get_sequence_nr

        def entering(hooks: Any) -> Any:
            self.entered.append(now())
            return enter(hooks)

        def leaving(hooks: Any, *exc: Any) -> Any:
            self.hooked.append((self.entered.pop(), now()))
            return leave(hooks, *exc)

        patches.set(saved_tensors_hooks, "__enter__", entering)
        patches.set(saved_tensors_hooks, "__exit__", leaving)

    def parameters(self, root: torch.nn.Module, names: dict[int, tuple[str, int | None]]) -> None:
        """Declares parameters and buffers of a root."""
        for trainable, found in ((True, root.named_parameters()), (False, root.named_buffers())):
            for name, x in found:
                kept = part(x)
                if type(kept) is CudaTensor:
                    self.parameter(root, name, x, kept, buffer=not trainable)

    def parameter(self, root: torch.nn.Module, name: str, x: Any, kept: Any, buffer: bool) -> None:
        """Declares one parameter or buffer, whose memory is that of `kept`."""
        writer = self.recorder.writer
        number = writer.declare(
            "param",
            (id(root), name),
            name=name,
            module=writer.known("module", name.rpartition(".")[0]),
            s=kept._vs.id,
            m=writer.meta(kept.dtype, tuple(kept.shape), tuple(kept.stride())),
            trainable=x.requires_grad,
            elements=None if kept is x else getattr(x, "ds_numel", x.numel()),
            buffer=True if buffer else None,
        )
        self.ids[id(x)] = (weakref.ref(x), number)
        self.explained.add(kept._vs.id)

    def number(self, x: Any) -> int | None:
        """Id of a parameter."""
        known = self.ids.get(id(x))
        return known[1] if known is not None and known[0]() is x else None

    def batch(self, args: Any, kwargs: dict[str, Any]) -> None:
        """Names arguments of the outermost module."""
        named = [(str(i), x) for i, x in enumerate(args)] + list(kwargs.items())
        for name, x in named:
            items = x.items() if isinstance(x, dict) else [(name, x)]
            for key, item in items:
                self.tell(item, "batch", name=str(key))

    def held(self) -> None:
        """Names what functions hold that lives for no other reason."""
        for name, line, x in held.names(self.recorder.place):
            if x._vs.id not in self.explained:
                self.tell(x, "held", name=name, l=line)

    def gradients(self) -> None:
        """Names gradients of known parameters."""
        for reference, number in list(self.ids.values()):
            parameter = reference()
            if parameter is not None and parameter.grad is not None:
                self.tell(parameter.grad, "gradient", p=number)

    def states(self, optimizer: torch.optim.Optimizer) -> None:
        """Names what an optimizer keeps."""
        for parameter, state in optimizer.state.items():
            if isinstance(state, dict):
                for name, x in state.items():
                    self.tell(x, "state", p=self.number(parameter), name=str(name))

    def saved(self, roots: Any) -> None:
        """Names what nodes keep for backward, but for what goes through hooks."""
        roots = roots if isinstance(roots, (list, tuple)) else [roots]
        waiting = [x.grad_fn for x in roots if isinstance(x, torch.Tensor) and x.grad_fn is not None]
        seen: set[Any] = set(waiting)
        while waiting:
            node = waiting.pop()
            sequence = node._sequence_nr()
            if not any(a <= sequence < b for a, b in self.hooked):
                self.look(node)
            for following, _ in node.next_functions:
                if following is not None and following not in seen:
                    seen.add(following)
                    waiting.append(following)
        self.hooked.clear()

    def look(self, node: Any) -> None:
        """Names what one node keeps."""
        kind = type(node)
        attributes = self.attributes.get(kind)
        if attributes is None:
            attributes = [a for a in dir(kind) if a.startswith("_saved_") or a == "saved_tensors"]
            self.attributes[kind] = attributes
        for attribute in attributes:
            try:
                found = getattr(node, attribute)
            except (RuntimeError, AttributeError, ValueError):
                continue
            for x in found if isinstance(found, (list, tuple)) else (found,):
                if type(x) is CudaTensor and not (x.is_leaf and x.requires_grad):
                    self.tell(x, "saved", v=self.recorder.place.node(node.name()))
