//! Simulates single changes to a setup.

use vramscope_engine::Report;
use vramscope_plan::{Now, Tried, WhatIf};

use super::protocol::{Answer, Tested};
use super::run::{Ran, Subject};
use super::shared_step;
use super::slices::Parts;
use super::view::RunView;
use crate::state::Draft;

/// Single changes, one simulation each; none if the setup cannot be read.
pub struct WhatIfWork(Option<(Subject, WhatIf)>);

impl WhatIfWork {
    /// Prepares the changes to these entries, whose run has the figures in `now`.
    pub fn of(entries: &Draft, now: Now) -> Self {
        let subject = Subject::read(entries).ok();
        Self(subject.map(|subject| {
            let (model, setup) = (subject.model.clone(), subject.reading.setup.clone());
            let changes = WhatIf::new(model, setup, subject.gpu(), subject.room(), now);
            let changes = match subject.reading.parallel {
                None => changes,
                Some(parallel) => changes.on_several(parallel, shared_step::simulate),
            };
            (subject, changes)
        }))
    }
}

impl Parts for WhatIfWork {
    fn left(&self) -> u32 {
        self.0.as_ref().map_or(0, |(_, changes)| changes.len() as u32)
    }

    fn next(&mut self) -> Option<Answer> {
        let (subject, changes) = self.0.as_mut()?;
        let (tried, report) = changes.try_next()?;
        let run = report.map(|report| changed(subject, &tried, report));
        Some(Answer::Tried(Box::new(Tested { tried, run })))
    }
}

/// Builds the run of a changed setup, equal to the one that a direct request would return.
fn changed(subject: &mut Subject, tried: &Tried, report: Report) -> RunView {
    let setup = tried.change.apply(&subject.reading.setup);
    let unchanged = std::mem::replace(&mut subject.reading.setup, setup);
    let run = subject.run_view(RunView::NOT_KEPT, &Ran { report, pass: None });
    subject.reading.setup = unchanged;
    run
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::Key;
    use crate::worker::Ask;
    use crate::worker::host::Host;
    use crate::worker::lazy::LoadedChunks;
    use crate::worker::protocol::{Order, Reply, Slot};
    use vramscope_engine::report::StepBytes;
    use vramscope_engine::setup::Setting;
    use vramscope_engine::units::Bytes;

    fn answer(entries: Draft) -> Option<Answer> {
        let mut host = Host::default();
        host.receive(LoadedChunks::all());
        host.take(Order::Ask {
            id: 1,
            slot: Slot::Run,
            ask: Ask::Run(entries),
        });
        match host.step() {
            Some(Reply::Answered { answer, .. }) => answer.map(|answer| *answer),
            other => panic!("{other:?}"),
        }
    }

    /// The page shows this run as soon as the change is selected, before the requested run arrives.
    #[test]
    fn the_run_of_a_change_is_that_of_the_entries_with_it() {
        let mut entries = Draft::default();
        for (key, text) in [
            (Key::Model, "qwen2.5-0.5b"),
            (Setting::Seq.into(), "96"),
            (Key::LimitGib, "3"),
        ] {
            entries.set(key, text);
        }
        let now = Now {
            reserved: Bytes::ZERO,
            steady: StepBytes::default(),
        };
        let mut work = WhatIfWork::of(&entries, now);
        let (mut ran, mut refused) = (0, 0);
        while let Some(Answer::Tried(tested)) = work.next() {
            let Tested { tried, run } = *tested;
            let mut entries = entries.clone();
            entries.set(tried.change.setting(), tried.change.text());
            match (answer(entries), run) {
                (Some(Answer::Run(Ok(fresh))), Some(run)) => {
                    assert_eq!(RunView { id: fresh.id, ..run }, *fresh, "{:?}", tried.change);
                    ran += 1;
                }
                (Some(Answer::Run(Err(_))), None) => refused += 1,
                (fresh, run) => panic!("{:?}: {run:?}, alone {fresh:?}", tried.change),
            }
        }
        assert!(ran > 15 && refused < ran, "{ran} ran, {refused} did not");
    }
}
