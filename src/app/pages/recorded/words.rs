//! Words for why a recording cannot be shown: one sentence with what to do.

use crate::i18n::{Words, t_string};
use crate::worker::recorded::Fault;

/// Describes a fault in the language of the page; the content of a damaged line is quoted from the engine.
pub fn fault(i18n: Words, fault: &Fault) -> String {
    match fault.clone() {
        Fault::NotARecording => t_string!(i18n, recorded.not_a_recording).to_string(),
        Fault::Version(version) => t_string!(i18n, recorded.version, version = version),
        Fault::Cut(lines) => t_string!(i18n, recorded.cut, lines = lines.to_string()),
        Fault::TooLarge(mib) => t_string!(i18n, recorded.too_large, mib = mib.to_string()),
        Fault::Line(words) => t_string!(i18n, recorded.damaged, message = words),
        Fault::NoStep => t_string!(i18n, recorded.no_step).to_string(),
        Fault::OtherCard(card, [major, minor]) => {
            let capability = format!("{major}.{minor}");
            t_string!(i18n, recorded.other_card, card = card, capability = capability)
        }
        Fault::Engine(words) => words,
        Fault::Unreachable(address) => t_string!(i18n, recorded.unreachable, address = address),
        Fault::Unknown(name) => t_string!(i18n, recorded.unknown, name = name),
    }
}
