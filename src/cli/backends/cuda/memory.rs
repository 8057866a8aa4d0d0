//! Memory of cards and of the host, freed with its owner.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::rc::Rc;

use super::api::Address;
use super::device::Card;
use crate::backends::Refusal;

/// `CUDA_ERROR_OUT_OF_MEMORY`.
const OUT_OF_MEMORY: c_int = 2;

impl Card {
    /// Allocates memory on the card.
    pub fn allocate(self: &Rc<Self>, bytes: u64) -> Result<Buffer, Refusal> {
        self.enter();
        let mut address = 0;
        // SAFETY: `address` is written.
        match unsafe { (self.api.cuMemAlloc_v2)(&mut address, bytes.max(16) as usize) } {
            OUT_OF_MEMORY => Err(Refusal::OutOfMemory {
                needed: bytes,
                free: self.memory()[0],
            }),
            code => self.ok(code).map(|()| Buffer {
                card: Rc::clone(self),
                whole: None,
                address,
                bytes,
            }),
        }
    }

    /// Allocates memory on the card and copies these numbers into it.
    pub fn with(self: &Rc<Self>, numbers: &[u64]) -> Result<Buffer, Refusal> {
        let buffer = self.allocate(8 * numbers.len() as u64)?;
        // SAFETY: the buffer is as long as the numbers.
        self.ok(unsafe { (self.api.cuMemcpyHtoD_v2)(buffer.address, numbers.as_ptr().cast(), 8 * numbers.len()) })?;
        Ok(buffer)
    }
}

/// Memory on the card.
pub struct Buffer {
    card: Rc<Card>,
    /// Buffer of which this one is a part.
    whole: Option<Rc<Self>>,
    /// Start address.
    pub address: Address,
    /// Length in bytes.
    pub bytes: u64,
}

impl Buffer {
    /// A part of another buffer, which it keeps alive.
    pub fn part(whole: &Rc<Self>, start: u64, bytes: u64) -> Self {
        debug_assert!(start + bytes <= whole.bytes);
        Self {
            card: Rc::clone(&whole.card),
            whole: Some(Rc::clone(whole)),
            address: whole.address + start,
            bytes,
        }
    }

    /// Sets every byte, in stream order.
    pub fn set(&self, byte: u8) -> Result<(), Refusal> {
        let card = &self.card;
        card.enter();
        // SAFETY: the whole buffer.
        card.ok(unsafe { (card.api.cuMemsetD8Async)(self.address, byte, self.bytes as usize, card.stream) })
    }

    /// Copies bytes to the host once the stream is done.
    pub fn read(&self, start: u64, count: u64) -> Result<Vec<u8>, Refusal> {
        if start + count > self.bytes {
            return Err(Refusal::Failed(format!(
                "byte {} of {} was asked for",
                start + count,
                self.bytes
            )));
        }
        self.card.wait()?;
        let mut bytes = vec![0_u8; count as usize];
        let card = &self.card;
        // SAFETY: both ranges are in bounds.
        card.ok(unsafe {
            (card.api.cuMemcpyDtoH_v2)(bytes.as_mut_ptr().cast(), self.address + start, count as usize)
        })?;
        Ok(bytes)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if self.whole.is_none() {
            self.card.enter();
            // SAFETY: the memory is this buffer's alone; the driver waits for work that uses it.
            unsafe { (self.card.api.cuMemFree_v2)(self.address) };
        }
    }
}

/// Host memory, either pinned, for direct copies, or pageable.
pub struct HostBuffer {
    pinned: Option<Rc<Card>>,
    address: *mut c_void,
    plain: Vec<u32>,
}

impl HostBuffer {
    /// Allocates `bytes` bytes, which must be a multiple of 4.
    pub fn new(card: &Rc<Card>, bytes: u64, pinned: bool) -> Result<Self, Refusal> {
        if !pinned {
            let mut plain = vec![0_u32; (bytes / 4) as usize];
            let address = plain.as_mut_ptr().cast();
            return Ok(Self {
                pinned: None,
                address,
                plain,
            });
        }
        let mut address = null_mut();
        // SAFETY: `address` is written.
        card.ok(unsafe { (card.api.cuMemAllocHost_v2)(&mut address, bytes as usize) })?;
        Ok(Self {
            pinned: Some(Rc::clone(card)),
            address,
            plain: Vec::new(),
        })
    }

    /// Start address.
    pub fn address(&self) -> *mut c_void {
        self.address
    }

    /// Contents as numbers.
    pub fn floats(&mut self, count: usize) -> &mut [f32] {
        debug_assert!(self.pinned.is_some() || self.plain.len() >= count);
        // SAFETY: the memory holds `count` numbers, any bits are one, and `self` is borrowed whole.
        unsafe { std::slice::from_raw_parts_mut(self.address.cast(), count) }
    }
}

impl Drop for HostBuffer {
    fn drop(&mut self) {
        if let Some(card) = &self.pinned {
            // SAFETY: the memory is this buffer's alone.
            unsafe { (card.api.cuMemFreeHost)(self.address) };
        }
    }
}
