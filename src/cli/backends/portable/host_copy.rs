//! Copies between host and adapter: to and from shared memory, or through it.

use std::time::Instant;

use vramscope_benchmark::{Class, Implementation, Kernel, Precision, Timer};

use super::gpu::Gpu;
use crate::backends::{Prepared, Refusal};
use crate::kernels::random;
use crate::kernels::reference::{Reader, TensorIndex};
use crate::kernels::work::{Fill, Work};

struct HostCopy<'a> {
    gpu: &'a Gpu,
    bytes: u64,
    /// Source data on the host.
    given: Vec<u8>,
    /// Data received on the host.
    got: Vec<u8>,
    adapter: wgpu::Buffer,
    /// Memory that host and adapter share.
    shared: wgpu::Buffer,
    to_adapter: bool,
    /// True if the copy starts or ends in shared memory.
    pinned: bool,
}

/// Allocates and fills both ends.
pub fn prepare<'a>(gpu: &'a Gpu, kernel: &Kernel) -> Result<Box<dyn Prepared + 'a>, Refusal> {
    let input = Work::of(kernel).inputs[0];
    let Fill::Uniform { scale, offset } = input.fill else {
        return Err(Refusal::Failed("a copy of labels is not known".into()));
    };
    let number = |i| random::value(i, 1, scale, offset, Precision::Fp32);
    let given: Vec<u8> = (0..input.elements).flat_map(|i| number(i).to_le_bytes()).collect();
    let bytes = given.len() as u64;
    let to_adapter = kernel.class == Class::HostToDevice;
    let adapter = gpu.allocate(bytes)?;
    let usage = match to_adapter {
        true => wgpu::BufferUsages::MAP_WRITE | wgpu::BufferUsages::COPY_SRC,
        false => wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
    };
    let shared = gpu.device.create_buffer(&wgpu::BufferDescriptor {
        label: None,
        size: bytes,
        usage,
        mapped_at_creation: to_adapter,
    });
    match to_adapter {
        true => {
            let mut view = shared
                .get_mapped_range_mut(..)
                .map_err(|e| Refusal::Failed(format!("wgpu: {e}")))?;
            view.copy_from_slice(&given);
            drop(view);
            shared.unmap();
        }
        false => gpu.queue.write_buffer(&adapter, 0, &given),
    }
    gpu.queue.submit([]);
    gpu.wait()?;
    Ok(Box::new(HostCopy {
        gpu,
        bytes,
        given,
        got: Vec::new(),
        adapter,
        shared,
        to_adapter,
        pinned: kernel.pinned.unwrap_or(false),
    }))
}

impl HostCopy<'_> {
    fn copy(&mut self) -> Result<(), Refusal> {
        let mut encoder = self.gpu.device.create_command_encoder(&Default::default());
        match (self.to_adapter, self.pinned) {
            (true, true) => encoder.copy_buffer_to_buffer(&self.shared, 0, &self.adapter, 0, self.bytes),
            (true, false) => self.gpu.queue.write_buffer(&self.adapter, 0, &self.given),
            (false, _) => encoder.copy_buffer_to_buffer(&self.adapter, 0, &self.shared, 0, self.bytes),
        }
        self.gpu.queue.submit([encoder.finish()]);
        match (self.to_adapter, self.pinned) {
            (false, false) => self.fetch(),
            _ => self.gpu.wait(),
        }
    }

    /// Reads the data from shared memory once it is available.
    fn fetch(&mut self) -> Result<(), Refusal> {
        self.shared.map_async(wgpu::MapMode::Read, .., |_| {});
        self.gpu.wait()?;
        let view = self
            .shared
            .get_mapped_range(..)
            .map_err(|e| Refusal::Failed(format!("wgpu: {e}")))?;
        self.got.clear();
        self.got.extend_from_slice(&view);
        drop(view);
        self.shared.unmap();
        Ok(())
    }
}

impl Reader for HostCopy<'_> {
    fn read(&mut self, _: TensorIndex, start: u64, count: u64) -> Result<Vec<f32>, String> {
        let bytes = match (self.to_adapter, self.pinned) {
            (true, _) => self.gpu.read(&self.adapter, start * 4, count * 4)?,
            (false, pinned) => {
                if pinned {
                    self.fetch()?;
                }
                self.got[(start * 4) as usize..((start + count) * 4) as usize].to_vec()
            }
        };
        let (floats, _) = bytes.as_chunks::<4>();
        Ok(floats.iter().map(|b| f32::from_le_bytes(*b)).collect())
    }
}

impl Prepared for HostCopy<'_> {
    fn implementation(&self) -> Implementation {
        let kernel = match (self.to_adapter, self.pinned) {
            (true, false) => "write_buffer",
            (false, false) => "copy_buffer_to_buffer, map_async",
            _ => "copy_buffer_to_buffer",
        };
        Implementation {
            backend: "wgpu".into(),
            library: "wgpu".into(),
            version: None,
            kernel: kernel.into(),
            accumulator: None,
        }
    }

    fn peak_extra_bytes(&self) -> Option<u64> {
        None
    }

    fn timer(&self) -> Timer {
        Timer::Host
    }

    fn run_once(&mut self) -> Result<(), Refusal> {
        if self.to_adapter {
            let mut encoder = self.gpu.device.create_command_encoder(&Default::default());
            encoder.clear_buffer(&self.adapter, 0, None);
            self.gpu.queue.submit([encoder.finish()]);
            self.gpu.wait()?;
        }
        self.copy()
    }

    fn time(&mut self, launches: u32) -> Result<u64, Refusal> {
        let begin = Instant::now();
        (0..launches).try_for_each(|_| self.copy())?;
        Ok(begin.elapsed().as_nanos() as u64)
    }
}
