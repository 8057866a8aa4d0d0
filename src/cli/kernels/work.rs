//! What a kernel moves and computes, and the tensors it works on.

use vramscope_engine::attention::{Algorithm, Call};
use vramscope_engine::dtype::DType;
use vramscope_engine::record::{Class, Kernel, Pass, Precision};

/// The standard deviation of inputs is 1, as `torch.randn`'s: uniform from −√3 to √3.
const UNIT: f32 = 1.732_050_8;

/// How an input is drawn; the seed is its place among the inputs, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Fill {
    /// Numbers around `offset`, at most `scale` away, of the kernel's type.
    Uniform {
        /// Half the width of the range.
        scale: f32,
        /// Its middle.
        offset: f32,
    },
    /// 32-bit classes below this.
    Labels(u64),
}

/// A tensor that is given.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Input {
    /// Its elements.
    pub elements: u64,
    /// What they are.
    pub fill: Fill,
}

/// A tensor that is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Output {
    /// Its elements.
    pub elements: u64,
    /// Whether they are fp32 whatever the kernel's type.
    pub float: bool,
}

/// What a kernel moves and computes, and the tensors it works on.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Work {
    /// Bytes that it must read and write at least, each input and output once.
    pub bytes: u64,
    /// Floating-point operations; a multiply-add counts two, an elementary function one.
    pub flops: u64,
    /// What is given, in the order of the kernel's arguments.
    pub inputs: Vec<Input>,
    /// What is made.
    pub outputs: Vec<Output>,
}

impl Input {
    const fn unit(elements: u64) -> Self {
        Self::around(elements, UNIT, 0.0)
    }

    const fn around(elements: u64, scale: f32, offset: f32) -> Self {
        Self {
            elements,
            fill: Fill::Uniform { scale, offset },
        }
    }

    /// Bytes in memory.
    pub const fn bytes(&self, precision: Precision) -> u64 {
        match self.fill {
            Fill::Uniform { .. } => self.elements * precision.width(),
            Fill::Labels(_) => self.elements * 4,
        }
    }
}

impl Output {
    const fn of(elements: u64) -> Self {
        Self { elements, float: false }
    }

    const fn float(elements: u64) -> Self {
        Self { elements, float: true }
    }

    /// Bytes in memory.
    pub const fn bytes(&self, precision: Precision) -> u64 {
        self.elements * if self.float { 4 } else { precision.width() }
    }
}

impl Work {
    /// That of a kernel. Extents that are not stated count as 1.
    pub fn of(kernel: &Kernel) -> Self {
        let shape = &kernel.shape;
        let precision = kernel.precision.unwrap_or(Precision::Fp32);
        let [bytes, m, n, k] = [shape.bytes, shape.m, shape.n, shape.k].map(|x| x.unwrap_or(1));
        let [rows, columns, elements] = [shape.rows, shape.columns, shape.elements].map(|x| x.unwrap_or(1));
        let cells = rows * columns;
        let (flops, inputs, outputs) = match kernel.class {
            Class::DeviceCopy => return Self::copy(2 * bytes, bytes),
            Class::HostToDevice | Class::DeviceToHost | Class::PeerCopy => return Self::copy(bytes, bytes),
            Class::AllReduce | Class::AllGather | Class::ReduceScatter => return Self::copy(bytes, bytes),
            Class::Launch => return Self::default(),
            Class::Gemm => (
                2 * m * n * k,
                vec![Input::unit(m * k), Input::unit(k * n)],
                vec![Output::of(m * n)],
            ),
            // Largest, subtract, exponential, sum, multiply.
            Class::Softmax => (5 * cells, vec![Input::unit(cells)], vec![Output::of(cells)]),
            // Mean, deviation, square and sum, multiply, weight, bias.
            Class::LayerNorm => (
                7 * cells,
                vec![
                    Input::around(cells, UNIT, 0.5),
                    Input::around(columns, 0.5, 1.0),
                    Input::around(columns, 0.5, 0.0),
                ],
                vec![Output::of(cells)],
            ),
            Class::RmsNorm => (
                4 * cells,
                vec![Input::around(cells, UNIT, 0.5), Input::around(columns, 0.5, 1.0)],
                vec![Output::of(cells)],
            ),
            Class::Gelu => (5 * elements, vec![Input::unit(elements)], vec![Output::of(elements)]),
            Class::SiluMul => (
                5 * elements,
                vec![Input::unit(elements), Input::unit(elements)],
                vec![Output::of(elements)],
            ),
            Class::CrossEntropy => (
                6 * cells,
                vec![
                    Input::unit(cells),
                    Input {
                        elements: rows,
                        fill: Fill::Labels(columns),
                    },
                ],
                vec![Output::of(cells), Output::float(rows)],
            ),
            Class::Adamw => (
                15 * elements,
                vec![
                    Input::unit(elements),
                    Input::unit(elements),
                    Input::around(elements, 0.1, 0.0),
                    Input::around(elements, 0.01, 0.02),
                ],
                Vec::new(),
            ),
            Class::Attention => return Self::attention(kernel),
        };
        let mut bytes: u64 = inputs.iter().map(|input| input.bytes(precision)).sum();
        bytes += outputs
            .iter()
            .map(|output: &Output| output.bytes(precision))
            .sum::<u64>();
        if kernel.class == Class::Adamw {
            // Weights and both moments are written in place.
            bytes += 3 * elements * precision.width();
        }
        Self {
            bytes,
            flops,
            inputs,
            outputs,
        }
    }

    fn copy(bytes: u64, elements: u64) -> Self {
        Self {
            bytes,
            flops: 0,
            inputs: vec![Input::unit(elements / 4)],
            outputs: vec![Output::float(elements / 4)],
        }
    }

    /// Queries, keys, values (and the gradient of the result); the result (and the logarithm of each
    /// query's sum, and the gradients of queries, keys, values). Operations are those of the products alone,
    /// four per pair of query and key that is not hidden and element of a head, and ten in backward.
    fn attention(kernel: &Kernel) -> Self {
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
        Self {
            bytes: elements * precision.width(),
            flops,
            inputs,
            outputs,
        }
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
