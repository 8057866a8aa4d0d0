//! What each kernel and chore takes.

use std::cell::RefCell;
use std::collections::HashMap;

use super::kernels::Kernels;
use super::pace::Pace;
use super::rates::Rates;
use crate::dtype::DType;
use crate::tape::work::{Class, Launch};

/// Kernels of the same name, class, type, bytes and extents take the same time.
type Key = (&'static str, Class, DType, bool, [u64; 7]);

/// Where times come from: a card's data sheet, kernels that were measured on it, and a host's pace.
pub struct Costs<'a> {
    /// The data sheet.
    pub rates: Rates,
    /// Measured kernels.
    pub kernels: Option<&'a Kernels>,
    /// The host.
    pub pace: &'a Pace,
    known: RefCell<HashMap<Key, f64>>,
}

impl<'a> Costs<'a> {
    /// From the data sheet, with measured kernels where there are some.
    pub fn new(rates: Rates, kernels: Option<&'a Kernels>, pace: &'a Pace) -> Self {
        Self {
            rates,
            kernels,
            pace,
            known: RefCell::default(),
        }
    }

    /// Seconds of a kernel.
    pub fn kernel(&self, launch: &Launch) -> f64 {
        let [a, b, c, d] = launch.extents;
        let key = (
            launch.name,
            launch.class,
            launch.dtype,
            launch.gradient,
            [launch.read, launch.written, a, b, c, d, launch.shared],
        );
        if let Some(&time) = self.known.borrow().get(&key) {
            return time;
        }
        let measured = self.kernels.and_then(|kernels| kernels.time(launch));
        let time = measured.unwrap_or_else(|| self.rates.time(launch));
        self.known.borrow_mut().insert(key, time);
        time
    }
}
