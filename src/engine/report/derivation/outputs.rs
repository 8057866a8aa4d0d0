//! Memory of a model that does not train.

use super::{Derivation, Formula, Source, Subject, Term};
use crate::dtype::DType;
use crate::tape::dims::Dims;

impl Subject<'_> {
    /// Bytes once the model is made, before the pass begins.
    pub(super) fn after_model(self) -> Option<Derivation> {
        self.report.outputs.as_ref()?;
        Some(self.live(0))
    }

    pub(super) fn with_outputs(self) -> Option<Derivation> {
        let outputs = self.report.outputs.as_ref()?;
        Some(self.live(outputs.held))
    }

    /// Bytes of keys and values, grouped by shape.
    pub(super) fn cache(self) -> Option<Derivation> {
        let outputs = self.report.outputs.as_ref()?;
        let mut alike: Vec<(&(Dims, DType), u64)> = Vec::new();
        for state in &outputs.cache {
            match alike.iter_mut().find(|(known, _)| *known == state) {
                Some((_, count)) => *count += 1,
                None => alike.push((state, 1)),
            }
        }
        let terms = alike.into_iter().map(|((shape, dtype), count)| {
            let extents = shape.iter().map(|&n| Formula::Number(Term::Extent, n));
            let width = Formula::Number(Term::Width(*dtype), dtype.width());
            let alike = Formula::Number(Term::Alike, count);
            Formula::Product([alike].into_iter().chain(extents).chain([width]).collect())
        });
        Some(Derivation::bytes(Formula::Sum(terms.collect()), Source::Step))
    }
}
