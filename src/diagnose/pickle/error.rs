use std::fmt;

/// Why bytes cannot be read as a pickle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PickleError {
    /// Offset of the opcode, in bytes.
    pub at: usize,
    /// What is wrong there.
    pub fault: Fault,
}

/// What is wrong with an opcode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The input ends inside it, or before `STOP`.
    Cut,
    /// No opcode of any protocol.
    Unknown(u8),
    /// It would call or import something; its name in `pickletools`.
    Refused(&'static str),
    /// It needs something on the stack that is not there.
    Stack,
    /// It asks the memo for what was never put there, or leaves a hole in it.
    Memo,
    /// A text or number that cannot be read.
    Malformed,
    /// An integer of more than 128 bits.
    Wide,
    /// More input, or more stored values, than are taken.
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
