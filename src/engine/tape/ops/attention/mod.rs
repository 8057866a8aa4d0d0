//! `scaled_dot_product_attention`: PyTorch's choice of implementation, and the tensors of each one.

mod cudnn;
mod efficient;
mod flash;
mod math;
#[cfg(test)]
mod tests;

pub(crate) use self::flash::Caller as FlashCaller;

use super::super::core::Tape;
use super::super::dims::Dims;
use super::super::kind::{Component, Kind};
use super::super::storage::Storage;
use super::super::tensor::Tensor;
use super::super::work::{Class, Fused, Launch, bytes_of};
use crate::dtype::DType;

/// Attention mask.
#[derive(Clone)]
pub enum Mask {
    /// `true` for positions that may be attended to.
    Bool(Tensor),
    /// Added to the scores.
    Bias(Tensor),
}

/// Arguments of `scaled_dot_product_attention`.
pub struct SdpaInputs<'a> {
    /// [batch, heads, queries, width].
    pub q: &'a Tensor,
    /// [batch, kv heads, keys, width].
    pub k: &'a Tensor,
    /// [batch, kv heads, keys, width], which may be another width than that of queries and keys.
    pub v: &'a Tensor,
    /// Broadcasts to [batch, heads, queries, keys].
    pub mask: Option<&'a Mask>,
    /// Probability of dropout.
    pub dropout: f64,
    /// True if heads may share keys and values (`enable_gqa`). Heads that share them without are broadcast.
    pub enable_gqa: bool,
}

/// Direction of a kernel of fused attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pass {
    Forward,
    Backward,
}

/// Extents of an attention.
struct Extents {
    pub batch: u64,
    pub heads: u64,
    pub kv_heads: u64,
    pub queries: u64,
    pub keys: u64,
    /// Elements of one head.
    pub width: u64,
    pub dtype: DType,
}

impl Extents {
    /// Extents of queries and keys, [batch, heads, positions, width] each.
    pub fn of(q: &Tensor, k: &Tensor) -> Self {
        Self {
            batch: q.size(0),
            heads: q.size(1),
            kv_heads: k.size(1),
            queries: q.size(2),
            keys: k.size(2),
            width: q.size(3),
            dtype: q.dtype(),
        }
    }
}

/// Implementation of attention (`torch.nn.attention.SDPBackend`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SdpaBackend {
    /// cuDNN's fused kernels.
    Cudnn,
    /// FlashAttention 2.
    Flash,
    /// xFormers' memory-efficient attention.
    Efficient,
    /// Separate operations.
    Math,
}

impl Tape {
    /// `scaled_dot_product_attention(...)` → [batch, heads, queries, width].
    pub fn sdpa(&self, inputs: &SdpaInputs<'_>) -> Tensor {
        let mask = inputs.mask.map(|m| match m {
            Mask::Bias(bias) => Mask::Bias(self.cast_low(bias)),
            Mask::Bool(allowed) => Mask::Bool(allowed.clone()),
        });
        let v = self.cast_low(inputs.v);
        let k = self.cast_low(inputs.k);
        let q = self.cast_low(inputs.q);
        let call = SdpaInputs {
            q: &q,
            k: &k,
            v: &v,
            mask: mask.as_ref(),
            dropout: if self.0.training.get() { inputs.dropout } else { 0.0 },
            enable_gqa: inputs.enable_gqa,
        };
        self.sdpa_with(self.backend(&call), &call)
    }

    /// `scaled_dot_product_attention` by the given backend (`torch.nn.attention.sdpa_kernel`), even if the GPU lacks
    /// it; nothing is cast.
    pub fn sdpa_with(&self, backend: SdpaBackend, call: &SdpaInputs<'_>) -> Tensor {
        match backend {
            SdpaBackend::Cudnn => self.cudnn_attention(call),
            SdpaBackend::Flash => self.flash_sdpa(call),
            SdpaBackend::Efficient => self.efficient_attention(call),
            SdpaBackend::Math => self.without_autocast(|| self.math_attention(call)),
        }
    }

    /// `select_sdp_backend` (`aten/src/ATen/native/transformers/cuda/sdp_utils.cpp`): cuDNN comes first on Hopper and
    /// Blackwell data-centre GPUs, and last on others. Checked on 1728 shapes, and on 264 whose values have another width
    /// than queries and keys, which FlashAttention does not take. A mask that requires a gradient is xFormers' alone
    /// (`check_attn_mask_shape`). Beside a mask, none but the separate operations broadcast keys and values to heads that
    /// share them without `enable_gqa` (`check_batch_size_and_num_heads_dense`). No fused kernel takes a mask whose keys do not
    /// lie one behind the other (`check_last_dim_stride_equals_1_dense`).
    fn backend(&self, call: &SdpaInputs<'_>) -> SdpaBackend {
        let (major, minor) = self.0.gpu.capability;
        let half = call.q.dtype() != DType::F32;
        let shared = call.q.size(1) != call.k.size(1);
        let (width, of_values) = (call.q.size(3), call.v.size(3));
        let fits_cudnn = |width: u64| width.is_multiple_of(8) && width <= 256;
        let trains_mask = matches!(call.mask, Some(Mask::Bias(bias)) if bias.requires_grad());
        let fits_flash = width <= 256 && width == of_values && !self.flash_lacks(call);
        let strides_keys = matches!(call.mask, Some(Mask::Bias(mask) | Mask::Bool(mask))
            if mask.last() > 1 && mask.strides()[mask.dim() - 1] != 1);
        if strides_keys || (shared && !call.enable_gqa && call.mask.is_some()) {
            SdpaBackend::Math
        } else if half
            && !trains_mask
            && matches!((major, minor), (9 | 10, 0))
            && fits_cudnn(width)
            && fits_cudnn(of_values)
        {
            SdpaBackend::Cudnn
        } else if half && major >= 8 && call.mask.is_none() && fits_flash {
            SdpaBackend::Flash
        } else if shared {
            SdpaBackend::Math
        } else {
            SdpaBackend::Efficient
        }
    }

    /// Returns true for wide heads whose backward FlashAttention lacks on GPUs with little shared memory.
    fn flash_lacks(&self, call: &SdpaInputs<'_>) -> bool {
        let small = matches!(self.0.gpu.capability, (8, 6 | 9) | (12, _));
        let trained = [call.q, call.k, call.v].iter().any(|x| x.requires_grad());
        let width = call.q.size(3);
        small && trained && ((193..=224).contains(&width) || (width > 224 && call.dropout > 0.0))
    }

    /// Converts a mask to the bias added to the scores (`convert_boolean_attn_mask`).
    fn additive(&self, mask: &Mask, dtype: DType) -> Tensor {
        match mask {
            Mask::Bias(t) => t.clone(),
            Mask::Bool(t) => {
                let scalars = [self.empty([], dtype, "0"), self.empty([], dtype, "-inf")];
                let bias = self.empty_like(t, dtype, "additive mask");
                drop(scalars);
                bias
            }
        }
    }

    /// Records that one kernel of fused attention of these queries and keys made all allocations since `mark`.
    fn attended(&self, mark: usize, backend: SdpaBackend, call: (&Tensor, &Tensor), masked: bool, pass: Pass) {
        if !self.works() {
            return;
        }
        let (q, k) = call;
        let e = Extents::of(q, k);
        let fused = Fused {
            backend,
            backward: pass == Pass::Backward,
            causal: !masked && self.component_now() == Component::LanguageModel && e.queries > 1,
            masked,
        };
        let io = bytes_of(q) + bytes_of(k);
        let name = match pass {
            Pass::Forward => "attention",
            Pass::Backward => "attention backward",
        };
        let launch = self.kernel(name, Class::Attention(fused), e.dtype, [2 * io, io]);
        let launch = Launch {
            extents: [e.batch * e.heads, e.queries, e.keys, e.width],
            shared: (e.heads / e.kv_heads).max(1),
            ..launch
        };
        self.ran(mark, [launch]);
    }

    fn scratch(&self, bytes: u64, name: &'static str) {
        drop(self.scratch_held(bytes, name));
    }

    fn scratch_held(&self, bytes: u64, name: &'static str) -> Storage {
        self.storage_of_bytes(bytes, &Dims::new(&[bytes]), DType::U8, name, Kind::Temporary)
    }
}
