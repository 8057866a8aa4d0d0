use serde::Serialize;

use super::timeline::LiveTensor;
use crate::units::Bytes;

/// A named part of the memory live at one instant, with what it consists of, largest first.
///
/// A node's `bytes` are exactly the sum of its children's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BreakdownNode {
    /// What a person calls it: a component, a kind, a layer, a tensor.
    pub name: String,
    /// Allocator bytes (rounded blocks) of all that is below.
    pub bytes: Bytes,
    /// Parts, largest first; equal ones by name.
    pub children: Vec<BreakdownNode>,
}

/// Groups live tensors by component, then kind, then layer, then tensor.
pub fn breakdown(live: &[LiveTensor]) -> BreakdownNode {
    let mut root = BreakdownNode {
        name: "total".into(),
        bytes: Bytes::ZERO,
        children: Vec::new(),
    };
    for t in live {
        let path = [t.component.label(), t.kind.label(), &t.layer, t.name];
        root.add(&path, t.bytes);
    }
    root.sort();
    root
}

impl BreakdownNode {
    fn add(&mut self, path: &[&str], bytes: Bytes) {
        self.bytes += bytes;
        let Some((name, rest)) = path.split_first() else { return };
        let i = match self.children.iter().rposition(|c| c.name == *name) {
            Some(i) => i,
            None => {
                self.children.push(Self {
                    name: (*name).to_owned(),
                    bytes: Bytes::ZERO,
                    children: Vec::new(),
                });
                self.children.len() - 1
            }
        };
        self.children[i].add(rest, bytes);
    }

    fn sort(&mut self) {
        self.children
            .sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.name.cmp(&b.name)));
        self.children.iter_mut().for_each(Self::sort);
    }
}
