"""One rank of many: process groups that talk to nobody, and collectives, which are written down and done at once."""

from __future__ import annotations

import functools
import inspect
import os
import pickle
import sys
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch.utils._python_dispatch import _disable_current_modes

from vramscope.record.patches import Patches
from vramscope.record.shaped import Handler, handles
from vramscope.record.tensors import HostTensor, is_emulated

if TYPE_CHECKING:
    from vramscope.record.mode import Recorder

# Operations of `c10d` that return the tensors that they write and a handle to wait on, and those that return the
# handle alone (`torch/csrc/distributed/c10d/Ops.cpp`).
TENSORS_AND_WORK = """broadcast_ allreduce_ allgather_ reduce_scatter_ _reduce_scatter_base_ _allgather_base_ scatter_
    alltoall_""".split()
WORK = """send recv_ recv_any_source_ reduce_ gather_ alltoall_base_ barrier monitored_barrier_ allreduce_coalesced_
    allgather_coalesced_ allgather_into_tensor_coalesced_ reduce_scatter_tensor_coalesced_""".split()


def install(patches: Patches) -> None:
    """Makes `init_process_group` join a group of ranks of which this is the first."""
    if not dist.is_available():
        return
    real = dist.init_process_group
    believe = functools.cache(lambda: _believe(patches))

    @functools.wraps(real)
    def init_process_group(*args: Any, **kwargs: Any) -> None:
        """Joins a group that talks to nobody."""
        from torch.testing._internal.distributed.fake_pg import FakeStore

        asked = inspect.signature(real).bind(*args, **kwargs).arguments
        rank, world = (asked.get(name, -1) for name in ("rank", "world_size"))
        believe()
        real(
            backend="fake",
            rank=rank if rank >= 0 else int(os.environ.get("RANK", 0)),
            world_size=world if world > 0 else int(os.environ.get("WORLD_SIZE", 1)),
            store=FakeStore(),
        )

    homes = [dist, dist.distributed_c10d, sys.modules.get("torch.distributed.device_mesh")]
    for module in homes:
        patches.set_existing(module, init_process_group=init_process_group)

    def spawn(function: Any, args: tuple = (), nprocs: int = 1, **kwargs: Any) -> None:
        """Runs the first of the processes that a script starts, here."""
        function(0, *args)

    patches.set(torch.multiprocessing, "spawn", spawn)


def _believe(patches: Patches) -> None:
    """Lets what works on a group of ranks take emulated tensors, and the group for NCCL's."""
    import torch.nn.parallel.distributed as parallel
    from torch._subclasses import fake_tensor
    from torch.distributed.tensor import DTensor

    # C++ has the device of what it holds.
    patches.set(DTensor, "device", property(lambda x: x._local_tensor.device))
    patches.set(DTensor, "is_meta", property(lambda x: x._local_tensor.device.type == "meta"))
    patches.set(DTensor, "is_cuda", property(lambda x: x._local_tensor.device.type == "cuda"))

    # What an operation on `DTensor`s makes is asked of a `FakeTensorMode`, which would start the GPU first.
    patches.set_existing(fake_tensor, init_gpu_context=lambda device: None)

    # It gathers the shapes of all ranks' parameters, which nobody sends.
    patches.set_existing(parallel, _verify_param_shape_across_processes=lambda *args, **kwargs: None)
    _buckets(patches, parallel.DistributedDataParallel)
    patches.set_existing(dist, barrier=lambda *args, **kwargs: None, get_backend=lambda group=None: "nccl")
    patches.set_existing(dist.distributed_c10d, get_backend=lambda group=None: "nccl")
    for module in (dist, dist.distributed_c10d):
        patches.set_existing(
            module, all_gather_object=_all_gather, gather_object=_gather, broadcast_object_list=_broadcast
        )
    _offloaded(patches)


# Objects travel as bytes, which nobody sends: the other ranks are taken to have what this one has.


def _all_gather(object_list: list[Any], obj: Any, group: Any = None) -> None:
    packed = pickle.dumps(obj)
    object_list[:] = [pickle.loads(packed) for _ in object_list]


def _gather(obj: Any, object_gather_list: list[Any] | None = None, *args: Any, **kwargs: Any) -> None:
    if object_gather_list is not None:
        _all_gather(object_gather_list, obj)


def _broadcast(object_list: list[Any], *args: Any, **kwargs: Any) -> None:
    pass


def _offloaded(patches: Patches) -> None:
    """Lets FSDP2 keep gradients on the host beside small parameters, which hold data where the gradients do not."""
    try:
        from torch.distributed.fsdp._fully_shard._fsdp_param import FSDPParam
    except ImportError:
        return
    real = FSDPParam.to_sharded_dtensor

    def to_sharded_dtensor(self: Any, tensor: torch.Tensor) -> Any:
        kept = getattr(getattr(self, "sharded_param", None), "_local_tensor", None)
        if type(tensor) is HostTensor and kept is not None and not is_emulated(kept):
            # C++ takes a tensor without data to be on another device than its parameter.
            with _disable_current_modes():
                tensor = torch.zeros(tensor.shape, dtype=tensor.dtype)
        return real(self, tensor)

    patches.set(FSDPParam, "to_sharded_dtensor", to_sharded_dtensor)


def _buckets(patches: Patches, kind: Any) -> None:
    """Lets DDP take each bucket of gradients for summed: its reducer asks a handle for what it wrote."""
    make, register = kind.__init__, kind.register_comm_hook

    def summed(state: Any, bucket: Any) -> Any:
        dist.all_reduce(bucket.buffer())
        future: Any = torch.futures.Future()
        future.set_result(bucket.buffer())
        return future

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        make(self, *args, **kwargs)
        register(self, None, summed)

    # It looks at the annotations themselves, which are words here.
    summed.__annotations__ = {"bucket": dist.GradBucket, "return": torch.futures.Future[torch.Tensor]}

    patches.set(kind, "__init__", init)
    patches.set(kind, "register_comm_hook", lambda self, state, hook: None)


def variables(world: int, rank: int = 0, per_host: int | None = None) -> dict[str, str]:
    """What `torchrun` sets for one of so many ranks, `per_host` on each host.

    The rank is the first of its host: the card that it trains on is the one that is emulated.
    """
    per_host = per_host or world
    return dict(
        RANK=str(rank),
        LOCAL_RANK="0",
        WORLD_SIZE=str(world),
        LOCAL_WORLD_SIZE=str(per_host),
        GROUP_RANK=str(rank // per_host),
        GROUP_WORLD_SIZE=str(-(-world // per_host)),
        ROLE_RANK=str(rank),
        ROLE_WORLD_SIZE=str(world),
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT="29500",
    )


def _collective(with_tensors: bool) -> Handler:
    def answer(r: Recorder, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        if not str(func).startswith("c10d."):
            return NotImplemented
        given = [a for a in args if not isinstance(a, torch.ScriptObject)]
        if any(is_emulated(x) for x in _flat(args)):
            r.write_made(func, tuple(given), kwargs, [])
        work = torch._C._distributed_c10d.FakeWork().boxed()
        return (args[0], work) if with_tensors else work

    return answer


def _flat(items: Any) -> list[torch.Tensor]:
    found: list[torch.Tensor] = []
    for x in items:
        if isinstance(x, torch.Tensor):
            found.append(x)
        elif isinstance(x, (list, tuple)):
            found += _flat(x)
    return found


handles(*TENSORS_AND_WORK)(_collective(True))
handles(*WORK)(_collective(False))
