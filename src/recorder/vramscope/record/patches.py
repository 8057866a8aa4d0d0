"""Replacing attributes of modules and classes for as long as a recording runs."""

from __future__ import annotations

from typing import Any

MISSING = object()


class Patches:
    """Replaced attributes, put back in reverse order."""

    def __init__(self) -> None:
        """Nothing replaced yet."""
        self._before: list[tuple[Any, str, Any]] = []

    def set(self, owner: Any, name: str, value: Any) -> None:
        """Replaces an attribute, or adds it."""
        before = vars(owner).get(name, MISSING)
        self._before.append((owner, name, before))
        setattr(owner, name, value)

    def set_existing(self, owner: Any, **values: Any) -> None:
        """Replaces attributes that this version of the library has."""
        for name, value in values.items():
            if hasattr(owner, name):
                self.set(owner, name, value)

    def undo(self) -> None:
        """Puts everything back."""
        while self._before:
            owner, name, before = self._before.pop()
            if before is MISSING:
                delattr(owner, name)
            else:
                setattr(owner, name, before)
