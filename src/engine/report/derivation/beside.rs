//! Numbers of a run compared with another: the effect of a change of the setup.

use super::{Derivation, Formula, Quantity, Source, Subject, Term};

impl Subject<'_> {
    /// Derives a number of this run, or of the changed run.
    pub fn derivation_beside(self, changed: Subject<'_>, of: &Quantity) -> Option<Derivation> {
        match of {
            Quantity::Change => Some(self.change(changed)),
            Quantity::Changed(of) => changed.derivation(of).map(Derivation::of_changed),
            of => self.derivation(of),
        }
    }

    /// The larger reserved peak less the smaller.
    fn change(self, changed: Subject<'_>) -> Derivation {
        let (now, then) = (self.report.peak_reserved, changed.report.peak_reserved);
        let now = Formula::of(Quantity::PeakReserved, now);
        let then = Formula::of(Quantity::Changed(Box::new(Quantity::PeakReserved)), then);
        let of = match now.value() >= then.value() {
            true => [now, then],
            false => [then, now],
        };
        Derivation::bytes(Formula::Difference(Box::new(of)), Source::Sum)
    }
}

impl Derivation {
    /// Returns the derivation with its terms referring to the changed run too.
    fn of_changed(self) -> Self {
        Self {
            formula: self.formula.of_changed(),
            ..self
        }
    }
}

impl Formula {
    fn of_changed(self) -> Self {
        let all = |parts: Vec<Self>| parts.into_iter().map(Self::of_changed).collect();
        match self {
            Self::Number(Term::Of(of), n) => Self::Number(Term::Of(Quantity::Changed(Box::new(of))), n),
            Self::Number(..) => self,
            Self::Sum(parts) => Self::Sum(all(parts)),
            Self::Product(parts) => Self::Product(all(parts)),
            Self::Highest(parts) => Self::Highest(all(parts)),
            Self::Difference(of) => Self::Difference(Box::new(of.map(Self::of_changed))),
            Self::RoundedUp(of, to) => Self::RoundedUp(Box::new(of.of_changed()), to),
        }
    }
}
