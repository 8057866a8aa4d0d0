//! Finds the largest batch, or another size, of a recorded model that trains under a limit.

use vramscope_engine::allocator::Options;
use vramscope_engine::recording::{RecordingError, Sizes};
use vramscope_engine::simulate::{ORDERS, Recording, Trial, attempt_recorded, stops_in_orders};
use vramscope_engine::tape::Gpu;
use vramscope_engine::units::Bytes;

use crate::max_batch::Search;

/// Largest value of a size that trains under a limit.
#[derive(Debug, Clone)]
pub struct Largest {
    /// Largest value; `None` if even the least valid one does not train.
    pub value: Option<u64>,
    /// Tried values in ascending order, with their outcomes.
    pub tries: Vec<(u64, Trial)>,
    /// Least and greatest value at which the recording is valid.
    pub range: [u64; 2],
    /// Command that records beyond the range, if the answer lies at its end.
    pub beyond: Option<String>,
}

/// Finds the largest value of the size at `varied` that trains `steps` steps under `limit`, with the other sizes of
/// `point`. Like a built-in model's ([`max_batch`](crate::max_batch)), it must train in every order of segments that is
/// tried.
///
/// # Errors
/// If the recording is not valid at the other sizes; else like [`Sizes::at`].
pub fn largest_recorded(
    sizes: &Sizes,
    (varied, point): (usize, &[u64]),
    gpu: Option<Gpu>,
    (limit, steps): (Bytes, u64),
) -> Result<Largest, RecordingError> {
    let [least, most] = range_at(sizes, varied, point)?;
    let at = |value: u64| {
        let mut point = point.to_vec();
        point[varied] = value;
        point
    };
    let mut search = Search::within(limit, [least, most]);
    let mut best: Option<(u64, Recording, Options)> = None;
    loop {
        if let Some(value) = search.next() {
            let (recording, options) = recording(sizes, &at(value), gpu, limit)?;
            let trial = attempt_recorded(&recording, &options, steps);
            if trial.trains() {
                best = Some((value, recording, options));
            }
            search.note(value, trial);
            continue;
        }
        let good = search.good();
        if good < least {
            break;
        }
        let (recording, options) = match best.take() {
            Some((value, recording, options)) if value == good => (recording, options),
            _ => recording(sizes, &at(good), gpu, limit)?,
        };
        let trial = attempt_recorded(&recording, &options, steps);
        let stopped = match trial.trains() {
            true => stops_in_orders(&recording, &options, steps, 0..ORDERS),
            false => Some(trial.clone()),
        };
        match stopped {
            Some(stopped) => search.step_down(stopped),
            None if !search.knows(good) => search.note(good, trial),
            None => break,
        }
    }
    let good = search.good();
    let beyond = match good {
        _ if good < least && least > 1 => Some(sizes.command(&at((least / 2).max(1)))),
        _ if good == most => Some(sizes.command(&at(guess(&search, most, limit)))),
        _ => None,
    };
    Ok(Largest {
        value: (good >= least).then_some(good),
        tries: search.into_tries(),
        range: [least, most],
        beyond,
    })
}

/// Returns the range of values of one size that are valid with the others of a point.
fn range_at(sizes: &Sizes, varied: usize, point: &[u64]) -> Result<[u64; 2], RecordingError> {
    let holds = |value: u64| {
        let mut point = point.to_vec();
        point[varied] = value;
        sizes.holds(&point).is_ok()
    };
    let all = sizes.ranges();
    let (least, most) = (*all[varied].start(), *all[varied].end());
    let first = (least..=most).take(MOST_TRIED).find(|&value| holds(value));
    let Some(first) = first else {
        return Err(sizes.holds(point).err().unwrap_or(RecordingError::NoStructure));
    };
    let last = (first..=most).take(MOST_TRIED).take_while(|&value| holds(value)).last();
    Ok([first, last.unwrap_or(first)])
}

fn recording(
    sizes: &Sizes,
    point: &[u64],
    gpu: Option<Gpu>,
    limit: Bytes,
) -> Result<(Recording, Options), RecordingError> {
    let run = sizes.at(point, gpu)?;
    let options = Options {
        limit: Some(limit),
        ..run.options().clone()
    };
    Ok((run.into_recording(), options))
}

/// Estimates the answer beyond the recorded range, on the line through the highest two peaks.
fn guess(search: &Search, most: u64, limit: Bytes) -> u64 {
    let peaks = search.trained();
    let slope = match peaks[..] {
        [.., (before, low), (last, high)] => high.saturating_sub(low) / (last - before).max(1),
        [(last, high)] => high / last.max(1),
        [] => 0,
    };
    let room = limit.get().saturating_sub(peaks.last().map_or(0, |(_, high)| *high));
    most + room.checked_div(slope).unwrap_or(most).clamp(1, 7 * most.max(1))
}

/// Maximum number of values checked one by one for the begin or end of a structure.
const MOST_TRIED: usize = 1 << 16;
