//! Memory of each GPU on 2, 4 and 8 of them, for a launch that starts a process on every GPU of the machine: no file says how
//! many that are.

use serde::Serialize;
use vramscope_engine::format::gib;
use vramscope_engine::units::Bytes;
use vramscope_launch::{Grade, LeftOut};

use super::Estimate;
use super::single::Ready;
use crate::failure::Failure;
use crate::input::launch::Standing;
use crate::output::Format;
use crate::predict::predict_if_there_is_room;

/// Numbers of GPUs that machines have.
const NUMBERS: [u64; 3] = [2, 4, 8];

/// Memory of each GPU of a run, at one number of GPUs.
#[derive(Debug, Serialize)]
pub(super) struct OnGpus {
    gpus: u64,
    grade: Grade,
    peak_allocated: Bytes,
    peak_reserved: Bytes,
}

impl Estimate {
    /// Simulates the run on 2, 4 and 8 GPUs. Empty if more than their number is unknown, or the run is refused.
    pub(super) fn on_numbers_of_gpus(&self, standing: &Standing) -> Vec<OnGpus> {
        let mut deciding = standing.left_out().iter().filter(|left| !left.is_bound()).peekable();
        match deciding.peek().is_some() && deciding.all(LeftOut::is_missing_gpus) {
            true => {
                let all = NUMBERS.into_iter().filter_map(|gpus| self.on(gpus).ok());
                // A figure that bounds on neither side says nothing in a sentence.
                all.filter(|on| !matches!(on.grade, Grade::Between | Grade::DryRun))
                    .collect()
            }
            false => Vec::new(),
        }
    }

    /// Simulates the run on this number of GPUs.
    fn on(&self, gpus: u64) -> Result<OnGpus, Failure> {
        let flags = (self.room.clone(), self.parallel.on(gpus), self.setup.clone());
        let mut shared = Self::of(self.subject.clone(), self.launch.clone(), flags);
        let Ready {
            standing,
            open,
            run: (model, setup, parallel),
            ..
        } = shared.ready(Format::Jsonl)?;
        let report = predict_if_there_is_room(&model, &setup, parallel.as_ref(), self.room.gpu()?)?;
        let mut report = report.ok_or_else(|| Failure::Input("the run has no room".into()))?;
        let many = open.and_then(|open| shared.after_many_lengths(&open, &standing, (&report, setup.seq, None)));
        if let Some(many) = many {
            report.may_reserve(many);
        }
        Ok(OnGpus {
            gpus,
            grade: Grade::of(standing.left_out()),
            peak_allocated: report.peak_allocated,
            peak_reserved: report.peak_reserved,
        })
    }
}

/// The sentence for a person, on a line of its own; `None` if nothing is known.
pub(super) fn said(all: &[OnGpus]) -> Option<String> {
    let (first, rest) = all.split_first()?;
    let bound = match first.grade {
        Grade::AtMost => "at most ",
        Grade::AtLeast => "at least ",
        _ => "",
    };
    let of = |on: &OnGpus| format!("{bound}{} on {}", gib(on.peak_reserved), on.gpus);
    let mut parts = vec![format!("{bound}{} on {} GPUs", gib(first.peak_reserved), first.gpus)];
    parts.extend(rest.iter().map(of));
    Some(format!("\nEach GPU takes {}", parts.join(", ")))
}
