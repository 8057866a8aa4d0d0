//! Liger's fused linear cross-entropy (`liger_kernel/ops/fused_linear_cross_entropy.py`, 0.8): the
//! head and the loss in chunks of rows, gradients made in forward.

use smallvec::smallvec;

use super::super::core::Tape;
use super::super::tensor::Tensor;
use crate::dtype::DType;

/// Gradients that forward makes, of the hidden states and of the head.
struct Gradients {
    input: Tensor,
    weight: Option<Tensor>,
}

impl Tape {
    /// `LigerFusedLinearCrossEntropyFunction.apply(x, weight, target)`: [n, width],
    /// [vocab, width], [n] → [].
    pub fn fused_linear_cross_entropy(&self, x: &Tensor, weight: &Tensor, target: &Tensor) -> Tensor {
        let mut rec = self.record("LigerFusedLinearCrossEntropyFunction", &[x, weight]);
        let wants = x.requires_grad().then(|| weight.requires_grad());
        let (loss, gradients) = self.no_grad(|| self.fused_loss_forward(x, weight, target, wants));
        if rec.is_active() {
            rec.save(self, &gradients.input);
            gradients.weight.iter().for_each(|g| rec.save(self, g));
        }
        drop(gradients);
        rec.finish(self, loss, |t, bw| {
            t.compare_with_one();
            let weight = bw.saved.get(1).cloned();
            smallvec![bw.want(0, || bw.saved[0].clone()), weight]
        })
    }

    /// `torch.equal(grad_output, torch.tensor(1.0))`. Its result changes no memory: unless it is one, the gradients are
    /// scaled in place.
    fn compare_with_one(&self) {
        let one = self.empty([], DType::F32, "1");
        let equal = self.empty([], DType::Bool, "comparison");
        drop(self.empty([], DType::Bool, "all"));
        drop((equal, one));
    }

    /// The loss, and the gradients that forward makes. `wants` is `None` where the hidden states need no gradient, as Liger
    /// then makes none of the head either; else it says whether the head needs one.
    fn fused_loss_forward(
        &self,
        x: &Tensor,
        weight: &Tensor,
        target: &Tensor,
        wants: Option<bool>,
    ) -> (Tensor, Gradients) {
        let rows = x.size(0);
        let gradients = Gradients {
            input: self.empty_like(x, x.dtype(), "gradient of hidden states"),
            weight: (wants == Some(true)).then(|| self.empty_like(weight, weight.dtype(), "gradient of the head")),
        };
        let losses = self.empty([rows], DType::F32, "loss of each row");
        let counted = self.compute(target, DType::Bool, "rows that count");
        drop(self.count(&counted, &[0]));
        let chunk = chunk_rows(rows, x.size(1), weight.size(0));
        let in_place = self.multiplies_in_place(x, weight);
        let storage = in_place.then(|| self.empty([chunk, weight.size(0)], x.dtype(), "logits of a chunk"));
        let mut done = 0;
        while done < rows {
            let len = chunk.min(rows - done);
            self.fused_loss_chunk(
                &x.narrow_raw(0, len),
                weight,
                storage.as_ref(),
                wants.is_some(),
                &gradients,
            );
            done += len;
        }
        drop(storage);
        let loss = self.reduce_all(&losses, "sum");
        drop((counted, losses));
        (loss, gradients)
    }

    /// `_can_use_mm_out`: returns true if products can be written into existing memory.
    fn multiplies_in_place(&self, x: &Tensor, weight: &Tensor) -> bool {
        x.dtype() == weight.dtype() && self.autocast_dtype().is_none_or(|low| low == x.dtype())
    }

    /// Logits of some rows, which the loss turns into their gradient in place, and their contribution to the gradients
    /// of hidden states and head.
    fn fused_loss_chunk(
        &self,
        x: &Tensor,
        weight: &Tensor,
        storage: Option<&Tensor>,
        backward: bool,
        gradients: &Gradients,
    ) {
        let logits = match storage {
            Some(storage) => {
                self.cublas();
                storage.clone()
            }
            None => self.matmul(x, &self.transpose(weight, 0, 1)),
        };
        if backward && (storage.is_none() || logits.dtype() != gradients.input.dtype()) {
            drop(self.matmul(&logits, weight));
        }
        if let Some(total) = &gradients.weight {
            self.add_weight_gradient(x, &logits, total);
        }
    }

    /// `grad_weight += grad_logits.T @ x`, in place by `addmm` except in full precision and on old cards.
    fn add_weight_gradient(&self, x: &Tensor, logits: &Tensor, total: &Tensor) {
        let low = logits.dtype() != DType::F32;
        let in_place = self.0.gpu.capability.0 >= 8 && low;
        if in_place && (total.dtype() == DType::F32 || total.dtype() == logits.dtype()) {
            let cast = (x.dtype() != logits.dtype()).then(|| self.to_dtype(x, logits.dtype()));
            self.cublas();
            drop(cast);
        } else {
            let product = self.matmul(&self.transpose(logits, 0, 1), x);
            drop(self.to_dtype(&product, DType::F32));
        }
    }
}

/// Rows of one chunk, so that its logits are about as large as all hidden states.
fn chunk_rows(rows: u64, width: u64, vocab: u64) -> u64 {
    let factor = vocab.div_ceil(width);
    rows.div_ceil(factor).next_power_of_two().min(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tape::Gpu;

    /// The example of the source's comment, and a batch that fits into one chunk.
    #[test]
    fn chunks_are_powers_of_two_up_to_all_rows() {
        assert_eq!(chunk_rows(4096 * 4, 4096, 32_000), 2048);
        assert_eq!(chunk_rows(4096, 896, 151_936), 32);
        assert_eq!(chunk_rows(100, 4096, 4096), 100);
    }

    /// Bytes requested by forward, after hidden states, head and labels.
    fn allocations(dtype: DType, trained: bool, low: Option<DType>) -> Vec<u64> {
        let tape = Tape::new(Gpu::H200);
        let x = tape.parameter([96, 64], dtype, "x");
        let weight = tape.empty([256, 64], dtype, "weight");
        let weight = if trained { tape.require_grad(&weight) } else { weight };
        let target = tape.empty([96], DType::I64, "target");
        let loss = tape.autocast(low, || tape.fused_linear_cross_entropy(&x, &weight, &target));
        drop((loss, x, weight, target));
        let log = tape.finish();
        let no_workspace = |b: &&crate::tape::log::Allocation| !b.name.starts_with("cuBLAS");
        log.allocations
            .iter()
            .skip(3)
            .filter(no_workspace)
            .map(|b| b.bytes)
            .collect()
    }

    #[test]
    fn half_precision_makes_one_chunk_of_logits() {
        let [input, head, losses] = [96 * 64 * 2, 256 * 64 * 2, 96 * 4];
        let expected = [input, head, losses, 96, 8, 96 * 8, 32 * 256 * 2, 4];
        assert_eq!(allocations(DType::Bf16, true, None), expected);
    }

    #[test]
    fn a_frozen_head_has_no_gradient() {
        let all = allocations(DType::Bf16, true, None);
        let frozen = allocations(DType::Bf16, false, None);
        assert_eq!(frozen.len() + 1, all.len());
        assert!(!frozen.contains(&(256 * 64 * 2)));
    }

    #[test]
    fn autocast_casts_the_head_for_each_chunk_and_keeps_one_copy() {
        let sizes = allocations(DType::F32, true, Some(DType::Bf16));
        let copies = sizes.iter().filter(|&&b| b == 256 * 64 * 2).count();
        // Three chunks cast the transposed head; the head itself is cached.
        assert_eq!(copies, 3 + 1);
    }
}
