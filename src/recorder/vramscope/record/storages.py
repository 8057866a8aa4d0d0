"""Storages that Python resizes, as FSDP does to let go of gathered parameters and gather them again, and compares."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

from vramscope.record.mode import Recorder
from vramscope.record.patches import Patches
from vramscope.record.tensors import META, CudaTensor, Storage, dress


def install(recorder: Recorder, patches: Patches) -> None:
    """Replaces `UntypedStorage.resize_` and `data_ptr`."""
    real = torch.UntypedStorage.resize_
    address = torch.UntypedStorage.data_ptr

    def resize_(self: torch.UntypedStorage, size: int) -> Any:
        known = recorder.storages.get(self._cdata)
        storage = known() if known is not None else None
        before = self.nbytes()
        answer = real(self, size)
        if storage is not None and storage.recorder is recorder and size != before:
            resized(recorder, storage, self, size)
        return answer

    def data_ptr(self: torch.UntypedStorage) -> int:
        # Without data all are at 0, by which FSDP tells that nothing is there, and that two are the same.
        known = recorder.storages.get(self._cdata)
        if known is None or known() is None:
            return address(self)
        return self._cdata if self.nbytes() else 0

    patches.set(torch.UntypedStorage, "resize_", resize_)
    patches.set(torch.UntypedStorage, "data_ptr", data_ptr)


def resized(recorder: Recorder, storage: Storage, memory: torch.UntypedStorage, size: int) -> None:
    """Writes that the memory of `storage` is another of `size` bytes: made before the old is freed.

    Memory of no bytes has an id too: views, parameters and reasons refer to a storage while nothing is in it.
    """
    old, old_bytes = storage.id, storage.nbytes
    storage.id, storage.nbytes = recorder.next_storage, size
    recorder.next_storage += 1
    recorder.counted(size)
    # Autograd's threads have no function mode, which would tell that `meta` is asked for: the mode would take it for
    # the card, and write memory that nobody has between this id and its declaration.
    with _disable_current_modes(), torch._C.DisableTorchFunction():
        whole = torch.empty(0, dtype=torch.uint8, device=META).set_(memory, 0, (size,), (1,))
    recorder.write_made(torch.ops.aten.empty.memory_format, ([size],), {}, [dress(whole, CudaTensor, storage)])
    recorder.gone(old, old_bytes)
