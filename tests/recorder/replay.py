"""A small replay of recordings, to compare them with what was measured; the engine has the real one."""

from __future__ import annotations

import bisect
import gzip
import json
import math
from collections.abc import Iterator
from typing import Any

WIDTH = dict(f64=8, f32=4, f16=2, bf16=2, i64=8, i32=4, i16=2, i8=1, u8=1, u16=2, u32=4, u64=8, bool=1, c64=8, c128=16)


class Block:
    """A part of a segment, in use or free."""

    __slots__ = ("addr", "free", "next", "prev", "size", "small")


class Allocator:
    """PyTorch's caching allocator, the plain part, one stream."""

    def __init__(self) -> None:
        """Nothing reserved."""
        self.pools: tuple[list[Any], list[Any]] = ([], [])
        self.top = self.allocated = self.reserved = self.peak = self.reserved_peak = 0

    def malloc(self, size: int) -> Block:
        """A block for `size` bytes."""
        size = max(512, (size + 511) // 512 * 512)
        small = size <= 1 << 20
        pool = self.pools[small]
        i = bisect.bisect_left(pool, (size, -1))
        block = pool.pop(i)[2] if i < len(pool) else self.segment(size, small)
        rest = block.size - size
        if rest >= 512 if small else rest > 1 << 20:
            self.split(block, size, pool)
        block.free = False
        self.allocated += block.size
        self.peak = max(self.peak, self.allocated)
        return block

    def segment(self, size: int, small: bool) -> Block:
        """A new segment."""
        whole = 2 << 20 if small else (20 << 20 if size < 10 << 20 else (size + (2 << 20) - 1) // (2 << 20) * (2 << 20))
        block = Block()
        block.size, block.addr, block.small = whole, self.top, small
        block.prev = block.next = None
        self.top += whole + (2 << 20)
        self.reserved += whole
        self.reserved_peak = max(self.reserved_peak, self.reserved)
        return block

    def split(self, block: Block, size: int, pool: list[Any]) -> None:
        """Cuts what is too much off a block."""
        rest = Block()
        rest.size, rest.addr, rest.small, rest.free = block.size - size, block.addr + size, block.small, True
        rest.prev, rest.next = block, block.next
        if block.next is not None:
            block.next.prev = rest
        block.next, block.size = rest, size
        bisect.insort(pool, (rest.size, rest.addr, rest))

    def release(self, block: Block) -> None:
        """Frees a block and joins it with free neighbours."""
        self.allocated -= block.size
        pool = self.pools[block.small]
        block.free = True
        for other in (block.prev, block.next):
            if other is None or not other.free:
                continue
            pool.pop(bisect.bisect_left(pool, (other.size, other.addr)))
            if other is block.prev:
                block.addr, block.prev = other.addr, other.prev
                if other.prev is not None:
                    other.prev.next = block
            else:
                block.next = other.next
                if other.next is not None:
                    other.next.prev = block
            block.size += other.size
        bisect.insort(pool, (block.size, block.addr, block))

    def empty(self) -> None:
        """Gives free segments back."""
        for pool in self.pools:
            kept = [entry for entry in pool if entry[2].prev is not None or entry[2].next is not None]
            self.reserved -= sum(entry[0] for entry in pool) - sum(entry[0] for entry in kept)
            pool[:] = kept


def lines(path: str) -> Iterator[dict[str, Any]]:
    """Lines of a recording."""
    with gzip.open(path, "rt") as file:
        for line in file:
            yield json.loads(line)


class Tensor:
    """A tensor of an op line."""

    def __init__(self, text: str, metas: dict[int, dict[str, Any]]) -> None:
        """Reads `#S:M:O`."""
        storage, meta, *_ = text[1:].split(":")
        self.storage = -1 if storage == "h" else int(storage)
        m = metas[int(meta)]
        self.shape: list[int] = m["shape"]
        self.dtype: str = m["dtype"]
        self.strides = m.get("strides") or _contiguous(self.shape)
        self.numel = math.prod(self.shape)
        self.bytes = self.numel * WIDTH[self.dtype]


def _contiguous(shape: list[int]) -> list[int]:
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= max(extent, 1)
    return strides[::-1]


class Replay:
    """Plays a recording and answers what the script asked."""

    def __init__(self, path: str) -> None:
        """Plays the file at `path`."""
        self.allocator = Allocator()
        self.names: dict[int, str] = {}
        self.metas: dict[int, dict[str, Any]] = {}
        self.blocks: dict[int, Block] = {}
        self.answers: list[int] = []
        self.libraries: dict[tuple[str, int], Block] = {}
        self.phase = "build"
        self.births: dict[tuple[int, str], list[tuple[int, str]]] = {}
        self.step = 0
        self.assumed: list[dict[str, Any]] = []
        self.end: dict[str, Any] = {}
        for line in lines(path):
            getattr(self, "on_" + line["t"], self.skip)(line)

    def skip(self, line: dict[str, Any]) -> None:
        """Lines that don't matter here."""

    def on_fn(self, line: dict[str, Any]) -> None:
        """A name."""
        self.names[line["id"]] = line["name"].split(".")[1]

    def on_meta(self, line: dict[str, Any]) -> None:
        """A layout."""
        self.metas[line["id"]] = line

    def on_free(self, line: dict[str, Any]) -> None:
        """Frees."""
        for s in line["s"]:
            if s in self.blocks:
                self.allocator.release(self.blocks.pop(s))

    def on_mark(self, line: dict[str, Any]) -> None:
        """A phase begins or ends."""
        at = line["at"]
        if at == "step":
            self.step = line["step"]
        self.phase = "other" if at.endswith("_end") or at == "step" else at

    def on_ask(self, line: dict[str, Any]) -> None:
        """An answer."""
        a = self.allocator
        known = dict(
            memory_allocated=a.allocated,
            max_memory_allocated=a.peak,
            memory_reserved=a.reserved,
            max_memory_reserved=a.reserved_peak,
            memory_stats=a.reserved_peak,
        )
        self.answers.append(known.get(line["what"], 0))

    def on_reset_peak(self, line: dict[str, Any]) -> None:
        """Peaks begin anew."""
        self.allocator.peak = self.allocator.allocated

    def on_empty_cache(self, line: dict[str, Any]) -> None:
        """Gives segments back."""
        self.allocator.empty()

    def on_clear_cublas_workspaces(self, line: dict[str, Any]) -> None:
        """Frees what cuBLAS keeps."""
        for block in self.libraries.values():
            self.allocator.release(block)
        self.libraries.clear()

    def on_assumed(self, line: dict[str, Any]) -> None:
        """An assumption."""
        self.assumed.append(line)

    def on_end(self, line: dict[str, Any]) -> None:
        """The last line."""
        self.end = line

    def on_op(self, line: dict[str, Any]) -> None:
        """An operation: its outputs, then what its kernel takes inside."""
        name = self.names[line["f"]]
        for storage, size in line.get("n", ()):
            self.births.setdefault((self.step, self.phase), []).append((size, name))
            if size:
                self.blocks[storage] = self.allocator.malloc(size)
        rule = RULES.get(name)
        if rule is None or not any(str(x).startswith("#") and x[1] != "h" for x in line.get("o", ())):
            return
        given = [Tensor(a, self.metas) if isinstance(a, str) and a.startswith("#") else a for a in line.get("a", ())]
        out = Tensor(next(x for x in line["o"] if str(x).startswith("#")), self.metas)
        for kept, *sizes in rule(given, out):
            if kept:
                key = (kept, line.get("b", 0))
                if key not in self.libraries:
                    self.libraries[key] = self.allocator.malloc(sizes[0])
            else:
                for block in [self.allocator.malloc(size) for size in sizes if size]:
                    self.allocator.release(block)


CUBLAS = ("cublas", 32 << 20)
CUBLASLT = ("cublaslt", 1 << 20)


def _product(a: list[Any], out: Tensor) -> list[tuple[Any, ...]]:
    return [CUBLAS] if out.numel else []


def _addmm(a: list[Any], out: Tensor) -> list[tuple[Any, ...]]:
    return [CUBLAS, CUBLASLT] if out.numel else []


def _cudnn_backward(a: list[Any], out: Tensor) -> list[tuple[Any, ...]]:
    q, k = a[1], a[2]
    b, h, s, d = q.shape
    shared = 0 if k.shape[1] == h else 2 * b * h * k.shape[2] * d * WIDTH[q.dtype]
    copy = 0 if a[0].strides == a[4].strides else a[0].bytes
    return [(None, copy, 4 * b * h * s * d + 4 * b * h * s + 256 + shared)]


def _efficient_backward(a: list[Any], out: Tensor) -> list[tuple[Any, ...]]:
    q = a[1]
    b, h, s, d = q.shape
    half = q.dtype != "f32"
    rows = 4 * b * h * s
    r, c = (64, 64) if d <= 64 else ((128, 128) if half and d <= 128 else (128, 64))
    tile = -(-s // r) * -(-d // c) * (r * c * 4 + 16)
    if half:
        return [(None, rows, b * h * ((tile + 15) // 16 * 16))]
    return [(None, rows * d, rows), (None, rows, b * h * ((tile + 15) // 16 * 16))]


def _flash_backward(a: list[Any], out: Tensor) -> list[tuple[Any, ...]]:
    q, k = a[1], a[2]
    b, h, s, d = q.shape
    rows, wide = (s + 127) // 128 * 128, (d + 31) // 32 * 32
    expanded = 0 if k.shape[1] == h else b * h * k.shape[2] * d * WIDTH[q.dtype]
    return [(None, 4 * b * h * rows, 4 * b * h * rows * wide, expanded, expanded)]


def _embedding_backward(a: list[Any], out: Tensor) -> list[tuple[Any, ...]]:
    n, width, rows = a[1].numel, a[0].shape[-1], a[2]
    if n <= 3072:
        return []
    most = min(n, rows)
    partials = n // 10 + most
    return [(None, 8 * n, 8 * n, 8 * n, 8 * most, 8 * most, 8 * partials, 4 * partials * width)]


def _index_put(a: list[Any], out: Tensor) -> list[tuple[Any, ...]]:
    if len(a) < 4 or not a[3]:
        return []
    n = max([x and math.prod([1]) for x in a[1]] + [0])
    return [(None, 8 * n, 8 * n, 8 * n, 8 * n)]


RULES = {
    **dict.fromkeys(("mm", "bmm", "baddbmm", "addmv", "mv", "dot"), _product),
    "addmm": _addmm,
    "_scaled_dot_product_cudnn_attention_backward": _cudnn_backward,
    "_scaled_dot_product_efficient_attention_backward": _efficient_backward,
    "_scaled_dot_product_flash_attention_backward": _flash_backward,
    "embedding_dense_backward": _embedding_backward,
}
