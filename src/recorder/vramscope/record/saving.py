"""Checkpoints that a script writes: files with shapes and types, their data a hole that takes no disk."""

from __future__ import annotations

import json
import os
import struct
from types import ModuleType
from typing import Any

import torch

from vramscope.record.patches import Patches
from vramscope.record.tensors import is_emulated

# Functions of `safetensors.torch` that look at data, and those that take what they return to the disk.
FLATTEN = ("_flatten", "_flatten_as_ptr")

# Names of types in a header (`safetensors`, README, "Format").
DTYPES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.bool: "BOOL",
    torch.float8_e4m3fn: "F8_E4M3",
    torch.float8_e5m2: "F8_E5M2",
}


class Shapes(dict):  # type: ignore[type-arg]
    """Tensors of a file of which some hold no data."""


def patch(module: ModuleType, patches: Patches) -> None:
    """Lets `safetensors.torch` write tensors without data."""
    for name in FLATTEN:
        if hasattr(module, name):
            patches.set(module, name, _flatten(getattr(module, name)))
    write, pack = module.serialize_file, module.serialize

    def serialize_file(flat: Any, filename: Any, metadata: dict[str, str] | None = None) -> None:
        if isinstance(flat, Shapes):
            return to_disk(flat, filename, metadata)
        return write(flat, filename, metadata=metadata)

    def serialize(flat: Any, metadata: dict[str, str] | None = None) -> bytes:
        if isinstance(flat, Shapes):
            head, length = header(flat, metadata)
            return head + bytes(length)
        return pack(flat, metadata=metadata)

    patches.set(module, "serialize_file", serialize_file)
    patches.set(module, "serialize", serialize)


def _flatten(real: Any) -> Any:
    def flatten(tensors: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(tensors, dict) and any(is_emulated(x) for x in tensors.values()):
            return Shapes(tensors)
        return real(tensors, *args, **kwargs)

    return flatten


def header(tensors: dict[str, torch.Tensor], metadata: dict[str, str] | None) -> tuple[bytes, int]:
    """First bytes of a file of these tensors, and how many bytes of data follow."""
    entries: dict[str, Any] = {"__metadata__": metadata} if metadata else {}
    at = 0
    for name, x in tensors.items():
        size = x.numel() * x.element_size()
        entries[name] = dict(dtype=DTYPES[x.dtype], shape=list(x.shape), data_offsets=[at, at + size])
        at += size
    text = json.dumps(entries, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text, at


def to_disk(tensors: dict[str, torch.Tensor], filename: Any, metadata: dict[str, str] | None) -> None:
    """Writes a file whose data is a hole."""
    head, length = header(tensors, metadata)
    with open(os.fspath(filename), "wb") as file:
        file.write(head)
        file.truncate(len(head) + length)
