//! Words for why a recording cannot be shown: one sentence with what to do.

use vramscope_engine::format::grouped;
use vramscope_engine::recording::Ranges;

use crate::i18n::{Words, t_string};
use crate::state::Key;
use crate::words;
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
        Fault::OutOfRange {
            asked, valid, between, ..
        } => {
            let (asked, valid) = (sizes(i18n, &asked), ranges(i18n, &valid));
            match between {
                true => t_string!(i18n, recorded.between, asked = asked, valid = valid),
                false => t_string!(i18n, recorded.out_of_range, asked = asked, valid = valid),
            }
        }
        Fault::UnknownSize(asked, known) => t_string!(i18n, recorded.unknown_size, asked = asked, known = known),
        Fault::Engine(words) => words,
        Fault::Unreachable(address) => t_string!(i18n, recorded.unreachable, address = address),
        Fault::Unknown(name) => t_string!(i18n, recorded.unknown, name = name),
    }
}

/// Name of a size: that of the entry of the same name, or else its own.
pub fn size(i18n: Words, name: &str) -> String {
    match Key::named(name).filter(|key| key.in_setup()) {
        Some(key) => words::label(i18n, key),
        None => name.to_owned(),
    }
}

/// Maximum number of structures whose ranges a sentence lists.
const MOST_LISTED: usize = 8;

fn sizes(i18n: Words, sizes: &[(String, u64)]) -> String {
    let one = |(name, value): &(String, u64)| {
        let (name, value) = (size(i18n, name), grouped(*value));
        t_string!(i18n, recorded.size_is, name = name, value = value)
    };
    sizes
        .iter()
        .map(one)
        .collect::<Vec<_>>()
        .join(t_string!(i18n, recorded.and))
}

fn ranges(i18n: Words, all: &[Ranges]) -> String {
    let range = |(name, [least, most]): &(String, [u64; 2])| {
        let (name, least, most) = (size(i18n, name), grouped(*least), grouped(*most));
        match least == most {
            true => t_string!(i18n, recorded.size_is, name = name, value = least),
            false => t_string!(i18n, recorded.size_range, name = name, least = least, most = most),
        }
    };
    let of = |ranges: &Ranges| {
        ranges
            .iter()
            .map(range)
            .collect::<Vec<_>>()
            .join(t_string!(i18n, recorded.and))
    };
    let all: Vec<String> = all.iter().take(MOST_LISTED).map(of).collect();
    all.join(t_string!(i18n, recorded.or))
}
