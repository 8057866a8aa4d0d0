//! Finds a card by the name that a person or a driver gives it.

use super::Device;
use crate::suggest::suggest;

/// No card, or several, have the given name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DeviceError(pub String);

/// Words that people leave out of card names.
const OPTIONAL: [&str; 8] = [
    "nvidia", "geforce", "tesla", "amd", "radeon", "instinct", "apple", "rtx",
];

/// A card found by name.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// The card.
    pub card: &'static Device,
    /// Other boards that the name may mean; empty if it is unambiguous.
    pub others: Vec<&'static Device>,
}

impl Device {
    /// Finds the card of this name, as [`Self::find`] chooses it.
    ///
    /// # Errors
    /// Returns the errors of [`Self::find`].
    pub fn by_name(name: &str) -> Result<&'static Self, DeviceError> {
        Self::find(name).map(|found| found.card)
    }

    /// Finds the card of this name: a menu's, the driver's, or either without the maker's words, in any case, spacing
    /// and order, with or without its memory. The beginning of a name is enough if it is unambiguous, and a family's
    /// name alone (`H100`) means its most common board.
    ///
    /// # Errors
    /// When no card or several match; the message lists them.
    pub fn find(name: &str) -> Result<Found, DeviceError> {
        let wanted = key(name);
        let only = |card| Found {
            card,
            others: Vec::new(),
        };
        if let Some(exact) = Self::all().iter().find(|d| d.names().any(|n| key(n) == wanted)) {
            return Ok(only(exact));
        }
        let words = words(name);
        let mut matching: Vec<&'static Self> = Self::all().iter().filter(|d| d.begins_with(&wanted)).collect();
        if matching.is_empty() {
            matching = Self::all().iter().filter(|d| d.has_words(&words)).collect();
        }
        match matching.as_slice() {
            [card] => Ok(only(card)),
            [] => Err(unknown(name)),
            several => {
                let stands = |card: &&&'static Self| card.stands_for_a_family_in(&wanted);
                let mut common = several.iter().filter(stands);
                match (common.next(), common.next()) {
                    (Some(card), None) => Ok(Found {
                        card,
                        others: several.iter().filter(|other| *other != card).copied().collect(),
                    }),
                    _ => Err(ambiguous(name, several)),
                }
            }
        }
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.name).chain(self.aliases.iter().copied())
    }

    fn begins_with(&self, wanted: &str) -> bool {
        !wanted.is_empty() && self.names().any(|n| key(n).starts_with(wanted))
    }

    /// Returns true if one of the card's names, with its memory, has all of the words.
    fn has_words(&self, wanted: &[String]) -> bool {
        let memory = format!("{}g", self.memory_gib);
        let has = |name: &str| {
            let own = words(name);
            wanted.iter().all(|word| *word == memory || own.contains(word))
        };
        wanted.iter().any(|word| *word != memory) && self.names().any(has)
    }

    fn stands_for_a_family_in(&self, wanted: &str) -> bool {
        let family = self.stands_for.map(key);
        family.is_some_and(|family| wanted.contains(&family))
    }
}

/// Splits a name into words, without case and optional words; memory becomes `80g`, a socket loses its generation.
fn words(name: &str) -> Vec<String> {
    let lower = name.to_ascii_lowercase();
    let words = lower.split(|c: char| !c.is_ascii_alphanumeric());
    let plain = words.map(|word| OPTIONAL.iter().fold(word, |w, o| w.strip_prefix(o).unwrap_or(w)));
    let mut out: Vec<String> = Vec::new();
    for word in plain.filter(|word| !word.is_empty()) {
        match (out.last_mut(), word) {
            // `80 GB` is one word.
            (Some(last), "g" | "gb" | "gib") if is_number(last) => last.push('g'),
            _ => out.push(spelled(word)),
        }
    }
    out
}

/// Normalises a word: `80gb` and `80gib` become `80g`, `sxm5` becomes `sxm`.
fn spelled(word: &str) -> String {
    let amount = ["gib", "gb"].iter().find_map(|unit| word.strip_suffix(unit));
    match amount {
        Some(amount) if is_number(amount) => format!("{amount}g"),
        _ if word.starts_with("sxm") => "sxm".to_owned(),
        _ => word.to_owned(),
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// Normalises a name, without case, spacing and optional words.
fn key(name: &str) -> String {
    words(name).concat()
}

fn ambiguous(name: &str, several: &[&Device]) -> DeviceError {
    let names: Vec<&str> = several.iter().map(|d| d.name).collect();
    DeviceError(format!("\"{}\" may be any of: {}", shorten(name), names.join(", ")))
}

fn unknown(name: &str) -> DeviceError {
    let names: Vec<&str> = Device::all().iter().map(|d| d.name).collect();
    let close = suggest(name, &names).join(", ");
    let others = match close.as_str() {
        "" => format!("`vramscope gpus` lists the {} that are known", names.len()),
        close => format!("did you mean: {close}"),
    };
    DeviceError(format!("no card is named \"{}\"; {others}", shorten(name)))
}

fn shorten(name: &str) -> String {
    name.chars().take(60).collect()
}
