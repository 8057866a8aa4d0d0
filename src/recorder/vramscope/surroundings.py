"""What a Python has that decides how a run is recorded and predicted, as JSON: for `vramscope doctor`."""

from __future__ import annotations

import importlib.metadata
import platform
import re
from typing import Any

from vramscope import __version__

# Libraries that train, and those whose presence changes what a step takes.
LIBRARIES = (
    "torch",
    "transformers",
    "accelerate",
    "peft",
    "trl",
    "deepspeed",
    "bitsandbytes",
    "ms-swift",
    "llamafactory",
    "axolotl",
    "unsloth",
    "lightning",
    "pytorch-lightning",
    "flash-attn",
    "liger-kernel",
    "xformers",
    "triton",
    "kernels",
    "vllm",
    "torchvision",
    "timm",
    "datasets",
    "vramscope",
)


def normalized(name: str) -> str:
    """A package's name as PyPI compares names."""
    return re.sub(r"[-_.]+", "-", name).lower()


def versions() -> dict[str, str]:
    """Versions of the libraries that are installed, without importing any."""
    found = {}
    for one in importlib.metadata.distributions():
        name = one.metadata["Name"] if one.metadata else None
        if name:
            # The first on the path is the one that is imported.
            found.setdefault(normalized(name), one.version)
    return {name: found[name] for name in LIBRARIES if name in found}


def pytorch() -> dict[str, Any]:
    """What the installed PyTorch says of itself and of cards, or why it cannot be imported."""
    try:
        import torch
    except Exception as error:  # A library that is missing on this system raises what it likes.
        return {"error": f"{type(error).__name__}: {error}"}
    said: dict[str, Any] = {"cuda": torch.version.cuda, "sees_cuda": False, "cards": []}
    try:
        said["sees_cuda"] = torch.cuda.is_available()
        said["cards"] = [torch.cuda.get_device_name(at) for at in range(torch.cuda.device_count())]
    except Exception as error:  # A driver that is too old.
        said["error"] = f"{type(error).__name__}: {error}"
    return said


def recorder() -> str | None:
    """Why the recorder cannot run here; None if it can."""
    try:
        import vramscope.record.session  # noqa: F401
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def surroundings() -> dict[str, Any]:
    """All of it."""
    found = versions()
    return {
        "version": platform.python_version(),
        "implementation": platform.python_implementation(),
        "libraries": found,
        "pytorch": pytorch() if "torch" in found else None,
        "recorder": __version__,
        "recorder_fails": recorder() if "torch" in found else None,
    }
