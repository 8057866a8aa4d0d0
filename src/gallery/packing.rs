//! From a recording to its packed form.

use crate::FIRST;
use crate::chains::{Chains, Reference};
use crate::lines::{Line, integer, renumber, write};
use crate::unpacking::unpack;

/// A recording with numbers as differences; none if it is not written as the recorder writes, so that it would not come
/// back byte for byte.
pub fn pack(recording: &[u8]) -> Option<Vec<u8>> {
    let (mut out, mut chains) = (FIRST.to_vec(), Chains::default());
    for line in recording.split_inclusive(|byte| *byte == b'\n') {
        match Line::of(line) {
            Line::Operation => operation(line, &mut chains, &mut out)?,
            Line::Free => storages(line, b"\"s\":[", &mut chains, &mut out)?,
            Line::Why => storages(line, b"\"s\":", &mut chains, &mut out)?,
            Line::Parameter => parameter(line, &mut chains, &mut out)?,
            Line::Other => out.extend_from_slice(line),
        }
    }
    let back = unpack(&out, recording.len()).ok();
    back.is_some_and(|back| back == recording).then_some(out)
}

/// Packs an operation: its inputs as references, its new storages and its module as differences. Shapes and names stay
/// as they are, for gzip.
fn operation(line: &[u8], chains: &mut Chains, out: &mut Vec<u8>) -> Option<()> {
    let (mut at, mut born) = (0, None);
    while at < line.len() {
        let rest = &line[at..];
        if rest.starts_with(b"\"#") && rest.get(2).is_some_and(u8::is_ascii_digit) {
            let (storage, end) = integer(line, at + 2)?;
            out.extend_from_slice(b"\"#");
            refer(chains.pack(storage), out);
            at = end;
        } else if rest.starts_with(b"\"n\":[[") {
            out.extend_from_slice(b"\"n\":[");
            at += 5;
            while line.get(at) == Some(&b'[') {
                let (storage, end) = integer(line, at + 1)?;
                out.push(b'[');
                write(out, chains.pack_new(storage));
                born = Some(storage);
                let close = end + line[end..].iter().position(|byte| *byte == b']')? + 1;
                let close = close + usize::from(line.get(close) == Some(&b','));
                out.extend_from_slice(&line[end..close]);
                at = close;
            }
        } else if rest.starts_with(b"\"mod\":") {
            let (module, end) = integer(line, at + 6)?;
            out.extend_from_slice(b"\"mod\":");
            write(out, chains.pack_module(module));
            at = end;
        } else {
            out.push(line[at]);
            at += 1;
        }
    }
    if let Some(storage) = born {
        chains.set_newest(storage);
    }
    Some(())
}

/// Renumbers the storages after a key, one or a list.
fn storages(line: &[u8], key: &[u8], chains: &mut Chains, out: &mut Vec<u8>) -> Option<()> {
    renumber(line, key, out, |at, out| {
        let (storage, end) = integer(line, at)?;
        refer(chains.pack(storage), out);
        Some(end)
    })
}

/// Packs a parameter's declaration.
fn parameter(line: &[u8], chains: &mut Chains, out: &mut Vec<u8>) -> Option<()> {
    renumber(line, b"\"s\":", out, |at, out| {
        let (storage, end) = integer(line, at)?;
        write(out, chains.pack_parameter(storage));
        Some(end)
    })
}

/// Writes a reference: a number with a letter before it unless the storage is recent.
fn refer(reference: Reference, out: &mut Vec<u8>) {
    let by = match reference {
        Reference::Recent(age) => age,
        Reference::Far(by) => {
            out.push(b'f');
            by
        }
        Reference::Parameter(by) => {
            out.push(b'p');
            by
        }
    };
    write(out, by);
}
