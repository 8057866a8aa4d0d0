//! Explains each difference between the asked and the recommended setup by simulating without it.

use super::recommend::Judge;
use super::search::{Candidate, Entry};
use vramscope_engine::setup::{Setting, Setup};
use vramscope_engine::simulate::SimulateError;

/// One difference from the asked setup, compared with the recommended setup without it.
#[derive(Debug, Clone, PartialEq)]
pub struct Reason {
    /// Key of the setting in a case file.
    pub key: &'static str,
    /// The asked value.
    pub from: String,
    /// The recommended value.
    pub to: String,
    /// Bytes saved at the peak of live memory, negative if it takes more; `None` if the setup without this difference
    /// cannot run.
    pub saves: Option<i64>,
    /// Additional estimated seconds per sample, negative if it is faster.
    pub costs: Option<f64>,
    /// True if the setup would exceed the limit without this difference.
    pub needed: bool,
}

/// The recommended setup without one of its differences from the asked setup.
struct Without {
    key: &'static str,
    from: String,
    to: String,
    candidate: Candidate,
}

impl Without {
    /// Compares with the recommended setup, whose figures are `now`.
    fn reason(self, judge: &Judge<'_>, now: &Candidate) -> Reason {
        let without = judge.figures(&self.candidate).ok();
        let difference = |without: &Candidate| without.peak.get().cast_signed() - now.peak.get().cast_signed();
        let seconds = |candidate: &Candidate| candidate.time.map(|_| candidate.seconds_a_sample());
        Reason {
            key: self.key,
            from: self.from,
            to: self.to,
            saves: without.as_ref().map(difference),
            costs: without
                .as_ref()
                .and_then(|without| Some(seconds(now)? - seconds(without)?)),
            needed: without.as_ref().is_some_and(|without| without.peak > judge.limit),
        }
    }
}

/// Explains each setting that differs from the asked setup, by simulating the recommended setup with that setting
/// unchanged.
///
/// # Errors
/// If the setup itself cannot be recorded.
pub(super) fn reasons(judge: &Judge<'_>, candidate: &Candidate) -> Result<Vec<Reason>, SimulateError> {
    let now = judge.figures(candidate)?;
    let differences = without_settings(judge, candidate)
        .into_iter()
        .chain(without_sample(judge, candidate))
        .chain(without_strategy(judge, candidate));
    Ok(differences.map(|without| without.reason(judge, &now)).collect())
}

fn without_settings(judge: &Judge<'_>, candidate: &Candidate) -> Vec<Without> {
    let (asked, setup) = (judge.space.asked(), &candidate.setup);
    let is_choice = |entry: Entry| entry != Entry::Batch && !entry.is_asked_for();
    Setting::by_group()
        .filter(|setting| Entry::of(*setting).is_some_and(is_choice))
        .map(|setting| (setting, setting.of(asked), setting.of(setup)))
        .filter(|(_, from, to)| from != to)
        .map(|(setting, from, to)| Without {
            key: setting.key(),
            from: from.text(),
            to: to.text(),
            candidate: Candidate {
                setup: from.apply(setup),
                ..candidate.clone()
            },
        })
        .collect()
}

/// The first input of the search instead of another.
fn without_sample(judge: &Judge<'_>, candidate: &Candidate) -> Option<Without> {
    if candidate.input == 0 {
        return None;
    }
    let (first, own) = (judge.space.input(0), judge.space.input(candidate.input));
    let [from, to] = [first, own].map(sample);
    let setup = Setup {
        seq: first.seq,
        images: first.images,
        image: first.image,
        grid: first.grid,
        image_sizes: first.image_sizes.clone(),
        frames: first.frames,
        ..candidate.setup.clone()
    };
    let candidate = Candidate {
        input: 0,
        setup,
        ..candidate.clone()
    };
    Some(Without {
        key: "sample",
        from,
        to,
        candidate,
    })
}

/// The first parallel strategy of the search instead of another.
fn without_strategy(judge: &Judge<'_>, candidate: &Candidate) -> Option<Without> {
    let parallel = candidate.parallel.as_ref()?;
    let first = judge.space.parallel(0).filter(|first| first != parallel)?;
    Some(Without {
        key: "strategy",
        from: shares(&first),
        to: shares(parallel),
        candidate: Candidate {
            parallel: Some(first),
            ..candidate.clone()
        },
    })
}

/// Describes a sample: `2 images of 1280×720 in 4096 positions`.
fn sample(setup: &Setup) -> String {
    let size = match (&setup.image_sizes[..], setup.grid, setup.image) {
        ([[height, width], ..], ..) => format!(" of {width}×{height}"),
        (_, Some([height, width]), _) => format!(" of {height}×{width} patches"),
        (.., Some(side)) => format!(" of {side}×{side}"),
        _ => String::new(),
    };
    let count = match (setup.frames, setup.image_sizes.len()) {
        (Some(frames), _) => format!("{frames} frames"),
        (_, 0) => format!("{} images", setup.images),
        (_, sizes) => format!("{sizes} images"),
    };
    format!("{count}{size}, {} positions", setup.seq)
}

fn shares(parallel: &vramscope_engine::setup::Parallel) -> String {
    let mut words = parallel.strategy.name().to_owned();
    for (on, word) in [(parallel.mp, " mp"), (parallel.offload.is_any(), " offload")] {
        words += if on { word } else { "" };
    }
    words
}
