//! Access to a card through the CUDA driver: its stream, and events on it.

use std::ffi::{CStr, c_int};
use std::ptr::{null, null_mut};
use std::rc::Rc;

use super::api::{Driver, Handle};
use crate::backends::Refusal;

/// An open card.
pub struct Card {
    pub(super) api: Rc<Driver>,
    /// Index among the visible cards.
    pub ordinal: c_int,
    /// Primary context, which NVIDIA's libraries use too.
    pub context: Handle,
    /// Stream for all work.
    pub stream: Handle,
}

/// Properties of a card from the driver.
#[derive(Debug, Clone)]
pub struct Facts {
    /// Name of the card.
    pub name: String,
    /// Compute capability as major and minor number.
    pub capability: [i32; 2],
    /// Memory in bytes.
    pub memory: u64,
    /// Number of streaming multiprocessors.
    pub multiprocessors: u32,
    /// Size of the L2 cache in bytes.
    pub l2: u64,
    /// PCI bus ID, by which NVML identifies the card.
    pub bus_id: Vec<u8>,
    /// Number of visible cards.
    pub count: u32,
    /// Highest CUDA version that the driver supports, such as 13000.
    pub cuda: i32,
}

impl Card {
    /// Opens the first visible card.
    ///
    /// # Errors
    /// If there is none; the message says why.
    pub fn first(api: Driver) -> Result<Rc<Self>, String> {
        let card = Self {
            api: Rc::new(api),
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
        card.start(0).map_err(|refusal| {
            let why = String::from(refusal);
            format!("the card does not start ({why}): look at `nvidia-smi` for what holds it")
        })
    }

    /// Opens another card and makes it current.
    ///
    /// # Errors
    /// The driver's message.
    pub fn another(&self, place: c_int) -> Result<Rc<Self>, Refusal> {
        let card = Self {
            api: Rc::clone(&self.api),
            ordinal: place,
            context: null_mut(),
            stream: null_mut(),
        };
        card.start(place)
    }

    fn start(mut self, place: c_int) -> Result<Rc<Self>, Refusal> {
        let (mut ordinal, mut context, mut stream) = (0, null_mut(), null_mut());
        let api = &self.api;
        // SAFETY: each handle is written before it is used; the ordinal exists.
        unsafe {
            self.ok((api.cuDeviceGet)(&mut ordinal, place))?;
            self.ok((api.cuDevicePrimaryCtxRetain)(&mut context, ordinal))?;
            self.ok((api.cuCtxSetCurrent)(context))?;
            // 1 is CU_STREAM_NON_BLOCKING: no implicit synchronisation with the legacy default stream.
            self.ok((api.cuStreamCreate)(&mut stream, 1))?;
        }
        (self.ordinal, self.context, self.stream) = (ordinal, context, stream);
        Ok(Rc::new(self))
    }

    /// Makes this card current for driver calls. All calls come from one thread; work on several cards must return to
    /// the first one.
    pub fn enter(&self) {
        // SAFETY: the context lives as long as the card. A broken context shows in the next call.
        unsafe { (self.api.cuCtxSetCurrent)(self.context) };
    }

    /// Properties of the card.
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
        // Values of CUdevice_attribute.
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

    /// Free memory and all memory, in bytes.
    pub fn memory(&self) -> [u64; 2] {
        let (mut free, mut all) = (0, 0);
        // SAFETY: both are written.
        unsafe { (self.api.cuMemGetInfo_v2)(&mut free, &mut all) };
        [free as u64, all as u64]
    }

    /// Converts the driver's status to a result.
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
        self.enter();
        // SAFETY: the stream is this card's.
        self.ok(unsafe { (self.api.cuStreamSynchronize)(self.stream) })
    }

    /// Nanoseconds that the stream takes for the work that `work` enqueues.
    pub fn time(&self, work: impl FnOnce() -> Result<(), Refusal>) -> Result<u64, Refusal> {
        let (begin, end) = (self.event()?, self.event()?);
        begin.record()?;
        work()?;
        end.record()?;
        end.since(&begin)
    }

    /// Creates an event that is not recorded yet.
    pub fn event(&self) -> Result<Event<'_>, Refusal> {
        self.enter();
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

/// An event on a card's stream.
pub struct Event<'a> {
    card: &'a Card,
    handle: Handle,
}

impl Event<'_> {
    /// Nanoseconds since an earlier event of the same stream, once both have occurred.
    pub fn since(&self, begin: &Self) -> Result<u64, Refusal> {
        let card = self.card;
        card.enter();
        let mut milliseconds = 0.0;
        // SAFETY: both events were recorded on this card's stream.
        unsafe {
            card.ok((card.api.cuEventSynchronize)(self.handle))?;
            card.ok((card.api.cuEventElapsedTime)(
                &mut milliseconds,
                begin.handle,
                self.handle,
            ))?;
        }
        Ok((f64::from(milliseconds) * 1e6) as u64)
    }

    /// Records the event at the end of the stream.
    pub fn record(&self) -> Result<(), Refusal> {
        self.card.enter();
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

/// Text up to the first zero byte.
pub fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}
