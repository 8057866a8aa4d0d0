//! Chooses the source of a card's kernel times: measurements on it, or on another card and both data sheets.

use super::communication::Link;
use super::cost::Costs;
use super::measured::Measured;
use super::network::Network;
use super::rates::Rates;
use vramscope_engine::device::Device;

/// Source of times for a card and its interconnect.
#[derive(Debug, Clone)]
pub struct Clock {
    rates: Rates,
    measured: Measured,
    /// Rates of the card whose kernels were measured, if it is another one.
    from: Option<Rates>,
    origin: Origin,
    /// True if the pace is that of the host that runs the step: of a given measurement of this card.
    has_host: bool,
    link: Link,
    /// True if the collectives were measured over this link.
    has_collectives: bool,
    sources: [String; 2],
}

/// Source of kernel times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// A measurement that the user provided.
    Given,
    /// The measurement that ships with the program.
    Own,
    /// Measurements on another card, carried to this one by both data sheets.
    DataSheet,
}

impl Clock {
    /// Creates the clock of a card: from the given kernels, else from our `own`. Kernels of another card are carried to
    /// this one by both data sheets. The host's pace is our own unless the given measurement has one. `None` if the data
    /// sheet lacks rates.
    pub fn of(card: &Device, own: Measured, given: Option<Measured>) -> Option<Self> {
        let rates = Rates::of(card)?;
        let is_own = card.is_called(&own.card);
        let is_given = given.is_some();
        let measured = match given {
            Some(mut given) => {
                if is_own && given.collectives.is_empty() {
                    given.collectives = own.collectives;
                }
                given
            }
            None => own,
        };
        // Kernels of a card that nobody describes count as this card's.
        let other = Device::all().iter().find(|device| device.is_called(&measured.card));
        let from = other.filter(|other| *other != card).and_then(Rates::of);
        let origin = match (from, is_given) {
            (Some(_), _) => Origin::DataSheet,
            (None, true) => Origin::Given,
            (None, false) => Origin::Own,
        };
        let kernels = format!("kernels measured on {} through {}", measured.card, measured.software);
        let kernels = match from {
            Some(_) => format!("{kernels}, carried to {} by the data sheets of both", card.name),
            None => kernels,
        };
        let host = format!("single operations measured on a host with an {}", measured.host);
        Some(Self {
            link: Link::of(card).unwrap_or_else(|| Link::pcie(rates.pcie)),
            has_collectives: origin != Origin::DataSheet,
            rates,
            has_host: is_given && measured.has_host && from.is_none(),
            measured,
            from,
            origin,
            sources: [kernels, host],
        })
    }

    /// Connects the GPUs by a network of `network` bytes per second, if given.
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

    /// Costs of each kernel and host operation.
    pub fn costs(&self) -> Costs<'_> {
        let costs = Costs::new(self.rates, Some(&self.measured.kernels), &self.measured.pace);
        let costs = if self.has_host {
            costs.here(self.measured.changes)
        } else {
            costs
        };
        match self.from {
            Some(from) => costs.carried(from),
            None => costs,
        }
    }

    /// Interconnect of several such cards.
    pub fn network(&self) -> Network<'_> {
        Network::new(self.link, self.has_collectives.then_some(&self.measured.collectives))
    }

    /// Source of the kernel times.
    pub const fn origin(&self) -> Origin {
        self.origin
    }

    /// The measurement: its card, software and host.
    pub const fn measured(&self) -> &Measured {
        &self.measured
    }

    /// Sources of the kernel times and of the host's pace, in English.
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
        // The record of one card has no collectives, so those of our own measurement on two cards are kept.
        assert!(!clock.measured().collectives.is_empty());
        let of = |card: &str| Clock::of(device(card), own(), None).expect("its data sheet is known");
        assert_eq!(of("H200").origin(), Origin::Own);
        assert_eq!(of("RTX 4090").origin(), Origin::DataSheet);
        assert_eq!(
            of("RTX 4090").sources()[0],
            format!(
                "kernels measured on NVIDIA H200 through {}, carried to RTX 4090 by the data sheets of both",
                own().software
            )
        );
        let record = Record::read(include_str!("../../tests/data/records/h100.json")).expect("a record");
        let given = Some(Measured::of_record(&record, &own()));
        let of = |card: &str| Clock::of(device(card), own(), given.clone()).expect("its data sheet is known");
        assert_eq!(
            [of("H100").origin(), of("H200").origin()],
            [Origin::Given, Origin::DataSheet]
        );
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
