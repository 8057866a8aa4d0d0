//! Time of each kernel and host operation.

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::carry::Carry;
use super::kernels::Kernels;
use super::pace::Pace;
use super::rates::{Rates, flops};
use super::resource::Resource;
use super::spread::{Source, Spreads};
use super::tally::{LABELS, kind};
use vramscope_engine::dtype::DType;
use vramscope_engine::tape::work::{Class, HostOp, Launch};

/// Kernels of the same name, class, dtype, bytes and extents take the same time. Names compare by address, which is
/// fast; a name stored at two addresses is only priced twice.
type Key = ([usize; 2], Class, DType, bool, [u64; 7]);

/// Time of a launch, in seconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Price {
    /// Time of the host to issue it.
    pub host: f64,
    /// Time of the GPU to run it.
    pub gpu: f64,
    /// Spread of that time.
    pub spread: f64,
}

/// Sources of times: a card's data sheet, kernels measured on it, and a host's pace.
pub struct Costs<'a> {
    /// Rates of the data sheet.
    pub rates: Rates,
    /// Measured kernels.
    pub kernels: Option<&'a Kernels>,
    /// Pace of the host.
    pub pace: &'a Pace,
    /// Carries the kernels' times from another card.
    carry: Option<Carry>,
    /// How many times as long kernels take.
    slower: f64,
    /// Share by which the pace changes from moment to moment, if it was measured on the host that runs the step.
    changes: Option<f64>,
    /// Kernels that are bound by this resource take no time.
    without: Option<Resource>,
    known: RefCell<HashMap<Key, Price, Mixed>>,
    host_ops: RefCell<HashMap<HostOp, f64, Mixed>>,
}

/// A fast hasher for the few words of a key; keys do not come from an attacker, so it need not resist collisions.
type Mixed = BuildHasherDefault<Mixer>;

#[derive(Default)]
struct Mixer(u64);

impl Hasher for Mixer {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u8(&mut self, word: u8) {
        self.write_u64(word.into());
    }

    fn write_u32(&mut self, word: u32) {
        self.write_u64(word.into());
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }

    fn write_u64(&mut self, word: u64) {
        // The multiplier is that of Knuth's MMIX generator. High bits are mixed best, but the hash table also uses low
        // ones.
        self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(6_364_136_223_846_793_005);
    }

    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }
}

impl<'a> Costs<'a> {
    /// Costs from the data sheet, and from measured kernels where available.
    pub fn new(rates: Rates, kernels: Option<&'a Kernels>, pace: &'a Pace) -> Self {
        Self {
            rates,
            kernels,
            pace,
            carry: None,
            slower: 1.0,
            changes: None,
            without: None,
            known: RefCell::default(),
            host_ops: RefCell::default(),
        }
    }

    /// These costs with kernels that were measured on a card of these rates.
    #[must_use]
    pub fn carried(mut self, from: Rates) -> Self {
        self.carry = Some(Carry { from, to: self.rates });
        self
    }

    /// These kernel times with another host's pace.
    pub fn with_pace<'b>(&self, pace: &'b Pace) -> Costs<'b>
    where
        'a: 'b,
    {
        Costs {
            carry: self.carry,
            slower: self.slower,
            changes: self.changes,
            without: self.without,
            ..Costs::new(self.rates, self.kernels, pace)
        }
    }

    /// These costs, with a pace that was measured on the host that runs the step, and its changes from moment to moment.
    #[must_use]
    pub fn here(mut self, changes: f64) -> Self {
        self.changes = Some(changes);
        self
    }

    /// These costs if all kernels took `times` as long.
    pub(super) fn with_slower_kernels(&self, times: f64) -> Self {
        Self {
            slower: times,
            ..self.with_pace(self.pace)
        }
    }

    /// Spread of the host's pace.
    pub(super) fn spread_of_host(&self) -> f64 {
        Spreads::get().host.of(self.changes)
    }

    /// These costs if kernels bound by `resource` took no time.
    pub(super) fn without(&self, resource: Resource) -> Self {
        Self {
            without: Some(resource),
            ..self.with_pace(self.pace)
        }
    }

    /// The resource that bounds a kernel: arithmetic or memory, whichever takes longer by the data sheet.
    fn resource(&self, launch: &Launch) -> Resource {
        let arithmetic = flops(launch) / self.rates.peak(launch.dtype);
        if arithmetic > launch.bytes() as f64 / self.rates.bytes {
            Resource::Arithmetic
        } else {
            Resource::Memory
        }
    }

    /// Seconds of a copy of `bytes` between the host's pinned memory and the card.
    pub fn transfer(&self, to_host: bool, bytes: u64) -> f64 {
        let measured = self.kernels.and_then(|kernels| kernels.transfer(to_host, bytes));
        let here = |seconds| self.carry.map_or(seconds, |carry| carry.transfer(seconds));
        measured.map_or_else(|| self.rates.transfer(bytes), here)
    }

    /// Seconds of a kernel.
    pub fn kernel(&self, launch: &Launch) -> f64 {
        self.price(launch).gpu
    }

    /// Seconds of a host operation other than a launch.
    pub(super) fn host_op(&self, host_op: HostOp) -> f64 {
        // The parameter does not affect the time.
        let key = match host_op {
            HostOp::Accumulate(_) => HostOp::Accumulate(None),
            host_op => host_op,
        };
        *self
            .host_ops
            .borrow_mut()
            .entry(key)
            .or_insert_with(|| self.pace.host_op(host_op))
    }

    /// Seconds of a kernel, and of the host to issue it.
    pub(super) fn price(&self, launch: &Launch) -> Price {
        let [a, b, c, d] = launch.extents;
        let key = (
            [launch.name.as_ptr().addr(), launch.name.len()],
            launch.class,
            launch.dtype,
            launch.gradient,
            [launch.read, launch.written, a, b, c, d, launch.shared],
        );
        if let Some(&price) = self.known.borrow().get(&key) {
            return price;
        }
        let measured = self.kernels.and_then(|kernels| kernels.kernel_time(launch));
        let (time, source) = match (measured, self.carry) {
            (Some(measured), None) => (measured.seconds, measured.source),
            (Some(measured), Some(carry)) => (
                carry.kernel(launch, measured.seconds),
                measured.source.then(carry.source()),
            ),
            (None, _) => (self.rates.time(launch), Source::Published),
        };
        let gpu = match self.without {
            Some(resource) if resource == self.resource(launch) => 0.0,
            _ => time * self.slower,
        };
        let price = Price {
            host: self.pace.launch(launch),
            gpu,
            spread: Spreads::get().kernel(LABELS[kind(launch.class)], source),
        };
        self.known.borrow_mut().insert(key, price);
        price
    }
}
