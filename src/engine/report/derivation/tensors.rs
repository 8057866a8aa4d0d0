//! Lines of the breakdown, down to the extents of single tensors.

use super::{Derivation, Formula, Quantity, Source, Subject, Term};
use crate::allocator::MIN_BLOCK;
use crate::dtype::DType;
use crate::report::{BreakdownNode, Held, Instant};
use crate::tape::Kind;
use crate::tape::dims::Dims;

impl Subject<'_> {
    /// All lines of one kind, by component.
    pub(super) fn kind(self, kind: Kind) -> Derivation {
        let parts = self.report.breakdown.children.iter().filter_map(|component| {
            let line = component.child(kind.label())?;
            let path = vec![component.name.clone(), line.name.clone()];
            Some(Formula::of(Quantity::Row(path), line.bytes))
        });
        Derivation::bytes(Formula::Sum(parts.collect()), Source::Sum)
    }

    pub(super) fn row(self, path: &[String]) -> Option<Derivation> {
        let root: &BreakdownNode = &self.report.breakdown;
        let node = path.iter().try_fold(root, |node, name| node.child(name))?;
        if let [component, kind, layer, name] = path {
            return Some(self.tensors([component, kind, layer, name]));
        }
        let parts = node.children.iter().map(|child| {
            let path = path.iter().chain([&child.name]).cloned().collect();
            Formula::of(Quantity::Row(path), child.bytes)
        });
        Some(Derivation::bytes(Formula::Sum(parts.collect()), Source::Sum))
    }

    /// One of the largest tensors live at an instant, by its rank among them.
    pub(super) fn tensor(self, instant: Instant, place: usize) -> Option<Derivation> {
        let tensor = self
            .report
            .timeline
            .largest_at(instant, place + 1)
            .into_iter()
            .nth(place)?;
        let bytes = tensor.bytes.get();
        let asked = tensor.shape.numel() * tensor.dtype.width();
        // A tensor of several pieces, such as packed states, has a request that does not follow from its shape.
        let formula = match bytes >= asked.next_multiple_of(MIN_BLOCK) {
            true => block(&tensor.shape, tensor.dtype, [asked, bytes]),
            false => Formula::Number(Term::Asked, bytes),
        };
        Some(Derivation::bytes(formula, Source::Blocks))
    }

    /// Tensors of one name, grouped by shape.
    fn tensors(self, [component, kind, layer, name]: [&str; 4]) -> Derivation {
        let live = self.report.timeline.live(self.report.timeline.peak_instant());
        let log = live.log();
        let mut alike: Vec<(Alike, u64)> = Vec::new();
        for held in live.iter().filter(|held| {
            held.allocation.name == name
                && held.kind().label() == kind
                && held.component.label() == component
                && log.path(held.allocation.scope) == layer
        }) {
            let of = Alike::of(&held);
            match alike.iter_mut().find(|(known, _)| *known == of) {
                Some((_, count)) => *count += 1,
                None => alike.push((of, 1)),
            }
        }
        let mut terms: Vec<Formula> = alike.iter().map(|(of, count)| of.formula(*count)).collect();
        let formula = if terms.len() == 1 {
            terms.remove(0)
        } else {
            Formula::Sum(terms)
        };
        Derivation::bytes(formula, Source::Blocks)
    }
}

/// Shape, type and sizes that tensors of one line share.
#[derive(PartialEq)]
struct Alike {
    shape: Dims,
    dtype: DType,
    asked: u64,
    block: u64,
}

impl Alike {
    fn of(held: &Held<'_>) -> Self {
        Self {
            shape: held.allocation.shape,
            dtype: held.allocation.dtype,
            asked: held.allocation.bytes,
            block: held.bytes.get(),
        }
    }

    fn formula(&self, count: u64) -> Formula {
        let block = block(&self.shape, self.dtype, [self.asked, self.block]);
        match count {
            1 => block,
            _ => Formula::Product(vec![Formula::Number(Term::Alike, count), block]),
        }
    }
}

/// The allocator's block for a tensor: its request rounded up, and the rest that was not worth splitting off.
pub(super) fn block(shape: &Dims, dtype: DType, [asked, block]: [u64; 2]) -> Formula {
    let request = if shape.numel() * dtype.width() == asked {
        let extents = shape.iter().map(|&n| Formula::Number(Term::Extent, n));
        let width = Formula::Number(Term::Width(dtype), dtype.width());
        Formula::Product(extents.chain([width]).collect())
    } else {
        Formula::Number(Term::Asked, asked)
    };
    let rounded = if asked.is_multiple_of(MIN_BLOCK) {
        request
    } else {
        Formula::RoundedUp(Box::new(request), MIN_BLOCK)
    };
    match block - rounded.value() {
        0 => rounded,
        slack => Formula::Sum(vec![rounded, Formula::Number(Term::Slack, slack)]),
    }
}

impl BreakdownNode {
    fn child(&self, name: &str) -> Option<&Self> {
        self.children.iter().find(|child| child.name == name)
    }
}
