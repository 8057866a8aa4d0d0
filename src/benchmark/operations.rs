//! Counts the floating-point operations of a kernel from its extents.

use super::class::Class;
use super::kernel::{Kernel, Pass};
use vramscope_engine::attention::{Algorithm, Call, Pass as Run};
use vramscope_engine::dtype::DType;

impl Kernel {
    /// Floating-point operations of one launch; a multiply-add counts as two, an elementary function as one.
    ///
    /// `None` if a required extent is not stated, as in unversioned records. Counts beyond 64 bits, which no kernel
    /// reaches, saturate.
    pub fn flops(&self) -> Option<u64> {
        let shape = &self.shape;
        let cells = || product(&[shape.rows?, shape.columns?]);
        let elements = || product(&[shape.tensors.unwrap_or(1), shape.elements?]);
        let backward = self.pass == Some(Pass::Backward);
        // Of kernels that memory bounds, the operations of the usual formula for one element, counted by hand. A server refuses
        // a record that states another count, so a change here would refuse what was measured before.
        let (each, count) = match self.class {
            Class::Gemm => (2, product(&[shape.batch.unwrap_or(1), shape.m?, shape.n?, shape.k?])),
            Class::Convolution => (2, product(&[shape.batch?, shape.m?, shape.n?, shape.k?])),
            Class::GroupedGemm => (2, product(&[shape.m?, shape.n?, shape.k?])),
            Class::Attention => return self.attention_flops(),
            Class::AllReduce | Class::ReduceScatter => return self.sums(),
            // Mean, deviation, square and sum, multiply, weight, bias.
            Class::LayerNorm => (if backward { 12 } else { 7 }, cells()),
            Class::RmsNorm => (if backward { 12 } else { 4 }, cells()),
            Class::CrossEntropy => (6, cells()),
            // Maximum, subtract, exponential, sum, multiply or logarithm.
            Class::Softmax | Class::LogSoftmax => (if backward { 4 } else { 5 }, cells()),
            Class::RotateHalf | Class::SumRows | Class::SumColumns => (1, cells()),
            Class::Nll => (u64::from(!backward), shape.rows),
            Class::Embedding => (u64::from(backward), cells()),
            Class::SiluMul => (if backward { 12 } else { 5 }, elements()),
            Class::Gelu | Class::GeluTanh | Class::Silu | Class::Tanh if backward => (8, elements()),
            Class::Gelu | Class::GeluTanh | Class::Silu | Class::Sigmoid => (5, elements()),
            Class::Scale | Class::Add | Class::Mul | Class::Tanh | Class::ForeachScale => (1, elements()),
            Class::Dropout | Class::ForeachNorm => (2, elements()),
            Class::ForeachLerp | Class::ForeachAddcdiv => (3, elements()),
            Class::Adamw => (15, elements()),
            Class::TransposeCopy => (
                1,
                product(&[shape.batch.unwrap_or(1), shape.length?, shape.heads?, shape.head_dim?]),
            ),
            Class::DeviceCopy
            | Class::HostToDevice
            | Class::DeviceToHost
            | Class::Launch
            | Class::PeerCopy
            | Class::AllGather
            | Class::Broadcast
            | Class::SendReceive
            | Class::MaskedFill
            | Class::Fill
            | Class::Cast
            | Class::MaskedScatter => (0, Some(0)),
        };
        Some(count?.saturating_mul(each))
    }

    /// The attention call that a kernel of [`Class::Attention`] computes, without its length. Unstated extents default
    /// to 1, key and value heads to the number of query heads, window and chunk to the whole length.
    pub fn call(&self) -> Call {
        let shape = &self.shape;
        let (heads, length) = (shape.heads.unwrap_or(1), shape.length.unwrap_or(1));
        Call {
            batch: shape.batch.unwrap_or(1),
            heads,
            kv_heads: shape.kv_heads.unwrap_or(heads),
            width: shape.head_dim.unwrap_or(1),
            dtype: DType::Bf16,
            causal: self.causal.unwrap_or(false),
            window: shape.window.unwrap_or(length),
            kept_percent: shape.kept_percent.unwrap_or(100),
            chunk: shape.chunk.unwrap_or(length),
            pass: Run::Forward,
        }
    }

    /// Operations of the matrix products alone, for each computed pair of a query and a key: two products in forward,
    /// five in backward (arXiv 2307.08691, section 3.1).
    fn attention_flops(&self) -> Option<u64> {
        let shape = &self.shape;
        let pairs = self
            .call()
            .pairs(self.algorithm.unwrap_or(Algorithm::Standard), shape.length?);
        let per_pair = match self.pass {
            Some(Pass::Backward) => 10,
            Some(Pass::ForwardBackward) => 14,
            _ => 4,
        };
        product(&[per_pair, shape.batch?, shape.heads?, shape.head_dim?, pairs])
    }

    /// Additions of a collective that sums data from several cards.
    fn sums(&self) -> Option<u64> {
        let width = self.precision.unwrap_or(super::Precision::Fp32).width();
        product(&[
            self.shape.bytes? / width,
            self.shape.devices.unwrap_or(2).saturating_sub(1),
        ])
    }
}

fn product(factors: &[u64]) -> Option<u64> {
    Some(factors.iter().fold(1, |all: u64, factor| all.saturating_mul(*factor)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Precision, Record, Shape};

    fn gemm(batch: Option<u64>) -> Option<u64> {
        let shape = Shape {
            batch,
            m: Some(256),
            n: Some(256),
            k: Some(64),
            ..Shape::default()
        };
        Kernel {
            shape,
            precision: Some(Precision::Bf16),
            ..Kernel::of(Class::Gemm)
        }
        .flops()
    }

    #[test]
    fn a_batch_of_products_counts_each() {
        assert_eq!(gemm(None), Some(8_388_608));
        assert_eq!(gemm(Some(16)), Some(134_217_728));
    }

    #[test]
    fn an_extent_that_is_missing_gives_no_count() {
        let mut attention = Kernel::of(Class::Attention);
        attention.shape.length = Some(128);
        assert_eq!(attention.flops(), None);
        assert_eq!(Kernel::of(Class::Softmax).flops(), None);
    }

    #[test]
    fn extents_that_no_kernel_has_saturate() {
        let huge = Shape {
            length: Some(u64::MAX),
            batch: Some(u64::MAX),
            heads: Some(u64::MAX),
            head_dim: Some(u64::MAX),
            window: Some(1),
            chunk: Some(1),
            ..Shape::default()
        };
        for algorithm in Algorithm::ALL {
            for causal in [false, true] {
                let kernel = Kernel {
                    shape: huge.clone(),
                    algorithm: Some(algorithm),
                    causal: Some(causal),
                    ..Kernel::of(Class::Attention)
                };
                assert_eq!(kernel.flops(), Some(u64::MAX), "{algorithm:?}");
            }
        }
    }

    #[test]
    fn measured_records_state_these_counts() {
        for text in [
            include_str!("../../tests/data/records/example.json"),
            include_str!("../../tests/data/records/h100.json"),
            include_str!("../../tests/data/records/h200.json"),
            include_str!("../../tests/data/records/h200_x2.json"),
            include_str!("../../tests/data/records/lavapipe.json"),
        ] {
            let record = Record::read(text).expect("a record");
            for result in &record.results {
                let stated = result.flops.or(result.kernel.flops());
                assert!(stated.is_some(), "{}", result.kernel.label());
                assert_eq!(stated, result.kernel.flops(), "{}", result.kernel.label());
            }
        }
    }
}
