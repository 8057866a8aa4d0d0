//! Extents and tensors of attention kernels.

use vramscope_benchmark::{Kernel, Pass, Precision};
use vramscope_engine::attention::Algorithm;

use super::Work;
use super::tensors::{Input, Output};

/// Work of an attention. Inputs: queries, keys, values (and the gradient of the result). Outputs: the result (and the
/// log-sum-exp of each query, and the gradients of queries, keys, values).
pub(super) fn work(kernel: &Kernel) -> Work {
    let extents = Extents::of(kernel);
    let precision = kernel.precision.unwrap_or(Precision::Bf16);
    let (queries, keys) = (extents.queries(), extents.keys());
    let backward = kernel.pass.is_some_and(|pass| pass != Pass::Forward);
    let mut inputs = vec![Input::unit(queries), Input::unit(keys), Input::unit(keys)];
    let mut outputs = vec![Output::of(queries)];
    if backward {
        inputs.push(Input::unit(queries));
        let sums = Output::float(extents.batch * extents.heads * extents.length);
        outputs.extend([sums, Output::of(queries), Output::of(keys), Output::of(keys)]);
    }
    let moved = |pass| match pass {
        // Inputs q, k, v; output o.
        Pass::Forward => 2 * queries + 2 * keys,
        // Inputs q, k, v, o, do; outputs dq, dk, dv.
        _ => 4 * queries + 4 * keys,
    };
    let elements = match kernel.pass {
        Some(Pass::Backward) => moved(Pass::Backward),
        Some(Pass::ForwardBackward) => moved(Pass::Forward) + moved(Pass::Backward),
        _ => moved(Pass::Forward),
    };
    Work {
        bytes: elements * precision.width(),
        inputs,
        outputs,
    }
}

/// The extents of an attention, with defaults filled in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extents {
    /// Number of samples.
    pub batch: u64,
    /// Number of query heads.
    pub heads: u64,
    /// Number of key and value heads.
    pub kv_heads: u64,
    /// Number of queries and keys.
    pub length: u64,
    /// Elements per head.
    pub width: u64,
    /// True if no query sees a later key.
    pub causal: bool,
}

impl Extents {
    /// Extents of a kernel.
    pub fn of(kernel: &Kernel) -> Self {
        let call = kernel.call();
        Self {
            batch: call.batch,
            heads: call.heads,
            kv_heads: call.kv_heads,
            length: kernel.shape.length.unwrap_or(1),
            width: call.width,
            causal: call.causal,
        }
    }

    /// Number of elements of the queries.
    pub const fn queries(&self) -> u64 {
        self.batch * self.heads * self.length * self.width
    }

    /// Number of elements of the keys.
    pub const fn keys(&self) -> u64 {
        self.batch * self.kv_heads * self.length * self.width
    }
}

/// Blocks as numbers of queries and of keys that each sees, divided as in the engine.
pub fn blocks(kernel: &Kernel, algorithm: Algorithm) -> Vec<[u64; 2]> {
    kernel.call().blocks(algorithm, kernel.shape.length.unwrap_or(1))
}
