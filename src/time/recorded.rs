//! Time of a recorded step, by the model that also times simulated ones.

use vramscope_engine::recording::Run as RecordedRun;

use crate::pipeline::Pipeline;
use crate::{Asked, Clock, Expense, Milliseconds, Run, TimeAnswer};

/// Estimates the milliseconds of each phase of the last step and where the time goes; returns the run without its work.
///
/// The host's work between operations follows from the recorded views, nodes, modules and gradients. Kernels known only
/// by their memory (`untimed` of [`About`](vramscope_engine::recording::About)) count as copies of it, so the step
/// takes at least this time. `feed` describes the input of micro-batches of a given number of samples.
pub fn time_recorded(
    mut run: RecordedRun,
    clock: &Clock,
    expense: Expense,
    feed: impl FnOnce(u64) -> Option<Pipeline>,
) -> (RecordedRun, Milliseconds, TimeAnswer<'_>) {
    let setup = run.setup();
    let recording = run.take_work();
    let sources = clock.sources();
    let mut timed = Run::of(recording, (&setup, None), clock.network());
    timed.feed(feed(setup.batch));
    let (ms, answer) = timed.answer(&clock.costs(), Asked { sources, expense });
    run.put_log(timed.into_recording().log);
    (run, ms, answer)
}
