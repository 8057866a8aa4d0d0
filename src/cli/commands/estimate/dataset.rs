//! `vramscope estimate --data FILE`: lengths and images of the samples from the run's own dataset.

use std::path::{Path, PathBuf};

use vramscope_dataset::{Dataset, ImageTokens, Positions, Sample, Summary, Text};
use vramscope_engine::setup::Packing;
use vramscope_engine::units::Bytes;
use vramscope_engine::verdict::Verdict;
use vramscope_engine::{Model, Report, Setup};
use vramscope_launch::{Aspect, Direction, ImageRules, LeftOut, Note};

use super::Estimate;
use crate::failure::Failure;
use crate::input::dataset::{read, tokenizer_of};
use crate::input::launch::Standing;
use crate::input::setup_flags::SetupFlags;
use crate::output::dataset::{Counted, Fitting, MicroBatch, OfData, Percentiles};
use crate::output::target::Target;
use crate::predict::predict;

/// Keys by which tools cut samples.
const LIMITS: [&str; 5] = [
    "max_length",
    "cutoff_len",
    "max_seq_length",
    "sequence_len",
    "model_max_length",
];

/// The samples of a run, in the order of their positions.
pub(super) struct Samples {
    name: String,
    /// Each with its positions, the one with the most last.
    all: Vec<(Positions, Sample)>,
    broken: u64,
    counted: Counted,
    /// Positions to which the tool cuts samples.
    limit: Option<u64>,
    /// Flags that were given beside them.
    flags: SetupFlags,
    batch: u64,
    /// Positions of which a collator makes each row a multiple.
    multiple: u64,
    has_sizes: bool,
    has_images: bool,
    /// The tool makes logits of what the model is to say alone.
    has_labels: bool,
    /// The earliest position of any sample at which that begins.
    earliest: u64,
}

/// A run before anything is known of its samples.
struct Before {
    model: Model,
    setup: Setup,
    /// Positions to which samples are cut.
    limit: Option<u64>,
    /// What the tool does with images.
    rules: ImageRules,
}

impl Estimate {
    /// Takes the dataset, if one is given: from here on the setup is that of its longest samples.
    ///
    /// # Errors
    /// If it, or the run that it is of, cannot be read.
    pub(super) fn take_dataset(&mut self) -> Result<Option<Samples>, Failure> {
        let Some(path) = self.dataset.take() else {
            return Ok(None);
        };
        let Before {
            model,
            setup,
            limit,
            rules,
        } = self.before_data()?;
        if setup.packing == Packing::Packed {
            return Err(Failure::Input(
                "samples that are packed fill rows of --seq positions whatever they are; leave --data out".into(),
            ));
        }
        let tokenizer = match &self.tokenizer {
            Some(given) => Some(tokenizer_of(given).unwrap_or_else(|| given.clone())),
            None => self.model_folders()?.iter().find_map(|folder| tokenizer_of(folder)),
        };
        let dataset = read(&path, tokenizer.as_deref())?;
        let mut images = ImageTokens::of(Some(&model), &setup);
        let prepare = |setup: &mut Setup| rules.apply(setup);
        images = images.prepared(&prepare);
        let samples = Samples::of(&path, dataset, (&model, &setup, limit), images, self.setup.clone());
        if samples.all.is_empty() {
            return Err(Failure::Input(format!(
                "no sample of {} has room for its images in {} positions; raise --seq",
                path.display(),
                limit.unwrap_or_default()
            )));
        }
        self.setup = samples.flags(samples.longest(), true);
        Ok(Some(samples))
    }

    /// The run before anything is known of its samples.
    fn before_data(&self) -> Result<Before, Failure> {
        let mut subject = self.subject.clone().with_own_names();
        let (mut limit, mut rules) = (None, ImageRules::default());
        if let Some(launch) = self.launch.read(self.room.has_bf16()?)? {
            subject.stand_at(self.launch.place(&launch));
            let facts = subject.facts(launch.model())?;
            // A tool's default is not what a program of one's own may set: uncut, the figure is at most too high.
            let is_default = launch.defaults.iter().any(|default| LIMITS.contains(&default.key));
            let resolved = launch.of_model(facts).resolve(facts);
            let is_open = resolved.missing.iter().any(|remark| remark.note == Note::AllPositions);
            if !is_open && !is_default {
                limit = resolved.case.get("seq").and_then(serde_json::Value::as_u64);
            }
            rules = resolved.images;
            subject.launch(self.launch.any_case(&resolved)?, &resolved);
        }
        let (model, setup) = subject.read_again(&self.setup)?;
        if self.setup.names_seq() {
            limit = Some(setup.seq);
        }
        Ok(Before {
            model,
            setup,
            limit,
            rules,
        })
    }

    /// Folders in which the model's files may be: as it is given, beside the launch that names it, and in a hub's cache.
    fn model_folders(&self) -> Result<Vec<PathBuf>, Failure> {
        let mut folders = self.subject.paths();
        if let Some(launch) = self.launch.read(None)?
            && let Some(name) = launch.model()
        {
            folders.push(name.into());
            let place = self.launch.place(&launch);
            folders.extend(place.folders.iter().map(|folder| folder.join(name)));
        }
        let names = self.subject.names();
        let kept = folders.iter().filter_map(|name| names.kept(name.to_str()?));
        let kept: Vec<PathBuf> = kept.collect();
        folders.extend(kept);
        Ok(folders)
    }

    /// A micro-batch of samples that are all like this one, and the GPUs that share it.
    fn with_sample(
        &self,
        samples: &Samples,
        sample: &(Positions, Sample),
        is_most: bool,
    ) -> Result<(Report, u64), Failure> {
        let flags = samples.flags(sample, is_most);
        let parallel = self.parallel.over(self.subject.parallel()?)?;
        let (model, setup) = self.subject.clone().read_again(&flags)?;
        let report = predict(&model, &setup, parallel.as_ref(), self.room.gpu()?)?;
        Ok((report, parallel.map_or(1, |parallel| parallel.world)))
    }

    /// The part of a dataset whose micro-batches fit; `None` if the longest does.
    ///
    /// # Errors
    /// If one of them is refused.
    pub(super) fn that_fit(
        &self,
        samples: &Samples,
        (standing, (target, longest)): (&Standing, (&Target, Verdict)),
    ) -> Result<Option<Fitting>, Failure> {
        if longest != Verdict::Oom {
            return Ok(None);
        }
        let does_fit = |at: usize| {
            let (report, gpus) = self.with_sample(samples, &samples.all[at], true)?;
            Ok::<_, Failure>(standing.fit(&report, target, gpus).verdict != Verdict::Oom)
        };
        samples.fitting(does_fit).map(Some)
    }

    /// Peaks of the micro-batches of a dataset, once the longest is simulated.
    ///
    /// # Errors
    /// If one of them is refused.
    pub(super) fn of_data(
        &self,
        samples: &Samples,
        longest: [Bytes; 2],
        (standing, target): (&Standing, Option<(&Target, Verdict)>),
    ) -> Result<OfData, Failure> {
        let typical = samples.typical();
        let (report, _) = self.with_sample(samples, typical, false)?;
        let micro_batch = |of: &(Positions, Sample), positions, [allocated, reserved]: [Bytes; 2]| MicroBatch {
            positions,
            images: of.1.images,
            peak_allocated: allocated,
            peak_reserved: reserved,
        };
        let fits = match target {
            Some(target) => self.that_fit(samples, (standing, target))?,
            None => None,
        };
        let (last, summary) = (samples.longest(), samples.summary());
        Ok(OfData {
            file: samples.name.clone(),
            samples: samples.all.len(),
            unread: samples.broken,
            tokens: samples.counted,
            limit: samples.limit,
            positions: Percentiles {
                p50: summary.percentile(50.0),
                p95: summary.percentile(95.0),
                p99: summary.percentile(99.0),
                most: last.0.most,
            },
            typical: micro_batch(typical, typical.0.least, [report.peak_allocated, report.peak_reserved]),
            longest: micro_batch(last, last.0.most, longest),
            fits,
        })
    }
}

impl Samples {
    fn of(
        path: &Path,
        dataset: Dataset,
        (model, setup, limit): (&Model, &Setup, Option<u64>),
        mut images: ImageTokens<'_>,
        flags: SetupFlags,
    ) -> Self {
        let counted = Counted::of(&dataset);
        let mut positions = |sample: &Sample| {
            let positions = Positions::of(sample, &mut images);
            limit.map_or(positions, |limit| positions.cut_to(limit))
        };
        let mut all: Vec<_> = dataset
            .samples
            .into_iter()
            .map(|sample| (positions(&sample), sample))
            .collect();
        // Tools leave such samples out, or stop at them.
        all.retain(|(positions, _)| limit.is_none_or(|limit| positions.of_images < limit));
        // Of samples that are cut alike, the one with the largest images counts.
        all.sort_by_cached_key(|(positions, sample)| (positions.most, sample.pixels(), sample.images));
        let begin = |(positions, sample): &(Positions, Sample)| {
            positions.least.saturating_sub(Positions::most_of_answer(sample))
        };
        let takes = model.takes();
        Self {
            earliest: all.iter().map(begin).min().unwrap_or_default(),
            name: path.display().to_string(),
            all,
            broken: dataset.broken,
            counted,
            limit,
            has_sizes: takes.parts && model.knows_image_sizes() && !flags.names_images(),
            has_images: takes.parts && takes.image_count && !flags.names_images(),
            // ms-swift gives the prompt no labels; of TRL's trainers most do.
            has_labels: setup.trainer.is_swift() && !flags.names_labels(),
            flags,
            batch: setup.batch.max(1),
            multiple: setup.pad_to_multiple_of.max(1),
        }
    }

    fn summary(&self) -> Summary {
        Summary::of(self.all.iter().map(|(positions, _)| positions.most).collect())
    }

    /// The sample with the most positions.
    fn longest(&self) -> &(Positions, Sample) {
        // A dataset that tells of no sample is refused when it is read.
        &self.all[self.all.len() - 1]
    }

    /// The sample in the middle: most micro-batches have a longer one.
    fn typical(&self) -> &(Positions, Sample) {
        &self.all[(self.all.len() - 1) / 2]
    }

    /// Flags of a micro-batch whose samples are all like this one, with the most positions that it may take, or the fewest.
    fn flags(&self, (positions, sample): &(Positions, Sample), is_most: bool) -> SetupFlags {
        let mut flags = self.flags.clone();
        let length = if is_most { positions.most } else { positions.least }.max(1);
        flags.give_seq(length);
        if self.has_labels {
            // ms-swift makes logits from the first label of any sample on: in a shorter one beside it, that is an earlier one.
            let labels = match (is_most, self.batch) {
                (false, _) => sample.answer,
                (true, 1) => Positions::most_of_answer(sample),
                (true, _) => length.saturating_sub(self.earliest),
            };
            flags.give_completion(labels.clamp(1, length));
        }
        match (&sample.sizes[..], sample.images) {
            (sizes @ [_, ..], _) if self.has_sizes => flags.give_image_sizes(sizes),
            // Images whose sizes nobody tells are left as the files of the run leave them.
            (_, 0) if self.has_images => {
                flags.give_images(0);
                // Positions that a collator adds make rows of texts that differ, which are not simulated without images.
                flags.give_seq(length.next_multiple_of(self.multiple));
                flags.give_no_padding();
            }
            _ => {}
        }
        flags
    }

    /// The part whose micro-batches fit: found by halving, since more positions never need less.
    fn fitting(&self, mut does_fit: impl FnMut(usize) -> Result<bool, Failure>) -> Result<Fitting, Failure> {
        let (mut fit, mut beyond) = (0, self.all.len());
        while fit < beyond {
            let middle = usize::midpoint(fit, beyond);
            match does_fit(middle)? {
                true => fit = middle + 1,
                false => beyond = middle,
            }
        }
        Ok(Fitting {
            share: fit as f64 / self.all.len() as f64,
            positions: fit.checked_sub(1).map_or(0, |last| self.all[last].0.most),
        })
    }

    /// What makes the figures of the longest samples a bound; `None` if they are exact.
    pub(super) fn left_out(&self) -> Option<LeftOut> {
        let why = match self.counted {
            Counted::File if self.batch == 1 => return None,
            Counted::File => "all samples of a micro-batch are as long as the longest",
            Counted::Tokenizer => "the chat template adds at most ten positions to each turn and 192 to a sample",
            Counted::Bytes => {
                "tokens are at most the bytes of the text; give the model's folder, or --tokenizer, to count them"
            }
        };
        Some(LeftOut {
            what: Aspect::Length,
            given: Some(format!("data: {}", self.name)),
            why: why.to_owned(),
            direction: Direction::AtMost,
        })
    }
}

impl Counted {
    fn of(dataset: &Dataset) -> Self {
        let is = |is: fn(&Text) -> bool| dataset.samples.iter().any(|sample| is(&sample.text));
        match () {
            () if is(|text| matches!(text, Text::Bytes(1..))) => Self::Bytes,
            () if is(|text| matches!(text, Text::Counted(_))) => Self::Tokenizer,
            () => Self::File,
        }
    }
}
