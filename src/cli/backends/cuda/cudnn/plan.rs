//! A fused kernel of cuDNN, and its binding to memory.

use std::ffi::c_void;
use std::ptr::from_ref;
use std::rc::Rc;

use super::super::api::Address;
use super::super::memory::Buffer;
use super::{Descriptor, INT64, Library, VOID_POINTER};
use crate::backends::Refusal;

/// A fused kernel.
pub struct Plan {
    pub(super) library: Rc<Library>,
    pub(super) plan: Descriptor,
    /// Number of the cuDNN engine.
    pub engine: i64,
    /// Bytes of workspace.
    pub workspace: u64,
    pub(super) kept: Vec<Descriptor>,
    pub(super) values: Vec<(i64, f32)>,
}

/// A plan's tensors bound to memory.
pub struct Bound {
    pack: Descriptor,
    _values: Vec<f32>,
}

impl Plan {
    /// Binds each tensor in memory by its number.
    pub fn bind(&self, tensors: &[(i64, Address)], workspace: &Buffer) -> Result<Bound, Refusal> {
        debug_assert!(!self.kept.is_empty());
        let values: Vec<f32> = self.values.iter().map(|(_, value)| *value).collect();
        let numbers: Vec<i64> = tensors
            .iter()
            .map(|(n, _)| *n)
            .chain(self.values.iter().map(|(n, _)| *n))
            .collect();
        let in_memory = tensors.iter().map(|(_, address)| *address as *const c_void);
        let by_value = values.iter().map(|value| from_ref(value).cast::<c_void>());
        let pointers: Vec<*const c_void> = in_memory.chain(by_value).collect();
        // CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR.
        let pack = self.library.descriptor(16)?;
        pack.set(1000, INT64, &numbers)?;
        pack.set(1001, VOID_POINTER, &pointers)?;
        pack.set(1003, VOID_POINTER, &[workspace.address as *const c_void])?;
        Ok(Bound {
            pack: pack.finish("a pack of addresses")?,
            _values: values,
        })
    }

    /// Enqueues the kernel on the stream.
    pub fn run(&self, bound: &Bound) -> Result<(), Refusal> {
        let library = &self.library;
        debug_assert!(!library.card.stream.is_null());
        // SAFETY: plan and pack are whole, and their memory is held by the caller.
        match unsafe { (library.api.cudnnBackendExecute)(library.handle, self.plan.handle, bound.pack.handle) } {
            0 => Ok(()),
            status => Err(Refusal::Failed(format!(
                "cuDNN: its engine {} does not run (status {status}): {}",
                self.engine,
                library.last_error()
            ))),
        }
    }
}
