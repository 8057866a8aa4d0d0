//! Time of a recorded step, by the model that also times simulated ones.

use vramscope_engine::Setup;
use vramscope_engine::simulate::Recording;

use crate::pipeline::Pipeline;
use crate::{Asked, Clock, Expense, Milliseconds, TimeAnswer, TimedRun};

/// Estimates the milliseconds of each phase of a recorded step and where the time goes, given the
/// [work](vramscope_engine::recording::RecordedRun::take_work) of the step and its
/// [setup](vramscope_engine::recording::RecordedRun::setup).
///
/// The host's work between operations follows from the recorded views, nodes, modules and gradients. Kernels known only
/// by their memory (`untimed` of [`About`](vramscope_engine::recording::About)) count as copies of it, so the step
/// takes at least this time, and has no interval: `is_whole` is false. `feed` describes the input of micro-batches of a given number of samples.
pub fn time_recorded<'c>(
    (setup, work): (&Setup, Recording),
    is_whole: bool,
    clock: &'c Clock,
    expense: Expense,
    feed: impl FnOnce(u64) -> Option<Pipeline>,
) -> (Milliseconds, TimeAnswer<'c>) {
    let mut timed = TimedRun::of(work, (setup, None), clock.network());
    timed.feed(feed(setup.batch));
    let sources = clock.sources();
    let (ms, answer) = timed.answer(&clock.costs(), Asked { sources, expense });
    let step_ms_interval = answer.step_ms_interval.filter(|_| is_whole);
    (
        ms,
        TimeAnswer {
            step_ms_interval,
            ..answer
        },
    )
}
