//! Where the time of a card's steps comes from: kernels that were measured on it, or its data sheet.

use super::communication::Link;
use super::cost::Costs;
use super::measured::Measured;
use super::network::Network;
use super::rates::Rates;
use vramscope_engine::device::Device;

/// What tells the time of a card.
#[derive(Debug, Clone)]
pub struct Clock {
    rates: Rates,
    measured: Measured,
    origin: Origin,
    link: Link,
    /// Whether the measured collectives went over that link.
    has_collectives: bool,
    sources: [String; 2],
}

/// Where kernels' times come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// A measurement that somebody gave.
    Given,
    /// The one that comes with the program.
    Own,
    /// The card's data sheet.
    DataSheet,
}

impl Clock {
    /// For a card: from the kernels that were given, or from our `own` where they are this card's, else from the data
    /// sheet. The host's pace is our own in any case, unless what was given has one. Nothing where the data sheet is
    /// silent.
    pub fn of(card: &Device, own: Measured, given: Option<Measured>) -> Option<Self> {
        let rates = Rates::of(card)?;
        let is_own = card.is_called(&own.card);
        let (origin, measured) = match given {
            Some(mut given) => {
                if is_own && given.collectives.is_empty() {
                    given.collectives = own.collectives;
                }
                (Origin::Given, given)
            }
            None if is_own => (Origin::Own, own),
            None => (Origin::DataSheet, own),
        };
        let kernels = match origin {
            Origin::DataSheet => format!("the data sheet of {}", card.name),
            _ => format!("kernels measured on {} through {}", measured.card, measured.software),
        };
        let host = format!("single operations measured on a host with an {}", measured.host);
        Some(Self {
            link: Link::of(card).unwrap_or_else(|| Link::pcie(rates.pcie)),
            has_collectives: origin != Origin::DataSheet,
            rates,
            measured,
            origin,
            sources: [kernels, host],
        })
    }

    /// The same with GPUs that are joined by a network of so many bytes a second, where that was given.
    #[must_use]
    pub fn over(self, network: Option<f64>) -> Self {
        match network {
            Some(rate) => Self {
                link: Link::network(rate),
                has_collectives: false,
                ..self
            },
            None => self,
        }
    }

    /// What each kernel and chore takes.
    pub fn costs(&self) -> Costs<'_> {
        let kernels = (self.origin != Origin::DataSheet).then_some(&self.measured.kernels);
        Costs::new(self.rates, kernels, &self.measured.pace)
    }

    /// What joins such cards.
    pub fn network(&self) -> Network<'_> {
        Network::new(self.link, self.has_collectives.then_some(&self.measured.collectives))
    }

    /// Where kernels' times come from.
    pub const fn origin(&self) -> Origin {
        self.origin
    }

    /// What was measured: its card, its software, its host.
    pub const fn measured(&self) -> &Measured {
        &self.measured
    }

    /// Where kernels' times and the host's pace come from, in English.
    pub fn sources(&self) -> [&str; 2] {
        self.sources.each_ref().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CardKernels, H200};
    use vramscope_benchmark::Record;

    fn own() -> Measured {
        Measured::read(H200).expect("it comes with the program")
    }

    fn device(name: &str) -> &'static Device {
        Device::by_name(name).expect("it is known")
    }

    #[test]
    fn kernels_are_those_given_then_our_own_then_the_data_sheet() {
        let record = Record::read(include_str!("../../tests/data/records/h200.json")).expect("a record");
        let given = Measured::of_record(&record, &own());
        let clock = Clock::of(device("H200"), own(), Some(given)).expect("its data sheet is known");
        assert_eq!(clock.origin(), Origin::Given);
        assert_eq!(
            clock.sources()[0],
            "kernels measured on NVIDIA H200 through vramscope bench"
        );
        assert!(clock.sources()[1].ends_with(&own().host), "{:?}", clock.sources());
        // what a record of one card lacks, our own measurement of two has
        assert!(!clock.measured().collectives.is_empty());
        let of = |card: &str| Clock::of(device(card), own(), None).expect("its data sheet is known");
        assert_eq!(of("H200").origin(), Origin::Own);
        assert_eq!(of("RTX 4090").origin(), Origin::DataSheet);
        assert!(of("RTX 4090").costs().kernels.is_none());
    }

    #[test]
    fn a_kept_card_tells_the_time_of_its_record() {
        let record = Record::read(include_str!("../../tests/data/records/h200.json")).expect("a record");
        let text = CardKernels::text("abc", &record).expect("kernels");
        let kept = CardKernels::read(&text).expect("what was written is read");
        let [kept, record] = [kept.measured(&own()), Measured::of_record(&record, &own())];
        assert_eq!((&kept.card, &kept.software), (&record.card, &record.software));
        assert_eq!(kept.pace, record.pace);
    }
}
