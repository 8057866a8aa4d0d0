//! Reads the dictionary of `torch.cuda.memory_stats()`, as JSON or as Python prints it.

use super::{Counters, Gauge};
use crate::amount::{Amount, number};
use crate::evidence::{Evidence, Piece};
use crate::text::line_of;
use vramscope_engine::units::Bytes;

/// A key that every dictionary of `memory_stats` contains, exactly once.
const SIGN: &str = "allocated_bytes.all.current";

/// Finds every dictionary in a text. The notation does not matter: only keys and the numbers after them are read.
pub fn find(text: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut begin = 0;
    for (at, _) in text.match_indices(SIGN) {
        if at < begin {
            continue;
        }
        // The dictionary is sorted by key, so one dictionary lies between two occurrences of the key.
        let next = text[at + SIGN.len()..].find(SIGN).map(|next| at + SIGN.len() + next);
        let part = &text[begin..next.unwrap_or(text.len())];
        pieces.push(Piece {
            line: line_of(text, at),
            evidence: Evidence::Counters(read(part)),
        });
        begin = next.unwrap_or(text.len());
        if pieces.len() == 64 {
            break;
        }
    }
    pieces
}

fn read(text: &str) -> Counters {
    let gauge = |name: &str| Gauge {
        current: bytes(text, &format!("{name}.all.current")),
        peak: bytes(text, &format!("{name}.all.peak")),
    };
    Counters {
        device: None,
        allocated: gauge("allocated_bytes"),
        reserved: gauge("reserved_bytes"),
        active: gauge("active_bytes"),
        requested: gauge("requested_bytes"),
        unreleasable: gauge("inactive_split_bytes"),
        ooms: value(text, "num_ooms"),
        retries: value(text, "num_alloc_retries"),
    }
}

fn bytes(text: &str, key: &str) -> Option<Amount> {
    // No device holds more than 2⁵⁰ bytes.
    let bytes = value(text, key).filter(|bytes| *bytes < 1 << 50)?;
    Some(Amount::exact(Bytes::new(bytes)))
}

/// The number after a quoted key, in any of `"key": 1`, `'key': 1`, `('key', 1)` and `key=1`.
fn value(text: &str, key: &str) -> Option<u64> {
    text.match_indices(key).find_map(|(at, _)| {
        let before = text[..at].chars().next_back();
        if before.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.') {
            return None;
        }
        let rest = text[at + key.len()..].trim_start_matches(['"', '\'', ':', ',', '=', ' ']);
        let (value, decimals, _) = number(rest)?;
        (decimals == 0).then_some(value as u64)
    })
}
