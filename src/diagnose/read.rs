//! Passes a file or a paste to every reader and collects the evidence that each one recognises.

use super::evidence::{Evidence, Piece};
use super::pickle::Pickle;
use super::snapshot::{Read, Recording, Snapshot, SnapshotError};
use super::text::without_colours;
use super::{counters, log, oom, profile, smi};

/// Longest text in bytes that is searched. Of a longer text, such as a log, only the end is searched, which holds the
/// error.
const LONGEST_TEXT: usize = 64 << 20;

/// Returns all recognised evidence in the order of the input. The bytes are a memory snapshot, a Chrome trace, or any
/// text; gzip is decompressed first.
///
/// # Errors
/// If no reader recognises anything; the error lists what can be read.
///
/// ```
/// use vramscope_diagnose::{Evidence, read};
///
/// let pasted = b"CUDA out of memory. Tried to allocate 2.50 GiB (GPU 0; 23.69 GiB total capacity; ...)";
/// let pieces = read(pasted)?;
/// assert!(matches!(&pieces[0].evidence, Evidence::Oom(message) if message.device == Some(0)));
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
    let bytes = &bytes[bytes.len().saturating_sub(LONGEST_TEXT)..];
    let text = without_colours(&String::from_utf8_lossy(bytes)).replace('\r', "\n");
    let mut pieces = of_text(&text);
    pieces.sort_by_key(|piece| piece.line);
    if pieces.is_empty() {
        Err(Unrecognised::Nothing)
    } else {
        Ok(pieces)
    }
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

fn of_text(text: &str) -> Vec<Piece> {
    let mut pieces = oom::find(text);
    pieces.extend(counters::find_summary(text));
    pieces.extend(counters::find_stats(text));
    pieces.extend(smi::find_table(text));
    pieces.extend(smi::find_csv(text));
    pieces.extend(profile::find_table(text));
    pieces.extend(log::find(text));
    pieces
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
    #[error("packed as {0}: unpack it first")]
    Packed(&'static str),
    /// No reader recognised anything.
    #[error("nothing in it is understood; understood are {UNDERSTOOD}")]
    Nothing,
}

/// List of supported inputs, for the error message.
pub const UNDERSTOOD: &str = "out-of-memory errors of PyTorch 1.0 and later, torch.cuda.memory_summary() and \
                              memory_stats(), nvidia-smi tables and CSV logs, training logs with memory in them, \
                              profiler tables and Chrome traces, and memory snapshots \
                              (torch.cuda.memory._dump_snapshot); traces and snapshots also gzipped";
