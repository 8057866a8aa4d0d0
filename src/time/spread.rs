//! How far times may be off: kernels by kind and source, the host, whole steps. A spread is a share by which a time is
//! longer than estimated, or the estimate longer than it.
//!
//! `docs/exactness.md` says how each number follows from measurements; tests hold the file against them.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::Deserialize;

/// Spreads from measurements of kernels and hosts, and ends from steps of an H200.
const FILE: &str = include_str!("measured/spreads.json");

/// Spreads of kernels, of the host, and the ends of an interval.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Spreads {
    /// Spreads of each kind of kernel by its name in a report; `all` for a kind of which too little was measured.
    pub kernels: BTreeMap<String, KernelSpread>,
    /// Spreads of the host's pace.
    pub host: HostSpread,
    /// Ends of the interval of nine steps in ten, in units of a step's spread: how much shorter, and how much longer.
    pub ends: [f64; 2],
}

/// Spreads of one kind of kernel, within which 68% of its kernels lie.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
pub(super) struct KernelSpread {
    /// Kernels told from other points of the same measurement.
    pub between: f64,
    /// The same kernels on two cards of one model, two days apart.
    pub repeated: f64,
    /// Kernels told from another card of the same generation by both data sheets.
    pub carried: f64,
    /// Kernels told from a data sheet and published shares.
    pub published: f64,
}

/// Spreads of the host's pace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
pub(super) struct HostSpread {
    /// Tiny models told from others on the same host.
    pub held_back: f64,
    /// Operations told from their kind on another host.
    pub operations: f64,
    /// Hosts of one kind.
    pub hosts: f64,
    /// Moments of one host, for a record that did not follow them.
    pub moments: f64,
}

/// Spread of two independent errors. (`hypot` differs between platforms.)
pub(super) fn both(a: f64, b: f64) -> f64 {
    (a * a + b * b).sqrt()
}

/// Source of a kernel's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// Measured on this card.
    Measured,
    /// Measured on another card of the same generation, or of another one.
    Carried {
        /// True if both cards are of one generation.
        same_generation: bool,
    },
    /// The data sheet and published shares.
    Published,
}

impl Source {
    /// The source of a time from this source that is carried to another card.
    pub fn then(self, carried: Self) -> Self {
        match (self, carried) {
            (Self::Carried { same_generation: one }, Self::Carried { same_generation: other }) => Self::Carried {
                same_generation: one && other,
            },
            _ => carried,
        }
    }
}

impl Spreads {
    /// The spreads that come with the program.
    pub fn get() -> &'static Self {
        static SPREADS: OnceLock<Spreads> = OnceLock::new();
        // The file is part of the program, and a test reads it.
        SPREADS.get_or_init(|| serde_json::from_str(FILE).unwrap_or_default())
    }

    /// Spread of kernels of the kind with this label.
    pub fn kernel(&self, label: &str, source: Source) -> f64 {
        let of = self.kernels.get(label).or_else(|| self.kernels.get("all"));
        let spread = of.copied().unwrap_or_default();
        let measured = both(spread.between, spread.repeated);
        match source {
            Source::Measured => measured,
            Source::Carried { same_generation: true } => both(measured, spread.carried),
            Source::Carried { same_generation: false } => both(both(measured, spread.carried), spread.published),
            Source::Published => spread.published,
        }
    }
}

impl HostSpread {
    /// Spread of a pace that was measured on this host, with its changes from moment to moment, or elsewhere.
    pub fn of(&self, changes: Option<f64>) -> f64 {
        let here = both(self.held_back, self.operations);
        both(here, changes.unwrap_or(self.hosts))
    }
}
