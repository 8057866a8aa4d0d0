//! Copies between host and card.

use std::time::Instant;

use vramscope_benchmark::{Class, Implementation, Kernel, Precision, Timer};

use super::Cuda;
use super::job::{fill, numbers};
use super::memory::{Buffer, HostBuffer};
use crate::backends::{Prepared, Refusal};
use crate::kernels::random;
use crate::kernels::reference::{Reader, TensorIndex};
use crate::kernels::work::{Fill, Work};

struct HostCopy<'a> {
    cuda: &'a Cuda,
    work: Work,
    host: HostBuffer,
    card: Buffer,
    to_card: bool,
    pinned: bool,
}

/// Allocates, fills and prepares a copy between host and card.
pub fn prepare<'a>(cuda: &'a Cuda, kernel: &Kernel) -> Result<Box<dyn Prepared + 'a>, Refusal> {
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
    fn read(&mut self, _: TensorIndex, start: u64, count: u64) -> Result<Vec<f32>, String> {
        if self.to_card {
            let bytes = self.card.read(start * 4, count * 4)?;
            return Ok(numbers(&bytes, Some(Precision::Fp32)));
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
        // The driver stages pageable host memory on the CPU, which events on the card do not measure.
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
