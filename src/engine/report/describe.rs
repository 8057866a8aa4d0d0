use std::collections::HashMap;
use std::sync::Arc;

use super::timeline::LiveTensor;
use crate::tape::Kind;
use crate::tape::log::{Birth, Log, ScopeId, StorageId};
use crate::units::Bytes;

/// Puts into words what storages are; texts that recur are shared.
pub(super) struct Describe<'a> {
    log: &'a Log,
    layers: HashMap<ScopeId, Arc<str>>,
    reasons: HashMap<(bool, &'static str), Arc<str>>,
}

impl<'a> Describe<'a> {
    pub fn new(log: &'a Log) -> Self {
        Self {
            log,
            layers: HashMap::new(),
            reasons: HashMap::new(),
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
            name: birth.name,
            layer,
            component: log.scopes[birth.scope as usize].component,
            kind: birth.kind,
            shape: birth.shape,
            dtype: birth.dtype,
            bytes,
            why: self.reason(birth),
        }
    }

    fn reason(&mut self, birth: &Birth) -> Arc<str> {
        // What backward needs carries the name of the node that needs it, such as `MulBackward0`.
        let kept = birth.kind == Kind::Activation && birth.why.ends_with(|c: char| c.is_ascii_digit());
        let words = || match (kept, birth.why) {
            (true, node) => format!("kept from forward because {node} needs it in backward").into(),
            (false, "") if birth.kind == Kind::Input => "the batch, on the GPU until the step is done".into(),
            (false, "") => "lives until the operations that use it are done".into(),
            (false, why) => why.into(),
        };
        self.reasons.entry((kept, birth.why)).or_insert_with(words).clone()
    }
}
