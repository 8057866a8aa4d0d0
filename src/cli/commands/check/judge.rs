//! Simulates a run and judges it.

use vramscope_launch::Grade;

use super::Check;
use crate::commands::estimate::{Estimate, recorded};
use crate::failure::Failure;
use crate::input::launch::LaunchFlags;
use crate::input::run::Run;
use crate::input::setup_flags::SetupFlags;
use crate::input::source::Source;
use crate::input::subject::Subject;
use crate::input::time_flags::TimeFlags;
use crate::judged::Judged;

impl Check {
    /// Simulates a run and judges it in the room that the flags name.
    ///
    /// # Errors
    /// If it cannot be read or simulated; [`Failure::NotKnown`] if no figure bounds it.
    pub(super) fn judge(&self, run: Run) -> Result<Judged, Failure> {
        let hub = self.hub.clone();
        let (subject, launch) = match run {
            Run::Recording(source) => return self.judge_recording(&source),
            Run::Model(name) => (Subject::of_launch(Some(name), None, hub), LaunchFlags::default()),
            Run::Config(source) => (Subject::of_launch(None, Some(source), hub), LaunchFlags::default()),
            Run::Case(text) => (Subject::of_case(text, hub), LaunchFlags::default()),
            Run::Launch(source) => {
                let files = std::iter::once(source).chain(self.also.iter().cloned()).collect();
                let launch = LaunchFlags::of(files, self.ignore_not_simulated);
                (Subject::of_launch(None, None, hub), launch)
            }
        };
        let flags = (self.room.clone(), self.parallel.clone(), self.setup.clone());
        Estimate::of(subject, launch, flags)
            .with_dataset(self.data.clone(), self.tokenizer.clone())
            .judged()
    }

    fn judge_recording(&self, source: &Source) -> Result<Judged, Failure> {
        if self.setup != SetupFlags::default() {
            return Err(crate::input::recorded::holds_one(source));
        }
        if self.data.is_some() {
            return Err(Failure::Input(format!(
                "--data gives the samples of a run that is simulated; the recording {source} has its own"
            )));
        }
        let (fit, report) = recorded::judged(source, (&self.room, &TimeFlags::default()))?;
        let (_, fit) = fit.ok_or_else(super::no_room)?;
        Ok(Judged {
            model: None,
            report,
            fit,
            grade: Grade::Exact,
            left_out: Vec::new(),
            least: None,
            gpus: 1,
            length_that_fits: None,
            samples_that_fit: None,
        })
    }
}
