//! Reads bytes of a pickle from front to back.

use super::error::Fault;

/// The input and the current position.
#[derive(Debug)]
pub struct Input<'a> {
    bytes: &'a [u8],
    /// Offset of the next byte.
    pub at: usize,
}

impl<'a> Input<'a> {
    /// Starts at the first byte.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Takes the next `len` bytes.
    pub fn take(&mut self, len: usize) -> Result<&'a [u8], Fault> {
        let taken = self.bytes.get(self.at..).and_then(|rest| rest.get(..len));
        self.at += taken.map_or(0, <[u8]>::len);
        taken.ok_or(Fault::Cut)
    }

    /// Takes the next `N` bytes as an array.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        self.take(N)?.try_into().map_err(|_| Fault::Cut)
    }

    /// Takes the next byte.
    pub fn byte(&mut self) -> Result<u8, Fault> {
        self.array().map(|[byte]| byte)
    }

    /// Takes a little-endian length of `N` bytes.
    pub fn length<const N: usize>(&mut self) -> Result<usize, Fault> {
        let mut wide = [0; 8];
        wide[..N].copy_from_slice(self.take(N)?);
        usize::try_from(u64::from_le_bytes(wide)).map_err(|_| Fault::Cut)
    }

    /// Takes a line of protocol 0, without its line end.
    pub fn line(&mut self) -> Result<&'a [u8], Fault> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let len = rest.iter().position(|&byte| byte == b'\n').ok_or(Fault::Cut)?;
        self.at += len + 1;
        Ok(&rest[..len])
    }
}
