"""Packages that the machine with the GPU has and this one lacks: which way libraries took, and stand-ins."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.metadata
import importlib.util
import inspect
import os
import re
import sys
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

from vramscope.dry_run import flash_attention
from vramscope.dry_run.notes import Notes
from vramscope.record.errors import RecordingError

# Packages on which libraries choose between two ways of computing, by the name that is imported.
DOORS = {
    "triton": "triton",
    "flash_attn": "flash-attn",
    "flash_attn_3": "flash-attn-3",
    "flash_attn_interface": "flash-attn-3",
    "xformers": "xformers",
    "causal_conv1d": "causal-conv1d",
    "mamba_ssm": "mamba-ssm",
    "fla": "flash-linear-attention",
    "bitsandbytes": "bitsandbytes",
    "liger_kernel": "liger-kernel",
    "apex": "apex",
    "transformer_engine": "transformer-engine",
    "deepspeed": "deepspeed",
    "kernels": "kernels",
    "unsloth": "unsloth",
    "vllm": "vllm",
    "torchao": "torchao",
    "cut_cross_entropy": "cut-cross-entropy",
}

# What libraries do without a package, of those that change what a step takes.
WITHOUT = {
    "flash-attn": "attention is PyTorch's own, and packed samples are masked or refused",
    "flash-attn-3": "attention is flash-attn 2's or PyTorch's own",
    "xformers": "attention is PyTorch's own",
    "liger-kernel": "norms, activations and losses are written out in PyTorch",
    "causal-conv1d": "convolutions are PyTorch's own",
    "mamba-ssm": "scans are written out in PyTorch, with more memory",
    "flash-linear-attention": "linear attention is written out in PyTorch, with more memory",
    "apex": "norms are PyTorch's own",
    "transformer-engine": "layers are PyTorch's own",
    "cut-cross-entropy": "the loss keeps all logits",
}

# Words of a command that ask for a package, which the machine that trains then has.
ASKED_BY = {
    "flash-attn": r"flash_attention_2|attn_impl\w*[\s=:\"']+flash_attn\b|flash_attn[\s=:\"']+fa2\b"
    r"|flash_attention:\s*true"
}

TRITON_VERSION = "3.6.0"


def of_file(path: str) -> set[str]:
    """Names of packages in a list, or in `pip freeze`, requirements, uv.lock, poetry.lock, `conda list`."""
    if not os.path.exists(path) and re.fullmatch(r"[A-Za-z0-9][\w.=+-]*(,[A-Za-z0-9][\w.=+-]*)*", path):
        if not path.endswith((".txt", ".lock", ".yml", ".yaml", ".toml")):
            return {re.sub(r"[-_.]+", "-", name.partition("==")[0]).lower() for name in path.split(",")}
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except OSError as e:
        raise RecordingError(f'--packages: "{path}" cannot be read ({e.strerror}).') from e
    names = re.findall(r"^([A-Za-z0-9][\w.-]*)\s*(?:==|@|>=|~=|\s+\d|$)", text, re.MULTILINE)
    names += re.findall(r'^name = "([^"]+)"', text, re.MULTILINE)
    if not names:
        raise RecordingError(
            f'--packages: "{path}" lists no package; give what `pip freeze` prints on the GPU machine.'
        )
    return {re.sub(r"[-_.]+", "-", name).lower() for name in names}


class Doors(importlib.abc.MetaPathFinder):
    """Sees which of these packages libraries look for, and stands in for some."""

    def __init__(self, there: set[str] | None, words: str = "") -> None:
        """`there`: packages of the machine with the GPU, if it is known which; `words`: what the command says."""
        self.there = there
        self.asked: dict[str, bool] = {}
        self.stood: dict[str, importlib.metadata.Distribution] = {}
        self.triton = self.lacks_triton()
        if self.triton:
            self.stood["triton"] = _Distribution("triton", "triton", TRITON_VERSION)
        self.says_flash = bool(re.search(ASKED_BY[flash_attention.NAME], words))
        wanted = self.says_flash or flash_attention.NAME in (there or ())
        if wanted and importlib.util.find_spec("flash_attn") is None:
            self.stood["flash_attn"] = _Distribution("flash_attn", flash_attention.NAME, flash_attention.VERSION)
        sys.meta_path.insert(0, self)

    def lacks_triton(self) -> bool:
        """True if PyTorch's CUDA wheel for Linux would have brought Triton, and it is not here."""
        import torch

        brought = torch.version.cuda is not None and sys.platform == "linux"
        wanted = brought if self.there is None else "triton" in self.there
        return wanted and importlib.util.find_spec("triton") is None

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        """Notes the question; answers it for what is stood in for."""
        top = name.partition(".")[0]
        if top in DOORS and name not in self.asked and "." not in name:
            self.asked[name] = False
            self.asked[name] = importlib.util.find_spec(name) is not None
        if top in self.stood:
            loader = _Loader() if top == "triton" else _Flash()
            return importlib.machinery.ModuleSpec(name, loader, is_package=True)
        return None

    def find_distributions(self, context: Any = None) -> list[importlib.metadata.Distribution]:
        """Metadata of what is stood in for."""
        wanted = getattr(context, "name", None)
        plain = re.sub(r"[-_.]+", "-", wanted).lower() if wanted else None
        return [
            d for top, d in self.stood.items() if plain is None or plain in (d.metadata["Name"], top.replace("_", "-"))
        ]

    def tell(self, notes: Notes) -> None:
        """Which ways were taken."""
        if self.triton and "triton" in self.asked:
            notes.tell(
                "triton",
                "not installed here; answered by a stand-in, since PyTorch's CUDA wheel brings it: kernels count",
            )
        if "flash_attn" in self.stood and "flash_attn" in self.asked:
            why = "the command asks for it" if self.says_flash else "it is in --packages"
            notes.tell(
                flash_attention.NAME,
                f"not installed here, and {why}: answered by a stand-in of {flash_attention.VERSION}, whose memory is "
                "that of its source; its time is not known",
            )
        for name, here in sorted(self.asked.items()):
            package = DOORS[name]
            if here or name in self.stood:
                if self.there is not None and here and package not in self.there:
                    notes.tell(
                        package,
                        "installed here, and not in --packages: libraries may have taken a way that is not theirs",
                    )
                continue
            if self.there is None:
                continue
            if package in self.there:
                way = WITHOUT.get(package, "libraries took the way without it")
                notes.tell(package, f"in --packages, and not installed here: {way}")

    def missing(self) -> list[str]:
        """Packages that were looked for and are not here."""
        return sorted({DOORS[n] for n, here in self.asked.items() if not here and n not in self.stood})

    def remove(self) -> None:
        """Sees no more."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        for name in [n for n in sys.modules if n.partition(".")[0] in self.stood]:
            del sys.modules[name]


class _Distribution(importlib.metadata.Distribution):
    def __init__(self, top: str, name: str, version: str) -> None:
        self.top = top
        self.text = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"

    def read_text(self, filename: str) -> str | None:
        """`METADATA`, and the name that is imported."""
        return {"METADATA": self.text, "top_level.txt": self.top}.get(filename)

    def locate_file(self, path: Any) -> Any:
        """No file."""
        raise FileNotFoundError(path)


class JITFunction:
    """A kernel: its launches are written down by the recorder, and it is never run."""

    def __init__(self, function: Callable[..., Any]) -> None:
        """Wraps the Python that Triton would compile."""
        self.fn = function
        self.__name__ = getattr(function, "__name__", "kernel")
        self.arg_names = list(inspect.signature(function).parameters)
        self.params = [
            SimpleNamespace(name=p.name, default=p.default, has_default=p.default is not p.empty)
            for p in inspect.signature(function).parameters.values()
        ]

    def run(self, *args: Any, grid: Any = (), **kwargs: Any) -> None:
        """Replaced by the recorder."""

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        """A launch over a grid."""
        return lambda *args, **kwargs: self.run(*args, grid=grid, warmup=False, **kwargs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """A function of the device, called by a person's mistake."""
        raise RuntimeError(f"{self.__name__} runs on a GPU alone")


class Autotuner(JITFunction):
    """A kernel with several configurations, of which the first is taken."""

    def __init__(self, fn: Any, configs: Any) -> None:
        """Wraps a kernel."""
        self.fn, self.configs = fn, configs
        self.__name__ = fn.__name__
        self.arg_names, self.params = fn.arg_names, fn.params


class Heuristics(JITFunction):
    """A kernel some of whose arguments follow from others."""

    def __init__(self, fn: Any, values: Any) -> None:
        """Wraps a kernel."""
        self.fn, self.values = fn, values
        self.__name__ = fn.__name__
        self.arg_names, self.params = fn.arg_names, fn.params


class Config:
    """A choice of block sizes."""

    def __init__(self, kwargs: Any, num_warps: int = 4, num_stages: int = 2, **rest: Any) -> None:
        """As Triton's."""
        self.kwargs, self.num_warps, self.num_stages = kwargs, num_warps, num_stages
        self.pre_hook = rest.get("pre_hook")

    def all_kwargs(self) -> dict[str, Any]:
        """As Triton's."""
        return {**self.kwargs, "num_warps": self.num_warps, "num_stages": self.num_stages}


def jit(function: Any = None, **options: Any) -> Any:
    """`triton.jit`, with or without options."""
    return JITFunction(function) if callable(function) else JITFunction


class constexpr:
    """A number that a kernel is compiled for."""

    def __init__(self, value: Any = None) -> None:
        """As Triton's."""
        self.value = value.value if isinstance(value, constexpr) else value


KNOWN: dict[str, Any] = {
    "jit": jit,
    "autotune": lambda configs, key=None, **rest: lambda fn: Autotuner(fn, configs),
    "heuristics": lambda values: lambda fn: Heuristics(fn, values),
    "cdiv": lambda x, y: -(-x // y),
    "next_power_of_2": lambda n: 1 << max(0, int(n) - 1).bit_length(),
    "Config": Config,
    "JITFunction": JITFunction,
    "Autotuner": Autotuner,
    "Heuristics": Heuristics,
    "KernelInterface": JITFunction,
    "constexpr": constexpr,
    "__version__": TRITON_VERSION,
}


class _Module(ModuleType):
    """A module of Triton: what host code calls works, the rest is there by its name."""

    def __getattr__(self, name: str) -> Any:
        """A known function, a class by its capital, or a name of the device's language."""
        if name in KNOWN:
            return KNOWN[name]
        if name.startswith("__"):
            raise AttributeError(name)
        if name[0].isupper():
            made: Any = type(name, (), {})
        else:
            made = _Module(f"{self.__name__}.{name}")
            made.__path__ = []
            # `from triton.runtime import driver` is an object with properties, whose class the recorder sets.
            if name == "driver":
                made = type("Driver", (), {})()
        setattr(self, name, made)
        return made

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """A function of the language, or a decorator."""
        return args[0] if len(args) == 1 and callable(args[0]) else _Module("value")


class _Loader(importlib.abc.Loader):
    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        """An empty module; what it holds is made when asked for."""
        module = _Module(spec.name)
        module.__path__ = []  # type: ignore[attr-defined]
        module.__file__ = os.devnull
        if spec.name == "triton":
            module.__version__ = TRITON_VERSION  # type: ignore[attr-defined]
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Nothing to run."""


class _Flash(importlib.abc.Loader):
    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        """A module of flash-attn."""
        module = ModuleType(spec.name)
        module.__path__ = []
        module.__file__ = os.devnull
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Puts its functions in."""
        flash_attention.fill(module)
