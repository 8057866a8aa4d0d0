"""Storages that Python resizes, as FSDP does to let go of gathered parameters and to gather them again."""

from __future__ import annotations

from typing import Any

import torch

from vramscope.record.mode import Recorder
from vramscope.record.patches import Patches
from vramscope.record.tensors import META, CudaTensor, Storage, dress

FREED = -1


def install(recorder: Recorder, patches: Patches) -> None:
    """Replaces `UntypedStorage.resize_`."""
    real = torch.UntypedStorage.resize_

    def resize_(self: torch.UntypedStorage, size: int) -> Any:
        known = recorder.storages.get(self._cdata)
        storage = known() if known is not None else None
        before = self.nbytes()
        answer = real(self, size)
        if storage is not None and storage.recorder is recorder and size != before:
            resized(recorder, storage, self, size)
        return answer

    patches.set(torch.UntypedStorage, "resize_", resize_)


def resized(recorder: Recorder, storage: Storage, memory: torch.UntypedStorage, size: int) -> None:
    """Writes that the memory of `storage` is another of `size` bytes: made before the old is freed."""
    old, old_bytes = storage.id, storage.nbytes
    storage.id, storage.nbytes = FREED, size
    if size:
        storage.id = recorder.next_storage
        recorder.next_storage += 1
        recorder.counted(size)
        whole = torch.empty(0, dtype=torch.uint8, device=META).set_(memory, 0, (size,), (1,))
        recorder.write_made(torch.ops.aten.empty.memory_format, ([size],), {}, [dress(whole, CudaTensor, storage)])
    if old != FREED:
        recorder.gone(old, old_bytes)
