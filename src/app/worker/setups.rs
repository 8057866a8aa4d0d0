//! Simulates the setups that are compared side by side.

use super::protocol::{Answer, Refusal};
use super::run::Subject;
use super::slices::Parts;
use super::view::Summary;
use crate::state::Draft;

/// Setups to compare, one simulation each.
pub struct SetupsWork(std::vec::IntoIter<Draft>);

impl SetupsWork {
    /// Queues these setups, in order.
    pub fn of(all: Vec<Draft>) -> Self {
        Self(all.into_iter())
    }
}

impl Parts for SetupsWork {
    fn left(&self) -> u32 {
        self.0.len() as u32
    }

    fn next(&mut self) -> Option<Answer> {
        let entries = self.0.next()?;
        Some(Answer::Setup(summary(&entries).map(Box::new)))
    }
}

/// Simulates a setup and returns its figures.
///
/// # Errors
/// Returns the reason why the entries have no run.
pub fn summary(entries: &Draft) -> Result<Summary, Refusal> {
    let subject = Subject::read(entries)?;
    let report = subject.run()?.report;
    Ok(Summary::of(&report, subject.card(&report)))
}
