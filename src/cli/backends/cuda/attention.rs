//! Attention: fused by cuDNN, or of matrix products and softmax as PyTorch computes it.

use std::rc::Rc;

use vramscope_engine::attention::Algorithm;
use vramscope_engine::record::{Kernel, Layout, Pass, Precision};

use super::api::Address;
use super::compile::{Arguments, Function};
use super::cudnn::{Bound, Plan};
use super::device::Buffer;
use super::gemm::{Gemm, Product};
use super::job::{Ready, Tensors, row_plan, vectors};
use super::{Cuda, sdpa};
use crate::backends::Refusal;
use crate::kernels::work::{Extents, blocks};

/// Readies an attention.
pub fn ready<'a>(
    cuda: &'a Cuda,
    kernel: &Kernel,
    precision: Precision,
    sets: &mut [Tensors],
) -> Result<Ready<'a>, Refusal> {
    match kernel.algorithm {
        Some(Algorithm::Cudnn) => fused(cuda, kernel, precision, sets),
        Some(Algorithm::Flash) => flash(cuda, kernel, precision),
        Some(Algorithm::Efficient) => Err(Refusal::Unsupported(
            "xFormers' kernels are part of PyTorch; fused attention is measured as cudnn".into(),
        )),
        _ if kernel.pass != Some(Pass::Forward) => Err(Refusal::Unsupported(
            "of unfused attention only forward is measured".into(),
        )),
        _ => Unfused::ready(cuda, kernel, precision, sets),
    }
}

/// The own fused kernel, for cards without cuDNN.
fn flash<'a>(cuda: &'a Cuda, kernel: &Kernel, precision: Precision) -> Result<Ready<'a>, Refusal> {
    let e = Extents::of(kernel);
    if kernel.pass != Some(Pass::Forward) || precision.width() != 2 || !matches!(e.width, 64 | 128) {
        let reason = "the own fused kernel does forward in bf16 and fp16, heads of 64 and 128; cuDNN does more";
        return Err(Refusal::Unsupported(reason.into()));
    }
    if cuda.facts.capability[0] < 8 {
        let reason = "the own fused kernel needs compute capability 8.0 or newer";
        return Err(Refusal::Unsupported(reason.into()));
    }
    let name = format!("flash_{}", e.width);
    let function = cuda.function(precision, &name)?;
    Ok(Ready {
        implementation: cuda.implementation("vramscope", name, true),
        extra: Vec::new(),
        launch: Box::new(move |_, set| {
            let mut arguments = Arguments::default();
            for buffer in set.inputs.iter().chain(&set.outputs) {
                arguments = arguments.wide(buffer.address);
            }
            let arguments = arguments
                .narrow(e.length as u32)
                .narrow((e.heads / e.kv_heads) as u32)
                .float(1.0 / (e.width as f32).sqrt())
                .narrow(u32::from(e.causal));
            // A block for 64 queries of a head.
            function.launch_over([e.length.div_ceil(64), e.batch * e.heads], 128, &arguments)
        }),
    })
}

/// cuDNN's plans, bound to each copy of the tensors.
struct Fused {
    forward: Rc<Plan>,
    backward: Option<Rc<Plan>>,
    bound: Vec<[Option<Bound>; 2]>,
    /// Whether forward ran on a copy: backward alone needs what it left, once.
    ran: Vec<bool>,
    pass: Pass,
    _workspace: Buffer,
    /// fp32 sums of the queries' gradients.
    sums: Buffer,
    _products: Buffer,
    /// Whether the sums must be cleared before: versions before 9.6 leave that to the caller.
    clears: bool,
}

impl Fused {
    // A method, so that the closure that launches holds all memory.
    fn launch(&mut self, index: usize) -> Result<(), Refusal> {
        let [forward, backward] = &self.bound[index];
        if let (Some(bound), true) = (forward, self.pass != Pass::Backward || !self.ran[index]) {
            self.ran[index] = true;
            self.forward.run(bound)?;
        }
        let (Some(plan), Some(bound)) = (&self.backward, backward) else {
            return Ok(());
        };
        if self.clears {
            self.sums.set(0)?;
        }
        plan.run(bound)
    }
}

fn fused<'a>(cuda: &'a Cuda, kernel: &Kernel, precision: Precision, sets: &[Tensors]) -> Result<Ready<'a>, Refusal> {
    let library = cuda.cudnn()?;
    let extents = Extents::of(kernel);
    let pass = kernel.pass.unwrap_or(Pass::Forward);
    let trains = pass != Pass::Forward;
    let forward = Rc::new(sdpa::forward(library, extents, precision, trains)?);
    let backward = match trains {
        true => Some(Rc::new(sdpa::backward(library, extents, precision)?)),
        false => None,
    };
    let room = forward
        .workspace
        .max(backward.as_ref().map_or(0, |plan| plan.workspace));
    let workspace = cuda.card.allocate(room)?;
    let queries = extents.batch * extents.heads * extents.length;
    let (sums, products) = match trains {
        true => (
            cuda.card.allocate(4 * queries * extents.width)?,
            cuda.card.allocate(4 * queries)?,
        ),
        false => (cuda.card.allocate(16)?, cuda.card.allocate(16)?),
    };
    let mut bound = Vec::new();
    for set in sets {
        let input = |i: usize| set.inputs[i].address;
        let output = |i: usize| set.outputs[i].address;
        let mut tensors = vec![
            (sdpa::QUERY, input(0)),
            (sdpa::KEY, input(1)),
            (sdpa::VALUE, input(2)),
            (sdpa::OUTPUT, output(0)),
        ];
        if trains {
            tensors.push((sdpa::SUMS, output(1)));
        }
        let of_forward = Some(forward.bind(&tensors, &workspace)?);
        let of_backward = match &backward {
            Some(plan) => {
                tensors.extend([
                    (sdpa::OUTPUT_GRADIENT, input(3)),
                    (sdpa::QUERY_GRADIENT, output(2)),
                    (sdpa::KEY_GRADIENT, output(3)),
                    (sdpa::VALUE_GRADIENT, output(4)),
                    (sdpa::QUERY_SUMS, sums.address),
                    (sdpa::PRODUCTS, products.address),
                ]);
                Some(plan.bind(&tensors, &workspace)?)
            }
            None => None,
        };
        bound.push([of_forward, of_backward]);
    }
    let engines = match &backward {
        Some(plan) => format!("forward engine {}, backward engine {}", forward.engine, plan.engine),
        None => format!("forward engine {}", forward.engine),
    };
    let mut extra = vec![room];
    if trains {
        // Beside both workspaces: the gradient of the result, which a training step makes.
        extra.extend([sums.bytes, products.bytes]);
        if pass == Pass::ForwardBackward {
            extra.push(sets[0].inputs[3].bytes);
        }
    }
    let mut fused = Fused {
        forward,
        backward,
        bound,
        ran: vec![false; sets.len()],
        pass,
        _workspace: workspace,
        sums,
        _products: products,
        clears: library.version < 90_600,
    };
    Ok(Ready {
        implementation: cuda.implementation("cuDNN", engines, true),
        extra,
        launch: Box::new(move |index, _| fused.launch(index)),
    })
}

/// Attention as scores, scale, softmax and product, for one block of queries after the other.
struct Unfused {
    blocks: Vec<Block>,
    /// Softmax of a block's rows.
    softmax: Vec<(Function, u32, u64)>,
    scale: Function,
    hide: Function,
    keep: Function,
    together: Function,
    memory: Memory,
    extents: Extents,
    precision: Precision,
    kept: Option<u64>,
    multiprocessors: u32,
}

/// Where scores and results of blocks are.
enum Memory {
    /// One block: its scores and its scaled scores, then probabilities.
    Whole([Buffer; 2]),
    /// For each copy of the tensors what PyTorch holds at its peak: results of blocks from the front, the
    /// block's scores at the back, where the result is put together in the end.
    Parts(Vec<Rc<Buffer>>),
}

/// Addresses that a block works on.
struct Room {
    scores: Address,
    scaled: Address,
    /// Its result.
    part: Address,
}

/// Matrix products of a block's shape, and its softmax.
#[derive(Clone)]
struct Shaped {
    shape: [u64; 2],
    scores: Rc<Gemm>,
    output: Rc<Gemm>,
    softmax: usize,
}

/// Some queries and the keys that they see.
struct Block {
    first: u64,
    queries: u64,
    first_key: u64,
    keys: u64,
    shaped: Shaped,
}

/// Scores begin at multiples of this, as cuBLASLt's heuristics take for granted.
const ALIGNMENT: u64 = 256;

impl Unfused {
    fn ready<'a>(
        cuda: &'a Cuda,
        kernel: &Kernel,
        precision: Precision,
        sets: &mut [Tensors],
    ) -> Result<Ready<'a>, Refusal> {
        let extents = Extents::of(kernel);
        if extents.heads != extents.kv_heads {
            let reason = "unfused attention of grouped heads is not measured";
            return Err(Refusal::Unsupported(reason.into()));
        }
        let algorithm = kernel.algorithm.unwrap_or(Algorithm::Standard);
        let cut = blocks(kernel, algorithm);
        let function = |name: &str| cuda.function(precision, name);
        let (memory, extra) = Self::memory(cuda, extents, precision, &cut, sets)?;
        let kept = (algorithm == Algorithm::TopK)
            .then(|| (extents.length * kernel.shape.kept_percent.unwrap_or(100) / 100).max(1));
        let mut unfused = Self {
            blocks: Vec::new(),
            softmax: Vec::new(),
            scale: function("scale")?,
            hide: function("hide_later")?,
            keep: function("keep_highest")?,
            together: function("put_together")?,
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
            launch: Box::new(move |index, set| unfused.run(index, set)),
        })
    }

    /// The memory, and its sizes beside the result.
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
        // Scratch for timing candidates.
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
            .push((cuda.function(self.precision, &name)?, threads, count));
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
            Memory::Parts(sets) => self.put_together(sets[index].address, set.outputs[0].address),
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
        block.shaped.scores.run([query, key, scores], 1.0)?;
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
        // The unscaled scores are done with: their memory holds what comes next.
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
            .float(1.0);
        softmax.launch(rows, *threads, &arguments)?;
        block.shaped.output.run([to, value, part], 1.0)
    }

    /// `[block][matrix][query][width]` to `[matrix][query][width]`.
    fn put_together(&self, parts: Address, output: Address) -> Result<(), Refusal> {
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
        self.together.launch(blocks, 256, &arguments)
    }
}

/// Bytes of a block's scores.
fn scores_bytes(elements: u64, precision: Precision) -> u64 {
    (elements * precision.width()).next_multiple_of(ALIGNMENT)
}
