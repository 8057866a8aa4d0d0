"""A recording from its first to its last line."""

from __future__ import annotations

import gc
import os
import platform
import sys
import time
from collections.abc import Callable
from importlib import metadata
from types import TracebackType
from typing import Any

import torch
import torch._dynamo  # it looks at functions of `torch.cuda` when first imported, which must then be the real ones

from vramscope.record import (
    autocast,
    bitsandbytes,
    cards,
    checkpoints,
    collectives,
    composites,
    cuda,
    kernels,
    libraries,
    refusals,
    saving,
    storages,
    zero,
)
from vramscope.record.cards import Card
from vramscope.record.errors import Finished, RecordingError
from vramscope.record.imports import OnImport
from vramscope.record.methods import MetaRequests, Methods
from vramscope.record.mode import Recorder
from vramscope.record.patches import Patches
from vramscope.record.phases import Phases
from vramscope.record.writer import VERSION, Writer

LIBRARIES = """torch transformers accelerate peft trl ms-swift llamafactory axolotl datasets timm torchvision diffusers
    liger-kernel deepspeed triton flash-attn bitsandbytes""".split()
DEFAULT_CARD = "h100"


class recording:
    """Records what runs within `with recording("run.vram.gz"):` on an emulated card.

    Models, optimizers and batches must be made within. `steps` ends the block early, after so many
    optimizer steps; without it the block runs to its end.
    """

    def __init__(
        self,
        path: str,
        gpu: str = DEFAULT_CARD,
        steps: int | None = None,
        command: list[str] | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        """A recording to the file at `path`, on the card named `gpu`.

        `progress` is called after each step with its number and the operations so far.
        """
        self.progress = progress
        self.path = path
        self.card = cards.find(gpu)
        self.steps = steps
        self.command = command
        self.done = 0

    def __enter__(self) -> recording:
        """Makes PyTorch believe in the card."""
        if _ACTIVE:
            raise RecordingError("A recording is already running; end it before another begins.")
        _ACTIVE.append(self)
        self.began = time.monotonic()
        self.writer = Writer(self.path)
        self.recorder = Recorder(self.writer)
        self.patches = Patches()
        self.phases = Phases(self.recorder, self.patches, self.steps, self.progress)
        self._header(self.card)
        try:
            self._install()
        except BaseException:
            self._restore()
            raise
        return self

    def _install(self) -> None:
        casts = autocast.Casts()
        casts.on_keep = lambda copy: self.phases.reasons.tell(copy, "autocast")
        cuda.install(self.recorder, self.card, self.patches)
        self.overrides = [autocast.install(casts), composites.install(self.card.capability)]
        self.patches.set(torch, "clear_autocast_cache", casts.clear)
        libraries.install(self.patches)
        collectives.install(self.patches)
        kernels.install(self.recorder, self.card, self.patches)
        Methods(self.recorder, self.patches).install()
        checkpoints.weights(self.patches)
        storages.install(self.recorder, self.patches)
        refusals.compiler(self.recorder, self.patches)
        self.watcher = OnImport(
            {
                "transformers.modeling_utils": lambda m: checkpoints.patch(m, self.patches),
                "timm.models._builder": lambda m: checkpoints.timm(m, self.patches),
                "torchvision.models._api": lambda m: checkpoints.torchvision(m, self.patches),
                "safetensors.torch": lambda m: saving.patch(m, self.patches),
                **bitsandbytes.actions(self.patches),
                **zero.actions(self.phases, self.patches),
            }
        )
        self._observe()
        self.phases.install()
        self.modes = [MetaRequests(self.recorder), self.recorder]
        for mode in self.modes:
            mode.__enter__()

    def _observe(self) -> None:
        """Sees how PyTorch counts references when it may add gradients in place."""
        trial = Recorder(Writer(os.devnull))
        with torch.enable_grad(), trial:
            trial.counting.observe(torch.zeros(4, device="cuda", requires_grad=True))
        trial.writer.close()
        self.recorder.counting.last = trial.counting.last

    def _header(self, card: Card) -> None:
        versions = {"python": platform.python_version()}
        for name in LIBRARIES:
            try:
                versions[name] = metadata.version(name)
            except metadata.PackageNotFoundError:
                continue
        versions["torch"] = torch.__version__
        self.versions = versions
        self.join(int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1)))

    def join(self, rank: int, world: int) -> None:
        """Says which of how many ranks is recorded; again if a launcher tells it later."""
        card = self.card
        self.writer.header(
            format="vramscope-recording",
            version=VERSION,
            recorder=_own_version(),
            versions=self.versions,
            gpu=dict(name=card.name, capability=list(card.capability), memory=card.memory, sms=card.sms),
            settings=settings(),
            rank=rank,
            world=world,
            command=self.command,
            steps=self.steps,
        )

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        """Writes the last lines; swallows the end that `steps` asked for."""
        self.recorder.finished = True
        finished = kind is not None and issubclass(kind, Finished)
        for mode in reversed(self.modes):
            mode.__exit__(None, None, None)
        if finished:
            del error, trace
        self.close()
        self._restore()
        return finished

    def close(self) -> None:
        """Writes assumptions and the end."""
        for (what, how, module), count in sorted(self.recorder.noted.counts.items(), key=str):
            self.writer.write("assumed", what=what, how=how, mod=module, count=count)
        if self.phases.updated:
            self.phases.last_step = None
            self.phases.end_step()
        self.done = self.phases.done
        self.writer.close(
            steps=self.done, storages=self.recorder.next_storage, seconds=round(time.monotonic() - self.began, 1)
        )

    def _restore(self) -> None:
        self.phases.remove()
        if hasattr(self, "watcher"):
            self.watcher.remove()
        self.patches.undo()
        for library in getattr(self, "overrides", []):
            library._destroy()
        self.overrides = []
        if not self.writer.closed:
            self.writer.close(steps=0, storages=self.recorder.next_storage, seconds=0.0)
        _ACTIVE.clear()
        gc.collect()


_ACTIVE: list[Any] = []


def _own_version() -> str:
    return getattr(sys.modules.get("vramscope"), "__version__", "0")


def settings() -> dict[str, Any]:
    """Switches of PyTorch on which kernels or the allocator depend."""
    backends = torch.backends
    sdp = {
        "flash": torch._C._get_flash_sdp_enabled(),
        "efficient": torch._C._get_mem_efficient_sdp_enabled(),
        "math": torch._C._get_math_sdp_enabled(),
        "cudnn": torch._C._get_cudnn_sdp_enabled(),
    }
    alloc = os.environ.get("PYTORCH_CUDA_ALLOC_CONF", os.environ.get("PYTORCH_ALLOC_CONF", ""))
    return dict(
        allow_tf32=torch._C._get_cublas_allow_tf32(),
        cudnn=backends.cudnn.enabled,
        cudnn_benchmark=backends.cudnn.benchmark,
        deterministic=torch.are_deterministic_algorithms_enabled(),
        alloc_conf=alloc,
        cublas_workspace=os.environ.get("CUBLAS_WORKSPACE_CONFIG", ""),
        cublaslt_workspace=os.environ.get("CUBLASLT_WORKSPACE_SIZE", ""),
        sdp=[name for name, on in sdp.items() if on],
    )
