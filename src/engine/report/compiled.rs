//! What compiled steps took where they were measured, beside eager ones: `torch.compile` is not simulated.

use crate::units::Bytes;

/// Measured steps: `tests/data/truth/compiled.jsonl.gz`, which a test holds these figures to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Measured {
    /// Compiled steps.
    pub steps: u64,
    /// Families of models that they are of.
    pub families: u64,
    /// Least and greatest allocated peak of a compiled step, as thousandths of the same step's in eager mode.
    pub allocated: [u64; 2],
    /// Least and greatest peak of reserved bytes, likewise.
    pub reserved: [u64; 2],
    /// The range without the least and the greatest twentieth of allocated peaks.
    pub usual: [u64; 2],
}

/// Steps of random configurations of a few layers on an H100: PyTorch 2.11, Inductor with its defaults, transformers 5.17.
pub const MEASURED: Measured = Measured {
    steps: 99,
    families: 20,
    allocated: [524, 1228],
    reserved: [391, 1361],
    usual: [572, 1183],
};

/// A share of some bytes in thousandths.
pub fn share(bytes: Bytes, thousandths: u64) -> Bytes {
    let share = u128::from(bytes.get()) * u128::from(thousandths) / 1000;
    Bytes::new(u64::try_from(share).unwrap_or(u64::MAX))
}
