"""The host's pace of DDP, ZeRO-1 and FSDP2, and what an offloaded step does on the host.

One GPU is enough. DDP runs over NCCL with one rank, so that its hooks and calls are real; FSDP2 and ZeRO-1 run as one of
two ranks over PyTorch's fake process group, which returns at once, so that only Python and dispatch count. Chains of
tiny blocks are run with and without; slopes over the number of blocks and of parameters in a block are kept.
Linear maps that two GPUs share are those of transformers, as one of two ranks of the fake process group too.
usage: parallel_pace.py OUT.json [PART…]: all parts, or those that are named"""
import gc
import json
import os
import sys
import time
import traceback

import torch
import torch.distributed as dist
import torch.nn as nn

dev, ns = "cuda", time.perf_counter_ns
out, errors = {}, []
W = 64


def median(values):
    return sorted(values)[len(values) // 2]


def part(name, f):
    if sys.argv[2:] and name not in sys.argv[2:]:
        return
    try:
        value = f()
        out[name] = value
        print(name, value, flush=True)
    except Exception:
        errors.append(name)
        traceback.print_exc()


def issued(f, n=31):
    times = []
    for _ in range(n + 5):
        torch.cuda.synchronize()
        t = ns()
        f()
        times.append((ns() - t) / 1e3)
    return round(median(times[5:]), 2)


class Block(nn.Module):
    def __init__(self, parameters):
        super().__init__()
        self.scales = nn.ParameterList([nn.Parameter(torch.ones(W, W, device=dev)) for _ in range(parameters)])

    def forward(self, x):
        for p in self.scales:
            x = x * p
        return x


class Chain(nn.Module):
    def __init__(self, blocks, parameters):
        super().__init__()
        self.blocks = nn.ModuleList([Block(parameters) for _ in range(blocks)])

    def forward(self, x):
        for b in self.blocks:
            x = b(x)
        return x.sum()


def passes(model, n=15):
    """Median microseconds of forward and backward until the calls return."""
    x = torch.ones(W, W, device=dev)
    forward, backward = [], []
    for _ in range(n + 4):
        gc.disable()
        torch.cuda.synchronize()
        t = ns()
        loss = model(x)
        t1 = ns()
        torch.cuda.synchronize()
        t2 = ns()
        loss.backward()
        t3 = ns()
        torch.cuda.synchronize()
        gc.enable()
        forward.append((t1 - t) / 1e3)
        backward.append((t3 - t2) / 1e3)
        for p in model.parameters():
            p.grad = None
    return [round(median(v[4:]), 1) for v in (forward, backward)]


def grid(wrap):
    """(blocks, parameters): plain and wrapped forward and backward."""
    rows = []
    for blocks, parameters in ((4, 2), (12, 2), (4, 12), (12, 12)):
        plain = passes(Chain(blocks, parameters))
        rows.append(dict(blocks=blocks, parameters=parameters, plain=plain, wrapped=passes(wrap(Chain(blocks, parameters)))))
    return rows


def calls(n=6):
    x = torch.zeros(1 << 16, device=dev, dtype=torch.bfloat16)
    ops = dict(
        all_reduce=lambda: dist.all_reduce(x),
        all_gather=lambda: dist.all_gather_into_tensor(x, x.clone()),
        reduce_scatter=lambda: dist.reduce_scatter_tensor(x, x.clone()),
        broadcast=lambda: dist.broadcast(x, 0),
        broadcast_async=lambda: dist.broadcast(x, 0, async_op=True).wait(),
        clone=lambda: x.clone(),
    )
    result = {}
    for name, op in ops.items():
        def many(k):
            def f():
                for _ in range(k):
                    op()
            return f
        result[name] = round((issued(many(n)) - issued(many(1))) / (n - 1), 2)
    return result


def updates(make_parameters, optimizers):
    """Per tensor and per call: AdamW over 16 and 96 small tensors."""
    result = {}
    for name, make in optimizers.items():
        times = []
        for count in (16, 96):
            parameters = make_parameters(count)
            o = make(parameters)

            def f():
                o.step()

            for p in parameters:
                p.grad = torch.ones_like(p)
            times.append(issued(f, 9))
        each = (times[1] - times[0]) / 80
        result[name] = dict(per_tensor=round(each, 2), per_call=round(times[0] - 16 * each, 1))
    return result


OPTIMIZERS = dict(
    adamw=lambda p: torch.optim.AdamW(p, lr=1e-6, foreach=True),
    adamw_fused=lambda p: torch.optim.AdamW(p, lr=1e-6, fused=True),
    adamw_loop=lambda p: torch.optim.AdamW(p, lr=1e-6, foreach=False, fused=False),
    sgd=lambda p: torch.optim.SGD(p, lr=1e-6),
    sgdm=lambda p: torch.optim.SGD(p, lr=1e-6, momentum=0.9),
)


def copies():
    """Pinned memory to the GPU and back, GB/s by bytes; and pageable."""
    rows = []
    for kib in (64, 1024, 16384, 262144, 1048576):
        n = kib * 1024
        host = torch.empty(n, dtype=torch.uint8, pin_memory=True)
        card = torch.empty(n, dtype=torch.uint8, device=dev)
        row = dict(bytes=n)
        for name, op in (("to_device_us", lambda: card.copy_(host, non_blocking=True)), ("to_host_us", lambda: host.copy_(card, non_blocking=True))):
            times = []
            for _ in range(7):
                a, b = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                torch.cuda.synchronize()
                a.record()
                op()
                b.record()
                torch.cuda.synchronize()
                times.append(a.elapsed_time(b) * 1e3)
            row[name] = round(median(times), 1)
        rows.append(row)
        host = card = None
    return rows


def host_updates():
    """Optimizers on the host, one thread as torchrun sets it: ns an element."""
    torch.set_num_threads(1)
    result = {}
    for dtype in (torch.bfloat16, torch.float32):
        for name in ("adamw_fused", "adamw"):
            p = nn.Parameter(torch.ones(1 << 25, dtype=dtype))
            p.grad = torch.ones_like(p)
            o = OPTIMIZERS[name]([p])
            o.step()
            times = []
            for _ in range(3):
                t = ns()
                o.step()
                times.append((ns() - t) / p.numel())
            result["%s %s" % (name, str(dtype)[6:])] = round(median(times), 3)
    return result


os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
os.environ.setdefault("MASTER_PORT", "29517")
torch.cuda.set_device(0)
part("copies", copies)
part("host updates", host_updates)
part("whole tensors", lambda: updates(lambda n: [nn.Parameter(torch.ones(W, W, device=dev)) for _ in range(n)], OPTIMIZERS))
dist.init_process_group("nccl", rank=0, world_size=1, device_id=torch.device("cuda", 0))
from torch.nn.parallel import DistributedDataParallel as DDP  # noqa: E402

part("calls", calls)
for view in (False, True):
    part("ddp view" if view else "ddp", lambda: grid(lambda m: DDP(m, device_ids=[0], gradient_as_bucket_view=view)))
# a bucket for nearly every parameter: 16 KiB each
part("ddp small buckets", lambda: grid(lambda m: DDP(m, device_ids=[0], bucket_cap_mb=0.016)))
dist.destroy_process_group()

from torch.testing._internal.distributed.fake_pg import FakeStore  # noqa: E402

dist.init_process_group("fake", rank=0, world_size=2, store=FakeStore())
from torch.distributed.device_mesh import init_device_mesh  # noqa: E402
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard  # noqa: E402
from torch.distributed.optim import ZeroRedundancyOptimizer  # noqa: E402

mesh = init_device_mesh("cuda", (2,))


def sharded(reshard, mp):
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32) if mp else MixedPrecisionPolicy()

    def wrap(model):
        for b in model.blocks:
            fully_shard(b, mesh=mesh, reshard_after_forward=reshard, mp_policy=policy)
        return fully_shard(model, mesh=mesh, reshard_after_forward=reshard, mp_policy=policy)

    return wrap


part("fsdp", lambda: grid(sharded(True, False)))
part("fsdp_no_reshard", lambda: grid(sharded(False, False)))
part("fsdp mp", lambda: grid(sharded(True, True)))


def shards(n):
    return list(fully_shard(Block(n), mesh=mesh).parameters())


part("sharded tensors", lambda: updates(shards, OPTIMIZERS))
part("zero1", lambda: updates(lambda n: [nn.Parameter(torch.ones(W, W, device=dev)) for _ in range(n)], {
    "adamw": lambda p: ZeroRedundancyOptimizer(p, optimizer_class=torch.optim.AdamW, lr=1e-6),
    "adamw_fused": lambda p: ZeroRedundancyOptimizer(p, optimizer_class=torch.optim.AdamW, lr=1e-6, fused=True)}))


class Maps(nn.Module):
    """So many maps that share their outputs, then one that shares its inputs."""

    def __init__(self, columns):
        super().__init__()
        self.columns = nn.ModuleList([nn.Linear(W, W, bias=False, device=dev) for _ in range(columns)])
        self.row = nn.Linear(W, W, bias=False, device=dev)

    def forward(self, x):
        return self.row(sum(map(lambda map: map(x), self.columns)))


class MapChain(nn.Module):
    def __init__(self, blocks, columns):
        super().__init__()
        self.blocks = nn.ModuleList([Maps(columns) for _ in range(blocks)])

    def forward(self, x):
        for b in self.blocks:
            x = b(x)
        return x.sum()


def shared_maps():
    """(blocks, columns): forward and backward of whole maps and of shared ones."""
    from transformers.distributed.tensor_parallel import ColwiseParallel, RowwiseParallel

    def shared(model):
        for b in model.blocks:
            for map, style in [(map, ColwiseParallel()) for map in b.columns] + [(b.row, RowwiseParallel())]:
                style.shard_param(map, "weight", mesh)
                style.install_forward(map, mesh)
        return model

    rows = []
    for blocks, columns in ((4, 1), (12, 1), (4, 3), (12, 3)):
        rows.append(dict(blocks=blocks, columns=columns, plain=passes(MapChain(blocks, columns)), wrapped=passes(shared(MapChain(blocks, columns)))))
    return rows


part("shared maps", shared_maps)
out["errors"] = errors
json.dump(out, open(sys.argv[1], "w"), indent=1)
