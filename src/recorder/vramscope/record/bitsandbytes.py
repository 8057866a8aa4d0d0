"""bitsandbytes without a GPU: its own Python runs, and asks for memory as on one; its compiled kernels do nothing.

The functions that bitsandbytes registers for CUDA (`backends/cuda/ops.py`) make outputs and temporary tensors in Python
and then call a kernel by its pointer, so that running them with kernels that return at once allocates what a GPU's run
does: quantized weights and their states, dequantized weights of a product, 8-bit states of optimizers.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch

from vramscope.record import shaped
from vramscope.record.errors import RecordingError
from vramscope.record.patches import Patches
from vramscope.record.tensors import CUDA, CudaTensor, Emulated

# What bitsandbytes registered for CUDA, by operation and overload.
KERNELS: dict[str, Callable[..., Any]] = {}

# The first version whose kernels for CUDA are registered in Python.
OLDEST = "0.46"


class Kernels:
    """In place of the compiled library: functions of any name that do nothing and report success."""

    compiled_with_cuda = True

    def __getattr__(self, name: str) -> Any:
        """A function whose signature can be declared, kept for the next call."""
        if name.startswith("__"):
            raise AttributeError(name)

        def kernel(*args: Any) -> int:
            return 0

        setattr(self, name, kernel)
        return kernel


def library(module: ModuleType, patches: Patches) -> None:
    """Replaces the compiled library in `bitsandbytes.cextension`, before others take it from there."""
    patches.set_existing(module, lib=Kernels())


def operations(module: ModuleType, patches: Patches) -> None:
    """Keeps what `bitsandbytes._ops` has registered for CUDA, and answers these operations with it."""
    real = module.register_kernel

    def register_kernel(name: str, device: Any, *rest: Any) -> Any:
        register = real(name, device, *rest)

        def keep(function: Any) -> Any:
            if device == "cuda":
                operation = name.partition("::")[2]
                KERNELS[operation] = function
                shaped.HANDLERS.setdefault(operation.partition(".")[0], run)
            return register(function)

        return keep

    patches.set(module, "register_kernel", register_kernel)


def run(recorder: Any, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """An operation on the card, by the function that a GPU's run calls."""
    if func.namespace != "bitsandbytes" or not any(type(x) is CudaTensor for x in (*args, *kwargs.values())):
        return NotImplemented
    overload = "" if func._overloadname in ("", "default") else f".{func._overloadname}"
    kernel = KERNELS.get(func._schema.name.partition("::")[2] + overload)
    if kernel is None:
        return NotImplemented
    with recorder:
        return kernel(*args, **kwargs)


def method(name: str) -> Any:
    """A method of tensors that a library's class of weights has its own of."""

    def call(x: Any, *args: Any, **kwargs: Any) -> Any:
        cls = x.__dict__.get("_seen_as") or torch.Tensor
        return getattr(cls, name)(x, *args, **kwargs)

    return call


def modules(module: ModuleType, patches: Patches) -> None:
    """Makes the weights of `bitsandbytes.nn.modules` of emulated tensors."""
    for name in ("to", "cuda", "cpu"):
        patches.set(Emulated, name, method(name))
    for cls in (module.Params4bit, module.Int8Params):
        patches.set(cls, "__new__", staticmethod(making(cls.__new__)))


def making(real: Any) -> Any:
    """`__new__` of a class of weights, for data that is emulated.

    The recorder knows its tensors by their class, and bitsandbytes and peft look at a weight's class and call its
    methods: what is made is the recorder's, and passes for theirs (`Emulated.__class__`).
    """
    given = list(inspect.signature(real).parameters.values())[1:]

    def new(cls: Any, data: Any = None, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(data, Emulated):
            return real(cls, data, *args, **kwargs)
        named = [p for p in given if p.kind is p.POSITIONAL_OR_KEYWORD]
        said = {p.name: p.default for p in named} | dict(zip([p.name for p in named[1:]], args, strict=False)) | kwargs
        x = data.detach()
        x.requires_grad_(bool(said.pop("requires_grad")))
        said.pop("data")
        if said.get("blocksize", 0) is None:
            said["blocksize"] = 64
        for name in (p.name for p in named):
            if name in said:
                setattr(x, name, said[name])
        x._is_param, x._seen_as = True, cls
        return x

    return new


def functions(module: ModuleType, patches: Patches) -> None:
    """Memory of `bitsandbytes.functional` that is no tensor of PyTorch's: pages that CUDA moves between both sides."""

    def get_paged(*shape: int, dtype: torch.dtype = torch.float32, device: Any = CUDA) -> torch.Tensor:
        made = torch.zeros(shape, dtype=dtype, device="cpu")
        made.is_paged, made.page_deviceid = True, 0  # type: ignore[attr-defined]
        return made

    patches.set_existing(
        module,
        get_paged=get_paged,
        prefetch_tensor=lambda *args, **kwargs: None,
        is_on_gpu=lambda tensors: True,
    )


def actions(patches: Patches) -> dict[str, Callable[[ModuleType], None]]:
    """What is done as soon as these modules are imported."""
    return {
        "bitsandbytes.cextension": lambda m: library(m, patches),
        "bitsandbytes._ops": lambda m: operations(m, patches),
        "bitsandbytes.nn.modules": lambda m: modules(m, patches),
        "bitsandbytes.functional": lambda m: functions(m, patches),
    }


def quantized(cls: Any, config: Any, wanted: Any, device_map: Any, make: Callable[[], Any]) -> tuple[Any, Any]:
    """A model with quantized weights, as `from_pretrained` leaves it, and where it is.

    `make` makes it with its whole weights on the host; each is then put on the card, quantized there, and let go, by
    the functions of transformers that do it when a checkpoint is read (`Bnb4bitQuantize`, `Bnb8bitQuantize`).
    """
    try:
        from transformers.quantizers.auto import AutoHfQuantizer
        from transformers.quantizers.quantizers_utils import get_module_from_name
    except ImportError as e:
        raise RecordingError(f"This transformers has no quantizers that are known here ({e}).") from e
    # Where the configuration itself says so, weights are stored quantized: they have the same shapes.
    quantizer = AutoHfQuantizer.from_config(wanted, pre_quantized=False)
    method = str(getattr(quantizer.quantization_config.quant_method, "value", ""))
    if method not in ("bitsandbytes", "bitsandbytes_4bit", "bitsandbytes_8bit"):
        raise RecordingError(
            f"Weights quantized by {method or type(quantizer).__name__} can't be recorded without a GPU. Record with "
            "bitsandbytes' 4 or 8 bits, or with unquantized weights."
        )
    if not hasattr(quantizer, "get_quantize_ops"):
        raise RecordingError("Quantized weights are recorded with transformers 5 or newer.")
    quantizer.validate_environment(device_map=device_map)
    device_map = quantizer.update_device_map(device_map)
    model = make()
    weights = dict(model.named_parameters())
    quantizer.preprocess_model(model=model, dtype=None, device_map=device_map)
    if not KERNELS:
        raise RecordingError(f"bitsandbytes {OLDEST} or newer is needed, whose kernels are called from Python.")
    model.hf_quantizer = quantizer
    quantize = quantizer.get_quantize_ops()
    for name in list(weights):
        module, leaf = get_module_from_name(model, name)
        if not quantizer.param_needs_quantization(model, name):
            # Modules that were replaced have biases without memory.
            module._parameters[leaf] = weights.pop(name)
            continue
        loaded = weights.pop(name).detach().to(CUDA)
        made = quantize.convert({name: [loaded]}, model=model, full_layer_name=name)[name]
        del loaded
        module._parameters[leaf] = made
    quantizer.postprocess_model(model)
    return model, device_map
