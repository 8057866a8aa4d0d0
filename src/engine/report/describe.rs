//! Descriptions of storages for reports.

use std::sync::Arc;

use super::timeline::LiveTensor;
use crate::tape::log::{Allocation, Log, StorageId};
use crate::tape::{Kind, Why};
use crate::units::Bytes;

/// Describes storages, sharing the strings that recur.
pub(super) struct Describe<'a> {
    log: &'a Log,
    /// Paths of modules requested so far.
    layers: Vec<Option<Arc<str>>>,
}

impl<'a> Describe<'a> {
    pub fn new(log: &'a Log) -> Self {
        Self {
            log,
            layers: vec![None; log.scopes.len()],
        }
    }

    /// Describes a storage with a block of `bytes`.
    pub fn tensor(&mut self, id: StorageId, bytes: Bytes) -> LiveTensor {
        let (log, allocation) = (self.log, &self.log.allocations[id as usize]);
        let layer = self.layers[allocation.scope as usize].get_or_insert_with(|| log.path(allocation.scope).into());
        LiveTensor {
            name: allocation.name.into(),
            layer: layer.clone(),
            component: log.scopes[allocation.scope as usize].component,
            kind: allocation.kind,
            shape: allocation.shape,
            dtype: allocation.dtype,
            bytes,
            why: allocation.why_live(),
        }
    }
}

impl Allocation {
    /// Reason that the storage is live, as reports say it.
    pub(super) fn why_live(&self) -> Why {
        match (self.why, self.kind) {
            (Why::InUse, Kind::Input) => Why::Batch,
            (why, _) => why,
        }
    }
}
