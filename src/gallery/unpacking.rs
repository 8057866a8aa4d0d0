//! From a packed recording back to the recording.

use std::fmt;

use crate::FIRST;
use crate::chains::{Chains, Reference};
use crate::lines::{Line, integer, renumber, write};

/// A packed recording that cannot be unpacked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Damaged {
    /// It does not begin as one.
    Beginning,
    /// This line, from 1, has no number where one must be, or one that no storage has.
    Line(u64),
    /// It unpacks to more than the bytes that were allowed.
    TooLarge,
}

impl fmt::Display for Damaged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Beginning => f.write_str("this is no packed recording: its first line is not that of one"),
            Self::Line(number) => write!(
                f,
                "line {number} of the packed recording is damaged; fetch the file again"
            ),
            Self::TooLarge => f.write_str("the packed recording unpacks to more than is allowed; fetch the file again"),
        }
    }
}

impl std::error::Error for Damaged {}

/// The recording, byte for byte as it was packed, of at most so many bytes.
///
/// # Errors
/// When it is no packed recording, is damaged, or unpacks to more.
pub fn unpack(packed: &[u8], most: usize) -> Result<Vec<u8>, Damaged> {
    let lines = packed.strip_prefix(FIRST).ok_or(Damaged::Beginning)?;
    let (mut out, mut chains) = (Vec::with_capacity(lines.len().min(most)), Chains::default());
    for (number, line) in (2..).zip(lines.split_inclusive(|byte| *byte == b'\n')) {
        let done = match Line::of(line) {
            Line::Operation => operation(line, &mut chains, &mut out),
            Line::Free => storages(line, b"\"s\":[", &mut chains, &mut out),
            Line::Why => storages(line, b"\"s\":", &mut chains, &mut out),
            Line::Parameter => parameter(line, &mut chains, &mut out),
            Line::Other => {
                out.extend_from_slice(line);
                Some(())
            }
        };
        done.ok_or(Damaged::Line(number))?;
        if out.len() > most {
            return Err(Damaged::TooLarge);
        }
    }
    Ok(out)
}

fn operation(line: &[u8], chains: &mut Chains, out: &mut Vec<u8>) -> Option<()> {
    let (mut at, mut copied, mut born) = (0, 0, None);
    // Numbers follow a quotation mark: the rest is copied in stretches.
    while let Some(quote) = line.get(at..)?.iter().position(|byte| *byte == b'"') {
        at += quote;
        let rest = &line[at..];
        if rest.starts_with(b"\"#") && rest.get(2).is_some_and(|byte| b"-0123456789fp".contains(byte)) {
            out.extend_from_slice(&line[copied..at + 2]);
            at = refer(line, at + 2, chains, out)?;
            copied = at;
        } else if rest.starts_with(b"\"n\":[[") {
            at += 5;
            out.extend_from_slice(&line[copied..at]);
            while line.get(at) == Some(&b'[') {
                let (by, end) = integer(line, at + 1)?;
                let storage = chains.unpack_new(by)?;
                born = Some(storage);
                out.push(b'[');
                write(out, storage);
                let close = end + line[end..].iter().position(|byte| *byte == b']')? + 1;
                let close = close + usize::from(line.get(close) == Some(&b','));
                out.extend_from_slice(&line[end..close]);
                at = close;
            }
            copied = at;
        } else if rest.starts_with(b"\"mod\":") {
            let (by, end) = integer(line, at + 6)?;
            out.extend_from_slice(&line[copied..at + 6]);
            write(out, chains.unpack_module(by)?);
            (at, copied) = (end, end);
        } else {
            at += 1;
        }
    }
    out.extend_from_slice(&line[copied..]);
    if let Some(storage) = born {
        chains.set_newest(storage);
    }
    Some(())
}

/// Renumbers the storages after a key, one or a list.
fn storages(line: &[u8], key: &[u8], chains: &mut Chains, out: &mut Vec<u8>) -> Option<()> {
    renumber(line, key, out, |at, out| refer(line, at, chains, out))
}

fn parameter(line: &[u8], chains: &mut Chains, out: &mut Vec<u8>) -> Option<()> {
    renumber(line, b"\"s\":", out, |at, out| {
        let (by, end) = integer(line, at)?;
        write(out, chains.unpack_parameter(by)?);
        Some(end)
    })
}

/// Writes the storage of the reference at a place; where it ends.
fn refer(line: &[u8], at: usize, chains: &mut Chains, out: &mut Vec<u8>) -> Option<usize> {
    let (begin, of): (usize, fn(i64) -> Reference) = match line.get(at)? {
        b'f' => (at + 1, Reference::Far),
        b'p' => (at + 1, Reference::Parameter),
        _ => (at, Reference::Recent),
    };
    let (by, end) = integer(line, begin)?;
    write(out, chains.unpack(of(by))?);
    Some(end)
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests run natively")]
mod tests {
    use std::io::Read as _;

    use proptest::prelude::*;

    use super::*;
    use crate::pack;

    #[test]
    fn recordings_come_back_byte_for_byte() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/recordings");
        let mut seen = 0;
        for entry in std::fs::read_dir(folder).expect("the tests' recordings") {
            let path = entry.expect("an entry").path();
            if !path.to_string_lossy().ends_with(".vram.gz") {
                continue;
            }
            let mut recording = Vec::new();
            let file = std::fs::File::open(&path).expect("it is there");
            flate2::read::GzDecoder::new(file)
                .read_to_end(&mut recording)
                .expect("gzip");
            let packed = pack(&recording).expect("the recorder wrote it");
            assert_eq!(
                unpack(&packed, recording.len()).as_deref(),
                Ok(&recording[..]),
                "{path:?}"
            );
            assert_eq!(unpack(&packed, recording.len() - 1), Err(Damaged::TooLarge));
            seen += 1;
        }
        assert!(seen > 3, "{seen}");
    }

    #[test]
    fn what_is_damaged_is_named() {
        assert_eq!(unpack(b"{}", 9), Err(Damaged::Beginning));
        let of = |line: &str| unpack(&[FIRST, line.as_bytes()].concat(), 99);
        assert_eq!(of("{\"t\":\"free\",\"s\":[]}\n"), Err(Damaged::Line(2)));
        assert_eq!(
            of("{}\n{\"t\":\"why\",\"s\":f-1}\n"),
            Err(Damaged::Line(3)),
            "there is no storage -1"
        );
        assert_eq!(of("{\"t\":\"op\",\"mod\":x}\n"), Err(Damaged::Line(2)));
    }

    proptest! {
        #[test]
        fn anything_can_be_tried(text in "(\\{\"t\":\"(op|free|why|param)\",|\"s\":\\[?|\"#|\"n\":\\[\\[|\"mod\":|[fp,\\]0-9-]|\n){0,60}") {
            let packed = [FIRST, text.as_bytes()].concat();
            let _ = unpack(&packed, 1 << 16);
            if let Some(packed) = pack(text.as_bytes()) {
                let back = unpack(&packed, 1 << 16);
                prop_assert_eq!(back.as_deref(), Ok(text.as_bytes()));
            }
        }
    }
}
