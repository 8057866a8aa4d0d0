"""A stand-in for flash-attn 2: its functions ask for the memory that the package's own do, and compute nothing.

After `flash_attn/flash_attn_interface.py` (what is saved for backward, widths padded to eight) and `flash_api.cpp` of
`csrc/flash_attn` (`mha_fwd`, `mha_varlen_fwd`, `mha_bwd`, `mha_varlen_bwd`: outputs, sums of scores, parts of
a split forward, sums of backward) of version 2.8.3.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import torch

VERSION = "2.8.3"
NAME = "flash-attn"


def rounded(n: int, to: int) -> int:
    """The next multiple."""
    return -(-n // to) * to


def width_of(head: int) -> int:
    """Width that kernels are compiled for (`head_size_rounded`)."""
    return rounded(head, 32 if head <= 128 else 64)


def splits(q: torch.Tensor, k: torch.Tensor, queries: int, keys: int, dropout: float) -> int:
    """Parts that a forward is split into along the keys (`num_splits_heuristic`)."""
    if dropout > 0:
        return 1
    head = q.shape[-1]
    block = 256 if head <= 64 else 128 if head <= 128 else 64
    columns = -(-keys // block)
    blocks = q.shape[0] * q.shape[-2] * -(-queries // 64)
    sms = 2 * torch.cuda.get_device_properties(0).multi_processor_count
    if blocks >= 0.8 * sms:
        return 1
    most = min(128, sms, columns)
    share: list[float] = []
    for n in range(1, most + 1):
        is_new = n == 1 or -(-columns // n) != -(-columns // (n - 1))
        waves = blocks * n / sms
        share.append(waves / -(-int(waves * 1e9) // 10**9) if is_new and waves > 0 else 0.0)
    best = max(share)
    return next(i + 1 for i, x in enumerate(share) if x >= 0.85 * best)


def padded(x: torch.Tensor) -> torch.Tensor:
    """A copy with a width that is a multiple of eight, where it is none."""
    width = x.shape[-1]
    return x if width % 8 == 0 else torch.nn.functional.pad(x, [0, 8 - width % 8])


def dense(x: torch.Tensor) -> torch.Tensor:
    """Elements of a head one after the other (`maybe_contiguous`)."""
    return x.contiguous() if x.stride(-1) != 1 else x


def float32(shape: tuple[int, ...], like: torch.Tensor) -> torch.Tensor:
    """Memory of floats that a kernel fills."""
    return torch.empty(shape, dtype=torch.float32, device=like.device)


class Attention(torch.autograd.Function):
    """`FlashAttnFunc`, `FlashAttnVarlenFunc`: queries [batch, positions, heads, width], or packed [positions, ...]."""

    @staticmethod
    def forward(ctx: Any, q: Any, k: Any, v: Any, packed: Any, dropout: float, shows: bool, trained: bool) -> Any:
        """Output and sums of scores."""
        width = q.shape[-1]
        q, k, v = padded(q), padded(k), padded(v)
        q, k, v = dense(q), dense(k), dense(v)
        heads = q.shape[-2]
        queries, keys = (packed[2], packed[3]) if packed else (q.shape[1], k.shape[1])
        out = torch.empty_like(q)
        sums = float32((heads, q.shape[0]) if packed else (q.shape[0], heads, queries), q)
        state = torch.empty(2, dtype=torch.int64, device=q.device)
        if not packed:
            parts = splits(q, k, queries, keys, dropout)
            if parts > 1:
                kept = [
                    float32((parts, q.shape[0], heads, queries), q),
                    float32((parts, q.shape[0], heads, queries, width_of(q.shape[-1])), q),
                ]
                del kept
        if trained:
            ctx.save_for_backward(q, k, v, out, sums, state, *(packed[:2] if packed else ()))
            ctx.packed, ctx.width = packed, width
        shown = out if out.shape[-1] == width else out[..., :width]
        return (shown, sums, None) if shows else shown

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor, *rest: Any) -> Any:
        """Gradients of queries, keys, values."""
        q, k, v, out, sums = ctx.saved_tensors[:5]
        dq, dk, dv = torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)
        grad = dense(padded(grad))
        heads, fewer, width = q.shape[-2], k.shape[-2], q.shape[-1]
        if ctx.packed:
            rows = q.shape[0] + 128 * (ctx.packed[0].shape[0] - 1)
            softmax = float32((heads, rows), q)
            kept = float32((rows, heads, width_of(width)), q)
        else:
            rows = rounded(q.shape[1], 128)
            softmax = float32((q.shape[0], heads, rows), q)
            kept = float32((q.shape[0], rows, heads, width_of(width)), q)
        if heads != fewer:
            shape = (*k.shape[:-2], heads, width)
            wide = [torch.empty(shape, dtype=k.dtype, device=k.device) for _ in range(2)]
            for x, to in zip(wide, (dk, dv), strict=True):
                torch.sum(x.reshape(*k.shape[:-2], fewer, heads // fewer, width), -2, out=to)
            del wide, x, to
        del softmax, kept, out, sums, grad
        cut = ctx.width
        return (dq[..., :cut], dk[..., :cut], dv[..., :cut], None, None, None, None)


def attend(q: Any, k: Any, v: Any, packed: Any, dropout_p: float, shows: bool) -> Any:
    """One attention."""
    trained = torch.is_grad_enabled() and any(x.requires_grad for x in (q, k, v))
    return Attention.apply(q, k, v, packed, dropout_p, shows, trained)


def flash_attn_func(
    q: Any, k: Any, v: Any, dropout_p: float = 0.0, *rest: Any, return_attn_probs: bool = False, **kw: Any
) -> Any:
    """Of separate queries, keys and values."""
    return attend(q, k, v, None, dropout_p, return_attn_probs)


def flash_attn_varlen_func(
    q: Any,
    k: Any,
    v: Any,
    cu_seqlens_q: Any,
    cu_seqlens_k: Any,
    max_seqlen_q: Any,
    max_seqlen_k: Any,
    dropout_p: float = 0.0,
    *rest: Any,
    return_attn_probs: bool = False,
    **kw: Any,
) -> Any:
    """Of samples one after the other."""
    packed = (cu_seqlens_q, cu_seqlens_k, int(max_seqlen_q), int(max_seqlen_k))
    return attend(q, k, v, packed, dropout_p, return_attn_probs)


def flash_attn_qkvpacked_func(qkv: Any, dropout_p: float = 0.0, *rest: Any, **kw: Any) -> Any:
    """Of [batch, positions, 3, heads, width], whose gradient lies in one piece."""
    return (
        flash_attn_func(*(x.clone() for x in qkv.detach().unbind(2)), dropout_p, **kw)
        if not qkv.requires_grad
        else (flash_attn_func(*qkv.unbind(2), dropout_p, **kw))
    )


def unpad_input(hidden_states: Any, attention_mask: Any, unused_mask: Any = None) -> Any:
    """Positions that a mask keeps (`flash_attn/bert_padding.py`)."""
    mask = attention_mask + unused_mask if unused_mask is not None else attention_mask
    lengths = mask.sum(-1, dtype=torch.int32)
    used = attention_mask.sum(-1, dtype=torch.int32)
    indices = torch.nonzero(mask.flatten(), as_tuple=False).flatten()
    longest = int(lengths.max().item())
    bounds = torch.nn.functional.pad(torch.cumsum(lengths, 0, dtype=torch.int32), (1, 0))
    return index_first_axis(hidden_states.flatten(0, 1), indices), indices, bounds, longest, used


def index_first_axis(x: Any, indices: Any) -> Any:
    """Rows by their numbers."""
    return x[indices]


def pad_input(hidden_states: Any, indices: Any, batch: int, seqlen: int) -> Any:
    """Rows put back to their positions."""
    out = torch.zeros(
        (batch * seqlen, *hidden_states.shape[1:]), device=hidden_states.device, dtype=hidden_states.dtype
    )
    out = out.index_put((indices,), hidden_states)
    return out.view(batch, seqlen, *hidden_states.shape[1:])


FUNCTIONS = dict(
    flash_attn_func=flash_attn_func,
    flash_attn_varlen_func=flash_attn_varlen_func,
    flash_attn_qkvpacked_func=flash_attn_qkvpacked_func,
)
PADDING = dict(unpad_input=unpad_input, pad_input=pad_input, index_first_axis=index_first_axis)


def fill(module: ModuleType) -> None:
    """Gives a module of the package what the package has there; others of its functions are not measured."""
    inner = module.__name__.partition(".")[2]
    module.__version__ = VERSION  # type: ignore[attr-defined]
    if inner in ("", "flash_attn_interface"):
        vars(module).update(FUNCTIONS)
    if inner == "bert_padding":
        vars(module).update(PADDING)
    if inner in ("layers", "layers.rotary", "ops", "ops.triton", "ops.triton.rotary"):
        # Models ask for these and do without.
        raise ModuleNotFoundError(f"No module named '{module.__name__}'", name=module.__name__)
    vars(module)["__getattr__"] = lambda name: absent(module.__name__, name)


def absent(module: str, name: str) -> Any:
    """A function of the package that has no stand-in."""
    from vramscope.record.errors import RecordingError

    if name.startswith("__"):
        raise AttributeError(name)

    def call(*args: Any, **kwargs: Any) -> Any:
        raise RecordingError(
            f"{module}.{name} runs compiled CUDA code that has no stand-in here; what it makes is not known. "
            'Dry-run with attn_implementation="sdpa", or without it.'
        )

    return call
