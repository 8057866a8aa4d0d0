//! Trained parameters of layers, and the gradients of those that did not run.

use super::super::log::{Log, ScopeId, StorageId};
use super::super::tensor::Tensor;
use super::parts::{Layer, Parts};
use super::places::Instance;
use super::write::Writer;

/// A gradient for a parameter of a layer that did not run.
pub struct Gradient {
    pub leaf: Tensor,
    /// The gradient of the same parameter in the layer that ran.
    pub like: Tensor,
    pub id: StorageId,
}

/// The trained parameters of each layer.
pub struct Leaves {
    /// By stack and layer, the indices of its parameters.
    of: Vec<Vec<Vec<usize>>>,
}

/// Sorts parameters by the layers of stacks whose modules they belong to.
pub fn by_layer(log: &Log, parts: &Parts, leaves: &[Tensor]) -> Leaves {
    let mut of: Vec<Vec<Vec<usize>>> = Vec::with_capacity(parts.stacks.len());
    for (stack, layers) in parts.stacks.iter().enumerate() {
        let mut own = vec![Vec::new(); layers.representatives.len()];
        if let Some(module) = module(log, parts, stack) {
            let first = log.scopes[module as usize].index.unwrap_or(0);
            for (at, leaf) in leaves.iter().enumerate() {
                let scope = leaf.storage().id().map(|id| log.allocations[id as usize].scope);
                let index = scope.and_then(|scope| index_in(log, module, scope));
                let layer = index.and_then(|index| index.checked_sub(first));
                if let Some(own) = layer.and_then(|layer| own.get_mut(layer as usize)) {
                    own.push(at);
                }
            }
        }
        of.push(own);
    }
    Leaves { of }
}

/// The module of a stack's first layer in its forward.
fn module(log: &Log, parts: &Parts, stack: usize) -> Option<ScopeId> {
    let part = &parts.parts[parts.stacks[stack].part(false, 0)?];
    let is_entered =
        |&scope: &usize| (log.scopes[scope].parent as usize) < part.from.scope && log.scopes[scope].index.is_some();
    (part.from.scope..part.to.scope)
        .find(is_entered)
        .map(|scope| scope as ScopeId)
}

/// Index of the module around `scope` that is in the same list as `module`.
fn index_in(log: &Log, module: ScopeId, mut scope: ScopeId) -> Option<u32> {
    let parent = |scope: ScopeId| log.scopes[scope as usize].parent;
    let depth = |mut scope: ScopeId| {
        let mut depth = 0;
        while parent(scope) != scope {
            scope = parent(scope);
            depth += 1;
        }
        depth
    };
    for _ in 0..usize::checked_sub(depth(scope), depth(module))? {
        scope = parent(scope);
    }
    let index = log.scopes[scope as usize].index?;
    let name = |scope: ScopeId| log.scopes[scope as usize].name;
    let (mut one, mut other) = (module, scope);
    if name(one) != name(other) {
        return None;
    }
    while parent(one) != one {
        (one, other) = (parent(one), parent(other));
        let entry = |scope: ScopeId| (name(scope), log.scopes[scope as usize].index);
        if entry(one) != entry(other) {
            return None;
        }
    }
    Some(index)
}

impl Leaves {
    /// Place of a parameter among those of a layer.
    fn rank(&self, stack: usize, layer: usize, leaf: usize) -> Option<usize> {
        self.of[stack][layer].iter().position(|&at| at == leaf)
    }

    /// The parameter that is to an instance what the parameter with this storage is in the recording.
    pub fn parameter(&self, parts: &Parts, (at, layer): Instance, leaves: &[Tensor], id: StorageId) -> StorageId {
        let found = parts.parts[at].layer.and_then(|Layer { stack, run, .. }| {
            let own = &self.of[stack];
            let ran = own[parts.stacks[stack].runs[run]].iter();
            let rank = ran.into_iter().position(|&at| leaves[at].storage().id() == Some(id))?;
            leaves[*own[layer].get(rank)?].storage().id()
        });
        found.unwrap_or(id)
    }

    /// Takes the gradients of layers that did not run. `None` if the pass made a gradient for another parameter in a
    /// layer that stands for others.
    pub fn gradients(&self, writer: &mut Writer<'_>, leaves: &[Tensor]) -> Option<Vec<Gradient>> {
        let parts = writer.places.parts;
        let mut gradients = Vec::new();
        for (at, leaf) in leaves.iter().enumerate() {
            let Some(like) = leaf.grad() else { continue };
            let Some((home, rank)) = like.storage().id().and_then(|id| writer.places.home(id)) else {
                continue;
            };
            let Some(Layer { stack, run, .. }) = parts.parts[home].layer.filter(|_| writer.places.is_repeated(home))
            else {
                continue;
            };
            let layers = &parts.stacks[stack];
            let place = self.rank(stack, layers.runs[run], at)?;
            let others = (0..layers.representatives.len())
                .filter(|&layer| layers.representatives[layer] == run && layer != layers.runs[run]);
            for layer in others {
                // Parameters of a layer come in the order of its constructor, so equal places mean the same parameter.
                // Shapes are compared all the same: a layer of another kind would get a gradient of the wrong size.
                let other = &leaves[*self.of[stack][layer].get(place)?];
                if other.shape() != leaf.shape() || other.dtype() != leaf.dtype() || other.grad().is_some() {
                    return None;
                }
                gradients.push(Gradient {
                    leaf: other.clone(),
                    like: like.clone(),
                    id: writer.claim_of((home, layer), rank)?,
                });
            }
        }
        Some(gradients)
    }
}
