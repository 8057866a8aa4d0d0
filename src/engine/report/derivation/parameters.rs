//! Counts of weights.

use super::{Derivation, Formula, Quantity, Source, Subject, Term};
use crate::dtype::DType;
use crate::tape::Component;
use crate::tape::dims::Dims;
use crate::tape::log::StorageId;

impl Subject<'_> {
    pub(super) fn params(self) -> Derivation {
        self.by_part(false, Quantity::PartParams)
    }

    pub(super) fn trainable(self) -> Derivation {
        self.by_part(true, Quantity::PartTrainable)
    }

    pub(super) fn part_params(self, part: Component) -> Option<Derivation> {
        self.part(part, false)
    }

    pub(super) fn part_trainable(self, part: Component) -> Option<Derivation> {
        self.part(part, true)
    }

    fn by_part(self, trained: bool, quantity: fn(Component) -> Quantity) -> Derivation {
        let parts = Component::ALL.into_iter().filter_map(|part| {
            let weights: u64 = self.weights(part, trained).map(|id| self.elements(id).value()).sum();
            (weights > 0).then(|| Formula::Number(Term::Of(quantity(part)), weights))
        });
        Derivation::count(Formula::Sum(parts.collect()), Source::Config)
    }

    /// Weights of one part, grouped by name and shape.
    fn part(self, part: Component, trained: bool) -> Option<Derivation> {
        let log = &self.report.timeline.recorded().log;
        let mut alike: Vec<(StorageId, String, Dims, u64)> = Vec::new();
        for id in self.weights(part, trained) {
            let allocation = &log.allocations[id as usize];
            let scope = log.scopes[allocation.scope as usize];
            let known = alike.iter_mut().find(|(first, _, shape, _)| {
                let other = &log.allocations[*first as usize];
                *shape == allocation.shape
                    && other.name == allocation.name
                    && other.dtype == allocation.dtype
                    && log.scopes[other.scope as usize].name == scope.name
            });
            match known {
                Some((.., count)) => *count += 1,
                None => alike.push((id, name(scope.name, allocation.name), allocation.shape, 1)),
            }
        }
        let terms = alike.into_iter().map(|(id, name, _, count)| {
            Formula::Product(vec![Formula::Number(Term::Weights(name), count), self.elements(id)])
        });
        let terms: Vec<Formula> = terms.collect();
        (!terms.is_empty()).then(|| Derivation::count(Formula::Sum(terms), Source::Config))
    }

    fn weights(self, part: Component, trained: bool) -> impl Iterator<Item = StorageId> {
        let recorded = self.report.timeline.recorded();
        let component = |id: StorageId| {
            let allocation = &recorded.log.allocations[id as usize];
            recorded.log.scopes[allocation.scope as usize].component
        };
        recorded
            .parameters
            .iter()
            .filter(move |(id, is_trained)| (*is_trained || !trained) && component(*id) == part)
            .map(|(id, _)| *id)
    }

    /// Weights of one tensor: the product of its extents, times two if a byte holds two.
    fn elements(self, id: StorageId) -> Formula {
        let allocation = &self.report.timeline.recorded().log.allocations[id as usize];
        let extents = allocation.shape.iter().map(|&n| Formula::Number(Term::Extent, n));
        let packed = (allocation.dtype == DType::U8).then_some(Formula::Number(Term::PerByte, 2));
        Formula::Product(extents.chain(packed).collect())
    }
}

/// `q_proj` and `weight` → `q_proj.weight`.
fn name(module: &str, weight: &str) -> String {
    match module {
        "" => weight.to_owned(),
        module => [module, weight].join("."),
    }
}
