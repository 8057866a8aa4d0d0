//! The driver: one card, one stream, memory that is freed with its owner.

use std::ffi::{CStr, c_int, c_void};
use std::ptr::{null, null_mut};
use std::rc::Rc;

use super::api::{Address, Driver, Handle};
use crate::backends::Refusal;

/// `CUDA_ERROR_OUT_OF_MEMORY`.
const OUT_OF_MEMORY: c_int = 2;

/// A card that was opened.
pub struct Card {
    pub(super) api: Driver,
    ordinal: c_int,
    context: Handle,
    /// All work goes here.
    pub stream: Handle,
}

/// What the driver tells of a card.
#[derive(Debug, Clone)]
pub struct Facts {
    /// Its name.
    pub name: String,
    /// Compute capability, major and minor.
    pub capability: [i32; 2],
    /// Bytes of memory.
    pub memory: u64,
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// Bytes of its level-2 cache.
    pub l2: u64,
    /// PCI bus id, by which NVML knows it.
    pub bus_id: Vec<u8>,
    /// Cards that can be seen.
    pub count: u32,
    /// The highest CUDA that the driver takes, as 13000.
    pub cuda: i32,
}

impl Card {
    /// Opens the first card that the process may see.
    ///
    /// # Errors
    /// Why there is none, in words.
    pub fn open(api: Driver) -> Result<Rc<Self>, String> {
        let mut card = Self {
            api,
            ordinal: 0,
            context: null_mut(),
            stream: null_mut(),
        };
        // SAFETY: cuInit takes only 0.
        let code = unsafe { (card.api.cuInit)(0) };
        if code != 0 {
            return Err(format!("the driver does not start: {}", card.words(code)));
        }
        let mut count = 0;
        // SAFETY: `count` is written.
        let code = unsafe { (card.api.cuDeviceGetCount)(&mut count) };
        if code != 0 || count == 0 {
            return Err("the driver sees no card: look at CUDA_VISIBLE_DEVICES".into());
        }
        let text = |refusal: Refusal| String::from(refusal);
        let (mut ordinal, mut context, mut stream) = (0, null_mut(), null_mut());
        let api = &card.api;
        // SAFETY: each handle is written before it is used; the ordinal exists.
        unsafe {
            card.ok((api.cuDeviceGet)(&mut ordinal, 0)).map_err(text)?;
            card.ok((api.cuDevicePrimaryCtxRetain)(&mut context, ordinal))
                .map_err(text)?;
            card.ok((api.cuCtxSetCurrent)(context)).map_err(text)?;
            // 1: does not wait for the legacy default stream.
            card.ok((api.cuStreamCreate)(&mut stream, 1)).map_err(text)?;
        }
        (card.ordinal, card.context, card.stream) = (ordinal, context, stream);
        Ok(Rc::new(card))
    }

    /// What the driver tells.
    pub fn facts(&self) -> Facts {
        let mut name = [0_i8; 256];
        let mut bus_id = [0_i8; 32];
        let (mut memory, mut count, mut cuda) = (0, 0, 0);
        // SAFETY: the buffers are as long as stated; the ordinal exists. What fails stays zero.
        unsafe {
            (self.api.cuDeviceGetName)(name.as_mut_ptr().cast(), 256, self.ordinal);
            (self.api.cuDeviceGetPCIBusId)(bus_id.as_mut_ptr().cast(), 32, self.ordinal);
            (self.api.cuDeviceTotalMem_v2)(&mut memory, self.ordinal);
            (self.api.cuDeviceGetCount)(&mut count);
            (self.api.cuDriverGetVersion)(&mut cuda);
        }
        // Numbers of CUdevice_attribute.
        Facts {
            name: text(&name.map(|c| c as u8)),
            capability: [self.attribute(75), self.attribute(76)],
            memory: memory as u64,
            multiprocessors: self.attribute(16) as u32,
            l2: self.attribute(38) as u64,
            bus_id: bus_id.map(|c| c as u8).to_vec(),
            count: count as u32,
            cuda,
        }
    }

    fn attribute(&self, attribute: c_int) -> c_int {
        let mut value = 0;
        // SAFETY: `value` is written; the ordinal exists.
        unsafe { (self.api.cuDeviceGetAttribute)(&mut value, attribute, self.ordinal) };
        value
    }

    /// Free and all bytes of memory.
    pub fn memory(&self) -> [u64; 2] {
        let (mut free, mut all) = (0, 0);
        // SAFETY: both are written.
        unsafe { (self.api.cuMemGetInfo_v2)(&mut free, &mut all) };
        [free as u64, all as u64]
    }

    /// Turns the driver's status into a result.
    pub fn ok(&self, code: c_int) -> Result<(), Refusal> {
        match code {
            0 => Ok(()),
            _ => Err(Refusal::Failed(format!("CUDA driver: {}", self.words(code)))),
        }
    }

    fn words(&self, code: c_int) -> String {
        let mut words = null();
        // SAFETY: the driver gives a text of its own that lives on.
        unsafe {
            (self.api.cuGetErrorString)(code, &mut words);
            if words.is_null() {
                return format!("error {code}");
            }
            CStr::from_ptr(words).to_string_lossy().into_owned()
        }
    }

    /// Waits until all work is done.
    pub fn wait(&self) -> Result<(), Refusal> {
        // SAFETY: the stream is this card's.
        self.ok(unsafe { (self.api.cuStreamSynchronize)(self.stream) })
    }

    /// Memory of the card.
    pub fn allocate(self: &Rc<Self>, bytes: u64) -> Result<Buffer, Refusal> {
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

    /// Nanoseconds that the stream spends on what `work` puts there.
    pub fn time(&self, work: impl FnOnce() -> Result<(), Refusal>) -> Result<u64, Refusal> {
        let (begin, end) = (self.event()?, self.event()?);
        begin.record()?;
        work()?;
        end.record()?;
        let mut milliseconds = 0.0;
        // SAFETY: both events were recorded on this card's stream.
        unsafe {
            self.ok((self.api.cuEventSynchronize)(end.handle))?;
            self.ok((self.api.cuEventElapsedTime)(
                &mut milliseconds,
                begin.handle,
                end.handle,
            ))?;
        }
        Ok((f64::from(milliseconds) * 1e6) as u64)
    }

    fn event(&self) -> Result<Event<'_>, Refusal> {
        let mut handle = null_mut();
        // SAFETY: `handle` is written; 0 is the default, with timing.
        self.ok(unsafe { (self.api.cuEventCreate)(&mut handle, 0) })?;
        Ok(Event { card: self, handle })
    }
}

impl Drop for Card {
    fn drop(&mut self) {
        if !self.context.is_null() {
            // SAFETY: nothing else holds the stream or the context; buffers hold the card.
            unsafe {
                (self.api.cuStreamDestroy_v2)(self.stream);
                (self.api.cuDevicePrimaryCtxRelease_v2)(self.ordinal);
            }
        }
    }
}

struct Event<'a> {
    card: &'a Card,
    handle: Handle,
}

impl Event<'_> {
    fn record(&self) -> Result<(), Refusal> {
        // SAFETY: event and stream are this card's.
        self.card
            .ok(unsafe { (self.card.api.cuEventRecord)(self.handle, self.card.stream) })
    }
}

impl Drop for Event<'_> {
    fn drop(&mut self) {
        // SAFETY: the event is this card's and is not used again.
        unsafe { (self.card.api.cuEventDestroy_v2)(self.handle) };
    }
}

/// Memory of the card.
pub struct Buffer {
    card: Rc<Card>,
    /// The memory that this is a part of.
    whole: Option<Rc<Self>>,
    /// Where it begins.
    pub address: Address,
    /// Its length.
    pub bytes: u64,
}

impl Buffer {
    /// A part of other memory, which lives as long.
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
        // SAFETY: the whole buffer.
        card.ok(unsafe { (card.api.cuMemsetD8Async)(self.address, byte, self.bytes as usize, card.stream) })
    }

    /// Copies bytes to the host, once the stream is done.
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
            // SAFETY: the memory is this buffer's alone; the driver waits for work that uses it.
            unsafe { (self.card.api.cuMemFree_v2)(self.address) };
        }
    }
}

/// Memory of the host, pinned so that copies need no detour, or plain.
pub struct HostBuffer {
    pinned: Option<Rc<Card>>,
    address: *mut c_void,
    plain: Vec<u32>,
}

impl HostBuffer {
    /// Room for bytes, a multiple of 4.
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

    /// Where it begins.
    pub fn address(&self) -> *mut c_void {
        self.address
    }

    /// Its numbers.
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

/// A text that ends at the first zero.
pub fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}
