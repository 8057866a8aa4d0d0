"""Outputs of operations whose meta kernels differ from what CUDA's return."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch._prims_common import suggest_memory_format

from vramscope.record.tensors import CPU, META

aten = torch.ops.aten
Meta = Callable[..., Any]
METAS: dict[str, Meta] = {}

# Outputs in the order in which the kernel asks for their memory, where that is not the order of the schema
# (`native_dropout_cuda` in `aten/src/ATen/native/cuda/Dropout.cu`; `run_cudnn_SDP_fprop`'s caller in
# `transformers/cuda/attention.cu`, which makes seed and offset first; `_embedding_bag_cuda` in `EmbeddingBag.cu`, which
# makes the output last).
ALLOCATED: dict[str, tuple[int, ...]] = {
    "native_dropout": (1, 0),
    "_embedding_bag": (2, 1, 0),
    "_embedding_bag_forward_only": (2, 1, 0),
    "_scaled_dot_product_cudnn_attention": (6, 7, 0, 1),
}


def meta(*names: str) -> Callable[[Meta], Meta]:
    """Registers a function that answers for these operations on meta tensors."""

    def register(f: Meta) -> Meta:
        for name in names:
            METAS[name] = f
        return f

    return register


def _convolution_format(x: torch.Tensor, weight: torch.Tensor) -> torch.memory_format:
    """Layout of what cuDNN returns (`cudnn_conv_suggest_memory_format`, `aten/src/ATen/native/ConvUtils.h`)."""
    formats = (suggest_memory_format(x), suggest_memory_format(weight))
    for last in (torch.channels_last, torch.channels_last_3d):
        if last in formats:
            return last
    return torch.contiguous_format


@meta("_wrap_tensor_autograd")
def _wrap_tensor_autograd(_func: Any, x: torch.Tensor) -> torch.Tensor:
    """`AsyncCollectiveTensor` of a tensor, which is no copy: its fake (`_functional_collectives.py`) makes one."""
    return x.view(x.shape)


@meta("convolution")
def _convolution(func: Any, *args: Any, **kwargs: Any) -> torch.Tensor:
    out = func(*args, **kwargs)
    return torch.empty(out.shape, dtype=out.dtype, device=META, memory_format=_convolution_format(args[0], args[1]))


@meta("convolution_backward")
def _convolution_backward(func: Any, grad: Any, x: Any, weight: Any, bias: Any, *rest: Any, **kwargs: Any) -> Any:
    layout = _convolution_format(x, weight)
    mask = rest[-1]
    return (
        torch.empty(x.shape, dtype=grad.dtype, device=META, memory_format=layout) if mask[0] else None,
        torch.empty(weight.shape, dtype=grad.dtype, device=META, memory_format=layout) if mask[1] else None,
        torch.empty(tuple(bias), dtype=grad.dtype, device=META) if mask[2] else None,
    )


@meta("_scaled_dot_product_efficient_attention", "_efficient_attention_forward")
def _efficient_attention(func: Any, *args: Any, **kwargs: Any) -> Any:
    """Seed and offset of dropout are on the host unless a CUDA graph is captured."""
    out, sums, *rest = func(*args, **kwargs)
    host = [torch.zeros((), dtype=torch.int64, device=CPU) for _ in range(2)]
    return (out, sums, *host, *rest[2:])


@meta("_scaled_dot_product_cudnn_attention")
def _cudnn_attention(func: Any, *args: Any, **kwargs: Any) -> Any:
    """Sums of scores are kept only if backward needs them."""
    out, sums, *rest = func(*args, **kwargs)
    keeps = args[4] if len(args) > 4 else kwargs["compute_log_sumexp"]
    return (out, sums if keeps else torch.empty(0, dtype=sums.dtype, device=META), *rest)


@meta("_grouped_mm")
def _grouped_mm(func: Any, a: Any, b: Any, offs: Any = None, *args: Any, **kwargs: Any) -> Any:
    """In fp32 and fp16 too, which the meta function refuses and the kernel multiplies group by group; the layout of the
    result is the same for all (`create_grouped_gemm_output_tensor` in `aten/src/ATen/native/GroupedMMUtils.h`)."""
    if a.dtype == torch.bfloat16:
        return func(a, b, offs, *args, **kwargs)
    if a.dim() == 2:
        shape = (offs.numel(), a.size(0), b.size(1)) if b.dim() == 2 else (a.size(0), b.size(-1))
    else:
        shape = (a.size(1), b.size(1)) if b.dim() == 2 else (a.size(0), a.size(1), b.size(-1))
    each = 16 // a.element_size()
    row = -(-shape[-1] // each) * each
    strides = (row, 1) if len(shape) == 2 else (shape[1] * row, row, 1)
    return torch.empty_strided(shape, strides, dtype=a.dtype, device=META)


@meta("mm", "addmm", "bmm", "baddbmm")
def _product(func: Any, *args: Any, **kwargs: Any) -> torch.Tensor:
    """A product whose result has a type of its own, which meta kernels do not know."""
    if "dtype" not in func._overloadname:
        return func(*args, **kwargs)
    out = kwargs.get("out")
    if out is not None:
        return out
    dtype = next(a for a in (*args, *kwargs.values()) if isinstance(a, torch.dtype))
    a, b = [x for x in args if isinstance(x, torch.Tensor)][-2:]
    return torch.empty((*a.shape[:-1], b.shape[-1]), dtype=dtype, device=META)


@meta("mse_loss", "smooth_l1_loss")
def _elementwise_loss(func: Any, x: torch.Tensor, target: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
    """A loss of one number lies in memory for one of each element.

    The kernel's result is made in full and then resized (`TORCH_META_FUNC(mse_loss)`, `BinaryOps.cpp`).
    """
    out = func(x, target, *args, **kwargs)
    if out.dim() > 0 or kwargs.get("out") is not None:
        return out
    whole = torch.empty(torch.broadcast_shapes(x.shape, target.shape), dtype=out.dtype, device=META)
    return whole.as_strided((), ())


@meta("softplus_backward")
def _softplus_backward(func: Any, grad: torch.Tensor, x: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
    """Lies as the gradient does (`TORCH_META_FUNC(softplus_backward)` in `aten/src/ATen/native/Activation.cpp`)."""
    return torch.mul(grad, x)
