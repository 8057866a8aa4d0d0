//! A kernel on a card with filled tensors, ready to launch.

use vramscope_benchmark::{Class, Implementation, Kernel, Pass, Precision, Timer};

use super::compile::{Arguments, Source};
use super::gemm::Product;
use super::memory::Buffer;
use super::{Cuda, attention, own};
use crate::backends::{Prepared, Refusal};
use crate::kernels::random;
use crate::kernels::reference::{Reader, TensorIndex};
use crate::kernels::work::{Element, Fill, Input, Work};

/// One copy of a kernel's tensors.
pub struct Tensors {
    /// Inputs.
    pub inputs: Vec<Buffer>,
    /// Outputs.
    pub outputs: Vec<Buffer>,
}

/// Enqueues a kernel on one copy of its tensors.
pub type Launch<'a> = Box<dyn FnMut(usize, &Tensors) -> Result<(), Refusal> + 'a>;

/// A prepared kernel.
pub struct Job<'a> {
    cuda: &'a Cuda,
    work: Work,
    precision: Precision,
    sets: Vec<Tensors>,
    launch: Launch<'a>,
    implementation: Implementation,
    /// Bytes of allocations beyond inputs and outputs.
    extra: Vec<u64>,
    /// Bytes of outputs that reuse these allocations.
    within: u64,
    /// Number of outputs that exist beforehand: results of forward for backward.
    before: usize,
    next: usize,
}

/// A kernel and its launch function, as its preparation returns it.
pub struct Ready<'a> {
    /// Launch function.
    pub launch: Launch<'a>,
    /// The implementation that runs.
    pub implementation: Implementation,
    /// Bytes of each allocation beyond inputs and outputs that is live at the peak.
    pub extra: Vec<u64>,
    /// Bytes of outputs that reuse these allocations.
    pub within: u64,
}

/// Largest number of copies of the tensors.
const MOST_SETS: u64 = 32;

/// Number of copies that makes the tensors four times as large as the L2 cache, so that no run finds its inputs in the
/// cache.
fn sets(work: &Work, precision: Precision, l2: u64) -> u64 {
    let bytes = in_memory(work, precision).max(1);
    (4 * l2).div_ceil(bytes).clamp(1, MOST_SETS)
}

fn in_memory(work: &Work, precision: Precision) -> u64 {
    let inputs: u64 = work.inputs.iter().map(|i| i.bytes(precision)).sum();
    inputs + work.outputs.iter().map(|o| o.bytes(precision)).sum::<u64>()
}

/// Allocates, fills and prepares a kernel.
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
        _ => own::ready(cuda, kernel, precision, &sets)?,
    };
    Ok(Box::new(Job {
        cuda,
        work,
        precision,
        sets,
        launch: ready.launch,
        implementation: ready.implementation,
        extra: ready.extra,
        within: ready.within,
        before: match (kernel.class, kernel.pass) {
            (Class::Attention, Some(Pass::Backward)) => 2,
            _ => 0,
        },
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

/// Fills an input with random numbers; the seed is its index among the inputs.
pub fn fill(cuda: &Cuda, input: &Input, seed: u32, precision: Precision, buffer: &Buffer) -> Result<(), Refusal> {
    let blocks = input.elements.div_ceil(256).clamp(1, 4096);
    let arguments = Arguments::default()
        .wide(buffer.address)
        .wide(input.elements)
        .narrow(seed);
    let floats = input.element == Element::Of(Precision::Fp32);
    let (name, arguments) = match input.fill {
        Fill::Uniform { scale, offset } => {
            let name = if floats { "fill_float" } else { "fill" };
            (name, arguments.float(scale).float(offset))
        }
        Fill::Labels(classes) => ("fill_labels", arguments.narrow(classes as u32)),
        Fill::Mask => ("fill_mask", arguments),
    };
    let function = cuda.function(Source::Elements, precision, name)?;
    function.launch(blocks, 256, &arguments)
}

fn product<'a>(cuda: &'a Cuda, kernel: &Kernel, precision: Precision, sets: &[Tensors]) -> Result<Ready<'a>, Refusal> {
    let shape = &kernel.shape;
    let extents = [shape.m, shape.n, shape.k].map(|n| n.unwrap_or(1));
    let layout = kernel.layout.unwrap_or(vramscope_benchmark::Layout::Nn);
    let operands = |set: &Tensors| [set.inputs[0].address, set.inputs[1].address, set.outputs[0].address];
    let one = Product::plain(precision, layout, extents);
    let [m, n, k] = extents;
    let product = Product {
        count: shape.batch.unwrap_or(1),
        steps: [m * k, k * n, m * n],
        ..one
    };
    let gemm = cuda.lt()?.product(&product, operands(&sets[0]))?;
    Ok(Ready {
        implementation: cuda.implementation("cuBLASLt", gemm.name(), true),
        launch: Box::new(move |_, set| gemm.run(operands(set))),
        extra: Vec::new(),
        within: 0,
    })
}

impl Reader for Job<'_> {
    fn read(&mut self, place: TensorIndex, start: u64, count: u64) -> Result<Vec<f32>, String> {
        let set = &self.sets[0];
        let (buffer, element) = match place {
            TensorIndex::Input(i) => (&set.inputs[i], self.work.inputs[i].element),
            TensorIndex::Output(i) => (&set.outputs[i], self.work.outputs[i].element),
        };
        let width = element.width(self.precision);
        let bytes = buffer.read(start * width, count * width)?;
        Ok(numbers(&bytes, element.precision(self.precision)))
    }
}

/// Decodes numbers of a type; without a type, bytes.
pub fn numbers(bytes: &[u8], precision: Option<Precision>) -> Vec<f32> {
    match precision {
        None => bytes.iter().map(|b| f32::from(*b)).collect(),
        Some(Precision::Fp32 | Precision::Tf32) => chunks(bytes, f32::from_le_bytes),
        Some(Precision::Bf16) => chunks(bytes, |b| random::from_bf16(u16::from_le_bytes(b))),
        Some(Precision::Fp16) => chunks(bytes, |b| random::from_fp16(u16::from_le_bytes(b))),
    }
}

fn chunks<const N: usize>(bytes: &[u8], read: impl Fn([u8; N]) -> f32) -> Vec<f32> {
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
        // PyTorch's allocator rounds small blocks to multiples of 512 bytes.
        let all: u64 = outputs
            .chain(self.extra.iter().copied())
            .map(|n| n.next_multiple_of(512))
            .sum();
        Some(all - self.within)
    }

    fn timer(&self) -> Timer {
        Timer::Device
    }

    fn run_once(&mut self) -> Result<(), Refusal> {
        for output in &self.sets[0].outputs {
            // All bits set is NaN in every type.
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
