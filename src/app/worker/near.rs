use super::host::Parts;
use super::protocol::Answer;
use super::run::Subject;
use super::view::Run;
use crate::state::Draft;

/// Runs of entries that may be asked for next, one simulation each; the host keeps none.
pub struct NearWork(std::vec::IntoIter<Draft>);

impl NearWork {
    /// Runs of these entries, in order.
    pub fn of(all: Vec<Draft>) -> Self {
        Self(all.into_iter())
    }
}

impl Parts for NearWork {
    fn left(&self) -> u32 {
        self.0.len() as u32
    }

    fn next(&mut self) -> Option<Answer> {
        let entries = self.0.next()?;
        Some(Answer::Near(run(&entries).map(Box::new)))
    }
}

/// The run of entries, if there is one, as it is answered when it is asked for.
fn run(entries: &Draft) -> Option<Run> {
    let subject = Subject::read(entries).ok()?;
    let ran = subject.run().ok()?;
    Some(subject.told(Run::NOT_KEPT, &ran))
}
