//! Clocks of cards, from which the page's times come.

use std::cell::RefCell;
use std::rc::Rc;

use vramscope_engine::device::Device;
use vramscope_time::{CardKernels, Clock, H200, Measured, Origin};

use super::protocol::TimeEntries;
use super::run::Subject;
use super::slices::Kept;
use super::timing::{Basis, NoTime};

/// The clock in use, and the user's own card if one is selected.
pub struct Chosen {
    /// Source of times.
    pub clock: Clock,
    mine: Option<Mine>,
}

/// The card that the user marked as theirs.
struct Mine {
    device: String,
    date: Option<String>,
    /// True if it is the card being planned for.
    is_meant: bool,
}

/// Returns the clock of a card; `None` if its data sheet lacks the rates. The user's measured kernels are used if they
/// were measured on a card of this model. `network` connects several such cards, if given.
pub(super) fn chosen(device: &'static Device, mine: Option<&str>, network: Option<f64>) -> Option<Rc<Chosen>> {
    type Known = ((&'static str, Option<f64>), Option<String>, Rc<Chosen>);
    thread_local!(static KNOWN: RefCell<Option<Known>> = const { RefCell::new(None) });
    let of = (device.name, network);
    let known = KNOWN.with_borrow(|known| {
        let (known, text, chosen) = known.as_ref()?;
        (*known == of && text.as_deref() == mine).then(|| chosen.clone())
    });
    if known.is_some() {
        return known;
    }
    let own = Measured::read(H200).ok()?;
    // Unreadable kernels were stored by another version of the page; ignore them.
    let kernels = mine.and_then(|text| CardKernels::read(text).ok());
    let whose = kernels.as_ref().map(|kernels| Mine {
        device: kernels.device.clone(),
        date: kernels.date.clone(),
        is_meant: device.is_called(&kernels.device),
    });
    let given = kernels.filter(|kernels| device.is_called(&kernels.device));
    let given = given.map(|kernels| kernels.measured(&own));
    let chosen = Rc::new(Chosen {
        clock: Clock::of(device, own, given)?.over(network),
        mine: whose,
    });
    KNOWN.set(Some((of, mine.map(str::to_owned), chosen.clone())));
    Some(chosen)
}

/// Returns the clock of a run, or the reason why its step has no time. `network` connects several GPUs (bytes per
/// second), if entered.
///
/// # Errors
/// If the card's rates are not known, the model is compiled, or the step generates.
pub fn clock(subject: &Subject, entries: &TimeEntries, network: Option<f64>) -> Result<Rc<Chosen>, NoTime> {
    if subject.reading.setup.compile {
        return Err(NoTime::Compiled);
    }
    if !subject.reading.setup.is_timed() {
        return Err(NoTime::Generates);
    }
    let device = subject.device.as_ref().ok();
    let chosen = device.and_then(|device| chosen(device, entries.card.as_deref(), network));
    chosen.ok_or_else(|| NoTime::Card(subject.reading.gpu.clone()))
}

/// Returns the clock of the card that a recorded step is compared with.
pub fn recorded_clock(kept: &Kept, entries: &TimeEntries) -> Option<Rc<Chosen>> {
    let device = Device::by_name(&kept.card.as_ref()?.name).ok()?;
    chosen(device, entries.card.as_deref(), None)
}

/// Source of the kernel times.
pub fn basis(chosen: &Chosen) -> Basis {
    let measured = chosen.clock.measured();
    let (card, software) = (measured.card.clone(), measured.software.clone());
    match (chosen.clock.origin(), &chosen.mine) {
        (Origin::Given, Some(mine)) => Basis::MyCard {
            card,
            date: mine.date.clone(),
        },
        (Origin::DataSheet, _) => Basis::DataSheet { from: card },
        _ => Basis::Measured { card, software },
    }
}

/// Name of the user's card if it differs from the card being planned for.
pub fn other_card(chosen: &Chosen) -> Option<String> {
    let mine = chosen.mine.as_ref().filter(|mine| !mine.is_meant)?;
    Some(mine.device.clone())
}
