//! Reads the files that a crash left behind: whole, or of a long log the parts that matter.

use std::io::Read;

use serde::Serialize;
use vramscope_diagnose::{Evidence, Excerpt, Part, Piece, UNDERSTOOD};

use super::source::Source;
use crate::failure::Failure;

/// A file and the evidence in it.
#[derive(Serialize)]
pub struct Understood {
    /// Name of the file.
    pub file: String,
    #[serde(flatten)]
    /// A piece of evidence.
    pub piece: Piece,
}

/// Contents of a file: all bytes, or the parts of a long text that matter.
pub enum Contents {
    /// All bytes.
    Whole(Vec<u8>),
    /// Parts of a long text.
    Parts(Vec<Part>),
}

/// Reads all files to their ends.
///
/// # Errors
/// If a file cannot be read.
pub fn read_all(files: &[Source]) -> Result<Vec<(&Source, Contents)>, Failure> {
    files.iter().map(|source| Ok((source, read(source)?))).collect()
}

/// Reads the evidence in all files. A file without evidence is reported on standard error if another one has some.
///
/// # Errors
/// If no file is text or a snapshot.
pub fn understand(files: &[(&Source, Contents)]) -> Result<Vec<Understood>, Failure> {
    let (mut all, mut refusals) = (Vec::new(), Vec::new());
    for (source, contents) in files {
        let read = match contents {
            Contents::Whole(bytes) => vramscope_diagnose::read(bytes),
            Contents::Parts(parts) => vramscope_diagnose::read_parts(parts),
        };
        match read {
            Ok(pieces) => all.extend(pieces.into_iter().map(|piece| Understood {
                file: source.to_string(),
                piece,
            })),
            Err(refusal) => refusals.push(format!("{source}: {refusal}")),
        }
    }
    if all.is_empty() {
        return Err(Failure::Input(refusals.join("\n")));
    }
    for Understood { file, piece } in &all {
        if files.len() > 1
            && let Evidence::Text(digest) = &piece.evidence
            && digest.is_bare()
        {
            refusals.push(format!("{file}: unrecognized input; supported inputs are {UNDERSTOOD}"));
        }
    }
    refusals
        .iter()
        .for_each(|refusal| anstream::eprintln!("note: {refusal}"));
    Ok(all)
}

/// Size in bytes from which a text is read as an excerpt.
const LONG_TEXT: usize = 64 << 20;

/// Reads a source to its end, decompressing gzip. Of a long text the parts that matter are kept.
fn read(source: &Source) -> Result<Contents, Failure> {
    let (mut input, gzipped) = source.unpacked()?;
    let mut bytes = Vec::with_capacity(source.size().min(LONG_TEXT as u64) as usize);
    let begin = input.by_ref().take(LONG_TEXT as u64).read_to_end(&mut bytes);
    if begin.is_ok() && bytes.len() == LONG_TEXT && is_plain(&bytes) {
        let mut excerpt = Excerpt::default();
        excerpt.feed(&bytes);
        let mut block = std::mem::take(&mut bytes);
        block.resize(1 << 20, 0);
        loop {
            match input.read(&mut block) {
                Ok(0) => break,
                Ok(count) => excerpt.feed(&block[..count]),
                Err(error) if gzipped => {
                    anstream::eprintln!("note: {source}: {error}; what was read before is used");
                    break;
                }
                Err(error) => return Err(source.unreadable(&error)),
            }
        }
        return Ok(Contents::Parts(excerpt.finish()));
    }
    let ended = begin.and_then(|_| input.read_to_end(&mut bytes));
    match ended {
        // A truncated file still contains valid data before its end.
        Err(_) if gzipped && !bytes.is_empty() => {
            anstream::eprintln!("note: {source}: the gzip file is cut short; what it holds is read");
            Ok(Contents::Whole(bytes))
        }
        Err(error) => Err(source.unreadable(&error)),
        Ok(_) => Ok(Contents::Whole(bytes)),
    }
}

/// Returns true for text that is read line by line: no snapshot, no trace, no UTF-16.
fn is_plain(bytes: &[u8]) -> bool {
    let head = &bytes[..bytes.len().min(4096)];
    !head.contains(&0) && !head.starts_with(&[0x80]) && !matches!(head.trim_ascii_start().first(), Some(b'{' | b'['))
}
