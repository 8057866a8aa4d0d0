"""Where an operation comes from: module, line of Python, autograd node."""

from __future__ import annotations

import os
import sys
from types import CodeType, FrameType
from typing import Any

import torch

from vramscope.record.writer import Writer

TORCH = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep
OWN = os.path.dirname(os.path.abspath(__file__)) + os.sep


def short(path: str) -> str:
    """A file within `site-packages`, or else as it is given."""
    for root in ("site-packages", "dist-packages"):
        _, found, rest = path.rpartition(root + os.sep)
        if found:
            return rest.replace(os.sep, "/")
    return os.path.relpath(path) if path.startswith(os.getcwd() + os.sep) else os.path.basename(path)


class Place:
    """Follows modules and autograd nodes, and knows for each backward operation where it comes from."""

    def __init__(self, writer: Writer) -> None:
        """Outside of any module."""
        self.writer = writer
        self.modules: list[int] = []
        # By the id of a code object, which is kept here so that none gets it again: a code object's own hash is that of
        # all its constants, worked out each time.
        self.foreign: dict[int, tuple[CodeType, bool]] = {}
        self.lines: dict[tuple[int, int], int] = {}
        self.made: dict[int, tuple[int | None, int | None]] = {}
        self.last_sequence = -1
        self.tails: dict[tuple, str] = {}
        self.stream = 0

    def module(self) -> int | None:
        """Id of the innermost module that runs."""
        return self.modules[-1] if self.modules else None

    def module_path(self) -> str:
        """Path of the innermost module that runs; empty outside of any."""
        number = self.module()
        return "" if number is None else self.writer.declared("module", number)

    def is_foreign(self, code: CodeType) -> bool:
        """True if `code` is neither PyTorch's nor the recorder's."""
        known = self.foreign.get(id(code))
        if known is None:
            name = code.co_filename
            known = (code, not name.startswith((TORCH, OWN, "<frozen", "<string")))
            self.foreign[id(code)] = known
        return known[1]

    def frame(self) -> FrameType | None:
        """The innermost frame outside PyTorch."""
        frame: FrameType | None = sys._getframe(2)
        foreign = self.foreign
        while frame is not None:
            # Asked for each operation, through a dozen frames of PyTorch's: a call for each would show.
            code = frame.f_code
            known = foreign.get(id(code))
            if known[1] if known is not None else self.is_foreign(code):
                return frame
            frame = frame.f_back
        return None

    def line(self) -> int | None:
        """Id of the innermost line outside PyTorch."""
        frame = self.frame()
        return None if frame is None else self.declared(frame)

    def declared(self, frame: FrameType) -> int:
        """Id of the line that a frame is at."""
        code = frame.f_code
        number = frame.f_lineno
        known = self.lines.get((id(code), number))
        if known is None:
            self.is_foreign(code)  # keeps it
            known = self.lines[id(code), number] = self.writer.declare(
                "line", (code, number), file=short(code.co_filename), line=number, function=code.co_name
            )
        return known

    def tail(self) -> str:
        """Last keys of an op line."""
        node = torch._C._current_autograd_node() if torch._C._current_graph_task_id() != -1 else None
        if node is None:
            module, line = self.module(), self.line()
            sequence = torch._C._autograd._get_sequence_nr()
            if sequence != self.last_sequence:
                self.last_sequence = sequence
                self.made[sequence - 1] = (module, line)
            return self.cached(0, None, module, line)
        if self.modules or torch.is_grad_enabled():  # recomputation
            module, line = self.module(), self.line()
            self.made[torch._C._autograd._get_sequence_nr() - 1] = (module, line)
        else:
            module, line = self.made.get(node._sequence_nr(), (None, None))
        return self.cached(1, node.name(), module, line)

    def cached(self, backward: int, node: str | None, module: int | None, line: int | None) -> str:
        """The keys as JSON, made once for each combination."""
        key = (backward, node, module, line, self.stream)
        known = self.tails.get(key)
        if known is None:
            known = ',"b":1' if backward else ""
            if node is not None:
                known += f',"v":{self.node(node)}'
            if module is not None:
                known += f',"mod":{module}'
            if line is not None:
                known += f',"l":{line}'
            if self.stream:
                known += f',"st":{self.stream}'
            self.tails[key] = known
        return known

    def node(self, name: str) -> int:
        """Id of an autograd node by its name."""
        name = name.removeprefix("torch::autograd::")
        return self.writer.declare("node", name, name=name)

    def stack(self) -> str:
        """The lines outside PyTorch that lead here, innermost last."""
        frames: list[str] = []
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and len(frames) < 12:
            if self.is_foreign(frame.f_code):
                frames.append(f"  {short(frame.f_code.co_filename)}:{frame.f_lineno} in {frame.f_code.co_name}")
            frame = frame.f_back
        return "\n".join(reversed(frames))

    def enter(self, module: Any, name: str, parent: int | None) -> int:
        """Id of a module by its path."""
        return self.writer.declare("module", name, name=name, **{"class": type(module).__name__}, parent=parent)
