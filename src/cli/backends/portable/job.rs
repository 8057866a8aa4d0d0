//! A kernel on an adapter with filled tensors, as a sequence of steps.

use std::time::Instant;

use vramscope_benchmark::{Class, Implementation, Kernel, Precision, Timer};

use super::gpu::{EnqueuedKernel, Given, Gpu, Source};
use crate::backends::{Prepared, Refusal};
use crate::kernels::random;
use crate::kernels::reference::{Reader, TensorIndex};
use crate::kernels::work::{Fill, Work};

/// Largest number of workgroups along one dimension, which every adapter supports.
const MOST_GROUPS: u64 = 65_535;
/// Threads per workgroup.
pub(super) const WIDTH: u64 = 256;
/// Initial value of a result; no reference is close to it.
const POISON: f32 = 30_000.0;

pub(super) struct Job<'a> {
    pub(super) gpu: &'a Gpu,
    pub(super) work: Work,
    pub(super) precision: Precision,
    pub(super) inputs: Vec<wgpu::Buffer>,
    pub(super) outputs: Vec<wgpu::Buffer>,
    /// Bytes of allocations beyond inputs and outputs.
    pub(super) extra: u64,
    pub(super) steps: Vec<EnqueuedKernel>,
    pub(super) name: String,
    kernel: Kernel,
}

/// Allocates, fills and prepares a kernel.
pub fn prepare<'a>(gpu: &'a Gpu, kernel: &Kernel) -> Result<Box<dyn Prepared + 'a>, Refusal> {
    let precision = kernel.precision.unwrap_or(Precision::Fp32);
    gpu.check(precision)?;
    let work = Work::of(kernel);
    let sizes = work
        .inputs
        .iter()
        .map(|i| i.elements)
        .chain(work.outputs.iter().map(|o| o.elements));
    if sizes.max().unwrap_or(0) > u64::from(u32::MAX) {
        return Err(Refusal::Unsupported("more elements than shaders count".into()));
    }
    let allocate = |bytes| gpu.allocate(bytes);
    let inputs: Vec<_> = work
        .inputs
        .iter()
        .map(|i| allocate(i.bytes(precision)))
        .collect::<Result<_, _>>()?;
    let outputs: Vec<_> = work
        .outputs
        .iter()
        .map(|o| allocate(o.bytes(precision)))
        .collect::<Result<_, _>>()?;
    let mut job = Job {
        gpu,
        work,
        precision,
        inputs,
        outputs,
        extra: 0,
        steps: Vec::new(),
        name: String::new(),
        kernel: kernel.clone(),
    };
    job.fill()?;
    job.ready(kernel)?;
    Ok(Box::new(job))
}

/// A two-dimensional grid of `groups` workgroups.
pub(super) fn grid(groups: u64) -> [u32; 3] {
    let rows = groups.div_ceil(MOST_GROUPS).max(1);
    [groups.div_ceil(rows).max(1) as u32, rows as u32, 1]
}

pub(super) fn numbers(whole: [u64; 4], real: [f32; 4]) -> Given {
    Given {
        whole: whole.map(|n| n as u32),
        real,
    }
}

impl Job<'_> {
    pub(super) fn spare(&self) -> Result<wgpu::Buffer, Refusal> {
        self.gpu.allocate(16)
    }

    fn fill(&mut self) -> Result<(), Refusal> {
        let spares = [self.spare()?, self.spare()?, self.spare()?];
        let mut steps = Vec::new();
        for (i, (input, buffer)) in self.work.inputs.iter().zip(&self.inputs).enumerate() {
            let seed = i as u64 + 1;
            let groups = grid(input.elements.div_ceil(WIDTH));
            let [a, b, c] = &spares;
            steps.push(match input.fill {
                Fill::Uniform { scale, offset } => {
                    let given = numbers([input.elements, seed, 0, 0], [scale, offset, 0.0, 0.0]);
                    self.gpu.step(
                        (Source::Elements, "fill"),
                        self.precision,
                        [buffer, a, b, c],
                        given,
                        groups,
                    )?
                }
                Fill::Mask => return Err(Refusal::Unsupported("not measured through this interface".into())),
                Fill::Labels(classes) => {
                    let given = numbers([input.elements, classes, seed, 0], [0.0; 4]);
                    self.gpu.step(
                        (Source::Labels, "fill_labels"),
                        self.precision,
                        [a, buffer, b, c],
                        given,
                        groups,
                    )?
                }
            });
        }
        self.submit(&steps, 1, None)
    }

    /// Prepares a kernel with a single step that takes inputs, then outputs.
    pub(super) fn one(
        &mut self,
        kernel: (Source, &str),
        whole: [u64; 4],
        real: [f32; 4],
        groups: [u32; 3],
    ) -> Result<(), Refusal> {
        let spares = [self.spare()?, self.spare()?, self.spare()?, self.spare()?];
        let mut buffers = self.inputs.iter().chain(&self.outputs).chain(&spares);
        let four = std::array::from_fn(|i| buffers.next().unwrap_or(&spares[i]));
        let step = self
            .gpu
            .step(kernel, self.precision, four, numbers(whole, real), groups)?;
        self.name = kernel.1.to_owned();
        self.steps.push(step);
        Ok(())
    }

    /// Submits the steps `launches` times and waits, between two timestamps if there is a clock.
    fn submit(&self, steps: &[EnqueuedKernel], launches: u32, clock: Option<&wgpu::QuerySet>) -> Result<(), Refusal> {
        let mut encoder = self.gpu.device.create_command_encoder(&Default::default());
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor {
            label: None,
            timestamp_writes: clock.map(|query_set| wgpu::ComputePassTimestampWrites {
                query_set,
                beginning_of_pass_write_index: Some(0),
                end_of_pass_write_index: Some(1),
            }),
        });
        for _ in 0..launches {
            for step in steps {
                pass.set_pipeline(&step.pipeline);
                pass.set_bind_group(0, &step.bindings, &[]);
                let [x, y, z] = step.groups;
                pass.dispatch_workgroups(x, y, z);
            }
        }
        drop(pass);
        self.gpu.queue.submit([encoder.finish()]);
        self.gpu.wait()
    }

    fn by_its_clock(&self, launches: u32) -> Result<u64, Refusal> {
        let device = &self.gpu.device;
        let clock = device.create_query_set(&wgpu::QuerySetDescriptor {
            label: None,
            ty: wgpu::QueryType::Timestamp,
            count: 2,
        });
        self.submit(&self.steps, launches, Some(&clock))?;
        let resolved = device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size: 16,
            usage: wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC,
            mapped_at_creation: false,
        });
        let mut encoder = device.create_command_encoder(&Default::default());
        encoder.resolve_query_set(&clock, 0..2, &resolved, 0);
        self.gpu.queue.submit([encoder.finish()]);
        let bytes = self.gpu.read(&resolved, 0, 16)?;
        let (ticks, _) = bytes.as_chunks::<8>();
        let ticks = u64::from_le_bytes(ticks[1]).saturating_sub(u64::from_le_bytes(ticks[0]));
        Ok((ticks as f64 * f64::from(self.gpu.queue.get_timestamp_period())) as u64)
    }
}

impl Reader for Job<'_> {
    fn read(&mut self, place: TensorIndex, start: u64, count: u64) -> Result<Vec<f32>, String> {
        let (buffer, element) = match place {
            TensorIndex::Input(i) => (&self.inputs[i], self.work.inputs[i].element),
            TensorIndex::Output(i) => (&self.outputs[i], self.work.outputs[i].element),
        };
        let precision = element.precision(self.precision).unwrap_or(Precision::Fp32);
        let width = precision.width();
        // Copies must start and end at multiples of 4 bytes.
        let begin = start * width / 4 * 4;
        let end = ((start + count) * width).next_multiple_of(4);
        let bytes = self.gpu.read(buffer, begin, end - begin)?;
        let bytes = &bytes[(start * width - begin) as usize..][..(count * width) as usize];
        Ok(match precision {
            Precision::Fp16 => {
                let (halves, _) = bytes.as_chunks::<2>();
                halves
                    .iter()
                    .map(|b| random::from_fp16(u16::from_le_bytes(*b)))
                    .collect()
            }
            _ => {
                let (floats, _) = bytes.as_chunks::<4>();
                floats.iter().map(|b| f32::from_le_bytes(*b)).collect()
            }
        })
    }
}

impl Prepared for Job<'_> {
    fn implementation(&self) -> Implementation {
        Implementation {
            backend: "wgpu".into(),
            library: "vramscope".into(),
            version: Some(env!("CARGO_PKG_VERSION").into()),
            kernel: self.name.clone(),
            accumulator: (!matches!(self.kernel.class, Class::DeviceCopy | Class::Launch)).then(|| "fp32".into()),
        }
    }

    fn peak_extra_bytes(&self) -> Option<u64> {
        let outputs = self
            .work
            .outputs
            .iter()
            .map(|o| o.bytes(self.precision).next_multiple_of(512));
        Some(outputs.sum::<u64>() + self.extra)
    }

    fn timer(&self) -> Timer {
        if self.gpu.has_clock { Timer::Device } else { Timer::Host }
    }

    fn run_once(&mut self) -> Result<(), Refusal> {
        let spares = [self.spare()?, self.spare()?, self.spare()?];
        let [a, b, c] = &spares;
        for (output, buffer) in self.work.outputs.iter().zip(&self.outputs) {
            let precision = output.element.precision(self.precision).unwrap_or(Precision::Fp32);
            let given = numbers([output.elements, 0, 0, 0], [0.0, POISON, 0.0, 0.0]);
            let groups = grid(output.elements.div_ceil(WIDTH));
            let step = self
                .gpu
                .step((Source::Elements, "fill"), precision, [buffer, a, b, c], given, groups)?;
            self.submit(&[step], 1, None)?;
        }
        self.submit(&self.steps, 1, None)
    }

    fn time(&mut self, launches: u32) -> Result<u64, Refusal> {
        if self.gpu.has_clock {
            return self.by_its_clock(launches);
        }
        let begin = Instant::now();
        self.submit(&self.steps, launches, None)?;
        Ok(begin.elapsed().as_nanos() as u64)
    }
}
