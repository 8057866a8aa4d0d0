//! Gradients, weights in fp32 and states in the memory of the host (`offload_optimizer`), and what they take on the GPU.

use super::group::{Groups, part_of};
use super::values;
use crate::dtype::DType;
use crate::tape::{Tape, Tensor};

/// The host's part of an optimizer.
pub(super) struct Host {
    /// Norms of the gradients that were copied to the host in this step.
    norms: Vec<Tensor>,
    /// Buffer on the GPU through which accumulated gradients are copied, of the largest parameter's size
    /// (`temp_grad_buffer_for_gpu_offload`).
    _staging_buffer: Tensor,
}

impl Host {
    pub fn new(t: &Tape, groups: &Groups) -> Self {
        let largest = groups.params.iter().map(Tensor::numel).max().unwrap_or_default();
        Self {
            norms: Vec::new(),
            _staging_buffer: t.empty([largest], groups.dtype(), "buffer for gradients of the host"),
        }
    }

    /// Copies this GPU's part of a gradient, `own` elements, to the host in fp32, after its norm is taken and the gradient is
    /// checked for overflow (`set_norm_for_param_grad_in_gpu`, `async_inplace_copy_grad_to_fp32_buffer_from_gpu`). Called in the
    /// last micro-batch of a step only.
    pub fn copy(&mut self, t: &Tape, gradient: &Tensor, own: u64) {
        let part = part_of(t, gradient, own);
        self.norms.push(values::double_norm(t, &part));
        drop(values::has_inf_or_nan(t, gradient));
        drop(t.empty([own], DType::F32, "gradient in fp32"));
    }

    /// Allocates on the GPU what an update on the host needs there: the overflow flag, and for each of the `groups` of
    /// parameters the sum of squared norms, both of which are reduced over the GPUs.
    pub fn step(&mut self, t: &Tape, groups: usize) {
        drop(t.empty([1], DType::U8, "overflow"));
        for _ in 0..groups {
            drop(t.empty([1], DType::F32, "sum of squares over the GPUs"));
        }
        self.norms.clear();
    }
}
