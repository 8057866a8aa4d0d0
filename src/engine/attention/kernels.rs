//! Kernels of an attention call, with operations and bytes as products.

use super::call::{Algorithm, Call, Pass};
use super::formula::{Product, Symbol};

/// One kernel, launched once or for each block of queries.
#[derive(Debug, Clone, PartialEq)]
pub struct Kernel {
    /// Name of the operation.
    pub name: &'static str,
    /// Number of launches.
    pub launches: u64,
    /// Floating-point operations of all launches; a multiply-add counts two.
    pub flops: Product,
    /// Bytes read and written by all launches, term by term.
    pub bytes: Vec<Product>,
    /// Unit that does the arithmetic.
    pub engine: Engine,
}

/// Unit that does a kernel's arithmetic, which decides the share of the peak that the kernel reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// Elementwise: its bytes decide.
    Elementwise,
    /// A matrix product of cuBLAS.
    Matmul,
    /// FlashAttention 2, forward.
    FlashForward,
    /// FlashAttention 2, backward.
    FlashBackward,
}

/// Kernels of an algorithm in order; `None` if no share of the peak is known for them.
pub(super) fn kernels(call: &Call, algorithm: Algorithm, length: u64) -> Option<Vec<Kernel>> {
    let work = Work::of(call, algorithm, length);
    match algorithm {
        Algorithm::Efficient | Algorithm::Cudnn => None,
        Algorithm::Flash => Some(work.flash()),
        _ => Some(work.unfused()),
    }
}

/// Named extents of a call, and the kernels made of them.
struct Work<'a> {
    call: &'a Call,
    algorithm: Algorithm,
    length: u64,
    blocks: u64,
    pairs: u64,
    keys_read: u64,
}

/// A named factor.
type Named = (Option<Symbol>, u64);

impl<'a> Work<'a> {
    fn of(call: &'a Call, algorithm: Algorithm, length: u64) -> Self {
        let blocks = call.blocks(algorithm, length);
        Self {
            call,
            algorithm,
            length,
            blocks: blocks.len() as u64,
            pairs: call.pairs(algorithm, length),
            keys_read: blocks.iter().map(|[_, keys]| keys).sum(),
        }
    }

    /// `n` × batch × heads × …
    fn heads(&self, n: u64, rest: impl IntoIterator<Item = Named>) -> Product {
        let lead = [
            (None, n),
            (Some(Symbol::Batch), self.call.batch),
            (Some(Symbol::Heads), self.call.heads),
        ];
        Product::of(lead.into_iter().filter(|f| *f != (None, 1)).chain(rest))
    }

    fn pairs(&self) -> Named {
        match self.pairs == self.length * self.length {
            // Written as a square.
            true => (Some(Symbol::Length), self.length),
            false => (Some(Symbol::Pairs), self.pairs),
        }
    }

    fn area(&self) -> Vec<Named> {
        let one = self.pairs();
        if one.0 == Some(Symbol::Length) {
            vec![one, one]
        } else {
            vec![one]
        }
    }

    fn width(&self) -> Named {
        (Some(Symbol::Width), self.call.width)
    }

    /// Bytes of `n` score matrices.
    fn scores(&self, n: u64) -> Product {
        self.heads(n * self.call.dtype.width(), self.area())
    }

    /// Bytes of `n` tensors like the queries.
    fn rows(&self, n: u64) -> Product {
        let length = (Some(Symbol::Length), self.length);
        self.heads(n * self.call.dtype.width(), [length, self.width()])
    }

    /// Bytes of the keys that all blocks read.
    fn keys(&self, n: u64) -> Product {
        let read = match self.keys_read == self.length {
            true => (Some(Symbol::Length), self.length),
            false => (Some(Symbol::KeysRead), self.keys_read),
        };
        self.heads(n * self.call.dtype.width(), [read, self.width()])
    }

    fn flops(&self, n: u64) -> Product {
        self.heads(n, self.area().into_iter().chain([self.width()]))
    }

    fn matmul(&self, name: &'static str) -> Kernel {
        Kernel {
            name,
            launches: self.blocks,
            flops: self.flops(2),
            bytes: vec![self.scores(1), self.rows(1), self.keys(1)],
            engine: Engine::Matmul,
        }
    }

    fn elementwise(&self, name: &'static str, launches: u64, bytes: Vec<Product>) -> Kernel {
        Kernel {
            name,
            launches,
            flops: Product::of([(None, 0)]),
            bytes,
            engine: Engine::Elementwise,
        }
    }

    /// Elementwise kernel that moves `n` score matrices.
    fn over_scores(&self, name: &'static str, n: u64) -> Kernel {
        self.elementwise(name, self.blocks, vec![self.scores(n)])
    }

    fn flash(&self) -> Vec<Kernel> {
        let kernel = |name, flops, rows, engine| Kernel {
            name,
            launches: 1,
            flops: self.flops(flops),
            bytes: vec![self.rows(rows)],
            engine,
        };
        let mut out = vec![kernel("flash forward", 4, 4, Engine::FlashForward)];
        if self.call.pass == Pass::Training {
            out.push(self.elementwise("sum", 1, vec![self.rows(1)]));
            // Five products: the scores recomputed, and one for each gradient (arXiv 2307.08691, section 3.1).
            out.push(kernel("flash backward", 10, 8, Engine::FlashBackward));
        }
        out
    }

    fn unfused(&self) -> Vec<Kernel> {
        let mut out = self.forward();
        if self.call.pass == Pass::Training {
            out.push(self.elementwise("sum", 1, vec![self.rows(1)]));
            self.backward(&mut out);
        }
        out
    }

    fn forward(&self) -> Vec<Kernel> {
        let mut out = Vec::new();
        if self.call.kv_heads != self.call.heads {
            out.push(self.elementwise("repeat keys and values", 2, vec![self.rows(3)]));
        }
        out.extend([self.matmul("scores"), self.over_scores("scale", 2)]);
        if self.call.causal {
            out.push(self.over_scores("mask", 2));
        }
        if self.algorithm == Algorithm::TopK {
            out.push(self.over_scores("top-k", 1));
            out.push(self.over_scores("fill", 1));
            out.push(self.over_scores("scatter", 2));
        }
        out.extend([self.over_scores("softmax", 2), self.matmul("product")]);
        if self.blocks > 1 {
            out.push(self.elementwise("cat", 1, vec![self.rows(2)]));
        }
        out
    }

    fn backward(&self, out: &mut Vec<Kernel>) {
        out.push(self.matmul("gradient of values"));
        out.push(self.matmul("gradient of weights"));
        out.push(self.over_scores("gradient × weights", 3));
        out.push(self.over_scores("softmax backward", 3));
        if self.algorithm == Algorithm::TopK {
            out.push(self.over_scores("top-k backward", 1));
        }
        out.push(self.over_scores("scale", 2));
        out.push(self.matmul("gradient of keys"));
        out.push(self.matmul("gradient of queries"));
        if self.blocks > 1 {
            // Each slice's gradient is a whole zero tensor with a part filled, added to the others.
            let slices = if self.algorithm == Algorithm::Sliding { 3 } else { 1 };
            let whole = (Some(Symbol::Blocks), self.blocks);
            let length = (Some(Symbol::Length), self.length);
            let bytes = |n: u64| self.heads(n * self.call.dtype.width(), [whole, length, self.width()]);
            out.push(self.elementwise("slice backward", slices * self.blocks, vec![bytes(slices)]));
            out.push(self.elementwise("sum of gradients", 3 * self.blocks, vec![bytes(9)]));
        }
    }
}
