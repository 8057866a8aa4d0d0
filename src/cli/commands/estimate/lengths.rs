//! Bounds for a launch whose files do not tell how long its samples are: the least that its run needs, and the longest
//! samples that fit.

use vramscope_engine::allocator::Options;
use vramscope_engine::device::Device;
use vramscope_engine::report::Reserved;
use vramscope_engine::setup::Parallel;
use vramscope_engine::simulate::{after_many_lengths, many_lengths};
use vramscope_engine::units::Bytes;
use vramscope_engine::verdict::{Fit, Verdict};
use vramscope_engine::{Model, Report, Setup};
use vramscope_launch::{Aspect, Grade, Launch, Least, LeftOut, ModelFacts, Note, OfLengths, Resolved};
use vramscope_plan::largest;

use super::Estimate;
use crate::failure::Failure;
use crate::input::launch::Standing;
use crate::output::target::Target;
use crate::predict::{predict, predict_if_there_is_room, record_run};

/// Positions by which lengths that fit are told.
const STEP: u64 = 64;

/// Positions of samples that are not halved any more.
const SHORTEST: u64 = 256;

/// Micro-batches of a step when many lengths are replayed.
const MOST_MICRO_BATCHES: u64 = 2;

/// Memory of the largest card.
fn largest_card() -> Bytes {
    Device::all().iter().map(Device::memory).max().unwrap_or_default()
}

/// A launch whose samples are as long as they may be, since no line tells how long they are.
pub(super) struct OpenLengths {
    launch: Launch,
    model: ModelFacts,
    /// Positions of the longest.
    most: u64,
    /// The model alone limits them.
    pub is_unlimited: bool,
    /// The allocator has expandable segments, which fit every length.
    is_expandable: bool,
}

/// A run at one length: its model, setup, and how GPUs share it.
pub(super) type AtLength = (Model, Setup, Option<Parallel>);

impl OpenLengths {
    /// Lengths that a launch leaves open; `None` if it tells them, or one is given beside it.
    pub fn of(launch: &Launch, model: ModelFacts, resolved: &Resolved, standing: &Standing) -> Option<Self> {
        let most = resolved.case.get("seq")?.as_u64()?;
        let is_missing = standing.left_out().iter().any(LeftOut::is_missing_length);
        is_missing.then(|| Self {
            launch: launch.clone(),
            model,
            most,
            is_unlimited: resolved.missing.iter().any(|remark| remark.note == Note::AllPositions),
            is_expandable: resolved.assumed.iter().any(|remark| remark.note == Note::Expandable),
        })
    }
}

impl Estimate {
    /// The run of a launch whose samples have so many positions; those of one position have no images.
    fn at_length(&self, open: &OpenLengths, seq: u64) -> Result<AtLength, Failure> {
        let mut resolved = open.launch.at_length(seq).resolve(open.model);
        if seq == 1 && open.model.takes_images {
            resolved.case.remove("image_sizes");
            resolved.case.insert("images".to_owned(), 0.into());
        }
        let mut subject = self.subject.clone();
        subject.launch(self.launch.any_case(&resolved)?, &resolved);
        let parallel = self.parallel.over(subject.parallel()?)?;
        let (model, setup) = subject.read_again(&self.setup)?;
        Ok((model, setup, parallel))
    }

    /// The longest samples that can be simulated, in halves of those that a model allows: of these, PyTorch's address space may
    /// have no room, or their images may be too many. No GPU has room for longer ones. Says so of what is left out.
    ///
    /// # Errors
    /// If no samples have room, the setup is refused, or a GPU may have room for longer ones.
    pub(super) fn shortened(&self, open: &OpenLengths, standing: &mut Standing) -> Result<AtLength, Failure> {
        let (mut seq, mut refused) = (open.most, None);
        loop {
            let gpu = self.room.gpu()?;
            let run = self.at_length(open, seq).and_then(|(model, setup, parallel)| {
                let report = predict_if_there_is_room(&model, &setup, parallel.as_ref(), gpu)?;
                Ok(report.map(|report| (report, (model, setup, parallel))))
            });
            let run = match run {
                Err(error) if seq < SHORTEST => return Err(refused.unwrap_or(error)),
                Err(error) => {
                    refused.get_or_insert(error);
                    None
                }
                Ok(None) => {
                    // Nor have longer ones, whatever refused them.
                    refused = None;
                    None
                }
                Ok(run) => run,
            };
            let Some((report, run)) = run else {
                if seq < SHORTEST {
                    return Err(Failure::Input("no samples have room".into()));
                }
                seq /= 2;
                continue;
            };
            if let Some(refused) = refused
                && report.peak_reserved < largest_card()
            {
                return Err(refused);
            }
            if seq < open.most {
                for left in standing.left_out.iter_mut().filter(|left| left.is_missing_length()) {
                    left.why = format!(
                        "no line limits the length of samples: {seq} positions are simulated, and no GPU has room for twice as \
                         many; give --seq"
                    );
                }
            }
            return Ok(run);
        }
    }

    /// Bounds of a run beside the figure for its longest samples.
    pub(super) fn lengths(&self, open: &OpenLengths, standing: &Standing, target: Option<&(Target, Fit)>) -> OfLengths {
        let too_long = target.filter(|(_, fit)| fit.verdict == Verdict::Oom);
        OfLengths {
            least: self.least(open, standing),
            length_that_fits: too_long.and_then(|(target, _)| self.length_that_fits(open, standing, target)),
        }
    }

    /// The least that a run needs: of samples of one position. `None` if what else is left out may be less.
    fn least(&self, open: &OpenLengths, standing: &Standing) -> Option<Least> {
        let is_of_samples = |left: &LeftOut| left.is_missing_length() || left.is_missing_images();
        if !self.bounds_above(standing) || !standing.left_out().iter().all(is_of_samples) {
            return None;
        }
        let (model, mut setup, parallel) = self.at_length(open, 1).ok()?;
        // Without the positions that a collator adds, with which a row is one of texts that differ.
        setup.pad_to_multiple_of = 1;
        let report = predict(&model, &setup, parallel.as_ref(), self.room.gpu().ok()?).ok()?;
        Some(Least {
            peak_allocated: report.peak_allocated.get(),
            peak_reserved: report.peak_reserved.get(),
        })
    }

    /// Highest reserved memory after batches of many lengths, within `room` if a card gives it; `None` if the estimate is no
    /// upper bound, or the lengths can't be simulated. Nor are they where no card has room for the longest: they would say no
    /// more, and take long to replay.
    pub(super) fn after_many_lengths(
        &self,
        open: &OpenLengths,
        standing: &Standing,
        (longest, seq, room): (&Report, u64, Option<Bytes>),
    ) -> Option<Reserved> {
        let of_lengths = |left: &&LeftOut| left.what == Aspect::Length;
        let mut of_lengths = standing.left_out().iter().filter(of_lengths);
        // Packed samples are all as long as they may be.
        if !self.bounds_above(standing) || !of_lengths.all(LeftOut::is_missing_length) {
            return None;
        }
        if longest.peak_reserved >= largest_card() {
            return None;
        }
        let gpu = self.room.gpu().ok()?;
        let runs: Vec<AtLength> = many_lengths(seq)
            .filter_map(|seq| self.at_length(open, seq).ok())
            .collect();
        let record = |(model, setup, parallel): &AtLength| {
            // Micro-batches after the first are alike: one shows what they reserve beside gradients.
            let accum = setup.accum.min(MOST_MICRO_BATCHES);
            let setup = Setup { accum, ..setup.clone() };
            record_run(model, &setup, parallel.as_ref(), gpu).ok()
        };
        let options = Options {
            expandable_segments: open.is_expandable,
            capacity: room,
            ..Options::default()
        };
        after_many_lengths(&runs, record, &options).ok().flatten()
    }

    /// Returns true if what is left out can only make the run need less than the figure.
    fn bounds_above(&self, standing: &Standing) -> bool {
        Grade::of(standing.left_out()) == Grade::AtMost
    }

    /// Positions of the longest samples with which the run surely fits a card or a limit, in steps of 64; `None` if the
    /// figure is no upper bound, or none fits.
    fn length_that_fits(&self, open: &OpenLengths, standing: &Standing, target: &Target) -> Option<u64> {
        if !self.bounds_above(standing) {
            return None;
        }
        let found = largest(STEP, open.most, |seq| {
            let (model, setup, parallel) = self.at_length(open, seq)?;
            let gpus = parallel.map_or(1, |parallel| parallel.world);
            let report = predict_if_there_is_room(&model, &setup, parallel.as_ref(), self.room.gpu()?)?;
            Ok::<_, Failure>(report.is_some_and(|report| standing.fit(&report, target, gpus).verdict != Verdict::Oom))
        });
        found.ok().filter(|seq: &u64| *seq > 0)
    }
}
