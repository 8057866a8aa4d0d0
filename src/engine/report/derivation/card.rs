//! Memory of the card, and the part of it outside PyTorch's allocator.

use super::{Basis, Derivation, Formula, Quantity, Source, Subject, Term, Unit};
use crate::device::Device;
use crate::report::{Outside, OutsideTerm};
use crate::units::Bytes;
use crate::verdict::Room;

impl Subject<'_> {
    pub(super) fn outside(self) -> Option<Derivation> {
        Some(Derivation::bytes(Formula::Sum(self.outside_terms()?), Source::Sum))
    }

    fn outside_terms(self) -> Option<Vec<Formula>> {
        let (_, fit) = self.room?;
        let term = |term: &OutsideTerm| Formula::of(Quantity::Outside(term.name), term.bytes);
        Some(fit.outside.iter().map(term).collect())
    }

    pub(super) fn outside_term(self, name: Outside) -> Option<Derivation> {
        let (room, fit) = self.room?;
        let device = room.card()?;
        let term = fit.outside.iter().find(|term| term.name == name)?;
        Some(Derivation {
            formula: context(device)
                .filter(|formula| name == Outside::CudaContext && formula.value() == term.bytes.get())
                .unwrap_or(Formula::Number(Term::Seen, term.bytes.get())),
            unit: Unit::Bytes,
            source: Source::Outside(name, term.source.to_string()),
            basis: Basis::Estimated(term.range.map(Bytes::get)),
        })
    }

    pub(super) fn needed(self) -> Option<Derivation> {
        let mut terms = vec![Formula::of(Quantity::PeakReserved, self.report.peak_reserved)];
        terms.extend(self.outside_terms()?);
        Some(Derivation::bytes(Formula::Sum(terms), Source::Sum))
    }

    pub(super) fn room(self) -> Option<Derivation> {
        let device = match self.room?.0 {
            Room::Card(device) | Room::BesideVllm(device, _) => device,
            Room::Allocator(limit) => {
                let formula = Formula::Number(Term::Limit, limit.get());
                return Some(Derivation {
                    basis: Basis::Entered,
                    ..Derivation::bytes(formula, Source::Setup)
                });
            }
        };
        let (seen, source) = match &device.visible {
            Some(visible) => (true, visible.source),
            None => (false, device.source),
        };
        let term = if seen { Term::Seen } else { Term::Stated };
        Some(Derivation {
            formula: Formula::Number(term, device.usable().get()),
            unit: Unit::Bytes,
            source: Source::Document(source.to_owned()),
            basis: if seen { Basis::Measured } else { Basis::Stated },
        })
    }

    pub(super) fn spare(self) -> Option<Derivation> {
        let (_, fit) = self.room?;
        let of = [
            (Quantity::Room, fit.room, fit.needed),
            (Quantity::Needed, fit.needed, fit.room),
        ];
        difference(of)
    }

    pub(super) fn short(self) -> Option<Derivation> {
        let (_, fit) = self.room?;
        let of = [
            (Quantity::Needed, fit.needed, fit.room),
            (Quantity::Room, fit.room, fit.needed),
        ];
        difference(of)
    }
}

/// The first less the second; `None` if the result would be negative.
fn difference([more, less]: [(Quantity, Bytes, Bytes); 2]) -> Option<Derivation> {
    (more.1 >= less.1).then(|| {
        let of = [Formula::of(more.0, more.1), Formula::of(less.0, less.1)];
        Derivation::bytes(Formula::Difference(Box::new(of)), Source::Sum)
    })
}

/// Bytes of the CUDA context by the rule of [`outside`](crate::report::outside): 2 KiB for each resident thread.
fn context(device: &Device) -> Option<Formula> {
    let gpu = device.gpu()?;
    Some(Formula::Product(vec![
        Formula::Number(Term::Multiprocessors, gpu.sms),
        Formula::Number(Term::Threads, gpu.threads_per_sm),
        Formula::Number(Term::PerThread, 2048),
    ]))
}
