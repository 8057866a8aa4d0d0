"""Operations whose C++ asks where a tensor is and then chooses: attention, dropout, batch norm, recurrent layers."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

from vramscope.record.autocast import override

aten = torch.ops.aten
HALF = (torch.float16, torch.bfloat16)


class Attention:
    """`scaled_dot_product_attention` as PyTorch chooses on a card of this compute capability."""

    def __init__(self, capability: tuple[int, int]) -> None:
        """Rules of `aten/src/ATen/native/transformers/cuda/sdp_utils.cpp` for this card."""
        self.capability = capability

    def order(self) -> list[str]:
        """Backends, the preferred first: cuDNN leads on Hopper and Blackwell cards of data centres."""
        if self.capability in ((9, 0), (10, 0), (10, 3)):
            return ["cudnn", "flash", "efficient", "math"]
        return ["flash", "efficient", "cudnn", "math"]

    def __call__(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        attn_mask: torch.Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        *,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> torch.Tensor:
        """Attention by the first backend that takes these arguments."""
        call = _Call(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)
        for backend in self.order():
            if getattr(self, f"_may_{backend}")(call):
                return getattr(call, backend)()
        raise RuntimeError("No available kernel. Aborting execution.")

    def _may_cudnn(self, c: _Call) -> bool:
        q, mask = c.query, c.mask
        enabled = torch._C._get_cudnn_sdp_enabled() and not torch.are_deterministic_algorithms_enabled()
        width = max(q.shape[-1], c.value.shape[-1])
        fits = q.shape[-1] % 8 == 0 and c.value.shape[-1] % 8 == 0
        fits = fits and width <= (256 if self.capability[0] >= 9 else 128)
        single = c.key.shape[-2] == 1 or (c.dropout > 0 and q.shape[-2] == 1)
        masked = mask is None or (not mask.requires_grad and c.mask_spreads() and mask.stride(-1) == 1)
        shaped = c.dense() and c.heads_match(True) and c.rows() and not single
        return bool(enabled and shaped and q.dtype in HALF and fits and masked)

    def _may_flash(self, c: _Call) -> bool:
        q, k = c.query, c.key
        width = q.shape[-1]
        fits = width <= 256 and width == c.value.shape[-1] == k.shape[-1]
        square = not c.causal or q.shape[-2] == k.shape[-2]
        small = self.capability in ((8, 6), (8, 9)) or self.capability[0] == 12
        lacks = small and c.trained and (192 < width <= 224 or (width > 224 and c.dropout > 0))
        allowed = torch._C._get_flash_sdp_enabled() and self.capability >= (8, 0) and c.mask is None
        return bool(
            allowed
            and c.dense()
            and c.heads_match(True)
            and q.dtype in HALF
            and fits
            and square
            and not lacks
            and c.rows()
        )

    def _may_efficient(self, c: _Call) -> bool:
        q = c.query
        types = (torch.float32, *HALF) if self.capability >= (8, 0) else (torch.float32, torch.float16)
        enabled = torch._C._get_mem_efficient_sdp_enabled()
        multiple = 8 if q.dtype in HALF else (4 if self.capability >= (8, 0) else 1)
        widths = (q.shape[-1], c.value.shape[-1])
        fits = q.shape[-1] == c.key.shape[-1] and all(w > 0 and w % multiple == 0 for w in widths)
        fits = fits and (c.mask is None or c.mask.stride(-1) == 1)
        return bool(enabled and c.dense() and c.heads_match(False) and q.dtype in types and fits and c.rows())

    def _may_math(self, c: _Call) -> bool:
        return bool(torch._C._get_math_sdp_enabled())


class _Call:
    """Arguments of one attention, and what each backend makes of them."""

    def __init__(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        mask: torch.Tensor | None,
        dropout: float,
        causal: bool,
        scale: float | None,
        gqa: bool,
    ) -> None:
        self.query, self.key, self.value, self.mask = query, key, value, mask
        self.dropout, self.causal, self.scale, self.gqa = dropout, causal, scale, gqa
        self.trained = torch.is_grad_enabled() and any(t.requires_grad for t in (query, key, value))

    def dense(self) -> bool:
        """True if all have [batch, heads, positions, width], and widths lie element by element."""
        return all(t.dim() == 4 and t.stride(-1) == 1 for t in (self.query, self.key, self.value))

    def rows(self) -> bool:
        """True if there is something to attend from and to."""
        return self.query.shape[-2] > 0 and self.key.shape[-2] > 0

    def mask_spreads(self) -> bool:
        """True if the mask has the shape that cuDNN spreads over batch and heads (`check_attn_mask_shape`)."""
        q, mask = self.query, self.mask
        if mask is None:
            return True
        spreads = mask.shape[-2] in (1, q.shape[2]) and mask.shape[-1] in (1, self.key.shape[2])
        heads = mask.dim() == 4 and mask.shape[0] in (1, q.shape[0]) and mask.shape[1] in (1, q.shape[1])
        return spreads and (mask.dim() == 2 or heads)

    def heads_match(self, shared: bool) -> bool:
        """True if batches and heads are equal, or heads are shared where the backend can."""
        q, k, v = self.query, self.key, self.value
        if not q.shape[0] == k.shape[0] == v.shape[0] or k.shape[1] != v.shape[1]:
            return False
        return q.shape[1] == k.shape[1] or (shared and self.gqa and q.shape[1] % k.shape[1] == 0)

    def bias(self, dtype: torch.dtype | None = None) -> torch.Tensor | None:
        """The mask as what is added to the scores (`convert_boolean_attn_mask`)."""
        dtype = dtype or self.query.dtype
        if self.mask is None or self.mask.dtype != torch.bool:
            return self.mask
        infinity = aten.scalar_tensor(float("-inf"), dtype=dtype, device=self.mask.device)
        zero = aten.scalar_tensor(0.0, dtype=dtype, device=self.mask.device)
        return torch.where(self.mask, zero, infinity)

    def cudnn(self) -> torch.Tensor:
        """`_scaled_dot_product_cudnn_attention`."""
        return aten._scaled_dot_product_cudnn_attention(
            self.query,
            self.key,
            self.value,
            self.bias(),
            self.trained,
            self.dropout,
            self.causal,
            False,
            scale=self.scale,
        )[0]

    def flash(self) -> torch.Tensor:
        """`_scaled_dot_product_flash_attention` on widths padded to a multiple of 8."""
        width = self.query.shape[-1]
        missing = -width % 8
        padded = [F.pad(t, (0, missing)) if missing else t for t in (self.query, self.key, self.value)]
        scale = self.scale if self.scale is not None else width**-0.5
        out = aten._scaled_dot_product_flash_attention(*padded, self.dropout, self.causal, False, scale=scale)[0]
        return out[..., :width] if missing else out

    def efficient(self) -> torch.Tensor:
        """`_scaled_dot_product_efficient_attention` on a mask whose rows are aligned."""
        bias = self.bias()
        q, k = self.query, self.key
        if bias is not None:
            bias = self.aligned(bias).expand(q.shape[0], q.shape[1], q.shape[2], k.shape[2])
        return aten._scaled_dot_product_efficient_attention(
            q, k, self.value, bias, self.trained, self.dropout, self.causal, scale=self.scale
        )[0]

    def aligned(self, bias: torch.Tensor) -> torch.Tensor:
        """`bias` with rows at multiples of 8 elements (`preprocess_mask`, `pad_bias`)."""
        keys = bias.shape[-1]
        if all(bias.stride(i) % 8 == 0 for i in range(bias.dim() - 1)):
            return bias
        return F.pad(bias, (0, 8 - keys % 8))[..., :keys]

    def math(self) -> torch.Tensor:
        """`_scaled_dot_product_attention_math`, operation by operation.

        With a mask it is spelled out: C++ adds the mask out of place where a dispatch mode runs. Names live as long as
        there.
        """
        if self.mask is None and not self.causal:
            return aten._scaled_dot_product_attention_math(
                self.query, self.key, self.value, None, self.dropout, False, scale=self.scale, enable_gqa=self.gqa
            )[0]
        given = self.bias()
        query, key, value = self.query, self.key, self.value
        if query.dtype in HALF and not torch._C._get_math_sdp_allow_fp16_bf16_reduction():
            query, key, value = query.float(), key.float(), value.float()
        scale = (self.scale if self.scale is not None else self.query.shape[-1] ** -0.5) ** 0.5
        scaled = query * scale
        if self.causal:
            self.mask = torch.ones(query.shape[-2], key.shape[-2], dtype=torch.bool, device=query.device).tril()
            given = self.bias(query.dtype)
            self.mask = None
        if self.gqa:
            keys, values = (x.repeat_interleave(query.shape[-3] // x.shape[-3], -3) for x in (key, value))
        else:
            keys, values = key, value
        scores = torch.matmul(scaled, keys.transpose(-2, -1) * scale).add_(given)
        scores = aten._safe_softmax(scores, -1)
        if self.dropout > 0:
            scores = F.dropout(scores, self.dropout)
        weights = scores.to(self.query.dtype)  # C++ returns them too, and evaluates them first
        out = torch.matmul(scores, values).to(self.query.dtype)
        del weights
        return out


def dropout(x: torch.Tensor, p: float, train: bool) -> torch.Tensor:
    """Dropout as the fused kernel (`is_fused_kernel_acceptable`, `aten/src/ATen/native/Dropout.cpp`)."""
    if p == 0 or not train or x.numel() == 0:
        return x
    if 0 < p < 1:
        return aten.native_dropout(x, p, True)[0]
    return x * torch.zeros((), dtype=x.dtype, device=x.device)


def widened(op: Any, inner: Any) -> Callable[..., torch.Tensor]:
    """Softmax that makes fp32 of fp16 within its kernel, without a copy (`softmax`, `SoftMax.cpp`)."""

    def run(x: torch.Tensor, dim: int, dtype: torch.dtype | None = None) -> torch.Tensor:
        if x.dtype == torch.float16 and dtype == torch.float32:
            return inner(x, dim, True)
        return op.decompose(x, dim, dtype)

    return run


def one_hot(x: torch.Tensor, num_classes: int = -1) -> torch.Tensor:
    """Classes as rows of zeros with a one, whose range the host does not look at (`one_hot`, `Onehot.cpp`)."""
    if num_classes == -1 and x.numel() > 0:
        num_classes = int(x.max().item()) + 1
    if num_classes < 1:
        raise RuntimeError("Class values must be non-negative and their number positive.")
    out = torch.zeros((*x.shape, num_classes), dtype=x.dtype, device=x.device)
    return out.scatter_(-1, x.unsqueeze(-1), 1) if x.numel() > 0 else out


def weight_norm(v: torch.Tensor, g: torch.Tensor, dim: int = 0) -> torch.Tensor:
    """A weight scaled to a norm, by the fused kernel where PyTorch takes it (`WeightNorm.cpp`)."""
    v, g = v.contiguous(), g.contiguous()
    if dim in (0, v.dim() - 1):
        return aten._weight_norm_interface(v, g, dim)[0]
    return v * (g / torch.norm_except_dim(v, 2, dim))


def linear(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    """A linear layer, whose bias is added in place where the input can't be made flat (`Linear.cpp`).

    C++ adds out of place where a dispatch mode runs (`isTensorSubclassLike`).
    """
    flat = x.dim() == 2 or (x.is_contiguous() and (x.dim() == 3 or (bias is not None and bias.dim() == 1)))
    if bias is None or flat or os.environ.get("TORCH_LINEAR_FLATTEN_3D") == "1":
        return aten.linear.default.decompose(x, weight, bias)
    return aten.linear.default.decompose(x, weight, None).add_(bias)


def batch_norm(
    x: torch.Tensor,
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    mean: torch.Tensor | None,
    var: torch.Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> torch.Tensor:
    """Batch norm by cuDNN where PyTorch takes it (`_select_batch_norm_backend`, `Normalization.cpp`)."""
    takes = (
        cudnn_enabled
        and x.dtype not in (torch.float64, torch.bfloat16)
        and weight is not None
        and bias is not None
        and ((mean is not None and var is not None) or (mean is None and var is None and training))
        and (x.dim() > 2 or (not training and x.dim() == 2))
        and x.shape[0] <= 880801
        and eps >= 1e-5
        and torch.backends.cudnn.enabled
    )
    if takes:
        return aten.cudnn_batch_norm(
            x.contiguous(memory_format=_format(x)), weight, bias, mean, var, training, momentum, eps
        )[0]
    return aten.native_batch_norm(x, weight, bias, mean, var, training, momentum, eps)[0]


def _format(x: torch.Tensor) -> torch.memory_format:
    if x.dim() == 4 and x.is_contiguous(memory_format=torch.channels_last):
        return torch.channels_last
    if x.dim() == 5 and x.is_contiguous(memory_format=torch.channels_last_3d):
        return torch.channels_last_3d
    return torch.contiguous_format


def isinf(x: torch.Tensor) -> torch.Tensor:
    """`isinf` of TensorCompare.cpp, whose absolute values are as large as its argument."""
    if x.is_complex():
        return isinf(torch.view_as_real(x)).any(-1)
    if not x.is_floating_point():
        return torch.zeros_like(x, dtype=torch.bool)
    return x.detach().abs() == float("inf")


def install(capability: tuple[int, int]) -> torch.library.Library:
    """Replaces these operations for emulated tensors; they are back when the library is destroyed."""
    library = torch.library.Library("aten", "IMPL")
    softmax, log_softmax = aten.softmax.int, aten.log_softmax.int
    replaced: tuple[tuple[Any, Callable[..., Any]], ...] = (
        (aten.scaled_dot_product_attention.default, Attention(capability)),
        (aten.dropout.default, dropout),
        (aten.linear.default, linear),
        (aten.batch_norm.default, batch_norm),
        (aten._weight_norm.default, weight_norm),
        (aten.one_hot.default, one_hot),
        (aten.isinf.default, isinf),
        (softmax, widened(softmax, aten._softmax.default)),
        (log_softmax, widened(log_softmax, aten._log_softmax.default)),
    )
    for op, function in replaced:
        for key in ("AutogradCUDA", "CUDA"):
            override(library, op, function, key)
    return library
