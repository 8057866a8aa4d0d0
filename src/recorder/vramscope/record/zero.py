"""DeepSpeed: its engine's phases, its compiled operations, and what its launcher and its search for a card find."""

from __future__ import annotations

import os
from types import ModuleType, SimpleNamespace
from typing import Any

import torch
from torch import _utils
from torch.utils._python_dispatch import _disable_current_modes

from vramscope.record import collectives, refusals
from vramscope.record.kernels import Launches
from vramscope.record.patches import Patches
from vramscope.record.phases import Phases
from vramscope.record.tensors import META, HostTensor, dress, is_emulated


def actions(phases: Phases, patches: Patches) -> dict[str, Any]:
    """Functions to call on modules of DeepSpeed once they are imported."""
    launches = Launches(phases.recorder)
    return {
        "deepspeed.ops.op_builder.builder": lambda module: operations(module, launches, patches),
        "deepspeed.comm.comm": lambda module: launcher(module, patches),
        "deepspeed.accelerator.real_accelerator": lambda module: accelerator(module, patches),
        "deepspeed.accelerator.abstract_accelerator": lambda module: pinned(module, phases, patches),
        "deepspeed.runtime.engine": lambda module: engine(module, phases, patches),
    }


def launcher(module: ModuleType, patches: Patches) -> None:
    """Sets what the launcher `deepspeed` sets, for one rank, where DeepSpeed would ask MPI."""

    def alone(*args: Any, **kwargs: Any) -> None:
        os.environ.update(collectives.variables(1))

    patches.set_existing(module, mpi_discovery=alone)


def accelerator(module: ModuleType, patches: Patches) -> None:
    """Forgets the accelerator that was found before the card was there."""
    patches.set_existing(module, ds_accelerator=None)


def pinned(module: ModuleType, phases: Phases, patches: Patches) -> None:
    """Lets pinned memory hold no data, however little: gradients in it are of parameters that hold none."""

    def pin_memory(self: Any, tensor: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        """A tensor of the host without data."""
        if is_emulated(tensor):
            return tensor
        with _disable_current_modes():
            plain = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=META)
        storage = phases.recorder.storage(plain, HostTensor, tensor.untyped_storage().nbytes())
        return dress(plain, HostTensor, storage)

    patches.set(module.DeepSpeedAccelerator, "pin_memory", pin_memory)


def engine(module: ModuleType, phases: Phases, patches: Patches) -> None:
    """Marks the engine's own backward and update, which do more than autograd's and the optimizer's."""
    kind = module.DeepSpeedEngine
    configure, backward, update = kind._configure_optimizer, kind.backward, kind._take_model_step

    def configure_optimizer(self: Any, *args: Any, **kwargs: Any) -> None:
        """An update without gradients that makes the states, which is no step."""
        phases.in_optimizer += 1
        try:
            configure(self, *args, **kwargs)
        finally:
            phases.in_optimizer -= 1
            phases.updated = False

    def run_backward(self: Any, loss: Any, *args: Any, **kwargs: Any) -> Any:
        with phases.backward(loss):
            return backward(self, loss, *args, **kwargs)

    def take_model_step(self: Any, *args: Any, **kwargs: Any) -> None:
        """An update, after which the engine has let go of gradients."""
        optimizer = self.basic_optimizer or self.optimizer
        for group in optimizer.param_groups:
            for x in group["params"]:
                if phases.reasons.number(x) is None:
                    phases.reasons.tell(x, "state", name="master")
        with phases.update(type(optimizer).__name__):
            update(self, *args, **kwargs)
        if phases.updated:
            phases.end_step()

    patches.set(kind, "_configure_optimizer", configure_optimizer)
    patches.set(kind, "backward", run_backward)
    patches.set(kind, "_take_model_step", take_model_step)


def operations(module: ModuleType, launches: Launches, patches: Patches) -> None:
    """Stands in for compiled operations that allocate nothing; others are refused when they are called for."""

    def fused_adam(chunk: int, flag: Any, lists: list[list[Any]], *numbers: Any) -> None:
        """One kernel over gradients, parameters and both states (`csrc/adam/multi_tensor_adam.cu`)."""
        launches.write("multi_tensor_adam", (), tuple(x for tensors in lists for x in tensors), {})

    def nothing(*args: Any, **kwargs: Any) -> None:
        """Changes tensors on the host, whose values nobody knows."""

    known = {
        "fused_adam": SimpleNamespace(multi_tensor_adam=fused_adam),
        "cpu_adam": SimpleNamespace(create_adam=nothing, adam_update=nothing, destroy_adam=nothing),
        "utils": SimpleNamespace(flatten=_utils._flatten_dense_tensors, unflatten=_utils._unflatten_dense_tensors),
    }

    def load(self: Any, verbose: bool = True) -> Any:
        if self.name not in known:
            refusals.refuse(f"DeepSpeed's operation {self.name}", "Record without what calls it.")()
        return known[self.name]

    patches.set(module.OpBuilder, "load", load)
