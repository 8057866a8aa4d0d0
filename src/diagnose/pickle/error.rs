//! Errors of the pickle reader.

use std::fmt;

/// Error for bytes that are not a readable pickle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PickleError {
    /// Offset of the faulty opcode, in bytes.
    pub at: usize,
    /// The fault of the opcode.
    pub fault: Fault,
}

/// Fault of an opcode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The input ends inside the opcode, or before `STOP`.
    Cut,
    /// The byte is not an opcode of any protocol.
    Unknown(u8),
    /// The opcode would call or import something; the field is its name in `pickletools`.
    Refused(&'static str),
    /// The opcode needs values that are not on the stack.
    Stack,
    /// The opcode reads an unset memo entry, or leaves a gap in the memo.
    Memo,
    /// A text or number cannot be parsed.
    Malformed,
    /// An integer has more than 128 bits.
    Wide,
    /// The input, or the number of stored values, exceeds the limits.
    TooLarge,
}

impl fmt::Display for PickleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.at;
        match self.fault {
            Fault::Cut => write!(f, "the pickle is cut short at byte {at}"),
            Fault::Unknown(code) => write!(f, "byte {at} is no pickle opcode (0x{code:02x})"),
            Fault::Refused(name) => write!(
                f,
                "byte {at} is {name}, which makes Python run code; only plain data is read"
            ),
            Fault::Stack => write!(f, "the opcode at byte {at} finds nothing to work on"),
            Fault::Memo => write!(f, "the opcode at byte {at} refers to a value that is not there"),
            Fault::Malformed => write!(f, "the text or number at byte {at} cannot be read"),
            Fault::Wide => write!(f, "the integer at byte {at} has more than 128 bits"),
            Fault::TooLarge => write!(f, "the pickle holds too much: at byte {at} it passes what is taken"),
        }
    }
}

impl std::error::Error for PickleError {}
