//! Forward attention as matrix products and softmax, as PyTorch computes it.

use std::rc::Rc;

use vramscope_benchmark::{Kernel, Layout, Precision};
use vramscope_engine::attention::Algorithm;

use super::super::Cuda;
use super::super::api::Address;
use super::super::compile::{Arguments, Function, Source};
use super::super::gemm::{Gemm, Product};
use super::super::job::{Ready, Tensors};
use super::super::memory::Buffer;
use super::super::own::{row_plan, vectors};
use crate::backends::Refusal;
use crate::kernels::work::{Extents, blocks};

/// Attention as scores, scale, softmax and product, one block of queries after the other.
pub(super) struct Unfused {
    blocks: Vec<Block>,
    /// Softmax kernel for the rows of each block.
    softmax: Vec<(Function, u32, u64)>,
    scale: Function,
    hide: Function,
    keep: Function,
    combine: Function,
    memory: Memory,
    extents: Extents,
    precision: Precision,
    kept: Option<u64>,
    multiprocessors: u32,
}

/// Memory for the scores and results of blocks.
enum Memory {
    /// For a single block: its scores, and its scaled scores, which become the probabilities.
    Whole([Buffer; 2]),
    /// For each copy of the tensors, the memory that PyTorch holds at its peak: results of blocks from the front, and
    /// the scores of the current block at the back, where the results are concatenated at the end.
    Parts(Vec<Rc<Buffer>>),
}

/// Addresses that a block works on.
struct Room {
    scores: Address,
    scaled: Address,
    /// Result of the block.
    part: Address,
}

/// Matrix products and softmax for one block shape.
#[derive(Clone)]
struct Shaped {
    shape: [u64; 2],
    scores: Rc<Gemm>,
    output: Rc<Gemm>,
    softmax: usize,
}

/// A block of queries and the keys that they see.
struct Block {
    first: u64,
    queries: u64,
    first_key: u64,
    keys: u64,
    shaped: Shaped,
}

/// Alignment in bytes of each block's scores, which cuBLASLt's heuristics assume.
pub(super) const ALIGNMENT: u64 = 256;

/// Extents of a kernel in which each query head has its own key head.
pub(super) fn ungrouped(kernel: &Kernel) -> Result<Extents, Refusal> {
    let extents = Extents::of(kernel);
    if extents.heads != extents.kv_heads {
        let reason = "unfused attention of grouped heads is not measured";
        return Err(Refusal::Unsupported(reason.into()));
    }
    Ok(extents)
}

impl Unfused {
    /// Prepares the attention.
    pub(super) fn ready<'a>(
        cuda: &'a Cuda,
        kernel: &Kernel,
        precision: Precision,
        sets: &mut [Tensors],
    ) -> Result<Ready<'a>, Refusal> {
        let extents = ungrouped(kernel)?;
        let algorithm = kernel.algorithm.unwrap_or(Algorithm::Standard);
        let cut = blocks(kernel, algorithm);
        let function = |source, name: &str| cuda.function(source, precision, name);
        let (memory, extra) = Self::memory(cuda, extents, precision, &cut, sets)?;
        let kept = (algorithm == Algorithm::TopK)
            .then(|| (extents.length * kernel.shape.kept_percent.unwrap_or(100) / 100).max(1));
        let mut unfused = Self {
            blocks: Vec::new(),
            softmax: Vec::new(),
            scale: function(Source::Elements, "scale")?,
            hide: function(Source::Attention, "hide_later")?,
            keep: function(Source::Attention, "keep_highest")?,
            combine: function(Source::Attention, "put_together")?,
            memory,
            extents,
            precision,
            kept,
            multiprocessors: cuda.facts.multiprocessors,
        };
        unfused.cut(cuda, kernel, algorithm, &cut)?;
        let name = format!(
            "scores {}, softmax {}",
            unfused.blocks[0].shaped.scores.name(),
            unfused.softmax[0].0.name
        );
        Ok(Ready {
            implementation: cuda.implementation("cuBLASLt", name, true),
            extra,
            within: 0,
            launch: Box::new(move |index, set| unfused.run(index, set)),
        })
    }

    /// Allocates the memory; returns it with its sizes beside the result.
    fn memory(
        cuda: &Cuda,
        extents: Extents,
        precision: Precision,
        cut: &[[u64; 2]],
        sets: &mut [Tensors],
    ) -> Result<(Memory, Vec<u64>), Refusal> {
        let matrices = extents.batch * extents.heads;
        let scores = |[queries, keys]: [u64; 2]| scores_bytes(matrices * queries * keys, precision);
        if let [block] = cut {
            let bytes = scores(*block);
            let whole = [cuda.card.allocate(bytes)?, cuda.card.allocate(bytes)?];
            return Ok((Memory::Whole(whole), vec![bytes, bytes]));
        }
        let row = matrices * extents.width * precision.width();
        let all = row * extents.length;
        let (mut parts, mut peak) = (0, 2 * all);
        for block in cut {
            parts += row * block[0];
            peak = peak.max(parts.next_multiple_of(ALIGNMENT) + 2 * scores(*block));
        }
        let mut memory = Vec::new();
        for set in sets {
            let whole = Rc::new(cuda.card.allocate(peak)?);
            set.outputs[0] = Buffer::part(&whole, peak - all, all);
            memory.push(whole);
        }
        Ok((Memory::Parts(memory), vec![peak - all]))
    }

    fn room(&self, index: usize, block: &Block, set: &Tensors) -> Room {
        let matrices = self.extents.batch * self.extents.heads;
        match &self.memory {
            Memory::Whole([scores, scaled]) => Room {
                scores: scores.address,
                scaled: scaled.address,
                part: set.outputs[0].address,
            },
            Memory::Parts(sets) => {
                let whole = &sets[index];
                let end = whole.address + whole.bytes;
                let bytes = scores_bytes(matrices * block.queries * block.keys, self.precision);
                Room {
                    scores: end - 2 * bytes,
                    scaled: end - bytes,
                    part: whole.address + matrices * block.first * self.extents.width * self.precision.width(),
                }
            }
        }
    }

    fn cut(&mut self, cuda: &Cuda, kernel: &Kernel, algorithm: Algorithm, cut: &[[u64; 2]]) -> Result<(), Refusal> {
        let length = self.extents.length;
        let half = (kernel.shape.window.unwrap_or(length) / 2).max(1);
        let mut first: u64 = 0;
        let mut made: Vec<Shaped> = Vec::new();
        for &[queries, keys] in cut {
            let known = made.iter().find(|shaped| shaped.shape == [queries, keys]).cloned();
            let shaped = match known {
                Some(known) => known,
                None => {
                    let new = self.products(cuda, queries, keys)?;
                    made.push(new.clone());
                    new
                }
            };
            let first_key = match algorithm {
                Algorithm::Sliding => first.saturating_sub(half),
                _ => 0,
            };
            self.blocks.push(Block {
                first,
                queries,
                first_key,
                keys,
                shaped,
            });
            first += queries;
        }
        debug_assert_eq!(first, length);
        Ok(())
    }

    fn products(&mut self, cuda: &Cuda, queries: u64, keys: u64) -> Result<Shaped, Refusal> {
        let Extents {
            batch,
            heads,
            length,
            width,
            ..
        } = self.extents;
        let lt = cuda.lt()?;
        let matrix = length * width;
        let in_parts = matches!(self.memory, Memory::Parts(_));
        let result = if in_parts { queries * width } else { matrix };
        let scores = Product {
            precision: self.precision,
            layout: Layout::Nt,
            extents: [queries, keys, width],
            rows: [width, width, keys],
            count: batch * heads,
            steps: [matrix, matrix, queries * keys],
        };
        let output = Product {
            precision: self.precision,
            layout: Layout::Nn,
            extents: [queries, width, keys],
            rows: [keys, width, width],
            count: batch * heads,
            steps: [queries * keys, matrix, result],
        };
        // Scratch memory for timing candidates.
        let rows = cuda.card.allocate(batch * heads * matrix * self.precision.width())?;
        let scratch = cuda
            .card
            .allocate(scores_bytes(batch * heads * queries * keys, self.precision))?;
        let scores = lt.product(&scores, [rows.address, rows.address, scratch.address])?;
        let output = lt.product(&output, [scratch.address, rows.address, rows.address])?;
        let count = vectors(keys, self.precision)?;
        let (name, threads) = match row_plan(count) {
            Some((threads, held)) => (format!("softmax_{held}"), threads),
            None => ("softmax_long".to_owned(), 1024),
        };
        self.softmax
            .push((cuda.function(Source::Rows, self.precision, &name)?, threads, count));
        Ok(Shaped {
            shape: [queries, keys],
            scores: Rc::new(scores),
            output: Rc::new(output),
            softmax: self.softmax.len() - 1,
        })
    }

    fn run(&self, index: usize, set: &Tensors) -> Result<(), Refusal> {
        let [query, key, value] = [0, 1, 2].map(|i| set.inputs[i].address);
        let row = self.extents.width * self.precision.width();
        for block in &self.blocks {
            let from_key = block.first_key * row;
            let rows = [query + block.first * row, key + from_key, value + from_key];
            self.block(block, rows, &self.room(index, block, set))?;
        }
        match &self.memory {
            Memory::Parts(sets) => self.combined(sets[index].address, set.outputs[0].address),
            Memory::Whole(_) => Ok(()),
        }
    }

    fn block(&self, block: &Block, [query, key, value]: [Address; 3], room: &Room) -> Result<(), Refusal> {
        let matrices = self.extents.batch * self.extents.heads;
        let rows = matrices * block.queries;
        let (softmax, threads, count) = &self.softmax[block.shaped.softmax];
        let vectors = rows * count;
        let grid = |n: u64| n.div_ceil(256).min(u64::from(self.multiprocessors) * 32).max(1);
        let &Room { scores, scaled, part } = room;
        block.shaped.scores.run([query, key, scores])?;
        let factor = 1.0 / (self.extents.width as f32).sqrt();
        let arguments = Arguments::default()
            .wide(scores)
            .wide(scaled)
            .wide(vectors)
            .float(factor);
        self.scale.launch(grid(vectors), 256, &arguments)?;
        if self.extents.causal {
            let n = rows * block.keys;
            let arguments = Arguments::default().wide(scaled).wide(n);
            let arguments = arguments
                .narrow(block.queries as u32)
                .narrow(block.keys as u32)
                .narrow((block.first - block.first_key) as u32);
            self.hide.launch(grid(n), 256, &arguments)?;
        }
        // The unscaled scores are no longer needed, so their memory is reused.
        let (mut from, mut to) = (scaled, scores);
        if let Some(kept) = self.kept {
            let arguments = Arguments::default().wide(from).wide(to);
            self.keep
                .launch(rows, 256, &arguments.narrow(block.keys as u32).narrow(kept as u32))?;
            (from, to) = (to, from);
        }
        let arguments = Arguments::default()
            .wide(from)
            .wide(to)
            .narrow(*count as u32)
            .float(1.0)
            // Skips the optional sums.
            .wide(0);
        softmax.launch(rows, *threads, &arguments)?;
        block.shaped.output.run([to, value, part])
    }

    /// Concatenates `[block][matrix][query][width]` to `[matrix][query][width]`.
    fn combined(&self, parts: Address, output: Address) -> Result<(), Refusal> {
        let row = vectors(self.extents.width, self.precision)?;
        let matrices = self.extents.batch * self.extents.heads;
        let count = matrices * self.extents.length * row;
        let arguments = Arguments::default().wide(parts).wide(output).wide(count);
        let arguments = arguments
            .narrow(matrices as u32)
            .narrow(self.extents.length as u32)
            .narrow(row as u32)
            .narrow(self.blocks[0].queries as u32);
        let blocks = count.div_ceil(256).min(u64::from(self.multiprocessors) * 32).max(1);
        self.combine.launch(blocks, 256, &arguments)
    }
}

/// Bytes of a block's scores.
pub(super) fn scores_bytes(elements: u64, precision: Precision) -> u64 {
    (elements * precision.width()).next_multiple_of(ALIGNMENT)
}
