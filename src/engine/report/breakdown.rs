use std::collections::HashMap;
use std::ops::Deref;
use std::rc::Rc;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use super::Timeline;
use super::live::Live;
use crate::order::{sort_by, sort_by_key};
use crate::tape::log::ScopeId;
use crate::tape::{Component, Kind};
use crate::units::Bytes;

/// A named part of the memory live at one instant, with what it consists of, largest first.
///
/// A node's `bytes` are exactly the sum of its children's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BreakdownNode {
    /// What a person calls it: a component, a kind, a layer, a tensor.
    pub name: String,
    /// Allocator bytes (rounded blocks) of all that is below.
    pub bytes: Bytes,
    /// Parts, largest first; equal ones by name.
    pub children: Vec<BreakdownNode>,
}

/// What is live at the peak of a step, put together when it is first looked at: most runs are asked for their
/// figures alone.
#[derive(Debug, Clone, Default)]
pub struct Breakdown {
    timeline: Timeline,
    root: OnceLock<BreakdownNode>,
}

impl Breakdown {
    /// Of a step's peak.
    pub(crate) fn of(timeline: &Timeline) -> Self {
        Self {
            timeline: timeline.clone(),
            root: OnceLock::new(),
        }
    }
}

impl From<BreakdownNode> for Breakdown {
    fn from(root: BreakdownNode) -> Self {
        Self {
            timeline: Timeline::default(),
            root: root.into(),
        }
    }
}

impl Deref for Breakdown {
    type Target = BreakdownNode;

    fn deref(&self) -> &BreakdownNode {
        let timeline = &self.timeline;
        self.root
            .get_or_init(|| breakdown(&timeline.live(timeline.peak_instant())))
    }
}

/// Groups what lives by component, then kind, then layer, then tensor.
fn breakdown(live: &Live<'_>) -> BreakdownNode {
    let mut parts: HashMap<Component, HashMap<Kind, Layers>> = HashMap::new();
    for (scope, groups) in groups(live)
        .into_iter()
        .enumerate()
        .filter(|(_, groups)| !groups.is_empty())
    {
        let path: Rc<str> = live.log().path(scope as ScopeId).into();
        for group in groups {
            let layers = parts.entry(group.component).or_default().entry(group.kind).or_default();
            layers.entry(path.clone()).or_default().push((group.name, group.bytes));
        }
    }
    let layer = |(path, tensors): (Rc<str>, Vec<(&str, Bytes)>)| BreakdownNode::of(&*path, leaves(tensors));
    let kind = |(kind, layers): (Kind, Layers)| BreakdownNode::of(kind.label(), layers.into_iter().map(layer));
    let component = |(component, kinds): (Component, HashMap<Kind, Layers>)| {
        BreakdownNode::of(component.label(), kinds.into_iter().map(kind))
    };
    BreakdownNode::of("total", parts.into_iter().map(component))
}

/// By path of a layer: names and bytes of its tensors.
type Layers = HashMap<Rc<str>, Vec<(&'static str, Bytes)>>;

/// One part for each name.
fn leaves(mut tensors: Vec<(&str, Bytes)>) -> impl Iterator<Item = BreakdownNode> {
    sort_by_key(&mut tensors, |(name, _)| *name);
    let parts: Vec<BreakdownNode> = tensors
        .chunk_by(|a, b| a.0 == b.0)
        .map(|alike| BreakdownNode::leaf(alike[0].0, alike.iter().map(|(_, bytes)| *bytes).sum()))
        .collect();
    parts.into_iter()
}

/// What the tensors of one name and kind hold, of those that one call of a module made.
struct Group {
    component: Component,
    kind: Kind,
    name: &'static str,
    bytes: Bytes,
}

/// By scope: few groups in each, so that a thousand tensors alike need no text of their own.
fn groups(live: &Live<'_>) -> Vec<Vec<Group>> {
    let mut scopes: Vec<Vec<Group>> = Vec::new();
    scopes.resize_with(live.log().scopes.len(), Vec::new);
    for held in live.together() {
        let (birth, kind) = (held.birth, held.kind());
        let groups = &mut scopes[birth.scope as usize];
        // The same text at two places makes two groups here, and one part in the end.
        match groups
            .iter_mut()
            .find(|g| g.kind == kind && std::ptr::eq(g.name, birth.name))
        {
            Some(group) => group.bytes += held.bytes,
            None => groups.push(Group {
                component: held.component,
                kind,
                name: birth.name,
                bytes: held.bytes,
            }),
        }
    }
    scopes
}

impl BreakdownNode {
    fn leaf(name: &str, bytes: Bytes) -> Self {
        Self {
            name: name.to_owned(),
            bytes,
            children: Vec::new(),
        }
    }

    fn of(name: impl Into<String>, children: impl Iterator<Item = Self>) -> Self {
        let mut children: Vec<Self> = children.collect();
        sort_by(&mut children, |a, b| {
            b.bytes.cmp(&a.bytes).then_with(|| a.name.cmp(&b.name))
        });
        Self {
            name: name.into(),
            bytes: children.iter().map(|child| child.bytes).sum(),
            children,
        }
    }
}
