"""Parts of PyTorch and of libraries on it that look at a device, made to take the emulated card."""

from __future__ import annotations

from typing import Any

import torch
import torch.utils.checkpoint
import torch.utils.data

from vramscope.record.patches import Patches
from vramscope.record.tensors import CUDA, CudaTensor, Emulated, HostTensor

DEVICES = ["cuda", "cpu", "meta"]


def install(patches: Patches) -> None:
    """Replaces what needs it."""
    _optimizers(patches)
    patches.set_existing(
        torch.utils.checkpoint,
        get_device_states=lambda *args: ([], []),
        set_device_states=lambda *args, **kwargs: None,
    )
    _data_loader(patches)


def _optimizers(patches: Patches) -> None:
    import torch.nn.utils.clip_grad as clip
    import torch.optim.optimizer as optimizer
    import torch.utils._foreach_utils as foreach

    real = foreach._group_tensors_by_device_and_dtype

    def group(lists: Any, with_indices: bool = False) -> Any:
        """Groups by the device that Python sees."""
        groups = real(lists, with_indices)
        return {(_seen(device, content), dtype): content for (device, dtype), content in groups.items()}

    for module in (foreach, optimizer, clip):
        patches.set_existing(module, _group_tensors_by_device_and_dtype=group)
        patches.set_existing(
            module,
            _get_foreach_kernels_supported_devices=lambda: DEVICES,
            _get_fused_kernels_supported_devices=lambda: DEVICES,
        )
    kinds = [*optimizer._foreach_supported_types, CudaTensor, HostTensor]
    patches.set(optimizer, "_foreach_supported_types", kinds)


def _seen(device: torch.device, content: Any) -> torch.device:
    """Device that Python sees for a group of tensors that C++ has on `device`."""
    for tensors in content[0]:
        for x in tensors:
            if isinstance(x, CudaTensor):
                return CUDA
            if isinstance(x, Emulated):
                return x.home
    return device


def _data_loader(patches: Patches) -> None:
    loader = torch.utils.data.DataLoader
    real = loader.__init__

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        """Loads in this process: what workers hold is not on the card."""
        kwargs = dict(kwargs)
        if kwargs.get("num_workers"):
            kwargs.update(num_workers=0, prefetch_factor=None, persistent_workers=False, timeout=0)
            kwargs.pop("multiprocessing_context", None)
        kwargs["pin_memory"] = False
        real(self, *args, **kwargs)

    patches.set(loader, "__init__", init)
