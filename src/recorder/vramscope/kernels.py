"""Kernels that PyTorch brings along: what they take on this card, and whether their results are right.

python3 -m vramscope.kernels [--device cuda|cpu] reads one JSON object, `seconds` and `kernels` (as a record of
`vramscope bench` describes them), and prints one for each kernel as soon as it is known: its place among them (`i`),
and either `samples_ns` with `launches`, `kernel` and the comparison with a reference, or `unsupported` or `failed` with
the reason. Standard library and PyTorch alone.

A training step launches these through PyTorch, and no library that `bench` loads by itself has them: attention of
CUTLASS and FlashAttention, convolutions of patch embeddings, rows put in the places of image tokens, products of
experts. The reference is fp64, computed by separate operations, of part of the results.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

TYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}
# Elements of each result that are compared.
COMPARED = 4096
# Largest error: relative to the reference's size, for sums of products in each type.
TOLERANCE = {"bf16": 0.05, "fp16": 0.01, "fp32": 1e-3}
FEWEST, MOST = 7, 20
# What PyTorch says of kernels that it lacks for a card, a type or a shape.
MISSING = ("No available kernel", "No viable backend", "not implemented", "is not supported")
# Milliseconds of one sample, long compared with an event's resolution.
SAMPLE_MS = 0.5
REFERENCE = (
    "fp64 by separate operations of PyTorch, part of the results; "
    "|result - reference| / (|reference| + root mean square of references)"
)

Run = Callable[[], Any]
Pair = tuple[torch.Tensor, torch.Tensor]


class Job:
    """A kernel that is ready: what launches it, its name, and its results beside their references."""

    def __init__(self, name: str, run: Run, check: Callable[[Any], list[Pair]]) -> None:
        self.name = name
        self.run = run
        self.check = check


class Maker:
    """Makes kernels on one device, with inputs that are the same in every run."""

    def __init__(self, device: str) -> None:
        self.device = device
        self.generator = torch.Generator(device=device).manual_seed(0)

    def random(self, *shape: int, dtype: torch.dtype) -> torch.Tensor:
        """A tensor of normal numbers."""
        return torch.randn(*shape, device=self.device, generator=self.generator).to(dtype)

    def job(self, kernel: dict[str, Any]) -> Job:
        """The kernel that a record describes.

        Raises NotImplementedError if PyTorch has none here.
        """
        make = {
            "attention": self.attention,
            "convolution": self.convolution,
            "masked_scatter": self.masked_scatter,
            "grouped_gemm": self.grouped_gemm,
        }.get(kernel["class"])
        if make is None:
            raise NotImplementedError(f"no kernel of class {kernel['class']} is launched through PyTorch")
        return make(kernel, kernel["shape"], TYPES[kernel["precision"]])

    def attention(self, kernel: dict[str, Any], shape: dict[str, int], dtype: torch.dtype) -> Job:
        """Fused attention, forward or backward, by one of PyTorch's backends."""
        from torch.nn.attention import SDPBackend, sdpa_kernel

        backends = {"flash": SDPBackend.FLASH_ATTENTION, "efficient": SDPBackend.EFFICIENT_ATTENTION}
        backend = backends[kernel["algorithm"]]
        size = (shape.get("batch", 1), shape["length"], shape["heads"], shape["head_dim"])
        causal = bool(kernel.get("causal"))
        q, k, v = (self.random(*size, dtype=dtype).transpose(1, 2).requires_grad_() for _ in range(3))
        gradient = self.random(*size, dtype=dtype).transpose(1, 2)

        def forward() -> torch.Tensor:
            with sdpa_kernel(backend):
                return F.scaled_dot_product_attention(q, k, v, is_causal=causal)

        def one_head() -> tuple[torch.Tensor, list[torch.Tensor]]:
            """The last head of the last sample in fp64."""
            parts = [x.detach()[-1, -1].double().requires_grad_() for x in (q, k, v)]
            scores = parts[0] @ parts[1].T / math.sqrt(size[3])
            if causal:
                scores = scores.masked_fill(torch.ones_like(scores, dtype=torch.bool).triu(1), float("-inf"))
            return torch.softmax(scores, -1) @ parts[2], parts

        if kernel.get("pass") != "backward":
            with torch.no_grad():
                forward()
            return Job(f"{kernel['algorithm']} attention", forward, lambda out: [(out[-1, -1], one_head()[0])])
        out = forward()

        def check(found: Any) -> list[Pair]:
            result, parts = one_head()
            wanted = torch.autograd.grad(result, parts, gradient[-1, -1].double())
            return [(x[-1, -1], y) for x, y in zip(found, wanted, strict=True)]

        return Job(
            f"{kernel['algorithm']} attention backward",
            lambda: torch.autograd.grad(out, (q, k, v), gradient, retain_graph=True),
            check,
        )

    def convolution(self, kernel: dict[str, Any], shape: dict[str, int], dtype: torch.dtype) -> Job:
        """A patch embedding: a convolution whose stride is its kernel. Backward is the gradient of weight and bias."""
        images, patches, width, pixels = (shape[key] for key in ("batch", "m", "n", "k"))
        side, patch = math.isqrt(patches), math.isqrt(pixels // 3)
        x = self.random(images, 3, side * patch, side * patch, dtype=dtype)
        weight, bias = self.random(width, 3, patch, patch, dtype=dtype), self.random(width, dtype=dtype)
        gradient = self.random(images, width, side, side, dtype=dtype)

        def rows(of: torch.Tensor) -> torch.Tensor:
            """The patches of images, one a row, in fp64."""
            return F.unfold(of.double(), patch, stride=patch).transpose(1, 2).reshape(-1, pixels)

        def forward_check(out: torch.Tensor) -> list[Pair]:
            wanted = rows(x[-1:]) @ weight.double().reshape(width, -1).T + bias.double()
            return [(out[-1].reshape(width, -1).T, wanted)]

        def backward_check(found: Any) -> list[Pair]:
            taken = gradient.double()[:, :64].transpose(0, 1).reshape(min(width, 64), -1)
            return [(found[1][:64].reshape(-1, pixels), taken @ rows(x)), (found[2][:64], taken.sum(1))]

        if kernel.get("pass") != "backward":
            return Job("convolution", lambda: F.conv2d(x, weight, bias, stride=patch), forward_check)
        mask = [False, True, True]
        call = torch.ops.aten.convolution_backward
        sizes = ([width], [patch, patch], [0, 0], [1, 1], False, [0, 0], 1)
        return Job("convolution_backward", lambda: call(gradient, x, weight, *sizes, mask), backward_check)

    def masked_scatter(self, kernel: dict[str, Any], shape: dict[str, int], dtype: torch.dtype) -> Job:
        """Rows of images in the places of their tokens: half of all rows."""
        rows, columns = shape["rows"], shape["columns"]
        into, source = self.random(rows, columns, dtype=dtype), self.random(rows, columns, dtype=dtype)
        places = torch.arange(rows, device=self.device) < rows // 2
        mask = places[:, None].expand(rows, columns)

        def check(out: torch.Tensor) -> list[Pair]:
            wanted = into.clone()
            wanted[places] = source[: rows // 2]
            return [(out, wanted)]

        return Job("masked_scatter", lambda: into.masked_scatter(mask, source), check)

    def grouped_gemm(self, kernel: dict[str, Any], shape: dict[str, int], dtype: torch.dtype) -> Job:
        """Products of experts, each with its share of the rows."""
        experts, rows, width, depth = (shape[key] for key in ("batch", "m", "n", "k"))
        grouped = getattr(torch, "_grouped_mm", None)
        if grouped is None:
            raise NotImplementedError(f"PyTorch {torch.__version__} has no grouped product")
        x, weight = self.random(rows, depth, dtype=dtype), self.random(experts, depth, width, dtype=dtype)
        each = rows // experts
        ends = torch.arange(1, experts + 1, device=self.device, dtype=torch.int32) * each

        def check(out: torch.Tensor) -> list[Pair]:
            last = slice(each * (experts - 1), each * experts)
            return [(out[last], x[last].double() @ weight[-1].double())]

        return Job("grouped_mm", lambda: grouped(x, weight, offs=ends), check)


def compared(pairs: list[Pair], tolerance: float) -> dict[str, Any]:
    """The largest error over evenly drawn elements of all results."""
    count, worst = 0, 0.0
    for result, wanted in pairs:
        result, wanted = result.detach().double().reshape(-1), wanted.detach().double().reshape(-1)
        step = max(1, wanted.numel() // COMPARED)
        result, wanted = result[::step], wanted[::step]
        error = (result - wanted).abs() / (wanted.abs() + wanted.square().mean().sqrt() + 1e-300)
        count += wanted.numel()
        # A result that is not a number fails.
        most = error.max().item()
        worst = most if most >= worst or math.isnan(most) else worst
    passed = not math.isnan(worst) and worst <= tolerance
    return {
        "reference": REFERENCE,
        "compared": count,
        "max_error": None if math.isnan(worst) else worst,
        "tolerance": tolerance,
        "passed": passed,
    }


class Timer:
    """Times launches one after the other: in a CUDA graph, so that the host does not count."""

    def __init__(self, device: str) -> None:
        self.is_cuda = device == "cuda"

    def samples(self, run: Run, seconds: float) -> tuple[list[int], int]:
        """Nanoseconds of one launch, several times, and the launches of one sample."""
        if not self.is_cuda:
            return [self.by_clock(run) for _ in range(FEWEST)], 1
        run()
        once = self.by_event(run)
        launches = max(1, min(50, math.ceil(SAMPLE_MS / max(once, 1e-3))))
        whole = self.captured(run, launches)
        whole()
        ends, samples = time.perf_counter() + seconds, []
        while len(samples) < FEWEST or (len(samples) < MOST and time.perf_counter() < ends):
            samples.append(max(1, round(self.by_event(whole) * 1e6 / launches)))
        return samples, launches

    def by_clock(self, run: Run) -> int:
        """Nanoseconds by the host's clock."""
        began = time.perf_counter_ns()
        run()
        return max(1, time.perf_counter_ns() - began)

    def by_event(self, run: Run) -> float:
        """Milliseconds between two events of the card."""
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        first.record()
        run()
        last.record()
        torch.cuda.synchronize()
        return first.elapsed_time(last)

    def captured(self, run: Run, launches: int) -> Run:
        """Launches in a graph; one after the other by the host where they cannot be captured."""

        def several() -> None:
            for _ in range(launches):
                run()

        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph, stream=torch.cuda.current_stream()):
                several()
        except RuntimeError:
            torch.cuda.synchronize()
            return several
        return graph.replay


def measured(maker: Maker, timer: Timer, kernel: dict[str, Any], seconds: float) -> dict[str, Any]:
    """What came of a kernel."""
    try:
        job = maker.job(kernel)
        check = compared(job.check(job.run()), TOLERANCE[kernel["precision"]])
        if not check["passed"]:
            return {"kernel": job.name, "check": check}
        samples, launches = timer.samples(job.run, seconds)
        return {"kernel": job.name, "check": check, "samples_ns": samples, "launches": launches}
    except NotImplementedError as error:
        return {"unsupported": str(error).splitlines()[0][:200]}
    except torch.cuda.OutOfMemoryError as error:
        return {"unsupported": f"out of memory: {str(error).splitlines()[0][:160]}"}
    except (RuntimeError, AttributeError, TypeError, ValueError, KeyError) as error:
        text = f"{type(error).__name__}: {(str(error).splitlines() or [''])[0][:160]}"
        return {"unsupported" if any(words in text for words in MISSING) else "failed": text}


def main(arguments: list[str]) -> int:
    """Measures every kernel that standard input names."""
    device = arguments[arguments.index("--device") + 1] if "--device" in arguments else "cuda"
    asked = json.load(sys.stdin)
    if device == "cuda":
        if not torch.cuda.is_available():
            print("PyTorch sees no GPU here", file=sys.stderr)
            return 1
        torch.cuda.set_stream(torch.cuda.Stream())
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    ends, kernels = time.perf_counter() + asked["seconds"], asked["kernels"]
    for i, kernel in enumerate(kernels):
        # Half of the time is for preparation and references.
        share = max(0.0, ends - time.perf_counter()) / (len(kernels) - i) / 2
        found = measured(Maker(device), Timer(device), kernel, share)
        print(json.dumps({"i": i, **found}), flush=True)
        if device == "cuda":
            torch.cuda.empty_cache()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
