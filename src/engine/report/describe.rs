use std::collections::HashMap;
use std::sync::Arc;

use super::timeline::LiveTensor;
use crate::tape::log::{Birth, Log, ScopeId, StorageId};
use crate::tape::{Kind, Why};
use crate::units::Bytes;

/// Describes storages; texts that recur are shared.
pub(super) struct Describe<'a> {
    log: &'a Log,
    layers: HashMap<ScopeId, Arc<str>>,
}

impl<'a> Describe<'a> {
    pub fn new(log: &'a Log) -> Self {
        Self {
            log,
            layers: HashMap::new(),
        }
    }

    /// What a storage of a block of `bytes` is.
    pub fn tensor(&mut self, id: StorageId, bytes: Bytes) -> LiveTensor {
        let (log, birth) = (self.log, &self.log.births[id as usize]);
        let layer = self
            .layers
            .entry(birth.scope)
            .or_insert_with(|| log.path(birth.scope).into())
            .clone();
        LiveTensor {
            name: birth.name.into(),
            layer,
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
