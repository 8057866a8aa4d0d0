"""The pace of a host: what its CPU takes to issue the operations of PyTorch that a training step is made of.

python3 -m vramscope.pace [--quick] [--device cuda|cpu] prints one JSON object: `software`, and `us`, the microseconds
of each probe. Tensors are tiny, so that the device waits for the host. Standard library and PyTorch alone; half a
minute. Probes are named after what they time: an operation, its gradient ("matmul gradient"), an optimizer's step
("adamw step") and what each parameter adds to it ("adamw matrix", "adamw vector"), Python's own speed ("python").

`windows_us` is one mix of such operations, timed for a twentieth of a second after each probe: how the pace changes
while the probes run. --windows N times N of them and no probe, to be held against those at other times.

What an operation takes in a real model is more than a probe says, since caches are cold there: a probe counts as a
ratio to the same probe on a host whose models were timed too.
"""

from __future__ import annotations

import gc
import json
import platform
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

ROWS, WIDTH = 32, 64
WARM_UP = 3
# Operations between two waits; the device must not fall behind.
ISSUED = 64
CHAIN = (8, 56)
# Rounds of a window's mix; about a twentieth of a second, as long as a short step.
MIX = 1500
PARAMETERS = (16, 96)
# Repeats of a probe, in short and in full.
QUICK, FULL = 7, 24


class Probes:
    """Measures and keeps the microseconds of each probe."""

    def __init__(self, device: str, repeats: int) -> None:
        self.device = device
        self.repeats = repeats
        self.us: dict[str, float] = {}
        self.failed: dict[str, str] = {}
        self.windows_us: list[float] = []
        self.mix = mixed(self)

    def keep(self, name: str, measure: Callable[[], float]) -> None:
        """Keeps what `measure` returns; an operation that this PyTorch lacks is named, and the rest goes on."""
        gc.collect()
        gc.disable()
        try:
            self.us[name] = round(max(measure(), 0.0), 3)
        except (RuntimeError, AttributeError, NotImplementedError, TypeError, ValueError) as error:
            self.failed[name] = f"{type(error).__name__}: {str(error).splitlines()[0][:120]}"
        finally:
            gc.enable()
        self.window()

    def window(self) -> None:
        """Times one window: microseconds of one round of the mix."""
        rounds = MIX if self.repeats > QUICK else MIX // 10
        self.wait()
        began = time.perf_counter_ns()
        for _ in range(rounds):
            self.mix()
        self.windows_us.append(round((time.perf_counter_ns() - began) / 1e3 / rounds, 3))

    def wait(self) -> None:
        """Waits until the device has nothing to do."""
        if self.device == "cuda":
            torch.cuda.synchronize()

    def timed(self, run: Callable[[], object], prepare: Callable[[], object] = lambda: None) -> float:
        """Lower quartile of the microseconds until `run` returns, on an idle device: what disturbs only adds."""
        took = []
        for _ in range(WARM_UP + self.repeats):
            prepare()
            self.wait()
            began = time.perf_counter_ns()
            run()
            took.append((time.perf_counter_ns() - began) / 1e3)
        self.wait()
        return sorted(took[WARM_UP:])[self.repeats // 4]

    def issued(self, operation: Callable[[], object]) -> float:
        """Microseconds of one of many operations in a row."""

        def several() -> None:
            for _ in range(ISSUED):
                operation()

        return self.timed(several) / ISSUED

    def random(self, *shape: int, dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
        """A tensor on the device."""
        return torch.randn(*shape, device=self.device, dtype=dtype)

    def parameter(self, *shape: int, dtype: torch.dtype = torch.bfloat16) -> nn.Parameter:
        """A parameter on the device."""
        return nn.Parameter(self.random(*shape, dtype=dtype))


class Same(nn.Module):
    """A module that returns its input, called as transformers calls its layers."""

    def forward(self, x: torch.Tensor, attention_mask: Any = None, position_ids: Any = None, **others: Any) -> Any:
        """Returns the input."""
        return x


def mixed(p: Probes) -> Callable[[], object]:
    """One round of a window: operations, a module and Python in the proportions of a model's forward."""
    x, weight, same = p.random(1, ROWS, WIDTH), p.random(WIDTH, WIDTH), Same()

    def once() -> object:
        with torch.no_grad():
            y = torch.tanh(F.linear(x, weight)).transpose(0, 1)
            return same(y, **{"attention_mask": None, "use_cache": False})

    return once


def words(count: int = 200) -> int:
    """Python alone: calls with keywords, dictionaries, attributes and strings, as a model's forward has them."""

    def layer(x: int, mask: int | None = None, **options: int) -> dict[str, int]:
        return {**options, "x": x + (mask or 0)}

    total = 0
    for i in range(count):
        made = layer(i, mask=1, cache=2, position=i)
        total += made["x"] + made.get("cache", 0) + len(f"layers.{i}")
        if isinstance(made, dict) and hasattr(made, "items"):
            total += sum(value for _, value in made.items())
    return total


def operations(p: Probes) -> Iterator[tuple[str, Callable[[torch.Tensor], torch.Tensor]]]:
    """Operations by name, each of a tensor [1, ROWS, WIDTH], whose shape they keep."""
    weight, bias = p.parameter(WIDTH, WIDTH), p.parameter(WIDTH)
    heads = (1, ROWS, 4, WIDTH // 4)

    def attention(x: torch.Tensor) -> torch.Tensor:
        q = x.view(heads).transpose(1, 2)
        return F.scaled_dot_product_attention(q, q, q, is_causal=True).transpose(1, 2).reshape(1, ROWS, WIDTH)

    yield "view", lambda x: x.transpose(0, 1).transpose(0, 1)
    yield "pointwise", lambda x: torch.tanh(x)
    yield "matmul", lambda x: F.linear(x, weight)
    yield "cast", lambda x: x.float().bfloat16()
    yield "copy", lambda x: x.clone()
    yield "cat", lambda x: torch.cat((x[..., : WIDTH // 2], x[..., WIDTH // 2 :]), -1)
    yield "reduce", lambda x: x.mean(-1, keepdim=True).expand(1, ROWS, WIDTH)
    yield "layer_norm", lambda x: F.layer_norm(x, (WIDTH,), bias, bias)
    yield "softmax", lambda x: F.softmax(x, -1)
    yield "dropout", lambda x: F.dropout(x, 0.1, True)
    yield "attention", attention
    yield "copy into a part", lambda x: torch.cat((x[:, :-1], x[:, -1:]), 1)


def measure_operations(p: Probes) -> None:
    """Forward of each operation without a graph, and what an operation adds to a backward."""
    x = p.random(1, ROWS, WIDTH)
    for name, operation in operations(p):
        with torch.no_grad():
            p.keep(name, lambda operation=operation: p.issued(lambda: operation(x)))
        p.keep(f"{name} gradient", lambda operation=operation: backward(p, operation))
    leaf = x.clone().requires_grad_()
    p.keep("record", lambda: p.issued(lambda: torch.tanh(leaf)))
    table, ids = nn.Embedding(128, WIDTH, device=p.device), torch.zeros(1, ROWS, dtype=torch.long, device=p.device)
    p.keep("gather", lambda: p.issued(lambda: table(ids)))
    p.keep("gather gradient", lambda: each_of(p, lambda: table(ids)))
    image, convolution = p.random(1, 3, 64, 64, dtype=torch.float32), nn.Conv2d(3, WIDTH, 8, 8, device=p.device)
    p.keep("convolution", lambda: p.issued(lambda: convolution(image)))
    p.keep("convolution gradient", lambda: each_of(p, lambda: convolution(image)))


def backward(p: Probes, operation: Callable[[torch.Tensor], torch.Tensor]) -> float:
    """Microseconds that one operation of a chain adds to backward."""
    leaf = p.random(1, ROWS, WIDTH).requires_grad_()

    def took(length: int) -> float:
        made: list[torch.Tensor] = []

        def forward() -> None:
            made.clear()
            leaf.grad = None
            x = leaf
            for _ in range(length):
                x = operation(x)
            made.append(x.float().sum())

        return p.timed(lambda: made[0].backward(), forward)

    few, many = CHAIN
    return (took(many) - took(few)) / (many - few)


def each_of(p: Probes, operation: Callable[[], torch.Tensor]) -> float:
    """Microseconds that one of several results adds to the backward of their sum."""

    def took(count: int) -> float:
        made: list[torch.Tensor] = []

        def forward() -> None:
            made.clear()
            made.append(torch.stack([operation().sum() for _ in range(count)]).sum())

        return p.timed(lambda: made[0].backward(), forward)

    few, many = 4, 36
    return (took(many) - took(few)) / (many - few)


def measure_modules(p: Probes) -> None:
    """Python, modules, parameters' gradients, checkpoints, autocast, and the wait for the device."""
    x, same = p.random(1, ROWS, WIDTH), Same()
    p.keep("python", lambda: p.timed(words))
    p.keep("module", lambda: p.issued(lambda: same(x, attention_mask=None, use_cache=False)))
    weights = [p.parameter(WIDTH) for _ in range(max(PARAMETERS))]

    def accumulated(count: int) -> float:
        made: list[torch.Tensor] = []

        def forward() -> None:
            made.clear()
            for weight in weights:
                weight.grad = None
            y = x
            for weight in weights[:count]:
                y = y + weight
            made.append(y.float().sum())

        return p.timed(lambda: made[0].backward(), forward)

    few, many = PARAMETERS
    p.keep("accumulate", lambda: (accumulated(many) - accumulated(few)) / (many - few))
    layers = nn.Sequential(*[nn.Linear(WIDTH, WIDTH, device=p.device, dtype=torch.bfloat16) for _ in range(16)])
    leaf = x.clone().requires_grad_()

    def kept(whole: bool) -> Callable[[], torch.Tensor]:
        return lambda: checkpoint(layers, leaf, use_reentrant=False) if whole else layers(leaf)

    p.keep("pack", lambda: (p.timed(kept(True)) - p.timed(kept(False))) / 16)
    p.keep("unpack", lambda: unpacked(p, kept) / 16)
    with torch.autocast(p.device, dtype=torch.bfloat16):
        full = x.float()
        p.keep("autocast", lambda: p.issued(lambda: F.linear(full, layers[0].weight)))
    zero = torch.zeros((), device=p.device)
    p.keep("wait", lambda: p.timed(zero.item))
    p.keep("latency", lambda: p.timed(lambda: (zero.add_(1), p.wait())))


def unpacked(p: Probes, kept: Callable[[bool], Callable[[], torch.Tensor]]) -> float:
    """Microseconds that checkpointing adds to a backward beyond its second forward."""

    def took(whole: bool) -> float:
        made: list[torch.Tensor] = []

        def forward() -> None:
            made.clear()
            made.append(kept(whole)().float().sum())

        return p.timed(lambda: made[0].backward(), forward)

    return took(True) - took(False) - p.timed(kept(False))


def optimizers() -> Iterator[tuple[str, Callable[[list[nn.Parameter]], Callable[[], object]]]]:
    """Steps by name, each made for a list of parameters."""
    yield "adamw", lambda ps: torch.optim.AdamW(ps, lr=1e-6, foreach=True).step
    yield "adamw_fused", lambda ps: torch.optim.AdamW(ps, lr=1e-6, fused=True).step
    yield "adamw_loop", lambda ps: torch.optim.AdamW(ps, lr=1e-6, foreach=False, fused=False).step
    yield "sgd", lambda ps: torch.optim.SGD(ps, lr=1e-6).step
    yield "sgdm", lambda ps: torch.optim.SGD(ps, lr=1e-6, momentum=0.9).step
    yield "adafactor_torch", lambda ps: torch.optim.Adafactor(ps, lr=1e-6).step
    yield "clip", lambda ps: lambda: torch.nn.utils.clip_grad_norm_(ps, 1.0)
    yield "zero_grad", lambda ps: torch.optim.SGD(ps, lr=1e-6).zero_grad


def measure_optimizers(p: Probes) -> None:
    """What an update takes by itself, and for each matrix and each vector among its parameters."""
    few, many = PARAMETERS

    for name, make in optimizers():
        steps = []
        for kind, shape in (("matrix", (16, 16)), ("vector", (16,))):

            def took(count: int, make: Any = make, shape: tuple[int, ...] = shape) -> float:
                ps = [p.parameter(*shape) for _ in range(count)]
                step = make(ps)

                def graded() -> None:
                    for q in ps:
                        q.grad = torch.zeros_like(q)

                return p.timed(step, graded)

            def slope(took: Any = took, steps: list[float] = steps) -> float:
                least, most = took(few), took(many)
                each = (most - least) / (many - few)
                steps.append(least - each * few)
                return each

            p.keep(f"{name} {kind}", slope)
        p.keep(f"{name} step", lambda steps=steps: sum(steps) / len(steps))


def processor() -> str | None:
    """The processor's name, where the operating system tells it."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            names = (line.partition(":")[2].strip() for line in file if line.startswith("model name"))
            return next(names, None)
    except OSError:
        return platform.processor() or None


def main(arguments: list[str]) -> int:
    """Measures every probe and prints them."""
    device = arguments[arguments.index("--device") + 1] if "--device" in arguments else "cuda"
    if device == "cuda" and not torch.cuda.is_available():
        print("PyTorch sees no GPU here", file=sys.stderr)
        return 1
    torch.manual_seed(0)
    if device == "cpu":
        torch.set_num_threads(1)
    probes = Probes(device, QUICK if "--quick" in arguments else FULL)
    probes.window()
    probes.windows_us.clear()
    if "--windows" in arguments:
        for _ in range(int(arguments[arguments.index("--windows") + 1])):
            probes.window()
        print(json.dumps({"windows_us": probes.windows_us}))
        return 0
    for measure in (measure_operations, measure_modules, measure_optimizers):
        measure(probes)
    print(
        json.dumps(
            {
                "processor": processor(),
                "software": f"PyTorch {torch.__version__}",
                "us": probes.us,
                "failed": probes.failed,
                "windows_us": probes.windows_us,
            }
        )
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
