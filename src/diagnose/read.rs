//! Passes a file or a paste to every reader and collects the evidence that each one recognises.

use super::digest::Digest;
use super::evidence::{Evidence, Piece};
use super::excerpt::Part;
use super::paste::{Paste, decode};
use super::pickle::Pickle;
use super::snapshot::{Read, Recording, Snapshot, SnapshotError};
use super::{counters, log, oom, profile, smi};

/// Longest text in bytes that is searched. Of a longer text, such as a log, only the end is searched, which holds the
/// error.
const LONGEST_TEXT: usize = 64 << 20;

/// Returns all recognised evidence in the order of the input. The bytes are a memory snapshot, a Chrome trace, or any
/// text, whose digest comes first; gzip is decompressed first.
///
/// # Errors
/// If it is empty, packed, or a file that is no memory snapshot; the error lists what can be read.
///
/// ```
/// use vramscope_diagnose::{Evidence, read};
///
/// let pasted = b"CUDA out of memory. Tried to allocate 2.50 GiB (GPU 0; 23.69 GiB total capacity; ...)";
/// let pieces = read(pasted)?;
/// assert!(matches!(&pieces[1].evidence, Evidence::Oom(message) if message.device == Some(0)));
/// # Ok::<(), vramscope_diagnose::Unrecognised>(())
/// ```
pub fn read(bytes: &[u8]) -> Result<Vec<Piece>, Unrecognised> {
    if Pickle::is_one(bytes) {
        return of_snapshot(bytes).map(|(pieces, _)| pieces);
    }
    if let Some(form) = packed(bytes) {
        return Err(Unrecognised::Packed(form));
    }
    if is_trace(bytes)
        && let Some(profile) = profile::read_trace(bytes)
    {
        return Ok(vec![Piece {
            line: 0,
            evidence: Evidence::Profile(profile),
        }]);
    }
    // The error is at the end of a long log.
    let text = decode(&bytes[bytes.len().saturating_sub(LONGEST_TEXT)..]);
    if text.trim().is_empty() {
        return Err(Unrecognised::Nothing);
    }
    Ok(of_text([(1, text.as_ref())]))
}

/// Like [`read`], of a text of which an [`Excerpt`](super::Excerpt) was kept.
///
/// # Errors
/// If there is no text in it.
pub fn read_parts(parts: &[Part]) -> Result<Vec<Piece>, Unrecognised> {
    let texts: Vec<_> = parts
        .iter()
        .map(|part| (part.first_line, decode(&part.bytes)))
        .collect();
    if texts.iter().all(|(_, text)| text.trim().is_empty()) {
        return Err(Unrecognised::Nothing);
    }
    Ok(of_text(texts.iter().map(|(first, text)| (*first, text.as_ref()))))
}

/// Like [`read`], and also returns a snapshot's recordings for display.
///
/// # Errors
/// Those of [`read`].
pub fn read_to_look_at(bytes: &[u8]) -> Result<(Vec<Piece>, Vec<Recording>), Unrecognised> {
    if Pickle::is_one(bytes) {
        let (pieces, snapshot) = of_snapshot(bytes)?;
        return Ok((pieces, Recording::of(snapshot)));
    }
    read(bytes).map(|pieces| (pieces, Vec::new()))
}

/// Reads a snapshot; each device becomes one piece of evidence.
fn of_snapshot(bytes: &[u8]) -> Result<(Vec<Piece>, Read), Unrecognised> {
    let read = Read::of(Snapshot::from_pickle(bytes).map_err(Unrecognised::Snapshot)?);
    let summaries = read.summaries();
    if summaries.is_empty() {
        return Err(Unrecognised::EmptySnapshot);
    }
    let piece = |summary| Piece {
        line: 0,
        evidence: Evidence::Snapshot(Box::new(summary)),
    };
    Ok((summaries.into_iter().map(piece).collect(), read))
}

/// What a text holds: its digest first, then the evidence that has a reader of its own, in the order of the lines.
fn of_text<'a>(parts: impl IntoIterator<Item = (usize, &'a str)>) -> Vec<Piece> {
    let paste = Paste::of_parts(parts);
    let text = paste.text.as_str();
    let mut pieces = oom::find(text);
    pieces.extend(counters::find_summary(text));
    pieces.extend(counters::find_stats(text));
    pieces.extend(smi::find_table(text));
    pieces.extend(smi::find_csv(text));
    pieces.extend(profile::find_table(text));
    pieces.extend(log::find(text));
    for piece in &mut pieces {
        piece.line = paste.number(piece.line.saturating_sub(1));
    }
    pieces.sort_by_key(|piece| piece.line);
    let errors = pieces.iter().map(|piece| piece.line).collect();
    let digest = Piece {
        line: 0,
        evidence: Evidence::Text(Box::new(Digest::of(&paste, errors))),
    };
    std::iter::once(digest).chain(pieces).collect()
}

/// Returns true if the bytes start like JSON and trace events appear near the beginning.
fn is_trace(bytes: &[u8]) -> bool {
    let start = bytes.iter().position(|b| !b.is_ascii_whitespace()).unwrap_or(0);
    let head = &bytes[start..bytes.len().min(start + (1 << 20))];
    let has = |sign: &[u8]| head.windows(sign.len()).any(|part| part == sign);
    head.starts_with(b"{") && has(b"\"traceEvents\"") || head.starts_with(b"[") && has(b"\"ph\"")
}

/// Name of a compression format that is not decompressed here.
fn packed(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x1f, 0x8b, ..] => Some("gzip"),
        [b'P', b'K', 3, 4, ..] => Some("zip"),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Some("zstd"),
        [0xfd, b'7', b'z', b'X', b'Z', ..] => Some("xz"),
        [b'B', b'Z', b'h', b'1'..=b'9', ..] => Some("bzip2"),
        _ => None,
    }
}

/// Reason why nothing was recognised.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unrecognised {
    /// The input is a pickle but not a memory snapshot.
    #[error("{0}")]
    Snapshot(SnapshotError),
    /// The snapshot has neither events nor segments.
    #[error(
        "the snapshot has no events and no segments; call torch.cuda.memory._record_memory_history() before the model is \
         made, and torch.cuda.memory._dump_snapshot(path) after the step or the crash"
    )]
    EmptySnapshot,
    /// The input is compressed; the field is the name of the format.
    #[error("{0}-compressed: decompress it first")]
    Packed(&'static str),
    /// There is no text in it.
    #[error("it is empty; understood are {UNDERSTOOD}")]
    Nothing,
}

/// List of supported inputs, for the error message.
pub const UNDERSTOOD: &str = "out-of-memory errors of PyTorch 1.0 and later, torch.cuda.memory_summary() and \
                              memory_stats(), nvidia-smi tables and CSV logs, training logs with memory in them, \
                              profiler tables and Chrome traces, and memory snapshots \
                              (torch.cuda.memory._dump_snapshot); traces and snapshots also gzipped";
