//! Memory that a run takes from the device, part by part.

use serde::{Deserialize, Serialize};

use super::{Outside, OutsideTerm, Report};
use crate::tape::Kind;
use crate::units::Bytes;

/// One part of the memory that a run takes from the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Tensors of this kind, live at the steady peak.
    Live(Kind),
    /// Reserved by the allocator beyond what is live at the steady peak.
    Reserve,
    /// Outside PyTorch's allocator.
    Outside(Outside),
}

impl Report {
    /// Memory that the run takes from a device, part by part: tensors by kind at the steady peak, the rest of the
    /// reserved peak, and `outside`, the terms outside the allocator. Parts of zero bytes are left out.
    pub fn footprint(&self, outside: &[OutsideTerm]) -> Vec<(Part, Bytes)> {
        let live = self.by_kind();
        let held: Bytes = live.iter().map(|(_, bytes)| *bytes).sum();
        let reserve = self.peak_reserved.saturating_sub(held);
        live.into_iter()
            .map(|(kind, bytes)| (Part::Live(kind), bytes))
            .chain([(Part::Reserve, reserve)])
            .chain(outside.iter().map(|t| (Part::Outside(t.name), t.bytes)))
            .filter(|(_, bytes)| *bytes > Bytes::ZERO)
            .collect()
    }
}
