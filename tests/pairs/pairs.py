"""The same kernels by `vramscope bench` and by PyTorch, in turns on one card; ratios of their medians.

usage: pairs.py VRAMSCOPE OUT.md [OUT.jsonl [WORDS: only kernels whose name holds them]]

Each pair runs in three rounds, ours and PyTorch's after each other, so that both meet the same clocks and
temperature; the median of the rounds' medians counts. PyTorch is timed by CUDA events as bench times itself:
warmed up, samples of at least 0.2 ms, inputs rotated so that they come from memory, random in the same range.
"""
import json, math, os, subprocess, sys, tempfile, time
import torch, torch.nn.functional as F
from torch.nn.attention import sdpa_kernel, SDPBackend

binary, table = sys.argv[1], sys.argv[2]
lines = open(sys.argv[3], "w") if len(sys.argv) > 3 else None
words = sys.argv[4] if len(sys.argv) > 4 else ""
torch.backends.cuda.matmul.allow_tf32 = False
L2 = torch.cuda.get_device_properties(0).L2_cache_size
ROOT3 = math.sqrt(3.0)


def uniform(*shape, dtype=torch.bfloat16):
    return ((torch.rand(*shape, device="cuda", dtype=torch.float32) * 2 - 1) * ROOT3).to(dtype)


def timed(make, bytes_, seconds=0.3):
    """Nanoseconds of one call: median of samples. `make` gives one set of inputs bound to a function."""
    sets = [make() for _ in range(max(1, min(32, math.ceil(4 * L2 / max(1, bytes_)))))]
    at = 0

    def run(n):
        nonlocal at
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for _ in range(n):
            at = (at + 1) % len(sets)
            sets[at]()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) * 1e6

    run(1), run(1)
    n = max(1, min(1000, math.ceil(200_000 / max(1, run(1)))))
    stop = time.time() + 0.1
    while time.time() < stop:
        run(n)
    samples, stop = [], time.time() + seconds
    while len(samples) < 7 or (len(samples) < 60 and time.time() < stop):
        samples.append(run(n) / n)
    samples.sort()
    return samples[len(samples) // 2]


def peak(function):
    """Highest bytes beyond what lives before."""
    function()
    torch.cuda.synchronize()
    base = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    function()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() - base


def linear(m, n, k, dtype):
    def make():
        x, w = uniform(m, k, dtype=dtype), uniform(n, k, dtype=dtype)
        return lambda: F.linear(x, w)
    return make


def copy(bytes_):
    def make():
        x = torch.rand(bytes_ // 4, device="cuda")
        y = torch.empty_like(x)
        return lambda: y.copy_(x)
    return make


def sdpa(backend, length, causal, heads=32, width=128):
    def make():
        q, k, v = [uniform(1, heads, length, width) for _ in range(3)]

        def run():
            with sdpa_kernel(backend):
                return F.scaled_dot_product_attention(q, k, v, is_causal=causal)
        return run
    return make


def sdpa_backward(backend, length, causal, heads=32, width=128):
    def make():
        q, k, v = [uniform(1, heads, length, width).requires_grad_() for _ in range(3)]
        with sdpa_kernel(backend):
            o = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
        do = uniform(1, heads, length, width)
        return lambda: torch.autograd.grad(o, (q, k, v), do, retain_graph=True)
    return make


def standard(length, heads=32, width=128):
    def make():
        q, k, v = [uniform(1, heads, length, width) for _ in range(3)]

        def run():
            s = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(q.size(-1))
            return torch.matmul(F.softmax(s, dim=-1), v)
        return run
    return make


def standard_training(length, heads=32, width=128):
    def make():
        q, k, v = [uniform(1, heads, length, width).requires_grad_() for _ in range(3)]
        do = uniform(1, heads, length, width)

        def forward():
            s = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(q.size(-1))
            return torch.matmul(F.softmax(s, dim=-1), v)
        # The scores are done with when forward returns.
        return lambda: torch.autograd.grad(forward(), (q, k, v), do)
    return make


def backward(function, count, columns, dtype):
    """Gradients of the input, and of what `function` gives beside its result."""
    def make():
        x = uniform(count, columns, dtype=dtype).requires_grad_()
        out, others = function(x)
        gradient = uniform(*out.shape, dtype=dtype)
        return lambda: torch.autograd.grad(out, (x, *others), gradient, retain_graph=True)
    return make


def norms(tensors, elements, dtype):
    def make():
        xs = [uniform(elements, dtype=dtype) for _ in range(tensors)]
        return lambda: torch._foreach_norm(xs)
    return make


def adamw(elements, dtype):
    def make():
        p = uniform(elements, dtype=dtype).requires_grad_()
        p.grad = uniform(elements, dtype=dtype)
        optimizer = torch.optim.AdamW([p], fused=True)
        return optimizer.step
    return make


def rows(function, count, columns, dtype, copies=2):
    def make():
        x = uniform(count, columns, dtype=dtype)
        return lambda: function(x)
    return make


bf16, fp16, fp32 = torch.bfloat16, torch.float16, torch.float32
FUSED = {"flash": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION, "efficient": SDPBackend.EFFICIENT_ATTENTION}


def fastest(kind, length, causal):
    """The fastest fused backend, measured."""
    bytes_ = 4 * 32 * length * 128 * 2
    times = {}
    for name, backend in FUSED.items():
        try:
            times[name] = timed(kind(backend, length, causal), bytes_, 0.1)
        except RuntimeError as error:
            print(name, "cannot:", str(error)[:80])
    name = min(times, key=times.get)
    return name, kind(FUSED[name], length, causal), bytes_


def cases():
    for n in (1024, 4096, 8192):
        yield f"gemm bf16 {n}x{n}x{n} nt", f"F.linear, {n}", linear(n, n, n, bf16), 6 * n * n, 1.03 if n == 8192 else None
    yield "gemm fp16 8192x8192x8192 nt", "F.linear", linear(8192, 8192, 8192, fp16), 6 * 8192**2, None
    yield "gemm fp32 4096x4096x4096 nt", "F.linear, TF32 off", linear(4096, 4096, 4096, fp32), 12 * 4096**2, None
    for log in (28, 32):
        name = {28: "256.0MiB", 32: "4.00GiB"}[log]
        yield f"device_copy {name}", "Tensor.copy_", copy(1 << log), 2 << log, 1.03
    for length in (2048, 8192):
        for causal in (False, True):
            word = " causal" if causal else ""
            if words and "cudnn" not in words:
                continue
            name, make, bytes_ = fastest(sdpa, length, causal)
            yield f"attention cudnn bf16 1x32x{length}x128{word} forward", f"SDPA, {name}", make, bytes_, 1.10 if length == 8192 and not causal else None
            name, make, bytes_ = fastest(sdpa_backward, length, causal)
            yield f"attention cudnn bf16 1x32x{length}x128{word} backward", f"SDPA, {name}", make, bytes_, 1.15 if length == 8192 and not causal else None
    for length in (2048, 8192):
        yield f"attention standard bf16 1x32x{length}x128 forward", "matmul, /, softmax, matmul", standard(length), 32 * length * length * 4, 1.10
        yield f"attention standard bf16 1x32x{length}x128 forward_backward", "the same, autograd", standard_training(length), 32 * length * length * 8, 1.10
    for dtype, word, width in ((fp32, "fp32", 4), (bf16, "bf16", 2)):
        for log in (24, 28):
            yield f"adamw {word} {1 << log}", "AdamW(fused=True).step", adamw(1 << log, dtype), 7 * width << log, 1.10
    yield "softmax bf16 16384x4096", "F.softmax", rows(lambda x: F.softmax(x, -1), 16384, 4096, bf16), 4 * 16384 * 4096, None
    w, b = uniform(4096), uniform(4096)
    weight, bias = uniform(4096).requires_grad_(), uniform(4096).requires_grad_()
    other = uniform(16384, 4096)
    yield "layer_norm bf16 16384x4096", "F.layer_norm", rows(lambda x: F.layer_norm(x, (4096,), w, b), 16384, 4096, bf16), 4 * 16384 * 4096, None
    yield "rms_norm bf16 16384x4096", "F.rms_norm", rows(lambda x: F.rms_norm(x, (4096,), w), 16384, 4096, bf16), 4 * 16384 * 4096, None
    yield "layer_norm bf16 32768x4096 backward", "F.layer_norm's", backward(lambda x: (F.layer_norm(x, (4096,), weight, bias), (weight, bias)), 32768, 4096, bf16), 6 * 32768 * 4096, None
    yield "softmax bf16 32768x4096 backward", "F.softmax's", backward(lambda x: (F.softmax(x, -1), ()), 32768, 4096, bf16), 6 * 32768 * 4096, None
    yield "sum_columns bf16 32768x4096", "Tensor.sum(0)", rows(lambda x: x.sum(0), 32768, 4096, bf16), 2 * 32768 * 4096, None
    yield "add bf16 67108864", "Tensor + Tensor", rows(lambda x: torch.add(x, other), 16384, 4096, bf16), 4 * 16384 * 4096, None
    yield "cast bf16 67108864", "Tensor.float", rows(lambda x: x.float(), 16384, 4096, bf16), 6 * 16384 * 4096, None
    yield "foreach_norm bf16 128x1048576", "torch._foreach_norm", norms(128, 1 << 20, bf16), 2 << 27, None
    yield "gelu bf16 67108864", "F.gelu", rows(F.gelu, 16384, 4096, bf16), 4 * 16384 * 4096, None


def ours(label):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "record.json")
        done = subprocess.run([binary, "bench", f"={label}", "--output", path, "--format", "json"], capture_output=True, text=True)
        if done.returncode:
            return None, None, done.stderr.strip()[-300:]
        record = json.load(open(path))
        result = record["results"][0]
        if "measured" not in result["outcome"]:
            return None, None, json.dumps(result["outcome"])[:300]
        measured = result["outcome"]["measured"]
        ran = result["implementation"]
        return measured["summary"]["median_ns"], measured.get("peak_extra_bytes"), f"{ran['library']} {ran.get('version', '')} {ran['kernel']}"


def main():
    rows_ = []
    for label, name, make, bytes_, goal in cases():
        if words not in label:
            continue
        our, their = [], []
        for _ in range(3):
            ns, extra, ran = ours(label)
            if ns is None:
                print(f"{label}: {ran}", flush=True)
                break
            our.append(ns)
            their.append(timed(make, bytes_))
            torch.cuda.empty_cache()
        if not our:
            rows_.append((label, name, None, None, None, goal, None, ran))
            continue
        ours_ns, theirs_ns = sorted(our)[len(our) // 2], sorted(their)[len(their) // 2]
        their_peak = peak(make()) if "attention" in label else None
        torch.cuda.empty_cache()
        row = (label, name, ours_ns, theirs_ns, ours_ns / theirs_ns, goal, (extra, their_peak), ran)
        rows_.append(row)
        print(f"{label}: {ours_ns / 1e3:.1f} us, PyTorch {theirs_ns / 1e3:.1f} us, ratio {row[4]:.3f}, goal {goal}, extra {extra} / {their_peak}; {ran}", flush=True)
        if lines:
            lines.write(json.dumps(dict(kernel=label, pytorch=name, ours_ns=our, pytorch_ns=their, ratio=row[4], goal=goal, extra_bytes=extra, pytorch_extra_bytes=their_peak, ran=ran)) + "\n")
            lines.flush()
    with open(table, "w") as out:
        out.write(f"# Pairs: `vramscope bench` beside PyTorch {torch.__version__} on {torch.cuda.get_device_name()}\n\n")
        out.write("The same work in turns on one card, three rounds; medians. A ratio below 1 means that bench's kernel is the faster. Made by `tests/pairs/pairs.py`.\n\n")
        out.write("| kernel | PyTorch's | bench, us | PyTorch, us | ratio | goal | extra bytes, bench | PyTorch | what bench ran |\n| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |\n")
        for label, name, a, b, ratio, goal, extra, ran in rows_:
            if ratio is None:
                out.write(f"| {label} | {name} | | | | {goal or ''} | | | {ran} |\n")
                continue
            x, y = extra
            out.write(f"| {label} | {name} | {a / 1e3:.1f} | {b / 1e3:.1f} | {ratio:.3f} | {goal or ''} | {x if y else ''} | {y or ''} | {ran} |\n")


main()
