//! Attention: its extents, tensors and operations.

use vramscope_engine::attention::{Algorithm, Call};
use vramscope_engine::dtype::DType;
use vramscope_engine::record::{Kernel, Pass, Precision};

use super::Work;
use super::tensors::{Input, Output};

/// Queries, keys, values (and the gradient of the result); the result (and the logarithm of each query's
/// sum, and the gradients of queries, keys, values). Operations are those of the products alone, four per
/// pair of query and key that is not hidden and element of a head, and ten in backward.
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
    let per_pair = match kernel.pass {
        Some(Pass::Backward) => 10,
        Some(Pass::ForwardBackward) => 14,
        _ => 4,
    };
    let flops = per_pair * extents.batch * extents.heads * extents.width * extents.pairs(kernel);
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
        flops,
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
        let shape = &kernel.shape;
        let heads = shape.heads.unwrap_or(1);
        Self {
            batch: shape.batch.unwrap_or(1),
            heads,
            kv_heads: shape.kv_heads.unwrap_or(heads),
            length: shape.length.unwrap_or(1),
            width: shape.head_dim.unwrap_or(1),
            causal: kernel.causal.unwrap_or(false),
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

    /// Pairs of a query and a key that are computed, of one head.
    pub fn pairs(&self, kernel: &Kernel) -> u64 {
        match kernel.algorithm {
            Some(algorithm @ (Algorithm::Sliding | Algorithm::Chunked)) => {
                let blocks = blocks(kernel, algorithm);
                blocks.iter().map(|[queries, keys]| queries * keys).sum()
            }
            Some(Algorithm::Flash | Algorithm::Cudnn) if self.causal => self.length * (self.length + 1) / 2,
            _ => self.length * self.length,
        }
    }
}

/// Blocks of queries and the keys that each sees, as the engine cuts them.
pub fn blocks(kernel: &Kernel, algorithm: Algorithm) -> Vec<[u64; 2]> {
    let extents = Extents::of(kernel);
    let call = Call {
        batch: extents.batch,
        heads: extents.heads,
        kv_heads: extents.kv_heads,
        width: extents.width,
        dtype: DType::Bf16,
        causal: extents.causal,
        window: kernel.shape.window.unwrap_or(extents.length),
        kept_percent: kernel.shape.kept_percent.unwrap_or(100),
        chunk: kernel.shape.chunk.unwrap_or(extents.length),
        pass: vramscope_engine::attention::Pass::Forward,
    };
    call.blocks(algorithm, extents.length)
}
