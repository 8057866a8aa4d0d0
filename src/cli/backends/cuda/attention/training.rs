//! Attention as matrix products and softmax, forward and backward, like autograd with PyTorch's operations.
//!
//! Forward keeps the probabilities of each block. Backward visits the blocks again for the gradients of values,
//! probabilities, scores, queries and keys. The gradient of the scores takes two kernels and four tensors of their
//! size, as in PyTorch. With several blocks, results are written in place and the gradients of keys and values are
//! accumulated there, so no concatenation is needed; autograd instead creates a tensor as long as all keys for each
//! block and adds those.

use std::rc::Rc;

use vramscope_benchmark::{Kernel, Layout, Precision};
use vramscope_engine::attention::Algorithm;

use super::super::Cuda;
use super::super::api::Address;
use super::super::compile::{Arguments, Function, Source};
use super::super::gemm::{Gemm, Product};
use super::super::job::{Ready, Tensors};
use super::super::memory::Buffer;
use super::super::own::{blocks as grid, row_plan, vectors};
use super::unfused::{scores_bytes, ungrouped};
use crate::backends::Refusal;
use crate::kernels::work::{Extents, blocks};

/// Kernels and matrix products for a block with a given number of queries and keys.
struct Shaped {
    shape: [u64; 2],
    scores: Gemm,
    output: Gemm,
    of_values: Gemm,
    of_probabilities: Gemm,
    of_queries: Gemm,
    of_keys: Gemm,
    softmax: Function,
    softmax_backward: Function,
    threads: u32,
    /// Number of vectors per row.
    vectors: u64,
}

/// A block of queries, the keys they see, and the offset of their probabilities.
struct Block {
    first: u64,
    first_key: u64,
    shaped: Rc<Shaped>,
    probabilities: Address,
}

pub(super) struct Training<'a> {
    cuda: &'a Cuda,
    blocks: Vec<Block>,
    scale: Function,
    multiply: Function,
    hide: Function,
    keep: Function,
    /// Probabilities of all blocks, then three blocks of scores.
    memory: Rc<Buffer>,
    work: [Address; 3],
    extents: Extents,
    precision: Precision,
    kept: Option<u64>,
}

impl<'a> Training<'a> {
    /// Prepares the attention.
    ///
    /// # Errors
    /// If it does not fit into memory, or a library does not support it.
    pub(super) fn ready(
        cuda: &'a Cuda,
        kernel: &Kernel,
        precision: Precision,
        sets: &mut [Tensors],
    ) -> Result<Ready<'a>, Refusal> {
        let extents = ungrouped(kernel)?;
        let algorithm = kernel.algorithm.unwrap_or(Algorithm::Standard);
        let cut = blocks(kernel, algorithm);
        let matrices = extents.batch * extents.heads;
        let bytes = |[queries, keys]: [u64; 2]| scores_bytes(matrices * queries * keys, precision);
        let all: u64 = cut.iter().map(|block| bytes(*block)).sum();
        let largest = cut.iter().map(|block| bytes(*block)).max().unwrap_or(0);
        let gradient = sets[0].outputs[2].bytes;
        // When the gradients of queries and keys are computed, one block's probabilities and their product with the
        // incoming gradient are no longer needed: each buffer is reused for one of the gradients.
        let alone = cut.len() == 1;
        let [room, largest] = [all, largest].map(|bytes| if alone { bytes.max(gradient) } else { bytes });
        let memory = Rc::new(cuda.card.allocate(room + 3 * largest)?);
        if alone {
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
        training.cut(kernel, algorithm, &cut, &sets[0])?;
        let shaped = &training.blocks[0].shaped;
        let name = format!("scores {}, {}", shaped.scores.name(), shaped.softmax.name);
        Ok(Ready {
            implementation: cuda.implementation("cuBLASLt", name, true),
            extra: vec![training.memory.bytes],
            within: if alone { 2 * gradient.next_multiple_of(512) } else { 0 },
            launch: Box::new(move |_, set| training.run(set)),
        })
    }

    fn cut(&mut self, kernel: &Kernel, algorithm: Algorithm, cut: &[[u64; 2]], set: &Tensors) -> Result<(), Refusal> {
        let half = (kernel.shape.window.unwrap_or(self.extents.length) / 2).max(1);
        let matrices = self.extents.batch * self.extents.heads;
        let mut made: Vec<Rc<Shaped>> = Vec::new();
        let (mut first, mut probabilities) = (0_u64, self.memory.address);
        for &[queries, keys] in cut {
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

    fn shaped(&self, [queries, keys]: [u64; 2], set: &Tensors) -> Result<Shaped, Refusal> {
        let e = self.extents;
        let (width, whole, pairs) = (e.width, e.length * e.width, queries * keys);
        let lt = self.cuda.lt()?;
        let [scores, others, _] = self.work;
        let [query, value, output] = [set.inputs[0].address, set.inputs[2].address, set.outputs[0].address];
        let product = |layout, extents: [u64; 3], rows, steps, operands| {
            let product = Product {
                precision: self.precision,
                layout,
                extents,
                rows,
                count: e.batch * e.heads,
                steps,
            };
            // Candidates are timed on memory of the right length; its contents do not matter.
            lt.product(&product, operands)
        };
        // Queries or values times keys or values; pairs times rows; transposed pairs times rows.
        let against = |operands| {
            let extents = [queries, keys, width];
            product(
                Layout::Nt,
                extents,
                [width, width, keys],
                [whole, whole, pairs],
                operands,
            )
        };
        let weighted = |operands| {
            let extents = [queries, width, keys];
            product(
                Layout::Nn,
                extents,
                [keys, width, width],
                [pairs, whole, whole],
                operands,
            )
        };
        let turned = |operands| {
            let extents = [keys, width, queries];
            product(
                Layout::Tn,
                extents,
                [keys, width, width],
                [pairs, whole, whole],
                operands,
            )
        };
        let count = vectors(keys, self.precision)?;
        let (stem, threads) = match row_plan(count) {
            Some((threads, held)) => (held.to_string(), threads),
            None => ("long".to_owned(), 1024),
        };
        let function = |source, name: &str| self.cuda.function(source, self.precision, name);
        Ok(Shaped {
            shape: [queries, keys],
            scores: against([query, value, scores])?,
            output: weighted([scores, value, output])?,
            of_values: turned([scores, query, output])?,
            of_probabilities: against([query, value, others])?,
            of_queries: weighted([scores, value, output])?,
            of_keys: turned([scores, query, output])?,
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
            // Gradients of keys and values are accumulated.
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
        self.scaled(scores, scaled, shaped)?;
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
            scaled = scores;
        }
        // The rows of a block do not continue with those of another sample's head, so sums are only kept for a single
        // block.
        let sums = if self.blocks.len() == 1 {
            set.outputs[1].address
        } else {
            0
        };
        let arguments = Arguments::default()
            .wide(scaled)
            .wide(block.probabilities)
            .narrow(shaped.vectors as u32)
            .float(1.0)
            .wide(sums);
        shaped.softmax.launch(rows, shaped.threads, &arguments)?;
        let result = set.outputs[0].address + block.first * row;
        shaped
            .output
            .run([block.probabilities, value + block.first_key * row, result])
    }

    /// Divides by the square root of the head size.
    fn scaled(&self, from: Address, to: Address, shaped: &Shaped) -> Result<(), Refusal> {
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
        let into = |gemm: &Gemm, operands| match self.blocks.len() {
            1 => gemm.run(operands),
            _ => gemm.add(operands),
        };
        into(&shaped.of_values, [block.probabilities, upstream, of_value + keys])?;
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
        // The gradient of the probabilities is no longer needed.
        self.scaled(of_score, of_probability, shaped)?;
        shaped
            .of_queries
            .run([of_probability, key + keys, of_query + queries])?;
        into(&shaped.of_keys, [of_probability, query + queries, of_key + keys])
    }
}
