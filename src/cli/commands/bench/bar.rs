//! Shows progress on standard error, with an estimate of the remaining time.

use indicatif::{ProgressBar, ProgressStyle};
use vramscope_benchmark::{Kernel, Measurement, Outcome};

/// Progress bar of a run; hidden if standard error is not a terminal.
pub struct Bar(ProgressBar);

impl Bar {
    /// A bar for `kernels` kernels.
    pub fn new(kernels: usize) -> Self {
        let bar = ProgressBar::new(kernels as u64);
        let style = ProgressStyle::with_template("{bar:24} {pos}/{len} {wide_msg} {eta} left");
        if let Ok(style) = style {
            bar.set_style(style);
        }
        Self(bar)
    }

    /// Shows the kernel that starts.
    pub fn begin(&self, name: &str) {
        self.0.set_message(name.to_owned());
    }

    /// Advances the bar, and prints a failure immediately.
    pub fn end(&self, kernel: &Kernel, result: &Measurement) {
        self.0.inc(1);
        let said = match &result.outcome {
            Outcome::FailedCheck(check) => Some(format!(
                "wrong result, its time does not count: error {} where {} is allowed",
                check.max_error.map_or("is no number".into(), |e| format!("{e:.2e}")),
                check.tolerance
            )),
            Outcome::Failed { reason } => Some(reason.clone()),
            _ => None,
        };
        if let Some(said) = said {
            let line = format!("warning: {}: {said}", kernel.label());
            match self.0.is_hidden() {
                true => anstream::eprintln!("{line}"),
                false => self.0.println(line),
            }
        }
    }

    /// Removes the bar at the end of a run.
    pub fn close(self) {
        self.0.finish_and_clear();
    }
}
