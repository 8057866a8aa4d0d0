"""The host's pace where nothing is between operations: a benchmark that waits, issues a few, and waits again.

Each operation is issued once and six times after a wait; the difference is what one takes. Backward through chains
of the same operation tells what a node and its operation take; what is left of the shortest is the call itself.
usage: alone_pace.py OUT.json"""
import json
import sys
import time
import traceback

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

dev, ns = "cuda", time.perf_counter_ns
torch.backends.cuda.matmul.allow_tf32 = False
pace, errors = {}, []


def median(values):
    return sorted(values)[len(values) // 2]


def issued(f, n=41):
    """Median microseconds until f returns, on an idle GPU."""
    times = []
    for i in range(n + 5):
        torch.cuda.synchronize()
        t = ns()
        f()
        times.append((ns() - t) / 1e3)
    return median(times[5:])


def each(op, few=1, many=6):
    def times(n):
        def f():
            for _ in range(n):
                op()
        return f
    return (issued(times(many)) - issued(times(few))) / (many - few)


def backward(step, x, n):
    """Median microseconds of the call that goes back through n steps."""
    times = []
    for i in range(36):
        y = x
        for _ in range(n):
            y = step(y)
        y = y.sum()
        torch.cuda.synchronize()
        t = ns()
        y.backward()
        times.append((ns() - t) / 1e3)
        x.grad = None
    torch.cuda.synchronize()
    return median(times[5:])


def back(step, few=1, many=6):
    x = torch.randn(1, 16, 128, 64, device=dev, dtype=torch.bfloat16, requires_grad=True)
    return (backward(step, x, many) - backward(step, x, few)) / (many - few)


def part(name, f):
    try:
        pace[name] = round(f(), 2)
    except Exception:
        errors.append(name)
        traceback.print_exc()


x = torch.randn(1, 16, 128, 64, device=dev, dtype=torch.bfloat16)
k, v = torch.randn_like(x), torch.randn_like(x)
s = torch.randn(1, 16, 128, 128, device=dev, dtype=torch.bfloat16)
w = torch.randn(1, 16, 64, 64, device=dev, dtype=torch.bfloat16)
values, index = torch.topk(s, 12, dim=-1)
part("begin and end", lambda: issued(lambda: None))
part("view", lambda: each(lambda: x.transpose(2, 3)))
part("slice", lambda: each(lambda: x[:, :, 8:72]))
part("pointwise", lambda: each(lambda: s / 8.0))
part("softmax", lambda: each(lambda: F.softmax(s, dim=-1)))
# torch.matmul of four dimensions expands and views both sides, and views the result
part("matmul", lambda: each(lambda: torch.matmul(x, w)) - 5 * pace["view"])
part("cat", lambda: each(lambda: torch.cat([x, k, v], 2)))
part("reduce", lambda: each(lambda: x.sum()))
part("copy", lambda: each(lambda: x.clone()))
part("topk", lambda: each(lambda: torch.topk(s, 12, dim=-1)))
part("scatter", lambda: each(lambda: s.scatter(-1, index, values)))
part("gather", lambda: each(lambda: s.gather(-1, index)))
BACKENDS = dict(flash=SDPBackend.FLASH_ATTENTION, efficient=SDPBackend.EFFICIENT_ATTENTION, cudnn=SDPBackend.CUDNN_ATTENTION)


def chosen(backend):
    with sdpa_kernel(backend):
        return F.scaled_dot_product_attention(x, k, v)


def choose():
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        pass


part("choose", lambda: each(choose))
for name, backend in BACKENDS.items():
    part("attention " + name, lambda: each(lambda: chosen(backend)) - pace["choose"])
part("node", lambda: back(lambda y: y.transpose(2, 3)) - pace["view"])
part("pointwise gradient", lambda: back(lambda y: y * 0.5) - pace["node"])
part("softmax gradient", lambda: back(lambda y: F.softmax(y, -1)) - pace["node"])
# nodes of the two views before, the product and the view after; four views
part("matmul gradient", lambda: back(lambda y: torch.matmul(y, w)) - 4 * pace["node"] - 4 * pace["view"])
part("copy into a part", lambda: back(lambda y: y[:, :, :-1]) - pace["node"])


def attend(y, backend):
    with sdpa_kernel(backend):
        return F.scaled_dot_product_attention(y, k, v)


for name, backend in BACKENDS.items():
    part("attention %s gradient" % name, lambda: back(lambda y: attend(y, backend)) - pace["node"])
leaf = torch.randn(1, 16, 128, 64, device=dev, dtype=torch.bfloat16, requires_grad=True)
# ones, sum's node and expanded gradient, its copy as the leaf's gradient
part("backward", lambda: backward(None, leaf, 0) - pace["pointwise"] - pace["node"] - pace["view"] - pace["copy"])


def whole(training):
    """One run of a benchmark by CUDA events, as a check of the parts: standard attention."""
    q, kk, vv = (torch.randn(1, 16, 128, 64, device=dev, dtype=torch.bfloat16, requires_grad=training) for _ in range(3))
    times = []
    for _ in range(40):
        a, b = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        a.record()
        o = torch.matmul(F.softmax(torch.matmul(q, kk.transpose(-2, -1)) / 8.0, dim=-1), vv)
        if training:
            o.sum().backward()
            q.grad = kk.grad = vv.grad = None
        b.record()
        torch.cuda.synchronize()
        times.append(a.elapsed_time(b) * 1e3)
    return median(times[5:])


part("check: standard forward", lambda: whole(False))
part("check: standard training", lambda: whole(True))
host = open("/proc/cpuinfo").read().split("model name")[1].split("\n")[0].strip("\t: ")
json.dump(dict(host=host, software=torch.__version__, alone=pace, errors=errors), open(sys.argv[1], "w"), indent=1)
print(json.dumps(pace))
