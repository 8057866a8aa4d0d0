"""Writer of recordings: JSON lines in gzip, as `docs/recording.md` describes them."""

from __future__ import annotations

import gzip
import json
import math
import re
from typing import Any

import torch

VERSION = 1

DTYPES: dict[torch.dtype, str] = {
    torch.float64: "f64",
    torch.float32: "f32",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.float8_e4m3fn: "f8e4m3",
    torch.float8_e5m2: "f8e5m2",
    torch.float8_e4m3fnuz: "f8e4m3fnuz",
    torch.float8_e5m2fnuz: "f8e5m2fnuz",
    torch.int64: "i64",
    torch.int32: "i32",
    torch.int16: "i16",
    torch.int8: "i8",
    torch.uint8: "u8",
    torch.uint16: "u16",
    torch.uint32: "u32",
    torch.uint64: "u64",
    torch.bool: "bool",
    torch.complex64: "c64",
    torch.complex128: "c128",
}

# Where an object lay, in Python's words for it: another in every run.
ADDRESS = re.compile(r" at 0x[0-9a-f]+")

text = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def contiguous_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides of a contiguous tensor of this shape, in elements."""
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= max(extent, 1)
    return tuple(reversed(strides))


def scalar(value: Any) -> Any:
    """An argument that is no tensor, as JSON holds it."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else f"~{'nan' if math.isnan(value) else 'inf' if value > 0 else '-inf'}"
    if isinstance(value, torch.dtype):
        return "%" + DTYPES.get(value, str(value))
    if isinstance(value, torch.device):
        return "@cuda:0" if value.type in ("cuda", "meta") else f"@{value}"  # C++ takes the card to be `meta`
    if isinstance(value, str):
        return "=" + value
    return "?" + ADDRESS.sub("", str(value))


class Writer:
    """Writes lines in order; names that repeat are declared once."""

    def __init__(self, path: str) -> None:
        """Opens the file at `path` for writing."""
        self.path = path
        self._raw = open(path, "wb")  # noqa: SIM115
        self._file = gzip.GzipFile(filename="", fileobj=self._raw, mode="wb", compresslevel=6, mtime=0)
        self._lines: list[str] = []
        self._is_begun = False
        self._pending_frees: list[int] = []
        self._ids: dict[str, dict[Any, int]] = {kind: {} for kind in ("fn", "meta", "module", "line", "node", "param")}
        self.ops = 0
        self.closed = False

    def header(self, **keys: Any) -> None:
        """Writes the first line, or writes it again while it is not on its way to the disk."""
        line = text({"t": "header", **{name: value for name, value in keys.items() if value is not None}})
        if self._is_begun:
            raise RuntimeError("the recording's first line is written already")
        self._lines[:1] = [line]

    def line(self, what: str) -> None:
        """Writes one line of JSON after the frees that are due."""
        if self._pending_frees:
            self._lines.append('{"t":"free","s":[' + ",".join(map(str, self._pending_frees)) + "]}")
            self._pending_frees = []
        self._lines.append(what)
        if len(self._lines) >= 4096:
            self.flush()

    def write(self, kind: str, **keys: Any) -> None:
        """Writes a line of this type; keys that are None are left out."""
        self.line(text({"t": kind, **{name: value for name, value in keys.items() if value is not None}}))

    def free(self, storage: int) -> None:
        """Notes that a storage is free; joined with its neighbours into one line."""
        self._pending_frees.append(storage)

    def declare(self, kind: str, key: Any, **keys: Any) -> int:
        """Id of `key` among names of its kind, declared with `keys` if it is new."""
        ids = self._ids[kind]
        known = ids.get(key)
        if known is None:
            known = ids[key] = len(ids)
            self.write(kind, id=known, **keys)
        return known

    def known(self, kind: str, key: Any) -> int | None:
        """Id of `key` if it was declared."""
        return self._ids[kind].get(key)

    def declared(self, kind: str, number: int) -> Any:
        """What was declared with this id."""
        return list(self._ids[kind])[number]

    def meta(self, dtype: torch.dtype, shape: tuple[int, ...], strides: tuple[int, ...]) -> int:
        """Id of a layout: dtype, shape and strides."""
        known = self._ids["meta"].get((dtype, shape, strides))
        if known is not None:
            return known
        contiguous = strides == contiguous_strides(shape)
        return self.declare(
            "meta",
            (dtype, shape, strides),
            dtype=DTYPES.get(dtype, str(dtype)),
            shape=list(shape),
            strides=None if contiguous else list(strides),
        )

    def flush(self) -> None:
        """Hands lines to the compressor."""
        if self._lines:
            self._is_begun = True
            self._file.write(("\n".join(self._lines) + "\n").encode())
            self._lines.clear()

    def close(self, **keys: Any) -> None:
        """Writes the last line and closes the file; later calls do nothing."""
        if self.closed:
            return
        self.write("end", ops=self.ops, **keys)
        self.flush()
        self._file.close()
        self._raw.close()
        self.closed = True
