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

    /// Copies a gradient, of which this GPU keeps a part, to the host; at the end of a step after its norm is taken
    /// (`set_norm_for_param_grad_in_gpu`, `async_inplace_copy_grad_to_fp32_buffer_from_gpu`).
    pub fn copy(&mut self, t: &Tape, gradient: &Tensor, own: u64) {
        let part = part_of(t, gradient, own);
        self.norms.push(values::double_norm(t, &part));
        drop(values::has_inf_or_nan(t, gradient));
        drop(t.empty([own], DType::F32, "gradient in fp32"));
    }

    /// The GPU's share of an update that the host runs: the flag of overflows, and the sum of norms of each of the
    /// `groups`.
    pub fn step(&mut self, t: &Tape, groups: usize) {
        drop(t.empty([1], DType::U8, "overflow"));
        for _ in 0..groups {
            drop(t.empty([1], DType::F32, "sum of squares over the GPUs"));
        }
        self.norms.clear();
    }
}
