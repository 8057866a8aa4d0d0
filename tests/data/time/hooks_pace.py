"""The host's pace of DeepSpeed's and FSDP1's hooks, on two GPUs over NCCL: chains of tiny blocks with and without.

Every figure is a difference to the same chain without the library. What was called how often is counted in a step of its own;
least squares over relative errors, with no figure below 0, give what each call takes. numpy is needed.

usage: RANK=… LOCAL_RANK=… WORLD_SIZE=2 MASTER_ADDR=… MASTER_PORT=… python3 hooks_pace.py OUT.json, once for each GPU"""
import gc
import itertools
import json
import os
import sys
import time

import deepspeed
import numpy as np
import torch
import torch.distributed as dist
import torch.nn as nn
from deepspeed.runtime.zero.partition_parameters import ZeroParamStatus
from deepspeed.runtime.zero.partitioned_param_coordinator import PartitionedParameterCoordinator as Coordinator
from deepspeed.runtime.zero.stage3 import DeepSpeedZeroOptimizer_Stage3 as Stage3
from deepspeed.runtime.zero.stage_1_and_2 import DeepSpeedZeroOptimizer as Stages12
from torch.distributed.fsdp import BackwardPrefetch, FullyShardedDataParallel, MixedPrecision
from torch.distributed.fsdp.wrap import ModuleWrapPolicy

ns = time.perf_counter_ns
rank = int(os.environ["LOCAL_RANK"])
dev = f"cuda:{rank}"
W = 64
GRID = ((4, 2), (12, 2), (4, 12), (12, 12))
ONE_BUCKET, SMALL_BUCKETS = 10**6, 2 * W * W + 1


def median(values):
    return sorted(values)[len(values) // 2]


class Scale(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(W, W, device=dev))

    def forward(self, x):
        return x * self.weight


class Block(nn.Module):
    def __init__(self, parameters):
        super().__init__()
        self.scales = nn.ModuleList([Scale() for _ in range(parameters)])

    def forward(self, x):
        for scale in self.scales:
            x = scale(x)
        return x


class Chain(nn.Module):
    def __init__(self, blocks, parameters):
        super().__init__()
        self.blocks = nn.ModuleList([Block(parameters) for _ in range(blocks)])

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x.sum()


def together():
    torch.cuda.synchronize()
    dist.barrier()
    torch.cuda.synchronize()


def inputs():
    return torch.ones(W, W, device=dev, dtype=torch.bfloat16)


def timed(forward, backward, step, n=12, warm=5):
    """Median microseconds of forward and backward until the calls return, and of the update until the GPU is done."""
    x, out = inputs(), [[], [], []]
    for _ in range(n + warm):
        gc.disable()
        together()
        t0 = ns()
        loss = forward(x)
        t1 = ns()
        together()
        t2 = ns()
        backward(loss)
        t3 = ns()
        together()
        t4 = ns()
        step()
        torch.cuda.synchronize()
        t5 = ns()
        gc.enable()
        for times, taken in zip(out, (t1 - t0, t3 - t2, t5 - t4)):
            times.append(taken / 1e3)
    return [round(median(times[warm:]), 1) for times in out]


counts = {}


def count(what, n=1):
    counts[what] = counts.get(what, 0) + n


def counting():
    """Counts calls from here on; returns what is to be put back."""
    replaced = []

    def put(owner, name, make):
        old = getattr(owner, name)
        replaced.append((owner, name, old))
        setattr(owner, name, make(old))

    def fetch(old):
        def run(self, module, forward):
            count("forward" if forward else "backward")
            return old(self, module, forward)

        return run

    def gather(old):
        def run(self, params, *rest, **more):
            away = sum(p.ds_status == ZeroParamStatus.NOT_AVAILABLE for p in params)
            if away:
                count("gathers")
                count("gathered", away)
            return old(self, params, *rest, **more)

        return run

    def scatter(old):
        def run(self, dtype):
            if self.ipg_buckets[dtype].params:
                count("buckets")
            return old(self, dtype)

        return run

    def reduce(old):
        def run(self, comm_dtype=None):
            buckets = self.ipg_buckets.values() if comm_dtype is None else [self.ipg_buckets[comm_dtype]]
            count("buckets", sum(bool(b.params) for b in buckets))
            return old(self, comm_dtype=comm_dtype)

        return run

    put(Coordinator, "fetch_sub_module", fetch)
    put(Coordinator, "_PartitionedParameterCoordinator__all_gather_params_", gather)
    put(Stage3, "_DeepSpeedZeroOptimizer_Stage3__reduce_and_partition_ipg_grads", scatter)
    put(Stages12, "reduce_ipg_grads", reduce)
    return replaced


rows = []


def row(**figures):
    rows.append(figures)
    if rank == 0:
        print(figures, flush=True)


def adamw(model):
    return torch.optim.AdamW(model.parameters(), lr=1e-6, fused=True)


def plain(blocks, parameters):
    model = Chain(blocks, parameters).bfloat16()
    optimizer = adamw(model)

    def step():
        optimizer.step()
        optimizer.zero_grad()

    row(kind="plain", blocks=blocks, parameters=parameters, us=timed(model, torch.Tensor.backward, step))


def engine(stage, blocks, parameters, **zero):
    model = Chain(blocks, parameters)
    config = dict(train_micro_batch_size_per_gpu=1, train_batch_size=2, bf16=dict(enabled=True), gradient_clipping=1.0,
                  zero_allow_untested_optimizer=True, zero_force_ds_cpu_optimizer=False, zero_optimization=dict(stage=stage, **zero))
    made = deepspeed.initialize(model=model, optimizer=adamw(model), config=config)[0]
    us = timed(made, made.backward, made.step)
    counts.clear()
    replaced = counting()
    made.backward(made(inputs()))
    made.step()
    for owner, name, old in replaced:
        setattr(owner, name, old)
    row(kind=f"stage {stage}", blocks=blocks, parameters=parameters, zero=zero, us=us, counts=dict(counts))
    made.destroy()
    gc.collect()


def flat(mixed, blocks, parameters):
    model = Chain(blocks, parameters)
    policy = MixedPrecision(torch.bfloat16, torch.bfloat16, torch.bfloat16) if mixed else None
    model = FullyShardedDataParallel(
        model if mixed else model.bfloat16(), auto_wrap_policy=ModuleWrapPolicy({Block}), mixed_precision=policy, device_id=rank,
        use_orig_params=False, backward_prefetch=BackwardPrefetch.BACKWARD_PRE)
    optimizer = adamw(model)

    def step():
        optimizer.step()
        optimizer.zero_grad()

    row(kind="fsdp1 mp" if mixed else "fsdp1", blocks=blocks, parameters=parameters, us=timed(model, torch.Tensor.backward, step))


def host_elements():
    """Nanoseconds an element of what an engine does on the host beside the update, on one thread as torchrun sets it."""
    torch.set_num_threads(1)
    wide, narrow = torch.ones(1 << 26), torch.empty(1 << 26, dtype=torch.bfloat16)
    out = []
    for op in (lambda: wide.mul_(1.0), lambda: narrow.copy_(wide)):
        op()
        times = []
        for _ in range(3):
            t = ns()
            op()
            times.append((ns() - t) / wide.numel())
        out.append(median(times))
    return out


def fitted(kinds, phase, columns, known=lambda r: 0.0, beside=True):
    """Microseconds of each column, and the median relative error."""
    without = {(r["blocks"], r["parameters"]): r["us"] for r in rows if r["kind"] == "plain"}
    left, right = [], []
    for r in rows:
        if r["kind"] in kinds:
            us = r["us"][phase]
            rest = us - known(r) - (without[r["blocks"], r["parameters"]][phase] if beside else 0.0)
            left.append([of(r) / us for of in columns.values()])
            right.append(rest / us)
    left, right, best = np.array(left, float), np.array(right, float), None
    for size in range(len(columns), 0, -1):
        for chosen in itertools.combinations(range(len(columns)), size):
            x = np.linalg.lstsq(left[:, chosen], right, rcond=None)[0]
            error = ((left[:, chosen] @ x - right) ** 2).sum()
            if (x >= 0).all() and (best is None or error < best[0]):
                whole = np.zeros(len(columns))
                whole[list(chosen)] = x
                best = (error, whole)
    off = float(np.median(abs(left @ best[1] - right)))
    return dict({name: round(float(us), 1) for name, us in zip(columns, best[1])}, off=round(off, 3))


def results():
    one, params = (lambda r: 1), (lambda r: r["blocks"] * r["parameters"])
    called = lambda what: lambda r: r["counts"].get(what, 0)  # noqa: E731
    units = lambda r: r["blocks"] + 1  # noqa: E731
    client = lambda r: 105.0  # one update of a flat parameter  # noqa: E731
    gathered_at_end = lambda r: client(r) + 180.0 * params(r) * (r["zero"]["stage3_param_persistence_threshold"] > 0)  # noqa: E731
    stages = ("stage 1", "stage 2")
    return dict(
        module_forward=fitted(("stage 3",), 0, dict(module=called("forward"), gather=called("gathers"), gathered=called("gathered"))),
        module_backward=fitted(("stage 3",), 1, dict(each=one, module=called("backward"), scatter=called("buckets"))),
        step_3=fitted(("stage 3",), 2, dict(each=one, parameter=params), gathered_at_end, beside=False),
        forward=fitted(stages, 0, dict(each=one, parameter=params)),
        backward=fitted(stages, 1, dict(each=one, bucket=called("buckets"), gradient=params)),
        step=fitted(stages, 2, dict(each=one, parameter=params), client, beside=False),
        step_0=fitted(("stage 0",), 2, dict(each=one, parameter=params), lambda r: 100 + 8 * params(r), beside=False),
        **{f"{kind} {name}": fitted((kind,), phase, dict(unit=units, parameter=params))
           for kind in ("fsdp1", "fsdp1 mp") for phase, name in enumerate(("forward", "backward"))},
    )


torch.cuda.set_device(rank)
deepspeed.init_distributed()
for blocks, parameters in GRID:
    plain(blocks, parameters)
    for persists, ahead in ((0, 0), (0, 4 * W * W), (10**6, 0)):
        for size in (SMALL_BUCKETS, ONE_BUCKET):
            engine(3, blocks, parameters, overlap_comm=True, reduce_bucket_size=size, stage3_param_persistence_threshold=persists,
                   stage3_prefetch_bucket_size=ahead)
    for stage in (1, 2):
        for size in (SMALL_BUCKETS, ONE_BUCKET):
            engine(stage, blocks, parameters, overlap_comm=stage == 2, reduce_bucket_size=size)
    engine(0, blocks, parameters)
    for mixed in (False, True):
        flat(mixed, blocks, parameters)
if rank == 0:
    out = dict(rows=rows, us=results(), host_ns=host_elements())
    print(json.dumps(out["us"], indent=1), out["host_ns"])
    json.dump(out, open(sys.argv[1], "w"))
os._exit(0)
