//! cuDNN's graph API: builds one fused kernel from tensors and operations.

mod graph;
mod plan;

pub use graph::{Graph, Kind, Pointwise, Reduce, Tensor, TensorStorage, packed};
pub use plan::{Bound, Plan};

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::rc::Rc;

use super::api::{Cudnn, Handle};
use super::device::{Card, text};
use crate::backends::Refusal;

/// cuDNN on one card.
pub struct Library {
    api: Cudnn,
    handle: Handle,
    /// Version as a number, such as 91900.
    pub version: usize,
    card: Rc<Card>,
}

// Values of cudnnBackendAttributeType_t.
const HANDLE: c_int = 0;
const DATA_TYPE: c_int = 1;
const BOOLEAN: c_int = 2;
const INT64: c_int = 3;
const VOID_POINTER: c_int = 6;
const HEURISTIC_MODE: c_int = 8;
const POINTWISE_MODE: c_int = 14;
const DESCRIPTOR: c_int = 15;
const REDUCTION: c_int = 18;

struct Descriptor {
    library: Rc<Library>,
    handle: Handle,
}

impl Library {
    /// Creates a handle on a card's stream.
    ///
    /// # Errors
    /// cuDNN's message.
    pub fn start(api: Cudnn, version: usize, card: &Rc<Card>) -> Result<Rc<Self>, Refusal> {
        let mut handle = null_mut();
        // SAFETY: the handle is written before it is used.
        unsafe {
            ok((api.cudnnCreate)(&mut handle), "cudnnCreate")?;
            ok((api.cudnnSetStream)(handle, card.stream), "cudnnSetStream")?;
        }
        Ok(Rc::new(Self {
            api,
            handle,
            version,
            card: Rc::clone(card),
        }))
    }

    fn descriptor(self: &Rc<Self>, kind: c_int) -> Result<Descriptor, Refusal> {
        let mut handle = null_mut();
        // SAFETY: the handle is written.
        ok(
            unsafe { (self.api.cudnnBackendCreateDescriptor)(kind, &mut handle) },
            "a descriptor",
        )?;
        Ok(Descriptor {
            library: Rc::clone(self),
            handle,
        })
    }
}

impl Library {
    fn last_error(&self) -> String {
        let mut words = [0_u8; 512];
        // SAFETY: the buffer is as long as stated.
        unsafe { (self.api.cudnnGetLastErrorString)(words.as_mut_ptr().cast(), words.len()) };
        text(&words)
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        // SAFETY: descriptors hold it, so none is left.
        unsafe { (self.api.cudnnDestroy)(self.handle) };
    }
}

impl Descriptor {
    fn set<T>(&self, attribute: c_int, kind: c_int, values: &[T]) -> Result<(), Refusal> {
        let library = &self.library;
        let (count, values) = (values.len() as i64, values.as_ptr().cast::<c_void>());
        // SAFETY: callers pass values of the type that `kind` names.
        let status = unsafe { (library.api.cudnnBackendSetAttribute)(self.handle, attribute, kind, count, values) };
        ok(status, &format!("attribute {attribute}"))
    }

    fn get(&self, attribute: c_int, kind: c_int, value: *mut c_void, room: i64) -> Result<i64, Refusal> {
        let mut count = 0;
        // SAFETY: callers pass room for as many values of the type that `kind` names.
        let status = unsafe {
            (self.library.api.cudnnBackendGetAttribute)(self.handle, attribute, kind, room, &mut count, value)
        };
        ok(status, &format!("attribute {attribute}")).map(|()| count)
    }

    fn finish(self, what: &str) -> Result<Self, Refusal> {
        // SAFETY: the descriptor is whole.
        match unsafe { (self.library.api.cudnnBackendFinalize)(self.handle) } {
            0 => Ok(self),
            // CUDNN_STATUS_NOT_SUPPORTED and its sub-codes.
            status @ 3000..4000 => Err(Refusal::Unsupported(format!(
                "cuDNN does not support {what} (status {status})"
            ))),
            status => ok(status, what).map(|()| self),
        }
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: it was created and is not used again.
        unsafe { (self.library.api.cudnnBackendDestroyDescriptor)(self.handle) };
    }
}

fn ok(status: c_int, what: &str) -> Result<(), Refusal> {
    match status {
        0 => Ok(()),
        _ => Err(Refusal::Failed(format!("cuDNN: {what} gave status {status}"))),
    }
}
