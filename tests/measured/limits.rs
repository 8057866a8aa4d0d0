use super::quantity::Quantity;

/// The largest errors allowed for a figure, as fractions; no limit where absent.
#[derive(Debug, Clone, Copy)]
pub struct Limit {
    /// The figure.
    pub quantity: Quantity,
    /// Of the median.
    pub median: Option<f64>,
    /// Of the 90th percentile.
    pub p90: Option<f64>,
    /// Of the worst.
    pub max: Option<f64>,
    /// Of the worst under-prediction.
    pub worst_under: Option<f64>,
}

/// What the engine promises of every row whose optimizer ran. Tighten here.
pub fn limits() -> Vec<Limit> {
    let none = Limit {
        quantity: Quantity::PeakAllocated,
        median: None,
        p90: None,
        max: None,
        worst_under: None,
    };
    let peak = Limit {
        median: Some(0.005),
        p90: Some(0.015),
        max: Some(0.04),
        ..none
    };
    let reserved = Limit {
        quantity: Quantity::PeakReserved,
        median: Some(0.015),
        p90: Some(0.05),
        // Beyond 0.03 are row 70 of training_steps (smolvlm-256m) and row 24 of held_out_all_models (gpt2) alone:
        // segments of 2370 and 3296 MiB stayed from the model before each in its process, with which both are
        // exact (`recorded_process.rs`).
        worst_under: Some(0.092),
        ..none
    };
    let mark = |quantity| Limit {
        quantity,
        median: Some(0.01),
        ..none
    };
    let marks = Quantity::PHASES.into_iter().map(mark);
    [peak, reserved].into_iter().chain(marks).collect()
}
