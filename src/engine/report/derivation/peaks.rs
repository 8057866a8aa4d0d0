//! Peaks of the step, and the allocator's reserved bytes.

use super::{Derivation, Formula, Quantity, Source, Subject, Term};
use crate::report::{Instant, Phase, Timeline};
use crate::tape::Kind;

impl Subject<'_> {
    pub(super) fn peak_allocated(self) -> Derivation {
        // A model that does not train has one phase.
        if let Some(only) = self
            .report
            .outputs
            .as_ref()
            .and_then(|_| self.phase_peak(Phase::Forward))
        {
            return only;
        }
        let peaks = self.report.steady.by_phase();
        let peak = |(phase, bytes)| Formula::of(Quantity::PhasePeak(phase), bytes);
        Derivation::bytes(Formula::Highest(peaks.map(peak).into()), Source::Step)
    }

    /// Live bytes by kind at a phase's peak. In the phase that holds the step's peak, each kind has a derivation of its
    /// own.
    pub(super) fn phase_peak(self, phase: Phase) -> Option<Derivation> {
        let holds = phase == self.report.peak_phase;
        let kinds = self.report.timeline.highest_within(phase)?;
        let term = |(kind, bytes)| match holds {
            true => Formula::Number(Term::Of(Quantity::Kind(kind)), bytes),
            false => Formula::Number(Term::Live(kind), bytes),
        };
        let terms = Kind::ALL
            .into_iter()
            .zip(kinds)
            .filter(|(_, bytes)| *bytes > 0)
            .map(term);
        Some(Derivation::bytes(Formula::Sum(terms.collect()), Source::Step))
    }

    /// Live bytes at an instant, by kind.
    pub(super) fn live(self, instant: Instant) -> Derivation {
        let kinds = self.report.timeline.at(instant);
        let terms = kinds.into_iter().filter(|(_, bytes)| bytes.get() > 0);
        let terms = terms.map(|(kind, bytes)| Formula::Number(Term::Live(kind), bytes.get()));
        Derivation::bytes(Formula::Sum(terms.collect()), Source::Step)
    }

    pub(super) fn peak_reserved(self) -> Derivation {
        let segments = self.report.most_reserved().into_iter().flat_map(|most| &most.segments);
        let segments = segments.map(|&(bytes, count)| {
            Formula::Product(vec![
                Formula::Number(Term::Segments, count),
                Formula::Number(Term::Segment, bytes.get()),
            ])
        });
        Derivation::bytes(Formula::Sum(segments.collect()), Source::Segments)
    }

    pub(super) fn reserve(self) -> Derivation {
        let report = self.report;
        let of = [
            Formula::of(Quantity::PeakReserved, report.peak_reserved),
            Formula::of(Quantity::PeakAllocated, report.peak_allocated),
        ];
        Derivation::bytes(Formula::Difference(Box::new(of)), Source::Sum)
    }
}

impl Timeline {
    /// Live bytes by kind at the peak of a phase; the first of equal peaks.
    fn highest_within(&self, phase: Phase) -> Option<[u64; Kind::COUNT]> {
        let at = self.phases().iter().position(|(p, _)| *p == phase)?;
        let begin = self.phases()[at].1;
        let end = self.phases().get(at + 1).map_or(self.len(), |(_, next)| *next);
        let mut highest = ([0; Kind::COUNT], 0);
        self.walk(|instant, totals| {
            let total: u64 = totals.iter().sum();
            if (begin..=end).contains(&instant) && total > highest.1 {
                highest = (*totals, total);
            }
        });
        Some(highest.0)
    }
}
