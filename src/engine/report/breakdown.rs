//! Breakdown of the memory live at a step's peak.

use std::ops::Deref;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use super::Timeline;
use super::live::Live;
use crate::order::{sort_by, sort_by_key};
use crate::tape::log::ScopeId;
use crate::tape::{Component, Kind};
use crate::units::Bytes;

/// A named part of the memory live at one instant, and its own parts, largest first.
///
/// A node's `bytes` are exactly the sum of its children's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BreakdownNode {
    /// Name to show: of a component, a kind, a layer or a tensor.
    pub name: String,
    /// Allocator bytes (rounded blocks) of all children.
    pub bytes: Bytes,
    /// Parts, largest first; equal ones by name.
    pub children: Vec<BreakdownNode>,
}

/// Memory live at the peak of a step, computed on first access: most callers need only the totals.
#[derive(Debug, Clone, Default)]
pub struct Breakdown {
    timeline: Timeline,
    root: OnceLock<BreakdownNode>,
}

impl Breakdown {
    /// Makes the breakdown of a step's peak.
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

/// Groups the live tensors by component, then kind, then layer, then tensor.
fn breakdown(live: &Live<'_>) -> BreakdownNode {
    let mut groups = groups(live);
    let paths = paths(live, &groups);
    let path = |group: &Group| &paths[group.scope as usize];
    sort_by_key(&mut groups, |group| {
        (group.component as usize, group.kind as usize, path(group).0, group.name)
    });
    let leaf = |alike: &[Group]| BreakdownNode::leaf(alike[0].name, alike.iter().map(|group| group.bytes).sum());
    let layer =
        |of: &[Group]| BreakdownNode::of(path(&of[0]).1.clone(), of.chunk_by(|a, b| a.name == b.name).map(leaf));
    let kind = |of: &[Group]| {
        let layers = of.chunk_by(|a, b| path(a).0 == path(b).0).map(layer);
        BreakdownNode::of(of[0].kind.label(), layers)
    };
    let component = |of: &[Group]| {
        let kinds = of.chunk_by(|a, b| a.kind == b.kind).map(kind);
        BreakdownNode::of(of[0].component.label(), kinds)
    };
    BreakdownNode::of(
        "total",
        groups.chunk_by(|a, b| a.component == b.component).map(component),
    )
}

/// Returns, for each scope of these groups, the path of the module and its rank among all paths in order. A module that
/// is called twice has two scopes and one path.
fn paths(live: &Live<'_>, groups: &[Group]) -> Vec<(usize, String)> {
    let mut paths = vec![(0, String::new()); live.log().scopes.len()];
    let mut scopes: Vec<ScopeId> = groups.iter().map(|group| group.scope).collect();
    scopes.dedup();
    for &scope in &scopes {
        paths[scope as usize].1 = live.log().path(scope);
    }
    sort_by(&mut scopes, |&a, &b| paths[a as usize].1.cmp(&paths[b as usize].1));
    for at in 1..scopes.len() {
        let [before, scope] = [scopes[at - 1], scopes[at]].map(|scope| scope as usize);
        paths[scope].0 = paths[before].0 + usize::from(paths[before].1 != paths[scope].1);
    }
    paths
}

/// Sum of the tensors of one name and kind that one call of a module made.
struct Group {
    scope: ScopeId,
    component: Component,
    kind: Kind,
    name: &'static str,
    bytes: Bytes,
}

/// Groups the live tensors by scope. A scope has few groups, so a thousand equal tensors need no strings of their own.
fn groups(live: &Live<'_>) -> Vec<Group> {
    let mut scopes: Vec<Vec<Group>> = Vec::new();
    scopes.resize_with(live.log().scopes.len(), Vec::new);
    for held in live.by_description() {
        let (allocation, kind) = (held.allocation, held.kind());
        let groups = &mut scopes[allocation.scope as usize];
        // Equal text at two addresses makes two groups here, which are merged into one node in the end.
        match groups
            .iter_mut()
            .find(|g| g.kind == kind && std::ptr::eq(g.name, allocation.name))
        {
            Some(group) => group.bytes += held.bytes,
            None => groups.push(Group {
                scope: allocation.scope,
                component: held.component,
                kind,
                name: allocation.name,
                bytes: held.bytes,
            }),
        }
    }
    scopes.into_iter().flatten().collect()
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
