//! A kernel on a card: its tensors, filled, and how it is launched.

use std::time::Instant;

use vramscope_engine::record::{Class, Implementation, Kernel, Pass, Precision, Timer};

use super::compile::{Arguments, Function};
use super::device::{Buffer, HostBuffer};
use super::gemm::Product;
use super::{Cuda, attention};
use crate::backends::{Prepared, Refusal};
use crate::kernels::random;
use crate::kernels::reference::{AdamwStep, EPSILON, Place, Reader};
use crate::kernels::work::{Fill, Input, Work};

/// One copy of a kernel's tensors.
pub struct Tensors {
    /// What is given.
    pub inputs: Vec<Buffer>,
    /// What is made.
    pub outputs: Vec<Buffer>,
}

/// Puts a kernel on the stream, on one copy of its tensors.
pub type Launch<'a> = Box<dyn FnMut(usize, &Tensors) -> Result<(), Refusal> + 'a>;

/// A kernel that is ready.
pub struct Job<'a> {
    cuda: &'a Cuda,
    work: Work,
    precision: Precision,
    sets: Vec<Tensors>,
    launch: Launch<'a>,
    implementation: Implementation,
    /// Bytes beyond inputs and outputs.
    extra: Vec<u64>,
    /// Outputs that were there before: backward's results of forward.
    before: usize,
    next: usize,
}

/// What an own way of launching gives.
pub struct Ready<'a> {
    /// How it is launched.
    pub launch: Launch<'a>,
    /// What runs.
    pub implementation: Implementation,
    /// Sizes of what lives at its peak beyond its inputs and outputs.
    pub extra: Vec<u64>,
}

/// Copies of the tensors that are made at most.
const MOST_SETS: u64 = 32;

/// How many copies of the tensors make their bytes four times the cache, so that no run finds its inputs
/// there.
fn sets(work: &Work, precision: Precision, l2: u64) -> u64 {
    let bytes = in_memory(work, precision).max(1);
    (4 * l2).div_ceil(bytes).clamp(1, MOST_SETS)
}

fn in_memory(work: &Work, precision: Precision) -> u64 {
    let inputs: u64 = work.inputs.iter().map(|i| i.bytes(precision)).sum();
    inputs + work.outputs.iter().map(|o| o.bytes(precision)).sum::<u64>()
}

/// Allocates, fills and readies a kernel.
pub fn prepare<'a>(cuda: &'a Cuda, kernel: &Kernel) -> Result<Box<dyn Prepared + 'a>, Refusal> {
    let work = Work::of(kernel);
    let precision = kernel.precision.unwrap_or(Precision::Fp32);
    let count = match kernel.class {
        Class::Launch => 1,
        _ => sets(&work, precision, cuda.facts.l2),
    };
    let [free, _] = cuda.card.memory();
    let needed = count * in_memory(&work, precision);
    if needed > free {
        return Err(Refusal::OutOfMemory { needed, free });
    }
    let mut sets: Vec<Tensors> = (0..count)
        .map(|_| tensors(cuda, &work, precision))
        .collect::<Result<_, _>>()?;
    let ready = match kernel.class {
        Class::Gemm => product(cuda, kernel, precision, &sets)?,
        Class::Attention => attention::ready(cuda, kernel, precision, &mut sets)?,
        _ => own(cuda, kernel, precision)?,
    };
    Ok(Box::new(Job {
        cuda,
        work,
        precision,
        sets,
        launch: ready.launch,
        implementation: ready.implementation,
        extra: ready.extra,
        before: if kernel.pass == Some(Pass::Backward) { 2 } else { 0 },
        next: 0,
    }))
}

fn tensors(cuda: &Cuda, work: &Work, precision: Precision) -> Result<Tensors, Refusal> {
    let mut inputs = Vec::new();
    for (i, input) in work.inputs.iter().enumerate() {
        let buffer = cuda.card.allocate(input.bytes(precision))?;
        fill(cuda, input, i as u32 + 1, precision, &buffer)?;
        inputs.push(buffer);
    }
    let outputs = work
        .outputs
        .iter()
        .map(|output| cuda.card.allocate(output.bytes(precision)));
    Ok(Tensors {
        inputs,
        outputs: outputs.collect::<Result<_, _>>()?,
    })
}

fn fill(cuda: &Cuda, input: &Input, seed: u32, precision: Precision, buffer: &Buffer) -> Result<(), Refusal> {
    let blocks = input.elements.div_ceil(256).clamp(1, 4096);
    let arguments = Arguments::default()
        .wide(buffer.address)
        .wide(input.elements)
        .narrow(seed);
    match input.fill {
        Fill::Uniform { scale, offset } => {
            let function = cuda.function(precision, "fill")?;
            function.launch(blocks, 256, &arguments.float(scale).float(offset))
        }
        Fill::Labels(classes) => {
            let function = cuda.function(precision, "fill_labels")?;
            function.launch(blocks, 256, &arguments.narrow(classes as u32))
        }
    }
}

fn product<'a>(cuda: &'a Cuda, kernel: &Kernel, precision: Precision, sets: &[Tensors]) -> Result<Ready<'a>, Refusal> {
    let shape = &kernel.shape;
    let extents = [shape.m, shape.n, shape.k].map(|n| n.unwrap_or(1));
    let layout = kernel.layout.unwrap_or(vramscope_engine::record::Layout::Nn);
    let operands = |set: &Tensors| [set.inputs[0].address, set.inputs[1].address, set.outputs[0].address];
    let gemm = cuda
        .lt()?
        .product(&Product::plain(precision, layout, extents), operands(&sets[0]))?;
    Ok(Ready {
        implementation: cuda.implementation("cuBLASLt", gemm.name(), true),
        launch: Box::new(move |_, set| gemm.run(operands(set), 1.0)),
        extra: Vec::new(),
    })
}

/// Threads of a block, and how many vectors each holds, for a row of so many; `None` where it is too long
/// to hold.
pub fn row_plan(vectors: u64) -> Option<(u32, u32)> {
    [1, 2, 4].into_iter().find_map(|held| {
        let threads = vectors.div_ceil(u64::from(held)).next_multiple_of(32).max(32);
        let most = if held == 4 { 512 } else { 256 };
        (threads <= most).then_some((threads as u32, held))
    })
}

/// Elements of 16 bytes.
pub const fn wide(precision: Precision) -> u64 {
    16 / precision.width()
}

/// Vectors of a row.
///
/// # Errors
/// When the row holds no whole number of them.
pub fn vectors(columns: u64, precision: Precision) -> Result<u64, Refusal> {
    match columns.is_multiple_of(wide(precision)) {
        true => Ok(columns / wide(precision)),
        false => Err(Refusal::Unsupported(format!(
            "rows of {columns} elements are no multiple of {}",
            wide(precision)
        ))),
    }
}

fn own<'a>(cuda: &'a Cuda, kernel: &Kernel, precision: Precision) -> Result<Ready<'a>, Refusal> {
    let shape = &kernel.shape;
    let card = &cuda.card;
    let [rows, columns, elements] = [shape.rows, shape.columns, shape.elements].map(|n| n.unwrap_or(1));
    let function = |name: &str| cuda.function(precision, name);
    let ready = |name: &str, launch: Launch<'a>| Ready {
        launch,
        implementation: cuda.implementation("vramscope", name.to_owned(), true),
        extra: Vec::new(),
    };
    match kernel.class {
        Class::DeviceCopy => Ok(Ready {
            launch: Box::new(move |_, set| {
                let (from, to) = (&set.inputs[0], &set.outputs[0]);
                // SAFETY: both buffers are as long.
                card.ok(unsafe {
                    (card.api.cuMemcpyDtoDAsync_v2)(to.address, from.address, from.bytes as usize, card.stream)
                })
            }),
            implementation: cuda.implementation("driver", "cuMemcpyDtoDAsync".into(), false),
            extra: Vec::new(),
        }),
        Class::Launch => {
            let empty = function("empty")?;
            Ok(Ready {
                launch: Box::new(move |_, _| empty.launch(1, 32, &Arguments::default())),
                implementation: cuda.implementation("driver", "cuLaunchKernel".into(), false),
                extra: Vec::new(),
            })
        }
        Class::Gelu | Class::SiluMul | Class::Adamw => {
            let name = kernel.class.name();
            let count = vectors(elements, precision)?;
            let launch = flat(function(name)?, kernel.class, count, cuda.facts.multiprocessors);
            Ok(ready(name, launch))
        }
        class => {
            let count = vectors(columns, precision)?;
            let plan = row_plan(count);
            let (name, threads) = match (class, plan) {
                (Class::CrossEntropy, _) => ("cross_entropy".to_owned(), 1024),
                (Class::Softmax, None) => ("softmax_long".to_owned(), 1024),
                (_, Some((threads, held))) => (format!("{}_{held}", class.name()), threads),
                (_, None) => return Err(Refusal::Unsupported(format!("rows of {columns} elements are too long"))),
            };
            let function = function(&name)?;
            let launch: Launch<'a> = Box::new(move |_, set| {
                let mut arguments = Arguments::default();
                for buffer in &set.inputs {
                    arguments = arguments.wide(buffer.address);
                }
                arguments = match class {
                    Class::CrossEntropy => arguments.wide(set.outputs[1].address).wide(set.outputs[0].address),
                    _ => arguments.wide(set.outputs[0].address),
                };
                arguments = arguments.narrow(count as u32).float(match class {
                    Class::Softmax => 1.0,
                    Class::CrossEntropy => 1.0 / rows as f32,
                    _ => EPSILON as f32,
                });
                function.launch(rows, threads, &arguments)
            });
            Ok(ready(&name, launch))
        }
    }
}

/// A launch over vectors, one after the other.
fn flat<'a>(function: Function, class: Class, count: u64, multiprocessors: u32) -> Launch<'a> {
    let blocks = count.div_ceil(256).min(u64::from(multiprocessors) * 32).max(1);
    Box::new(move |_, set| {
        let mut arguments = Arguments::default();
        for buffer in set.inputs.iter().chain(&set.outputs) {
            arguments = arguments.wide(buffer.address);
        }
        arguments = arguments.wide(count);
        if class == Class::Adamw {
            // The first step's corrections.
            let (beta1, beta2) = (AdamwStep::BETA1, AdamwStep::BETA2);
            let numbers = [
                AdamwStep::RATE,
                beta1,
                beta2,
                AdamwStep::EPSILON,
                AdamwStep::DECAY,
                1.0 - beta1,
                (1.0 - beta2).sqrt(),
            ];
            arguments = numbers.into_iter().fold(arguments, Arguments::float);
        }
        function.launch(blocks, 256, &arguments)
    })
}

impl Reader for Job<'_> {
    fn read(&mut self, place: Place, start: u64, count: u64) -> Result<Vec<f32>, String> {
        let set = &self.sets[0];
        let (buffer, float) = match place {
            Place::Input(i) => (&set.inputs[i], false),
            Place::Output(i) => (&set.outputs[i], self.work.outputs[i].float),
        };
        let precision = if float { Precision::Fp32 } else { self.precision };
        let width = precision.width();
        let bytes = buffer.read(start * width, count * width)?;
        Ok(match precision {
            Precision::Fp32 | Precision::Tf32 => numbers(&bytes, f32::from_le_bytes),
            Precision::Bf16 => numbers(&bytes, |b| random::from_bf16(u16::from_le_bytes(b))),
            Precision::Fp16 => numbers(&bytes, |b| random::from_fp16(u16::from_le_bytes(b))),
        })
    }
}

fn numbers<const N: usize>(bytes: &[u8], read: impl Fn([u8; N]) -> f32) -> Vec<f32> {
    let (whole, _) = bytes.as_chunks::<N>();
    whole.iter().map(|chunk| read(*chunk)).collect()
}

impl Prepared for Job<'_> {
    fn implementation(&self) -> Implementation {
        self.implementation.clone()
    }

    fn peak_extra_bytes(&self) -> Option<u64> {
        let made = self.work.outputs.iter().skip(self.before);
        let outputs = made.map(|output| output.bytes(self.precision));
        // Small blocks of PyTorch's allocator: multiples of 512 bytes.
        Some(
            outputs
                .chain(self.extra.iter().copied())
                .map(|n| n.next_multiple_of(512))
                .sum(),
        )
    }

    fn timer(&self) -> Timer {
        Timer::Device
    }

    fn run_once(&mut self) -> Result<(), Refusal> {
        for output in &self.sets[0].outputs {
            // All bits set are no number, in every type.
            output.set(0xff)?;
        }
        (self.launch)(0, &self.sets[0])?;
        self.cuda.card.wait()
    }

    fn time(&mut self, launches: u32) -> Result<u64, Refusal> {
        let Self { sets, launch, next, .. } = self;
        self.cuda.card.time(|| {
            (0..launches).try_for_each(|_| {
                *next = (*next + 1) % sets.len();
                launch(*next, &sets[*next])
            })
        })
    }
}

/// A copy between host and card.
struct HostCopy<'a> {
    cuda: &'a Cuda,
    work: Work,
    host: HostBuffer,
    card: Buffer,
    to_card: bool,
    pinned: bool,
}

/// Allocates, fills and readies a copy between host and card.
pub fn host_copy<'a>(cuda: &'a Cuda, kernel: &Kernel) -> Result<Box<dyn Prepared + 'a>, Refusal> {
    let work = Work::of(kernel);
    let input = work.inputs[0];
    let bytes = input.bytes(Precision::Fp32);
    let pinned = kernel.pinned.unwrap_or(false);
    let to_card = kernel.class == Class::HostToDevice;
    let mut host = HostBuffer::new(&cuda.card, bytes, pinned)?;
    let card = cuda.card.allocate(bytes)?;
    let Fill::Uniform { scale, offset } = input.fill else {
        return Err(Refusal::Failed("a copy of labels is not known".into()));
    };
    if to_card {
        for (i, x) in (0..).zip(host.floats(input.elements as usize)) {
            *x = random::value(i, 1, scale, offset, Precision::Fp32);
        }
    } else {
        fill(cuda, &input, 1, Precision::Fp32, &card)?;
    }
    cuda.card.wait()?;
    Ok(Box::new(HostCopy {
        cuda,
        work,
        host,
        card,
        to_card,
        pinned,
    }))
}

impl HostCopy<'_> {
    fn copy(&self) -> Result<(), Refusal> {
        let card = &self.cuda.card;
        let (host, address, bytes) = (self.host.address(), self.card.address, self.card.bytes as usize);
        // SAFETY: both ends are as long, and live until the stream is done.
        card.ok(unsafe {
            match (self.to_card, self.pinned) {
                (true, true) => (card.api.cuMemcpyHtoDAsync_v2)(address, host, bytes, card.stream),
                (false, true) => (card.api.cuMemcpyDtoHAsync_v2)(host, address, bytes, card.stream),
                (true, false) => (card.api.cuMemcpyHtoD_v2)(address, host, bytes),
                (false, false) => (card.api.cuMemcpyDtoH_v2)(host, address, bytes),
            }
        })
    }
}

impl Reader for HostCopy<'_> {
    fn read(&mut self, _: Place, start: u64, count: u64) -> Result<Vec<f32>, String> {
        if self.to_card {
            let bytes = self.card.read(start * 4, count * 4)?;
            return Ok(numbers(&bytes, f32::from_le_bytes));
        }
        let elements = self.work.inputs[0].elements as usize;
        let (start, count) = (start as usize, count as usize);
        Ok(self.host.floats(elements)[start..start + count].to_vec())
    }
}

impl Prepared for HostCopy<'_> {
    fn implementation(&self) -> Implementation {
        let kernel = match (self.to_card, self.pinned) {
            (true, true) => "cuMemcpyHtoDAsync",
            (false, true) => "cuMemcpyDtoHAsync",
            (true, false) => "cuMemcpyHtoD",
            (false, false) => "cuMemcpyDtoH",
        };
        self.cuda.implementation("driver", kernel.into(), false)
    }

    fn peak_extra_bytes(&self) -> Option<u64> {
        None
    }

    fn timer(&self) -> Timer {
        // The driver stages plain memory on the host, which the card's events do not see.
        if self.pinned { Timer::Device } else { Timer::Host }
    }

    fn run_once(&mut self) -> Result<(), Refusal> {
        if self.to_card {
            self.card.set(0xff)?;
        } else {
            let elements = self.work.inputs[0].elements as usize;
            self.host.floats(elements).fill(f32::NAN);
        }
        self.cuda.card.wait()?;
        self.copy()?;
        self.cuda.card.wait()
    }

    fn time(&mut self, launches: u32) -> Result<u64, Refusal> {
        let all = || (0..launches).try_for_each(|_| self.copy());
        if self.pinned {
            return self.cuda.card.time(all);
        }
        let begin = Instant::now();
        all()?;
        Ok(begin.elapsed().as_nanos() as u64)
    }
}
