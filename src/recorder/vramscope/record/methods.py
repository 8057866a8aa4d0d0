"""Methods and functions of tensors that don't come past the dispatcher, or come past it wrongly."""

from __future__ import annotations

from typing import Any

import torch
import torch.utils._foreach_utils as foreach
from torch._prims_common import suggest_memory_format
from torch.overrides import TorchFunctionMode, _get_current_function_mode_stack
from torch.utils._device import DeviceContext, _device_constructors
from torch.utils._python_dispatch import _disable_current_modes

from vramscope.record.mode import Recorder
from vramscope.record.patches import Patches
from vramscope.record.tensors import CPU, CUDA, CudaTensor, Emulated, HostTensor, is_emulated, normal_device

aten = torch.ops.aten
T = torch.Tensor


class MetaRequests(TorchFunctionMode):
    """Notes that a script itself asks for the device `meta`, which C++ takes emulated tensors to be on."""

    def __init__(self, recorder: Recorder) -> None:
        """Notes requests for this recorder."""
        super().__init__()
        self.recorder = recorder
        self.constructors = _device_constructors()

    def __torch_function__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        """Passes the call on."""
        if not kwargs and func not in self.constructors:
            return func(*args)
        kwargs = kwargs or {}
        device = kwargs.get("device")
        if device is None and func in self.constructors:
            device = context_device()
        if device is None or type(device) is int or torch.device(device).type != "meta":
            return func(*args, **kwargs)
        before, self.recorder.explicit_meta = self.recorder.explicit_meta, True
        try:
            return func(*args, **kwargs)
        finally:
            self.recorder.explicit_meta = before


def context_device() -> torch.device | None:
    """Device of the innermost `with torch.device(...)`."""
    for mode in reversed(_get_current_function_mode_stack()):
        if isinstance(mode, DeviceContext):
            return mode.device
    return None


class Methods:
    """Replacements for methods of tensors, for whichever recorder runs."""

    recorder: Recorder

    def __init__(self, recorder: Recorder, patches: Patches) -> None:
        """Replacements for this recorder."""
        Methods.recorder = recorder
        self.patches = patches
        self.real_to = T.to
        self.real_tensor = torch.tensor
        self.real_as_tensor = torch.as_tensor
        self.real_data = T.data
        self.real_script = torch.jit.script

    def script(self, obj: Any, *args: Any, **kwargs: Any) -> Any:
        """`torch.jit.script`, which cannot compile what calls a replaced function: that runs as Python.

        `torch.distributed.optim` compiles its optimizers when it is imported.
        """
        try:
            return self.real_script(obj, *args, **kwargs)
        except (RuntimeError, torch.jit.frontend.FrontendError):
            return obj

    def install(self) -> None:
        """Replaces them."""
        for owner in (T,):
            self.patches.set(owner, "to", lambda x, *a, **k: self.to(x, a, k))
            self.patches.set(owner, "cuda", lambda x, *a, **k: self.to(x, ("cuda",), {}))
            self.patches.set(owner, "pin_memory", lambda x, *a: x)
            self.patches.set(owner, "data", property(self.get_data, self.set_data))
        methods: dict[str, Any] = dict(
            cpu=lambda x, *a, **k: self.to(x, ("cpu",), {}),
            type_as=lambda x, other: self.to(x, (other,), {}),
            is_pinned=lambda x, *a: False,
            record_stream=lambda x, stream: None,
            get_device=lambda x: 0 if type(x) is CudaTensor else -1,
            new_tensor=lambda x, data, **k: self.new_tensor(x, data, **k),
            tolist=lambda x: self.tolist(x),
            numpy=lambda x, *a, **k: self.elements(x, "numpy").numpy(),
            __array__=lambda x, dtype=None, *a, **k: self.elements(x, "numpy").numpy().__array__(dtype),
            data_ptr=lambda x: x.untyped_storage()._cdata,
            type=lambda x, *a, **k: self.type(x, *a, **k),
            share_memory_=lambda x: x,
            is_shared=lambda x: False,
            __getitem__=lambda x, at: T.__getitem__(x, self.places(x, at)),
            __setitem__=lambda x, at, value: T.__setitem__(x, self.places(x, at), self.scalar(x, value)),
            device=property(lambda x: x.home),
            is_cuda=property(lambda x: type(x) is CudaTensor),
            is_cpu=property(lambda x: type(x) is HostTensor),
            is_meta=property(lambda x: False),
        )
        for name, method in methods.items():
            self.patches.set(Emulated, name, method)
        self.patches.set(torch, "tensor", lambda *a, **k: self.tensor(a, k, self.real_tensor))
        self.patches.set(torch, "as_tensor", lambda *a, **k: self.tensor(a, k, self.real_as_tensor))
        self.patches.set(torch, "Generator", _Generator)
        self.patches.set(torch.jit, "script", self.script)
        kinds = [*foreach._foreach_supported_types, CudaTensor, HostTensor]
        self.patches.set(foreach, "_foreach_supported_types", kinds)

    # Moving

    def to(self, x: torch.Tensor, args: tuple, kwargs: dict[str, Any]) -> torch.Tensor:
        """`Tensor.to` and its kin."""
        if not is_emulated(x) and not self._mentions_card(args, kwargs):
            before = self.recorder.explicit_meta
            self.recorder.explicit_meta = "meta" in map(str, (*args, *kwargs.values())[:2])
            try:
                return self.real_to(x, *args, **kwargs)
            finally:
                self.recorder.explicit_meta = before
        device, dtype, copy, layout = self._parse(x, args, dict(kwargs))
        device = normal_device(device)
        wanted: dict[str, Any] = {}
        if dtype is not None and dtype != x.dtype:
            wanted["dtype"] = dtype
        if device is not None and device != x.device:
            wanted["device"] = device
        if not wanted and not copy:
            # `to_will_alias` in aten/src/ATen/native/TensorConversions.cpp: a transposed tensor counts as contiguous.
            if layout is None or layout is torch.preserve_format or suggest_memory_format(x) == layout:
                return x
        if layout is not None:
            wanted["memory_format"] = layout
        before = self.recorder.explicit_meta
        self.recorder.explicit_meta = device is not None and device.type == "meta"
        try:
            return aten._to_copy.default(x, **wanted)
        finally:
            self.recorder.explicit_meta = before

    def _mentions_card(self, args: tuple, kwargs: dict[str, Any]) -> bool:
        for a in (*args, *kwargs.values()):
            if isinstance(a, Emulated):
                return True
            if isinstance(a, int) and not isinstance(a, bool):
                return True
            if isinstance(a, (str, torch.device)) and torch.device(a).type == "cuda":
                return True
        return False

    def _parse(self, x: torch.Tensor, args: tuple, kwargs: dict[str, Any]) -> tuple[Any, Any, bool, Any]:
        copy = kwargs.pop("copy", False)
        layout = kwargs.get("memory_format")
        other = args[0] if args and isinstance(args[0], torch.Tensor) else kwargs.get("other")
        if other is not None:
            return other.device, other.dtype, copy, layout
        positional = list(args)
        if positional and isinstance(positional[0], torch.dtype):
            if len(positional) > 2:
                copy = positional.pop(2)
        elif len(positional) > 3:
            copy = positional.pop(3)
        if positional and isinstance(positional[0], int):
            positional[0] = torch.device("cuda", positional[0])
        if isinstance(kwargs.get("device"), int):
            kwargs["device"] = torch.device("cuda", kwargs["device"])
        device, dtype, _, layout = torch._C._nn._parse_to(*positional, **kwargs)
        return device, dtype, copy, layout

    def type(self, x: Emulated, dtype: Any = None, non_blocking: bool = False, **kwargs: Any) -> Any:
        """`Tensor.type`."""
        if dtype is None:
            name = {"float32": "Float", "float16": "Half", "bfloat16": "BFloat16", "int64": "Long", "bool": "Bool"}
            short = str(x.dtype).removeprefix("torch.")
            return ("torch.cuda." if type(x) is CudaTensor else "torch.") + name.get(short, short) + "Tensor"
        if isinstance(dtype, torch.dtype):
            return self.to(x, (dtype,), {})
        name = dtype if isinstance(dtype, str) else f"{dtype.__module__}.{dtype.__name__}"
        kinds = {"FloatTensor": torch.float32, "HalfTensor": torch.float16, "BFloat16Tensor": torch.bfloat16}
        kinds |= {"LongTensor": torch.int64, "IntTensor": torch.int32, "BoolTensor": torch.bool}
        return self.to(x, (CUDA if ".cuda." in name else CPU, kinds[name.rpartition(".")[2]]), {})

    # Data

    def get_data(self, x: torch.Tensor) -> torch.Tensor:
        """`Tensor.data`."""
        return self.real_data.__get__(x)

    def set_data(self, x: torch.Tensor, value: torch.Tensor) -> None:
        """Lets `x` look at the memory of `value`, on whatever device."""
        self.real_data.__set__(x, value)
        if isinstance(value, Emulated):
            if not isinstance(x, Emulated) and isinstance(x, torch.nn.Parameter):
                become(x, type(value))
                x._is_param = True  # type: ignore[attr-defined]
            else:
                become(x, type(value))
            x._vs = value._vs  # type: ignore[attr-defined]
        elif isinstance(x, Emulated):
            x.__class__ = torch.nn.Parameter if getattr(x, "_is_param", False) else torch.Tensor  # type: ignore[assignment]
            del x._vs

    def elements(self, x: Emulated, what: str) -> torch.Tensor:
        """Elements on the host, assumed where nobody knows them."""
        with _disable_current_modes(), torch._C.DisableTorchFunction(), torch.no_grad():
            return self.recorder.need(x, what).detach()

    def tolist(self, x: Emulated) -> Any:
        """`Tensor.tolist`, which copies to the host first (`tensor_to_list`, `torch/csrc/utils/tensor_list.cpp`)."""
        known = self.elements(x, "tolist")
        if type(x) is CudaTensor:
            aten._to_copy.default(x, device=CPU)
        return known.tolist()

    def scalar(self, x: Emulated, value: Any) -> Any:
        """A number to be assigned to a part of `x` as a tensor on the host (`THPVariable_setitem`)."""
        if type(x) is not CudaTensor or not isinstance(value, (bool, int, float, complex)):
            return value
        with _disable_current_modes(), torch._C.DisableTorchFunction():
            return torch.full((), value, dtype=x.dtype, device=CPU)

    def places(self, x: Emulated, at: Any) -> Any:
        """An index with tensors in place of lists, which C++ would make on `meta`, without their values."""
        if type(at) is list:
            return torch.tensor(at, device=x.device) if at and not any(isinstance(i, slice) for i in at) else at
        if type(at) is tuple and any(type(i) in (list, tuple) for i in at):
            return tuple(torch.tensor(i, device=x.device) if type(i) in (list, tuple) else i for i in at)
        return at

    # Making

    def new_tensor(self, x: Emulated, data: Any, **kwargs: Any) -> torch.Tensor:
        """`Tensor.new_tensor`."""
        kwargs.setdefault("device", x.device)
        kwargs.setdefault("dtype", x.dtype)
        return torch.tensor(data, **kwargs)

    def tensor(self, args: tuple, kwargs: dict[str, Any], make: Any) -> torch.Tensor:
        """`torch.tensor` and `torch.as_tensor`: made on the host, then moved."""
        kwargs = dict(kwargs)
        given = list(args)
        data = given.pop(0) if given else kwargs.pop("data")
        for name in ("dtype", "device")[: len(given)]:
            kwargs[name] = given.pop(0)
        device = normal_device(
            kwargs.pop("device", None) or (None if isinstance(data, torch.Tensor) else context_device())
        )
        requires_grad = kwargs.pop("requires_grad", False)
        kwargs.pop("pin_memory", None)
        if isinstance(data, torch.Tensor):
            x = data if make is self.real_as_tensor else data.detach().clone()
            wanted = {k: v for k, v in dict(dtype=kwargs.get("dtype"), device=device).items() if v is not None}
            x = x.to(**wanted) if wanted else x
        else:
            inner = _first_tensor(data)
            if inner is not None:
                kwargs["dtype"] = kwargs.get("dtype") or inner.dtype
                device = device or (CUDA if type(inner) is CudaTensor and make is self.real_as_tensor else device)
                data = self.plain(data)
            if device is not None and device.type == "meta":
                return make(data, device="meta", **kwargs)
            x = make(data, device="cpu", **kwargs)
            if device is not None and device != CPU:
                x = self.to(x, (device,), {})
        return x.requires_grad_(True) if requires_grad else x

    def plain(self, data: Any) -> Any:
        """Nested lists with numbers in place of tensors."""
        if isinstance(data, torch.Tensor):
            return self.elements(data, "torch.tensor").tolist() if isinstance(data, Emulated) else data.tolist()
        if isinstance(data, (list, tuple)):
            return [self.plain(x) for x in data]
        return data


def become(x: torch.Tensor, kind: type[Emulated]) -> None:
    """Makes the Python object of `x` one of this class."""
    if type(x) is not kind:
        x.__class__ = kind  # type: ignore[assignment]


def _first_tensor(data: Any) -> torch.Tensor | None:
    if isinstance(data, torch.Tensor):
        return data
    if isinstance(data, (list, tuple)):
        for x in data:
            found = _first_tensor(x)
            if found is not None:
                return found
    return None


class _GeneratorType(type):
    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, _RealGenerator)


_RealGenerator = torch.Generator


class _Generator(metaclass=_GeneratorType):
    """`torch.Generator` on any device."""

    def __new__(cls, device: Any = "cpu") -> Any:
        return _RealGenerator()
