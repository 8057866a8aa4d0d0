//! Descriptions of storages for reports.

use std::sync::Arc;

use super::timeline::LiveTensor;
use crate::tape::log::{Birth, Log, StorageId};
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
        let (log, birth) = (self.log, &self.log.births[id as usize]);
        let layer = self.layers[birth.scope as usize].get_or_insert_with(|| log.path(birth.scope).into());
        LiveTensor {
            name: birth.name.into(),
            layer: layer.clone(),
            component: log.scopes[birth.scope as usize].component,
            kind: birth.kind,
            shape: birth.shape,
            dtype: birth.dtype,
            bytes,
            why: why(birth),
        }
    }
}

fn why(birth: &Birth) -> Why {
    match (birth.why, birth.kind) {
        (Why::InUse, Kind::Input) => Why::Batch,
        (why, _) => why,
    }
}
