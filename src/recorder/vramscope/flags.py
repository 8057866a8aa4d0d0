"""Flags of a command as Python's keyword arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

Flag: TypeAlias = "str | int | float | bool | None"


def words_of(flags: Mapping[str, Flag]) -> list[str]:
    """Words of a command line: `_` becomes `-`; True gives a flag without a value, False and None leave it out."""
    words: list[str] = []
    for name, value in flags.items():
        flag = "--" + name.replace("_", "-")
        if value is True:
            words.append(flag)
        elif value is not None and value is not False:
            words += [flag, str(value)]
    return words
