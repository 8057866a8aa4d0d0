"""Kernels of attention by itself: contiguous [batch, heads, length, width], powers of two.

Each is captured several times into a CUDA graph and replayed, so that the host does not count.
usage: attention_kernels.py OUT.jsonl DEADLINE_S"""
import json
import sys
import time

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

dev = "cuda"
stream = torch.cuda.Stream()
torch.cuda.set_stream(stream)
torch.backends.cuda.matmul.allow_tf32 = False
DT = {"f32": torch.float32, "bf16": torch.bfloat16}
A = torch.ops.aten
out = open(sys.argv[1], "w")
t0 = time.time()
t_end = t0 + float(sys.argv[2])
fails = {}


def graph_us(fn, reps, budget_ms):
    """Time of fn's kernels launched back to back without the host."""
    fn()
    torch.cuda.synchronize()
    a, b = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    a.record()
    fn()
    b.record()
    torch.cuda.synchronize()
    reps = max(1, min(reps, int(budget_ms / max(a.elapsed_time(b), 1e-3))))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        for _ in range(reps):
            fn()
    graph.replay()
    torch.cuda.synchronize()
    times = []
    for _ in range(3):
        a.record()
        graph.replay()
        b.record()
        torch.cuda.synchronize()
        times.append(a.elapsed_time(b) / reps * 1e3)
    return sorted(times)[1]


def run(kind, dtype, extents, make, reps=10, budget_ms=10.0):
    if time.time() > t_end:
        return
    try:
        us = graph_us(make(), reps, budget_ms)
        out.write(json.dumps(dict(c=kind, t=dtype, d=list(extents), us=round(us, 3))) + "\n")
    except Exception as error:  # what the card has no kernel or no room for
        fails[kind] = fails.get(kind, 0) + 1
        if fails[kind] < 3:
            print("FAIL", kind, dtype, extents, repr(error)[:200], flush=True)
        torch.cuda.synchronize()


def section(name):
    torch.cuda.empty_cache()
    out.flush()
    print(name, round(time.time() - t0, 1), flush=True)


def R(*shape, dt):
    return torch.randn(*shape, device=dev, dtype=DT[dt])


LENGTHS = [1 << i for i in range(7, 15)]
HEADS = (16, 32, 64, 256)

# top-k of rows, and what goes with it
for dt in ("bf16", "f32"):
    for columns in LENGTHS:
        for rows in (2048, 8192, 32768, 131072, 524288):
            if rows * columns > 1 << 29:
                continue
            x = R(rows, columns, dt=dt)
            percents = (10,) if rows != 32768 else (10, 1, 50)
            for percent in percents:
                k = max(1, columns * percent // 100)
                run("topk", dt, [rows, columns, k], lambda: (lambda: torch.topk(x, k, dim=-1)))
                values, index = torch.topk(x, k, dim=-1)
                run("scatter", dt, [rows, columns, k], lambda: (lambda: x.scatter_(-1, index, values)))
                run("gather_last", dt, [rows, columns, k], lambda: (lambda: x.gather(-1, index)))
            x = values = index = None
    section("top-k " + dt)


def attention(kind, dt, n, length, width, causal, backend):
    batch = max(1, n // 32)
    shape = (batch, n // batch, length, width)

    def make(backward):
        q, k, v = (R(*shape, dt=dt).requires_grad_() for _ in range(3))
        forward = lambda: F.scaled_dot_product_attention(q, k, v, is_causal=causal)
        if not backward:
            return forward
        o, g = forward(), R(*shape, dt=dt)
        return lambda: torch.autograd.grad(o, (q, k, v), g, retain_graph=True)

    extents = (batch, n // batch, n // batch, length, width, int(causal), 0)
    with sdpa_kernel(backend):
        run(kind, dt, extents, lambda: make(False), 6, 8.0)
        run(kind + "_bw", dt, extents, lambda: make(True), 6, 8.0)


B = SDPBackend
for length in LENGTHS:
    for n in HEADS:
        for width in (64, 128):
            flops = 4.0 * n * length * length * width
            if flops < 2e13:
                for causal in (False, True):
                    attention("cudnn", "bf16", n, length, width, causal, B.CUDNN_ATTENTION)
                    attention("flash", "bf16", n, length, width, causal, B.FLASH_ATTENTION)
                attention("efficient", "bf16", n, length, width, False, B.EFFICIENT_ATTENTION)
            if flops < 2e12:
                attention("efficient", "f32", n, length, width, False, B.EFFICIENT_ATTENTION)
    section("attention %d" % length)


def product(dt, layout, n, rows, columns, inner):
    if n * max(rows * inner, columns * inner, rows * columns) > 1 << 31:
        return
    if 2.0 * n * rows * columns * inner > (3e12 if dt == "bf16" else 6e11):
        return

    def make():
        x = R(n, inner, rows, dt=dt).transpose(1, 2) if layout == "nt" else R(n, rows, inner, dt=dt)
        w = R(n, columns, inner, dt=dt).transpose(1, 2) if layout == "tn" else R(n, inner, columns, dt=dt)
        return lambda: torch.bmm(x, w)

    run("bmm." + layout, dt, (n, rows, columns, inner), make, 8, 6.0)


for dt in ("bf16", "f32"):
    for n in HEADS:
        for width in (64, 128):
            pairs = [(length, length) for length in LENGTHS]
            if n in (16, 32):
                pairs += [(64, length) for length in LENGTHS[:-1]] + [(256, 512), (256, 768)]
            for queries, keys in pairs:
                product(dt, "tn", n, queries, keys, width)
                product(dt, "nn", n, queries, width, keys)
                product(dt, "nt", n, keys, width, queries)
                product(dt, "nt", n, width, keys, queries)
    section("products " + dt)
for dt in ("bf16", "f32"):
    for columns in LENGTHS + [768]:
        for rows in (1024, 4096, 16384, 65536, 262144, 1048576):
            if rows * columns > 1 << 30:
                continue
            x = R(rows, columns, dt=dt)
            g = R(rows, columns, dt=dt)
            p = torch.softmax(x, -1)
            run("softmax", dt, [rows, columns], lambda: (lambda: A._softmax(x, -1, False)))
            run("softmax_bw", dt, [rows, columns], lambda: (lambda: A._softmax_backward_data(g, p, -1, x.dtype)))
            x = g = p = None
    section("softmax " + dt)
print("fails", fails)
