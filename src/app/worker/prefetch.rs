//! Simulates entries that the user is likely to request next.

use super::protocol::Answer;
use super::run::Subject;
use super::slices::Parts;
use super::view::RunView;
use crate::state::Draft;

/// Prefetched runs of likely next entries, one simulation each; the host keeps none of them.
pub struct PrefetchWork(std::vec::IntoIter<Draft>);

impl PrefetchWork {
    /// Queues runs of these entries, in order.
    pub fn of(all: Vec<Draft>) -> Self {
        Self(all.into_iter())
    }
}

impl Parts for PrefetchWork {
    fn left(&self) -> u32 {
        self.0.len() as u32
    }

    fn next(&mut self) -> Option<Answer> {
        let entries = self.0.next()?;
        Some(Answer::Prefetch(run(&entries).map(Box::new)))
    }
}

/// Simulates the entries; returns the same run that a direct request would, or `None` if it is refused.
fn run(entries: &Draft) -> Option<RunView> {
    let subject = Subject::read(entries).ok()?;
    let ran = subject.run().ok()?;
    Some(subject.run_view(RunView::NOT_KEPT, &ran))
}
