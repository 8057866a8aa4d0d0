"""Acting on a library at the moment that a script imports it, without importing it for all scripts."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any


class OnImport(importlib.abc.MetaPathFinder):
    """Calls functions on modules as soon as they are loaded."""

    def __init__(self, actions: dict[str, Callable[[ModuleType], None]]) -> None:
        """Functions by the names of their modules; those of modules that are loaded run at once."""
        self.actions = dict(actions)
        for name in list(self.actions):
            module = sys.modules.get(name)
            if module is not None:
                self.actions.pop(name)(module)
        sys.meta_path.insert(0, self)

    def find_spec(
        self, name: str, path: Any, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The spec that other finders give, with a loader that acts when it is done."""
        action = self.actions.pop(name, None)
        if action is None:
            return None
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(name, path, target)
            if spec is not None and spec.loader is not None:
                _act(spec.loader, action)
                return spec
        return None

    def remove(self) -> None:
        """Acts no more."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)


def _act(loader: Any, action: Callable[[ModuleType], None]) -> None:
    execute = loader.exec_module

    def exec_module(module: ModuleType) -> None:
        execute(module)
        action(module)

    loader.exec_module = exec_module
