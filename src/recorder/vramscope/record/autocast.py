"""Autocast for emulated tensors: its C++ kernels ask a tensor if it is on the card, which ours deny."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable
from typing import Any

import torch

from vramscope.record.tensors import CudaTensor

KEY = "AutocastCUDA"

# `aten/src/ATen/autocast_mode.h`: what runs in low precision, in fp32, in fp32 by its argument, or in the widest type.
LOW = """_convolution conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d convolution
    cudnn_convolution cudnn_convolution_transpose prelu addmm addmv addr matmul einsum mm mv linalg_vecdot
    linear addbmm baddbmm bmm chain_matmul linalg_multi_dot _thnn_fused_lstm_cell _thnn_fused_gru_cell lstm_cell
    gru_cell rnn_tanh_cell rnn_relu_cell _scaled_dot_product_flash_attention scaled_dot_product_attention""".split()
FP32 = """acos asin cosh erfinv exp expm1 log log10 log2 log1p reciprocal rsqrt sinh tan pow softplus layer_norm
    native_layer_norm group_norm frobenius_norm nuclear_norm cosine_similarity poisson_nll_loss
    cosine_embedding_loss nll_loss nll_loss2d hinge_embedding_loss kl_div l1_loss smooth_l1_loss huber_loss
    mse_loss margin_ranking_loss multilabel_margin_loss soft_margin_loss triplet_margin_loss multi_margin_loss
    binary_cross_entropy_with_logits dist pdist cdist renorm logsumexp upsample_nearest1d
    _upsample_nearest_exact1d upsample_nearest2d _upsample_nearest_exact2d upsample_nearest3d
    _upsample_nearest_exact3d upsample_linear1d upsample_bilinear2d _upsample_bilinear2d_aa upsample_trilinear3d
    upsample_bicubic2d _upsample_bicubic2d_aa""".split()
FP32_BY_ARGUMENT = """prod softmax log_softmax cumprod cumsum linalg_vector_norm linalg_matrix_norm sum""".split()
WIDEST = (
    """addcdiv addcmul atan2 bilinear cross dot vdot grid_sample index_put tensordot scatter_add cat stack""".split()
)

FLOATS = (torch.float32, torch.float16, torch.bfloat16)


class Casts:
    """Low-precision copies of weights, kept until the outermost autocast ends."""

    def __init__(self) -> None:
        """None yet."""
        self.kept: dict[int, tuple[weakref.ref[torch.Tensor], torch.Tensor]] = {}
        self.on_keep: Callable[[torch.Tensor], None] = lambda copy: None

    def clear(self) -> None:
        """Lets go of all copies."""
        self.kept.clear()

    def cast(self, x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        """`x` in this type if autocast casts it (`cached_cast`)."""
        if not eligible(x) or x.dtype == dtype:
            return x
        keeps = (
            x.dtype == torch.float32
            and dtype == torch.get_autocast_dtype("cuda")
            and x.requires_grad
            and x.is_leaf
            and not x._is_view()
            and torch.is_autocast_cache_enabled()
        )
        if not keeps:
            return x.to(dtype)
        held = self.kept.get(id(x))
        if held is None or held[0]() is not x:
            copy = x.to(dtype)
            self.on_keep(copy)
            held = self.kept[id(x)] = (weakref.ref(x), copy)
        return held[1]

    def cast_all(self, given: Any, dtype: torch.dtype) -> Any:
        """Casts tensors in lists too, the last first, as C++ evaluates them."""
        if isinstance(given, torch.Tensor):
            return self.cast(given, dtype)
        if isinstance(given, (list, tuple)):
            return type(given)(reversed([self.cast_all(x, dtype) for x in reversed(given)]))
        return given


def eligible(x: torch.Tensor) -> bool:
    """True if autocast may cast `x`."""
    return type(x) is CudaTensor and x.dtype in FLOATS


def _tensors(given: Any, found: list[torch.Tensor]) -> list[torch.Tensor]:
    if isinstance(given, torch.Tensor):
        found.append(given)
    elif isinstance(given, (list, tuple)):
        for x in given:
            _tensors(x, found)
    return found


def _target(op: Any, policy: str, tensors: list[torch.Tensor]) -> torch.dtype | None:
    """Type to cast to, or None to leave arguments as they are."""
    if policy == "low":
        return torch.get_autocast_dtype("cuda")
    if policy == "fp32":
        return torch.float32
    floats = [t.dtype for t in tensors if eligible(t)]
    if not floats:
        return None
    return torch.float32 if torch.float32 in floats else torch.get_autocast_dtype("cuda")


def kernel(op: Any, policy: str, casts: Casts) -> Callable[..., Any]:
    """The autocast kernel of an overload."""
    names = [a.name for a in op._schema.arguments]
    excluded = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCUDA)

    def run(*args: Any, **kwargs: Any) -> Any:
        with torch._C._ExcludeDispatchKeyGuard(excluded):
            tensors = _tensors([*args, *kwargs.values()], [])
            if policy == "fp32 by argument":
                first = tensors[0] if tensors else None
                if first is not None and eligible(first) and first.dtype != torch.float32 and "dtype" in names:
                    at = names.index("dtype")
                    if (args[at] if at < len(args) else kwargs.get("dtype")) is None:
                        args, kwargs = args[:at], {**kwargs, "dtype": torch.float32}
                return op(*args, **kwargs)
            dtype = _target(op, policy, tensors)
            if dtype is None:
                return op(*args, **kwargs)
            kwargs = {k: casts.cast_all(v, dtype) for k, v in reversed(kwargs.items())}
            return op(*casts.cast_all(args, dtype), **kwargs)

    return run


def _has_kernel(op: Any) -> bool:
    """True if autocast has a kernel for this overload; overloads for TorchScript alone have none."""
    try:
        return bool(torch._C._dispatch_has_kernel_for_dispatch_key(op.name(), KEY))
    except RuntimeError:
        return False


def override(library: torch.library.Library, op: Any, function: Callable[..., Any], key: str) -> None:
    """Replaces a kernel without PyTorch's warning that it was there."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        library.impl(op, function, key, allow_override=True)


def install(casts: Casts) -> torch.library.Library:
    """Replaces autocast's kernels for CUDA; they are back when the library is destroyed."""
    library = torch.library.Library("aten", "IMPL")
    policies = (("low", LOW), ("fp32", FP32), ("fp32 by argument", FP32_BY_ARGUMENT), ("widest", WIDEST))
    for policy, names in policies:
        for name in names:
            packet = getattr(torch.ops.aten, name, None)
            for overload in packet.overloads() if packet is not None else []:
                op = getattr(packet, overload)
                if "out" in overload or op._schema.is_mutable:
                    continue
                if _has_kernel(op):
                    override(library, op, kernel(op, policy, casts), KEY)
    return library
