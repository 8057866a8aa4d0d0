//! Attention as matrix products and softmax, forward and backward, like autograd with PyTorch's operations.
//!
//! A block is a part of the queries with the keys that they see; the algorithm decides how many there are. Forward
//! keeps the probabilities of each block. Backward visits the blocks again for the gradients of values,
//! probabilities, scores, queries and keys. The gradient of the scores takes two kernels (a product, and the rest of
//! softmax's backward) and four tensors of their size, as in PyTorch. Each block writes its rows of the result and of
//! the queries' gradient in place, and adds to the gradients of keys and values, so nothing is concatenated. Autograd
//! instead makes a tensor as long as all keys for each block, and adds those.

use std::rc::Rc;

use vramscope_benchmark::{Kernel, Layout, Precision};
use vramscope_engine::attention::Algorithm;

use super::super::Cuda;
use super::super::api::Address;
use super::super::compile::{Arguments, Function, Source};
use super::super::gemm::{Gemm, Lt, Product};
use super::super::job::{Ready, Tensors};
use super::super::memory::Buffer;
use super::super::own::{blocks as grid, row_plan, vectors};
use super::unfused::{scores_bytes, ungrouped};
use crate::backends::Refusal;
use crate::kernels::work::{Extents, blocks};

/// Kernels and matrix products for a block with a given number of queries and keys.
struct Shaped {
    /// Numbers of queries and keys.
    shape: [u64; 2],
    scores: Gemm,
    output: Gemm,
    /// Product that gives the gradient of the values, as do the next three for what they name.
    of_values: Gemm,
    of_probabilities: Gemm,
    of_queries: Gemm,
    of_keys: Gemm,
    softmax: Function,
    softmax_backward: Function,
    /// Threads per row of the softmax kernels.
    threads: u32,
    /// Number of vectors of 16 bytes per row of scores.
    vectors: u64,
}

/// The products of a block, whose matrix of pairs has a row for each query and a column for each key.
struct Products<'a> {
    lt: &'a Rc<Lt>,
    extents: Extents,
    precision: Precision,
    queries: u64,
    keys: u64,
}

impl Products<'_> {
    /// Queries times keys: the scores; the result's gradient times values: the gradient of probabilities.
    fn rows_by_rows(&self, operands: [Address; 3]) -> Result<Gemm, Refusal> {
        let (width, [whole, pairs]) = (self.extents.width, self.steps());
        let rows = [width, width, self.keys];
        self.prepare(
            Layout::Nt,
            [self.queries, self.keys, width],
            rows,
            [whole, whole, pairs],
            operands,
        )
    }

    /// Pairs times a row for each key: the result, and the gradient of queries.
    fn pairs_by_keys(&self, operands: [Address; 3]) -> Result<Gemm, Refusal> {
        let (width, [whole, pairs]) = (self.extents.width, self.steps());
        let rows = [self.keys, width, width];
        self.prepare(
            Layout::Nn,
            [self.queries, width, self.keys],
            rows,
            [pairs, whole, whole],
            operands,
        )
    }

    /// Transposed pairs times a row for each query: the gradients of values and of keys.
    fn pairs_by_queries(&self, operands: [Address; 3]) -> Result<Gemm, Refusal> {
        let (width, [whole, pairs]) = (self.extents.width, self.steps());
        let rows = [self.keys, width, width];
        self.prepare(
            Layout::Tn,
            [self.keys, width, self.queries],
            rows,
            [pairs, whole, whole],
            operands,
        )
    }

    /// Elements from one head to the next, of queries or keys and of pairs.
    fn steps(&self) -> [u64; 2] {
        [self.extents.length * self.extents.width, self.queries * self.keys]
    }

    fn prepare(
        &self,
        layout: Layout,
        extents: [u64; 3],
        rows: [u64; 3],
        steps: [u64; 3],
        operands: [Address; 3],
    ) -> Result<Gemm, Refusal> {
        let product = Product {
            precision: self.precision,
            layout,
            extents,
            rows,
            count: self.extents.batch * self.extents.heads,
            steps,
        };
        self.lt.product(&product, operands)
    }
}

/// A block of queries and the keys they see.
struct Block {
    /// Index of the first query.
    first: u64,
    first_key: u64,
    shaped: Rc<Shaped>,
    /// Address of the probabilities that forward keeps.
    probabilities: Address,
}

/// Forward and backward of an attention, prepared on a card.
pub(super) struct Training<'a> {
    cuda: &'a Cuda,
    blocks: Vec<Block>,
    scale: Function,
    multiply: Function,
    /// Causal mask.
    hide: Function,
    /// Selection of the highest scores.
    keep: Function,
    /// Probabilities of all blocks, then three buffers as large as the largest block's scores.
    memory: Rc<Buffer>,
    /// Addresses of these three buffers, which all blocks use in turn.
    work: [Address; 3],
    extents: Extents,
    precision: Precision,
    /// Number of scores that each query keeps; `None` if it keeps all.
    kept: Option<u64>,
}

impl<'a> Training<'a> {
    /// Prepares the attention.
    ///
    /// # Errors
    /// If key heads are shared by query heads, the memory does not suffice, or a library does not support a product.
    pub(super) fn ready(
        cuda: &'a Cuda,
        kernel: &Kernel,
        precision: Precision,
        sets: &mut [Tensors],
    ) -> Result<Ready<'a>, Refusal> {
        let extents = ungrouped(kernel)?;
        let algorithm = kernel.algorithm.unwrap_or(Algorithm::Standard);
        let shapes = blocks(kernel, algorithm);
        let matrices = extents.batch * extents.heads;
        let bytes = |[queries, keys]: [u64; 2]| scores_bytes(matrices * queries * keys, precision);
        let all: u64 = shapes.iter().map(|block| bytes(*block)).sum();
        let largest = shapes.iter().map(|block| bytes(*block)).max().unwrap_or(0);
        // Bytes of the gradient of the queries, and of that of the keys: there are as many.
        let gradient = sets[0].outputs[2].bytes;
        // When the gradients of queries and keys are computed, the probabilities and their product with their own
        // gradient (the second work buffer) are no longer needed. With a single block, each holds one of the gradients
        // from then on; with several, the next block still needs them.
        let single = shapes.len() == 1;
        let [room, largest] = [all, largest].map(|bytes| if single { bytes.max(gradient) } else { bytes });
        let memory = Rc::new(cuda.card.allocate(room + 3 * largest)?);
        if single {
            for set in sets.iter_mut() {
                set.outputs[2] = Buffer::part(&memory, 0, gradient);
                set.outputs[3] = Buffer::part(&memory, room + largest, gradient);
            }
        }
        let kept = (algorithm == Algorithm::TopK)
            .then(|| (extents.length * kernel.shape.kept_percent.unwrap_or(100) / 100).max(1));
        let mut training = Self {
            cuda,
            blocks: Vec::new(),
            scale: cuda.function(Source::Elements, precision, "scale")?,
            multiply: cuda.function(Source::Elements, precision, "mul")?,
            hide: cuda.function(Source::Attention, precision, "hide_later")?,
            keep: cuda.function(Source::Attention, precision, "keep_highest")?,
            work: [0, 1, 2].map(|i| memory.address + room + i * largest),
            memory,
            extents,
            precision,
            kept,
        };
        training.add_blocks(kernel, algorithm, &shapes, &sets[0])?;
        let shaped = &training.blocks[0].shaped;
        let name = format!("scores {}, {}", shaped.scores.name(), shaped.softmax.name);
        Ok(Ready {
            implementation: cuda.implementation("cuBLASLt", name, true),
            extra: vec![training.memory.bytes],
            // Rounded as the allocator rounds the outputs from whose sum this is subtracted.
            within: if single { 2 * gradient.next_multiple_of(512) } else { 0 },
            launch: Box::new(move |_, set| training.run(set)),
        })
    }

    /// Adds a block for each of `shapes`, numbers of queries and of keys; blocks of the same shape share their kernels.
    fn add_blocks(
        &mut self,
        kernel: &Kernel,
        algorithm: Algorithm,
        shapes: &[[u64; 2]],
        set: &Tensors,
    ) -> Result<(), Refusal> {
        // The keys of a window begin half a window before the block's first query.
        let half = (kernel.shape.window.unwrap_or(self.extents.length) / 2).max(1);
        let matrices = self.extents.batch * self.extents.heads;
        let mut made: Vec<Rc<Shaped>> = Vec::new();
        let (mut first, mut probabilities) = (0_u64, self.memory.address);
        for &[queries, keys] in shapes {
            let shaped = match made.iter().find(|shaped| shaped.shape == [queries, keys]) {
                Some(known) => Rc::clone(known),
                None => {
                    made.push(Rc::new(self.shaped([queries, keys], set)?));
                    Rc::clone(&made[made.len() - 1])
                }
            };
            self.blocks.push(Block {
                first,
                first_key: if algorithm == Algorithm::Sliding {
                    first.saturating_sub(half)
                } else {
                    0
                },
                shaped,
                probabilities,
            });
            first += queries;
            probabilities += scores_bytes(matrices * queries * keys, self.precision);
        }
        Ok(())
    }

    /// Prepares kernels and products for a block; `set` lends memory on which candidates for the products are timed.
    fn shaped(&self, [queries, keys]: [u64; 2], set: &Tensors) -> Result<Shaped, Refusal> {
        // What the operands hold does not matter, nor which they are, if their length is right.
        let [scores, result, _] = self.work;
        let [query, value, output] = [set.inputs[0].address, set.inputs[2].address, set.outputs[0].address];
        let products = Products {
            lt: self.cuda.lt()?,
            extents: self.extents,
            precision: self.precision,
            queries,
            keys,
        };
        let count = vectors(keys, self.precision)?;
        // Rows that registers cannot hold have kernels of their own.
        let (stem, threads) = match row_plan(count) {
            Some((threads, held)) => (held.to_string(), threads),
            None => ("long".to_owned(), 1024),
        };
        let function = |source, name: &str| self.cuda.function(source, self.precision, name);
        Ok(Shaped {
            shape: [queries, keys],
            scores: products.rows_by_rows([query, value, scores])?,
            output: products.pairs_by_keys([scores, value, output])?,
            of_values: products.pairs_by_queries([scores, query, output])?,
            of_probabilities: products.rows_by_rows([query, value, result])?,
            of_queries: products.pairs_by_keys([scores, value, output])?,
            of_keys: products.pairs_by_queries([scores, query, output])?,
            softmax: function(Source::Rows, &format!("softmax_{stem}"))?,
            softmax_backward: function(Source::Gradients, &format!("softmax_of_product_{stem}"))?,
            threads,
            vectors: count,
        })
    }

    fn run(&self, set: &Tensors) -> Result<(), Refusal> {
        for block in &self.blocks {
            self.forward(block, set)?;
        }
        if self.blocks.len() > 1 {
            // Each block adds to the gradients of keys and values.
            set.outputs[3].set(0)?;
            set.outputs[4].set(0)?;
        }
        self.blocks.iter().try_for_each(|block| self.backward(block, set))
    }

    fn forward(&self, block: &Block, set: &Tensors) -> Result<(), Refusal> {
        let e = &self.extents;
        let shaped = &block.shaped;
        let [queries, keys] = shaped.shape;
        let row = e.width * self.precision.width();
        let [query, key, value] = [0, 1, 2].map(|i| set.inputs[i].address);
        let [scores, mut scaled, _] = self.work;
        shaped
            .scores
            .run([query + block.first * row, key + block.first_key * row, scores])?;
        self.scale_scores(scores, scaled, shaped)?;
        let rows = e.batch * e.heads * queries;
        if e.causal {
            let arguments = Arguments::default().wide(scaled).wide(rows * keys);
            let arguments = arguments
                .narrow(queries as u32)
                .narrow(keys as u32)
                .narrow((block.first - block.first_key) as u32);
            self.hide.launch(grid(self.cuda, rows * keys), 256, &arguments)?;
        }
        if let Some(kept) = self.kept {
            let arguments = Arguments::default().wide(scaled).wide(scores);
            self.keep
                .launch(rows, 256, &arguments.narrow(keys as u32).narrow(kept as u32))?;
            // The unscaled scores, no longer needed, made room for the selection.
            scaled = scores;
        }
        // Softmax writes the log-sum-exp of its nth row as the nth number. That is its place in the output only where a
        // block has all queries of each head; with several blocks, address 0 tells the kernel to write none.
        let sums = if self.blocks.len() == 1 {
            set.outputs[1].address
        } else {
            0
        };
        let arguments = Arguments::default()
            .wide(scaled)
            .wide(block.probabilities)
            .narrow(shaped.vectors as u32)
            // The scores are scaled already.
            .float(1.0)
            .wide(sums);
        shaped.softmax.launch(rows, shaped.threads, &arguments)?;
        let result = set.outputs[0].address + block.first * row;
        shaped
            .output
            .run([block.probabilities, value + block.first_key * row, result])
    }

    /// Divides scores, or their gradient, by the square root of the head size.
    fn scale_scores(&self, from: Address, to: Address, shaped: &Shaped) -> Result<(), Refusal> {
        let vectors = self.extents.batch * self.extents.heads * shaped.shape[0] * shaped.vectors;
        let arguments = Arguments::default()
            .wide(from)
            .wide(to)
            .wide(vectors)
            .float(1.0 / (self.extents.width as f32).sqrt());
        self.scale.launch(grid(self.cuda, vectors), 256, &arguments)
    }

    fn backward(&self, block: &Block, set: &Tensors) -> Result<(), Refusal> {
        let e = &self.extents;
        let shaped = &block.shaped;
        let row = e.width * self.precision.width();
        let [query, key, value, upstream] = [0, 1, 2, 3].map(|i| set.inputs[i].address);
        let [of_query, of_key, of_value] = [2, 3, 4].map(|i| set.outputs[i].address);
        let (queries, keys) = (block.first * row, block.first_key * row);
        let upstream = upstream + queries;
        let [of_probability, product, of_score] = self.work;
        // A single block overwrites; several add to what `run` set to zero.
        let accumulate = |gemm: &Gemm, operands| match self.blocks.len() {
            1 => gemm.run(operands),
            _ => gemm.add(operands),
        };
        accumulate(&shaped.of_values, [block.probabilities, upstream, of_value + keys])?;
        shaped.of_probabilities.run([upstream, value + keys, of_probability])?;
        let rows = e.batch * e.heads * shaped.shape[0];
        let vectors = rows * shaped.vectors;
        let arguments = Arguments::default()
            .wide(of_probability)
            .wide(block.probabilities)
            .wide(product)
            .wide(vectors);
        self.multiply.launch(grid(self.cuda, vectors), 256, &arguments)?;
        let arguments = Arguments::default()
            .wide(product)
            .wide(block.probabilities)
            .wide(of_score)
            .narrow(shaped.vectors as u32);
        shaped.softmax_backward.launch(rows, shaped.threads, &arguments)?;
        // The gradient of the probabilities is no longer needed: its memory takes that of the unscaled scores.
        let of_unscaled = of_probability;
        self.scale_scores(of_score, of_unscaled, shaped)?;
        shaped.of_queries.run([of_unscaled, key + keys, of_query + queries])?;
        accumulate(&shaped.of_keys, [of_unscaled, query + queries, of_key + keys])
    }
}
