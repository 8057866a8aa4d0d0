//! Attention: its extents and tensors.

use vramscope_benchmark::{Kernel, Pass, Precision};
use vramscope_engine::attention::Algorithm;

use super::Work;
use super::tensors::{Input, Output};

/// Queries, keys, values (and the gradient of the result); the result (and the logarithm of each query's
/// sum, and the gradients of queries, keys, values).
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
        // q, k, v in; o out.
        Pass::Forward => 2 * queries + 2 * keys,
        // q, k, v, o, do in; dq, dk, dv out.
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

/// The extents of an attention, all stated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extents {
    /// Samples.
    pub batch: u64,
    /// Query heads.
    pub heads: u64,
    /// Key and value heads.
    pub kv_heads: u64,
    /// Queries and keys.
    pub length: u64,
    /// Elements of a head.
    pub width: u64,
    /// No query sees a later key.
    pub causal: bool,
}

impl Extents {
    /// Those of a kernel.
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

    /// Elements of the queries.
    pub const fn queries(&self) -> u64 {
        self.batch * self.heads * self.length * self.width
    }

    /// Elements of the keys.
    pub const fn keys(&self) -> u64 {
        self.batch * self.kv_heads * self.length * self.width
    }
}

/// Blocks of queries and the keys that each sees, as the engine cuts them.
pub fn blocks(kernel: &Kernel, algorithm: Algorithm) -> Vec<[u64; 2]> {
    kernel.call().blocks(algorithm, kernel.shape.length.unwrap_or(1))
}
