"""Pretrained models made from their configuration alone: weights need shapes and types, not values."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import torch

from vramscope.record import bitsandbytes, cuda
from vramscope.record.errors import RecordingError
from vramscope.record.patches import Patches
from vramscope.record.tensors import CUDA, CudaTensor

# Arguments of `from_pretrained` that say how files are found or read.
FILES = """cache_dir force_download local_files_only token revision proxies subfolder _commit_hash trust_remote_code
    code_revision""".split()
IGNORED = """ignore_mismatched_sizes use_safetensors weights_only state_dict tqdm_class _from_pipeline _from_auto
    max_memory offload_folder offload_buffers variant adapter_kwargs adapter_name generation_config key_mapping
    mirror _fast_init low_cpu_mem_usage from_tf from_flax offload_state_dict use_kernels kernel_config
    fusion_config disable_mmap tp_plan tp_size device_mesh distributed_config gguf_file""".split()


def patch(module: ModuleType, patches: Patches) -> None:
    """Replaces `PreTrainedModel.from_pretrained` of transformers."""
    patches.set(module.PreTrainedModel, "from_pretrained", classmethod(from_pretrained))


# Device maps that transformers works out.
SPREAD = ("auto", "balanced", "balanced_low_0", "sequential")

# What PyTorch's allocator reserves for a tensor of less than 1 MiB (`kSmallBuffer`).
SMALL_SEGMENT = 2 << 20


class Unloaded(dict):  # type: ignore[type-arg]
    """Weights of a checkpoint that is not here: loading them changes no shape."""


def weights(patches: Patches) -> None:
    """Lets weights that a script fetches by their address be absent."""
    real = torch.nn.Module.load_state_dict

    def load_state_dict(self: Any, state_dict: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(state_dict, Unloaded):
            return torch.nn.modules.module._IncompatibleKeys([], [])
        return real(self, state_dict, *args, **kwargs)

    patches.set(torch.nn.Module, "load_state_dict", load_state_dict)
    patches.set(torch.hub, "load_state_dict_from_url", lambda *args, **kwargs: Unloaded())


def timm(module: ModuleType, patches: Patches) -> None:
    """Replaces `load_pretrained` of timm, which fetches weights that change no shape."""
    patches.set_existing(module, load_pretrained=lambda *args, **kwargs: None)


def torchvision(module: ModuleType, patches: Patches) -> None:
    """Replaces what torchvision fetches weights with."""
    patches.set(module.WeightsEnum, "get_state_dict", lambda self, *args, **kwargs: Unloaded())


def from_pretrained(cls: Any, name: Any, *args: Any, config: Any = None, **kwargs: Any) -> Any:
    """A model as `from_pretrained` leaves it: in its dtype, on its device, in evaluation mode."""
    info = kwargs.pop("output_loading_info", False)
    device_map = kwargs.pop("device_map", None)
    wanted = kwargs.pop("quantization_config", None)
    files = {k: kwargs.pop(k) for k in FILES if k in kwargs}
    for k in IGNORED:
        kwargs.pop(k, None)
    dtype = kwargs.pop("dtype", None) or kwargs.pop("torch_dtype", None)
    kwargs.pop("torch_dtype", None)
    attention = {k: kwargs.pop(k) for k in ("attn_implementation", "experts_implementation") if k in kwargs}
    if config is None or isinstance(config, (str, os.PathLike)):
        config, kwargs = configuration(cls, config or name, files, kwargs)
    dtype = resolve(dtype, config)

    def make() -> Any:
        with unfilled():
            return cls._from_config(config, dtype=dtype, **attention, **kwargs)

    wanted = wanted or getattr(config, "quantization_config", None)
    if wanted is None:
        model = make()
    else:
        model, device_map = bitsandbytes.quantized(cls, config, wanted, device_map, make)
    config.name_or_path = str(name)
    device = where(device_map)
    if device is not None:
        warm_up(model, device_map in SPREAD)
        load(model, device)
        model.to(device)
        model.hf_device_map = {"": device}
    model.eval()
    empty: dict[str, list[Any]] = dict(missing_keys=[], unexpected_keys=[], mismatched_keys=[], error_msgs=[])
    return (model, empty) if info else model


# Functions of `torch.nn.init` that fill with random numbers.
RANDOM = """uniform_ normal_ trunc_normal_ xavier_uniform_ xavier_normal_ kaiming_uniform_ kaiming_normal_ orthogonal_
    sparse_""".split()


@contextlib.contextmanager
def unfilled() -> Iterator[None]:
    """Draws no random numbers for weights on the host that a checkpoint would bring.

    `from_pretrained` makes them on `meta`, which draws none: with them a run's samples would come in another order, and
    they take most of the time that a large model is made in.
    """
    init = torch.nn.init
    own = getattr(sys.modules.get("transformers.initialization"), "TORCH_INIT_FUNCTIONS", {})
    before = {name: getattr(init, name) for name in RANDOM if hasattr(init, name)}
    kept = {name: own[name] for name in RANDOM if name in own}

    def leaving(real: Any) -> Any:
        def fill(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
            return real(tensor, *args, **kwargs) if type(tensor) is CudaTensor else tensor

        return fill

    try:
        for name, real in before.items():
            setattr(init, name, leaving(real))
        own.update({name: leaving(real) for name, real in kept.items()})
        yield
    finally:
        for name, real in before.items():
            setattr(init, name, real)
        own.update(kept)


def configuration(cls: Any, name: Any, files: dict[str, Any], kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Configuration of a model on this machine, and the arguments that it doesn't know."""
    try:
        return cls.config_class.from_pretrained(
            name, return_unused_kwargs=True, **{**files, "local_files_only": True}, **kwargs
        )
    except OSError as e:
        raise RecordingError(
            f'The configuration of "{name}" is not on this machine, and the recorder does not use the network. '
            f"Bring its config.json, with tokenizer and processor files if the script reads them, into a folder and "
            f"give the folder's path."
        ) from e


def resolve(dtype: Any, config: Any) -> torch.dtype:
    """Type of the weights: what was asked for, else the configuration's where transformers takes it, else fp32."""
    import transformers

    if dtype is None:
        dtype = "auto" if int(transformers.__version__.split(".")[0]) >= 5 else torch.float32
    if isinstance(dtype, str):
        if dtype != "auto":
            return getattr(torch, dtype)
        dtype = getattr(config, "dtype", None) or getattr(config, "torch_dtype", None)
        if dtype is None and hasattr(config, "get_text_config"):
            dtype = getattr(config.get_text_config(), "dtype", None)
    return getattr(torch, dtype) if isinstance(dtype, str) else dtype or torch.float32


def where(device_map: Any) -> torch.device | None:
    """Device of the whole model, if a map gives one."""
    if device_map is None:
        return None
    if isinstance(device_map, dict):
        devices = {str(d) for d in device_map.values()}
        if len(devices) != 1:
            raise RecordingError(f"device_map spreads the model over {sorted(devices)}; one card is recorded.")
        device_map = next(iter(device_map.values()))
    if device_map in SPREAD:
        return CUDA
    return torch.device("cuda", device_map) if isinstance(device_map, int) else torch.device(device_map)


def load(model: Any, device: torch.device) -> None:
    """Moves parameters in the order in which transformers 5 loads a checkpoint, by name with numbers as numbers.

    Four threads copy there, so that neighbours may change places; `convert_and_load_state_dict_in_model`.
    """
    core = sys.modules.get("transformers.core_model_loading")
    if core is None or not hasattr(core, "dot_natural_key"):
        return
    tied = getattr(model, "all_tied_weights_keys", {})
    for name, parameter in sorted(model.named_parameters(), key=lambda x: core.dot_natural_key(x[0])):
        # Quantized weights are there already.
        if name not in tied and not parameter.is_cuda:
            with torch.no_grad():
                # The parameter itself, and not its data: values of large weights are not followed.
                parameter.data = parameter.to(device)


def warm_up(model: Any, spread: bool) -> None:
    """Asks once for the memory of all weights and lets go of it, so that they are cut from one segment.

    As `caching_allocator_warmup` of transformers does; `spread`: a device map such as "auto", for which accelerate asks
    each card for its memory with a tensor of one element (`get_max_memory`).
    """
    if not hasattr(__import__("transformers").modeling_utils, "caching_allocator_warmup"):
        return
    unused = cuda.QUESTIONS.recorder.cached_peak - cuda.QUESTIONS.recorder.live_bytes
    if spread:
        torch.tensor([0], device=CUDA)
        unused = max(unused, SMALL_SEGMENT)
    wanted = sum(x.numel() * x.element_size() for x in saved(model))
    if wanted - unused > unused:
        wanted -= unused
    elif wanted - unused > 1.5 * 2**30:
        wanted = unused + 1
    else:
        wanted = 0
    torch.empty(wanted // 2, dtype=torch.float16, device=CUDA, requires_grad=False)


def saved(model: Any) -> list[torch.Tensor]:
    """Parameters and buffers that a checkpoint holds, tied ones once."""
    found = list(model.parameters())
    for module in model.modules():
        kept = module._buffers.items()
        found += [x for name, x in kept if x is not None and name not in module._non_persistent_buffers_set]
    return found
