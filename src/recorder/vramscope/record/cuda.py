"""The CUDA that Python sees: one card that answers questions and does nothing."""

from __future__ import annotations

import contextlib
import types
from collections.abc import Callable
from typing import Any

import torch

from vramscope.record.cards import Card
from vramscope.record.mode import Recorder
from vramscope.record.patches import Patches
from vramscope.record.tensors import CUDA


class Event:
    """A CUDA event; one millisecond lies between any two."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Takes what `torch.cuda.Event` takes."""

    def record(self, stream: Any = None) -> None:
        """Does nothing."""

    def wait(self, stream: Any = None) -> None:
        """Does nothing."""

    def synchronize(self) -> None:
        """Does nothing."""

    def query(self) -> bool:
        """All work is done."""
        return True

    def elapsed_time(self, other: Any) -> float:
        """Milliseconds."""
        return 1.0


class Stream:
    """A CUDA stream, a number to the recording."""

    made = 0

    def __init__(self, device: Any = None, priority: int = 0, **kwargs: Any) -> None:
        """A new stream."""
        Stream.made += 1
        self.stream_id = self.cuda_stream = Stream.made
        self.device = CUDA
        self.device_index = 0
        self.device_type = 1
        self.priority = priority

    def wait_stream(self, other: Any) -> None:
        """Does nothing."""

    def wait_event(self, event: Any) -> None:
        """Does nothing."""

    def synchronize(self) -> None:
        """Does nothing."""

    def query(self) -> bool:
        """All work is done."""
        return True

    def record_event(self, event: Any = None) -> Any:
        """An event that is over."""
        return event or Event()

    def __enter__(self) -> Stream:
        """Enters nothing."""
        return self

    def __exit__(self, *exc: Any) -> None:
        """Leaves nothing."""


class DeviceGuard:
    """`torch.cuda.device`: there is one."""

    def __init__(self, device: Any = None) -> None:
        """Takes any."""
        self.idx = 0

    def __enter__(self) -> None:
        """Enters nothing."""

    def __exit__(self, *exc: Any) -> bool:
        """Leaves nothing."""
        return False


class Asked(int):
    """An answer about memory that remembers which question of the recording it answers."""

    question: int = -1


class Questions:
    """What scripts ask about memory, written down; answers are sums without what kernels take inside.

    There is one for the process, so that a function that a module took by its name in one recording
    answers in the next.
    """

    recorder: Recorder
    count = 0

    def write(self, kind: str) -> None:
        """Writes down what a script told the allocator or the device."""
        self.recorder.writer.write(kind)

    def empty_cache(self) -> None:
        """`torch.cuda.empty_cache`."""
        self.recorder.cached_peak = self.recorder.live_bytes
        self.write("empty_cache")

    def synchronize(self, device: Any = None) -> None:
        """`torch.cuda.synchronize`."""
        self.write("sync")

    def ask(self, what: str, value: int) -> Asked:
        """Writes a question down and answers it."""
        answer = Asked(value)
        answer.question = self.count
        self.recorder.writer.write("ask", what=what, i=self.count, l=self.recorder.place.line())
        self.count += 1
        return answer

    def allocated(self, device: Any = None) -> int:
        """`torch.cuda.memory_allocated`."""
        return self.ask("memory_allocated", self.recorder.live_bytes)

    def max_allocated(self, device: Any = None) -> int:
        """`torch.cuda.max_memory_allocated`."""
        return self.ask("max_memory_allocated", self.recorder.peak_bytes)

    def reserved(self, device: Any = None) -> int:
        """`torch.cuda.memory_reserved`."""
        return self.ask("memory_reserved", self.recorder.peak_bytes)

    def max_reserved(self, device: Any = None) -> int:
        """`torch.cuda.max_memory_reserved`."""
        return self.ask("max_memory_reserved", self.recorder.peak_bytes)

    def stats(self, device: Any = None) -> dict[str, Any]:
        """`torch.cuda.memory_stats`: zero for what nobody counts here."""
        answer = self.ask("memory_stats", self.recorder.peak_bytes)
        known = {
            "allocated_bytes.all.current": self.recorder.live_bytes,
            "allocated_bytes.all.peak": answer,
            "reserved_bytes.all.current": answer,
            "reserved_bytes.all.peak": answer,
        }
        return _Zeros(known)

    def info(self, device: Any = None) -> tuple[int, int]:
        """`torch.cuda.mem_get_info`."""
        memory = torch.cuda.get_device_properties(0).total_memory
        return self.ask("mem_get_info", max(0, memory - self.recorder.live_bytes)), memory

    def reset_peak(self, device: Any = None) -> None:
        """`torch.cuda.reset_peak_memory_stats`."""
        self.recorder.peak_bytes = self.recorder.live_bytes
        self.recorder.writer.write("reset_peak")


QUESTIONS = Questions()


class _Zeros(dict):  # type: ignore[type-arg]
    def __missing__(self, key: str) -> int:
        return 0


def nothing(*args: Any, **kwargs: Any) -> None:
    """Does nothing."""


def always(value: Any) -> Callable[..., Any]:
    """A function of anything that returns `value`."""
    return lambda *args, **kwargs: value


def properties(card: Card) -> types.SimpleNamespace:
    """`torch.cuda.get_device_properties`."""
    return types.SimpleNamespace(
        name=card.name,
        major=card.capability[0],
        minor=card.capability[1],
        total_memory=card.memory,
        multi_processor_count=card.sms,
        warp_size=32,
        L2_cache_size=card.l2,
        gcnArchName="",
        is_integrated=0,
        is_multi_gpu_board=0,
        shared_memory_per_block=49152,
        shared_memory_per_block_optin=232448 if card.capability[0] >= 9 else 101376,
        shared_memory_per_multiprocessor=233472 if card.capability[0] >= 9 else 102400,
        max_threads_per_multi_processor=2048 if card.capability in ((7, 0), (8, 0), (9, 0), (10, 0)) else 1536,
        regs_per_multiprocessor=65536,
        uuid="GPU-00000000-0000-0000-0000-000000000000",
        pci_bus_id=0,
    )


def install(recorder: Recorder, card: Card, patches: Patches) -> None:
    """Makes `torch.cuda` and `torch.accelerator` answer for this card."""
    # Absent before PyTorch 2.10, which does without.
    getattr(torch._C, "_ensureCUDADeviceGuardSet", nothing)()
    cuda = torch.cuda
    questions = QUESTIONS
    questions.recorder, questions.count = recorder, 0
    half = card.capability >= (8, 0)
    patches.set_existing(
        cuda,
        is_available=always(True),
        device_count=always(1),
        current_device=always(0),
        get_device_capability=always(card.capability),
        get_device_name=always(card.name),
        get_device_properties=always(properties(card)),
        get_arch_list=always([f"sm_{card.capability[0]}{card.capability[1]}"]),
        is_bf16_supported=lambda including_emulation=True: half or including_emulation,
        is_tf32_supported=always(half),
        set_device=nothing,
        _lazy_init=nothing,
        init=nothing,
        is_initialized=always(True),
        _lazy_call=nothing,
        synchronize=questions.synchronize,
        empty_cache=questions.empty_cache,
        ipc_collect=nothing,
        memory_allocated=questions.allocated,
        max_memory_allocated=questions.max_allocated,
        memory_reserved=questions.reserved,
        memory_cached=questions.reserved,
        max_memory_reserved=questions.max_reserved,
        max_memory_cached=questions.max_reserved,
        memory_stats=questions.stats,
        mem_get_info=questions.info,
        reset_peak_memory_stats=questions.reset_peak,
        reset_max_memory_allocated=questions.reset_peak,
        reset_accumulated_memory_stats=nothing,
        Event=Event,
        Stream=Stream,
        current_stream=always(_DEFAULT),
        default_stream=always(_DEFAULT),
        stream=lambda stream: _on_stream(recorder, stream),
        device=DeviceGuard,
        device_of=DeviceGuard,
        set_stream=lambda stream: setattr(recorder.place, "stream", getattr(stream, "stream_id", 0)),
        is_current_stream_capturing=always(False),
        can_device_access_peer=always(True),
        manual_seed=nothing,
        manual_seed_all=nothing,
        seed=nothing,
        seed_all=nothing,
        initial_seed=always(0),
        get_rng_state=lambda *a: torch.zeros(16, dtype=torch.uint8, device="cpu"),
        set_rng_state=nothing,
        get_rng_state_all=lambda: [torch.zeros(16, dtype=torch.uint8, device="cpu")],
        set_rng_state_all=nothing,
        utilization=always(0),
        set_per_process_memory_fraction=nothing,
    )
    patches.set_existing(cuda.random, **{n: getattr(cuda, n) for n in ("get_rng_state", "set_rng_state")})
    patches.set_existing(cuda.memory, **{n: getattr(cuda, n) for n in _MEMORY if hasattr(cuda, n)})
    patches.set_existing(
        torch._C,
        _cuda_clearCublasWorkspaces=lambda: questions.write("clear_cublas_workspaces"),
        _cuda_resetPeakMemoryStats=questions.reset_peak,
        _cuda_emptyCache=questions.empty_cache,
        _cuda_getDeviceCount=always(1),
        _get_accelerator=always(torch.device("cuda")),
        _cuda_getCurrentRawStream=always(0),
        _cuda_isCurrentStreamCapturing=always(False),
        _cuda_synchronize=questions.synchronize,
    )
    _accelerator(patches)


_MEMORY = """memory_allocated max_memory_allocated memory_reserved max_memory_reserved memory_stats mem_get_info
    reset_peak_memory_stats empty_cache reset_accumulated_memory_stats""".split()

_DEFAULT = Stream()
_DEFAULT.stream_id = _DEFAULT.cuda_stream = Stream.made = 0


def _accelerator(patches: Patches) -> None:
    patches.set_existing(
        torch.accelerator,
        is_available=always(True),
        current_accelerator=always(torch.device("cuda")),
        device_count=always(1),
        current_device_index=always(0),
        current_device_idx=always(0),
        set_device_index=nothing,
        set_device_idx=nothing,
        # FSDP2 waits on it for parameters that it gathered ahead and nothing used, as beside adapters.
        current_stream=always(_DEFAULT),
        set_stream=torch.cuda.set_stream,
        synchronize=torch.cuda.synchronize,
        empty_cache=torch.cuda.empty_cache,
        memory_allocated=torch.cuda.memory_allocated,
        max_memory_allocated=torch.cuda.max_memory_allocated,
        memory_reserved=torch.cuda.memory_reserved,
        max_memory_reserved=torch.cuda.max_memory_reserved,
        reset_peak_memory_stats=torch.cuda.reset_peak_memory_stats,
        memory_stats=torch.cuda.memory_stats,
    )


@contextlib.contextmanager
def _on_stream(recorder: Recorder, stream: Any) -> Any:
    """`torch.cuda.stream`: operations are marked with the stream's number."""
    before = recorder.place.stream
    recorder.place.stream = getattr(stream, "stream_id", 0) or 0
    try:
        yield stream
    finally:
        recorder.place.stream = before
