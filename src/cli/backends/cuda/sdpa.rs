//! Builds fused attention as cuDNN graphs, in the form that its engines turn into a single kernel.
//!
//! The graphs follow the documentation ("Attention", cuDNN's graph API): scores, scale, mask, softmax, product.
//! Backward recomputes the probabilities from each query's log-sum-exp.

use std::rc::Rc;

use vramscope_benchmark::Precision;

use super::cudnn::{Graph, Kind, Library, Plan, Pointwise, Reduce, Tensor, TensorStorage, packed};
use crate::backends::Refusal;
use crate::kernels::work::Extents;

// Numbers by which tensors are bound to memory.
pub const QUERY: i64 = 1;
pub const KEY: i64 = 2;
pub const VALUE: i64 = 3;
pub const OUTPUT: i64 = 4;
pub const SUMS: i64 = 5;
pub const OUTPUT_GRADIENT: i64 = 6;
pub const QUERY_GRADIENT: i64 = 7;
pub const KEY_GRADIENT: i64 = 8;
pub const VALUE_GRADIENT: i64 = 9;
/// fp32 sums for the queries' gradients.
pub const QUERY_SUMS: i64 = 10;
/// Dot product of result and gradient for each query.
pub const PRODUCTS: i64 = 11;

/// Value of a masked score: cuDNN before 9.10 needs the lowest finite number instead of −∞.
fn hidden(version: usize) -> f32 {
    if version < 91_000 { f32::MIN } else { f32::NEG_INFINITY }
}

struct Attention {
    graph: Graph,
    extents: Extents,
    kind: Kind,
    version: usize,
}

impl Attention {
    fn new(library: &Rc<Library>, extents: Extents, precision: Precision) -> Result<Self, Refusal> {
        let kind = match precision {
            Precision::Bf16 => Kind::Bfloat16,
            Precision::Fp16 => Kind::Half,
            _ => {
                return Err(Refusal::Unsupported(
                    "cuDNN's fused attention takes bf16 and fp16 only".into(),
                ));
            }
        };
        Ok(Self {
            graph: Graph::new(library),
            extents,
            kind,
            version: library.version,
        })
    }

    /// A tensor `[samples, heads, length, width]` in memory.
    fn rows(&mut self, number: i64, heads: u64) -> Result<Tensor, Refusal> {
        let e = &self.extents;
        let extents = [e.batch as i64, heads as i64, e.length as i64, e.width as i64];
        self.graph
            .tensor(TensorStorage::Memory(number), self.kind, extents, packed(extents))
    }

    /// A tensor in memory with its last two axes exchanged.
    fn columns(&mut self, number: i64, heads: u64) -> Result<Tensor, Refusal> {
        let e = &self.extents;
        let extents = [e.batch as i64, heads as i64, e.length as i64, e.width as i64];
        let [extents, steps] = Tensor::transposed(extents, packed(extents));
        self.graph
            .tensor(TensorStorage::Memory(number), self.kind, extents, steps)
    }

    /// Extents of the queries: samples, heads, length, width.
    fn query_shape(&self) -> [i64; 4] {
        let e = &self.extents;
        [e.batch as i64, e.heads as i64, e.length as i64, e.width as i64]
    }

    /// A tensor with one number per query.
    fn per_query(&mut self, place: TensorStorage) -> Result<Tensor, Refusal> {
        let e = &self.extents;
        let extents = [e.batch as i64, e.heads as i64, e.length as i64, 1];
        self.graph.tensor(place, Kind::Float, extents, packed(extents))
    }

    /// An intermediate tensor with one number per pair of query and key.
    fn pairs(&mut self, kind: Kind) -> Result<Tensor, Refusal> {
        let e = &self.extents;
        let extents = [e.batch as i64, e.heads as i64, e.length as i64, e.length as i64];
        self.graph
            .tensor(TensorStorage::Virtual, kind, extents, packed(extents))
    }

    /// A transposed intermediate tensor of pairs in the kernel's type, for a product.
    fn transposed_pairs(&mut self) -> Result<Tensor, Refusal> {
        let e = &self.extents;
        let extents = [e.batch as i64, e.heads as i64, e.length as i64, e.length as i64];
        let [extents, steps] = Tensor::transposed(extents, packed(extents));
        self.graph.tensor(TensorStorage::Virtual, self.kind, extents, steps)
    }

    fn scaled(&mut self, scores: Tensor) -> Result<Tensor, Refusal> {
        let scale = self.graph.value(1.0 / (self.extents.width as f32).sqrt())?;
        let result = self.pairs(Kind::Float)?;
        self.graph.pointwise(Pointwise::Multiply, &[scores, scale], result)
    }

    /// Masks the scores of later keys if attention is causal.
    fn masked(&mut self, scores: Tensor) -> Result<Tensor, Refusal> {
        if !self.extents.causal {
            return Ok(scores);
        }
        let row = self.graph.index(scores, 2)?;
        let column = self.graph.index(scores, 3)?;
        let seen = self.pairs(Kind::Boolean)?;
        let seen = self.graph.pointwise(Pointwise::AtLeast, &[row, column], seen)?;
        let hidden = self.graph.value(hidden(self.version))?;
        let result = self.pairs(Kind::Float)?;
        self.graph.pointwise(Pointwise::Select, &[scores, hidden, seen], result)
    }

    /// Dot product of result and gradient for each query.
    fn dot_products(&mut self, upstream: Tensor, output: Tensor) -> Result<Tensor, Refusal> {
        let shape = self.query_shape();
        let wide = [
            shape[1] * shape[2] * shape[3],
            shape[2] * shape[3],
            shape[1] * shape[3],
            1,
        ];
        let product = self.graph.tensor(TensorStorage::Virtual, Kind::Float, shape, wide)?;
        let product = self
            .graph
            .pointwise(Pointwise::Multiply, &[upstream, output], product)?;
        let per_query = self.per_query(TensorStorage::Virtual)?;
        let per_query = self.graph.reduce(Reduce::Sum, product, per_query)?;
        let one = self.graph.value(1.0)?;
        let products = self.per_query(TensorStorage::Memory(PRODUCTS))?;
        self.graph.pointwise(Pointwise::Multiply, &[per_query, one], products)
    }

    /// Probabilities, recomputed from the log-sum-exp of each query.
    fn recomputed_probabilities(&mut self, query: Tensor, key: Tensor, sums: Tensor) -> Result<Tensor, Refusal> {
        let scores = self.pairs(Kind::Float)?;
        let scores = self.graph.product(query, key, scores)?;
        let scores = self.scaled(scores)?;
        let below = self.pairs(Kind::Float)?;
        let below = self.graph.pointwise(Pointwise::Subtract, &[scores, sums], below)?;
        let below = self.masked(below)?;
        let probability = self.pairs(Kind::Float)?;
        self.graph.pointwise(Pointwise::Exponential, &[below], probability)
    }

    /// Gradient of the unscaled scores, from that of the probabilities.
    fn score_gradient(
        &mut self,
        of_probability: Tensor,
        products: Tensor,
        probability: Tensor,
    ) -> Result<Tensor, Refusal> {
        let centred = self.pairs(Kind::Float)?;
        let centred = self
            .graph
            .pointwise(Pointwise::Subtract, &[of_probability, products], centred)?;
        let of_score = self.pairs(Kind::Float)?;
        let of_score = self
            .graph
            .pointwise(Pointwise::Multiply, &[centred, probability], of_score)?;
        self.scaled(of_score)
    }

    /// Transposed pairs times a row for each query: the gradient of values or of keys.
    fn product_over_queries(&mut self, pairs: Tensor, rows: Tensor, gradient: i64) -> Result<(), Refusal> {
        let transposed = self.transposed_pairs()?;
        let transposed = self.graph.reshape(pairs, transposed)?;
        let gradient = self.rows(gradient, self.extents.heads)?;
        self.graph.product(transposed, rows, gradient)?;
        Ok(())
    }

    /// Gradient of the queries, accumulated in fp32.
    fn query_gradient(&mut self, of_score: Tensor, key: Tensor) -> Result<(), Refusal> {
        let shape = self.query_shape();
        let key_rows = self
            .graph
            .tensor(TensorStorage::Virtual, Kind::Float, shape, packed(shape))?;
        let key_rows = self.graph.reshape(key, key_rows)?;
        let sum = self
            .graph
            .tensor(TensorStorage::Memory(QUERY_SUMS), Kind::Float, shape, packed(shape))?;
        let sum = self.graph.product(of_score, key_rows, sum)?;
        let query_gradient = self.rows(QUERY_GRADIENT, self.extents.heads)?;
        self.graph.pointwise(Pointwise::Identity, &[sum], query_gradient)?;
        Ok(())
    }
}

/// Plans forward; `with_sums` keeps the log-sum-exp for backward.
///
/// # Errors
/// If cuDNN has no kernel for it.
pub fn forward(
    library: &Rc<Library>,
    extents: Extents,
    precision: Precision,
    with_sums: bool,
) -> Result<Plan, Refusal> {
    let mut a = Attention::new(library, extents, precision)?;
    let query = a.rows(QUERY, extents.heads)?;
    let key = a.columns(KEY, extents.kv_heads)?;
    let value = a.rows(VALUE, extents.kv_heads)?;
    let output = a.rows(OUTPUT, extents.heads)?;

    let scores = a.pairs(Kind::Float)?;
    let scores = a.graph.product(query, key, scores)?;
    let scores = a.scaled(scores)?;
    let scores = a.masked(scores)?;

    let highest = a.per_query(TensorStorage::Virtual)?;
    let highest = a.graph.reduce(Reduce::Highest, scores, highest)?;
    let below = a.pairs(Kind::Float)?;
    let below = a.graph.pointwise(Pointwise::Subtract, &[scores, highest], below)?;
    let power = a.pairs(Kind::Float)?;
    let power = a.graph.pointwise(Pointwise::Exponential, &[below], power)?;
    let sum = a.per_query(TensorStorage::Virtual)?;
    let sum = a.graph.reduce(Reduce::Sum, power, sum)?;
    let logarithm = a.per_query(TensorStorage::Virtual)?;
    let logarithm = a.graph.pointwise(Pointwise::Logarithm, &[sum], logarithm)?;
    let sums = a.per_query(if with_sums {
        TensorStorage::Memory(SUMS)
    } else {
        TensorStorage::Virtual
    })?;
    a.graph.pointwise(Pointwise::Add, &[highest, logarithm], sums)?;
    let probability = a.pairs(a.kind)?;
    let probability = a.graph.pointwise(Pointwise::Divide, &[power, sum], probability)?;

    a.graph.product(probability, value, output)?;
    a.graph.plan()
}

/// Plans backward, from the results of [`forward`] with sums.
///
/// # Errors
/// When cuDNN has no kernel for it.
pub fn backward(library: &Rc<Library>, extents: Extents, precision: Precision) -> Result<Plan, Refusal> {
    if extents.heads != extents.kv_heads {
        let reason = "backward of grouped heads is not measured: keys and values need as many heads as queries";
        return Err(Refusal::Unsupported(reason.into()));
    }
    let mut a = Attention::new(library, extents, precision)?;
    let heads = extents.heads;
    let query = a.rows(QUERY, heads)?;
    let key = a.columns(KEY, heads)?;
    let value = a.columns(VALUE, heads)?;
    let output = a.rows(OUTPUT, heads)?;
    let upstream = a.rows(OUTPUT_GRADIENT, heads)?;
    let sums = a.per_query(TensorStorage::Memory(SUMS))?;

    let products = a.dot_products(upstream, output)?;
    let probability = a.recomputed_probabilities(query, key, sums)?;
    a.product_over_queries(probability, upstream, VALUE_GRADIENT)?;

    let of_probability = a.pairs(Kind::Float)?;
    let of_probability = a.graph.product(upstream, value, of_probability)?;
    let of_score = a.score_gradient(of_probability, products, probability)?;
    a.product_over_queries(of_score, query, KEY_GRADIENT)?;
    a.query_gradient(of_score, key)?;
    a.graph.plan()
}
