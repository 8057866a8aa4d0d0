//! `vramscope estimate --recording`: replays a training script's own steps, recorded without a GPU.

use serde::Serialize;
use vramscope_engine::Report;
use vramscope_engine::device::Device;
use vramscope_engine::recording::{self, Header, Opened, Overrides, Played, RecordedRun, Sizes};
use vramscope_engine::report::{Difference, outside};
use vramscope_engine::tape::Gpu;
use vramscope_engine::units::Bytes;
use vramscope_engine::verdict::{Fit, Verdict};
use vramscope_time::{Clock, Estimate as Answer, time_recorded};

use super::Estimate;
use super::batch::Line;
use crate::clock::clock_of;
use crate::failure::Failure;
use crate::input::parallel_flags::ParallelFlags;
use crate::input::recorded::{failed, holds_one, open};
use crate::input::room::RoomFlags;
use crate::input::setup_flags::SetupFlags;
use crate::input::source::Source;
use crate::input::time_flags::TimeFlags;
use crate::output::target::Target;
use crate::output::{self, Format, JsonArray, terminal, text};

/// Card and time that a recorded run is held against, and bytes of the card outside PyTorch's allocator.
struct Against<'a> {
    target: Option<Target>,
    outside: Bytes,
    gpus: u64,
    clock: Option<Clock>,
    time: &'a TimeFlags,
}

impl<'a> Against<'a> {
    /// What was named, or else the card that the recording was made for.
    fn of((room, time): (&RoomFlags, &'a TimeFlags), header: &Header) -> Result<Self, Failure> {
        let own = Device::by_name(&header.gpu.name).ok();
        let card = match own.filter(|_| !room.names_card()) {
            Some(own) => Some(own),
            None => room.names_card().then(|| room.card_or_reference()).transpose()?,
        };
        let clock = card.map(|card| clock_of(card, time.kernels.as_ref())).transpose()?;
        Ok(Self {
            target: room.target()?.or(own.map(Target::Card)),
            outside: match (room.names_card(), own) {
                (false, Some(own)) => outside::total(own),
                _ => room.outside()?,
            },
            gpus: header.world,
            clock: clock.flatten(),
            time,
        })
    }

    fn fit(&self, played: &Played) -> Option<(Target, Fit)> {
        let target = self.target?;
        Some((target, Fit::of_each(&played.report, target.room(), self.gpus)))
    }
}

impl Estimate {
    /// Replays a recording, and compares it with the named card, or else with the card it was recorded for.
    ///
    /// # Errors
    /// See [`Failure`].
    pub fn run_recorded(mut self, source: &Source) -> Result<(), Failure> {
        let sizes = self.setup.take_sizes();
        if self.setup != SetupFlags::default() || self.parallel != ParallelFlags::default() {
            return Err(holds_one(source));
        }
        let gpu = self.room.names_card().then(|| self.room.gpu()).transpose()?;
        let overrides = self.overrides.of();
        let mut points: Vec<Vec<(String, u64)>> = self.at.iter().map(|at| at.0.clone()).collect();
        match open(source, gpu)? {
            Opened::Run(_) if !sizes.is_empty() || !points.is_empty() => Err(holds_one(source)),
            Opened::Run(run) => {
                let against = Against::of((&self.room, &self.time), &run.about.header)?;
                let run = run.with(overrides).map_err(|error| failed(source, &error))?;
                show((source, run), self.format.unwrap_or(Format::Text), &against).map(|_| ())
            }
            Opened::Sizes(all) => {
                let against = Against::of((&self.room, &self.time), all.header())?;
                if points.is_empty() {
                    points.push(Vec::new());
                }
                points.iter_mut().for_each(|point| point.extend(sizes.iter().cloned()));
                let asked = Asked {
                    source,
                    all: &all,
                    gpu,
                    overrides,
                };
                match &points[..] {
                    [only] => {
                        let format = self.format.unwrap_or(Format::Text);
                        show((source, asked.at(only)?), format, &against).map(|_| ())
                    }
                    _ => sweep(&asked, &points, self.format.unwrap_or(Format::Jsonl), &against),
                }
            }
        }
    }
}

/// A recording of all sizes that is asked about.
struct Asked<'a> {
    source: &'a Source,
    all: &'a Sizes,
    gpu: Option<Gpu>,
    overrides: Overrides,
}

impl Asked<'_> {
    fn at(&self, named: &[(String, u64)]) -> Result<RecordedRun, Failure> {
        let point = self.all.point(named).map_err(|error| failed(self.source, &error))?;
        let run = self.all.at(&point, self.gpu);
        let run = run.and_then(|run| run.with(self.overrides));
        run.map_err(|error| failed(self.source, &error))
    }
}

fn play(source: &Source, run: RecordedRun) -> Result<Played, Failure> {
    recording::report(run).map_err(|error| failed(source, &error))
}

/// Plays a recording of one size; returns how it fits the card that was named or recorded for, and the report.
///
/// # Errors
/// If the recording cannot be read or played.
pub fn judged(
    source: &Source,
    (room, time): (&RoomFlags, &TimeFlags),
) -> Result<(Option<(Target, Fit)>, Report), Failure> {
    let gpu = room.names_card().then(|| room.gpu()).transpose()?;
    match open(source, gpu)? {
        Opened::Run(run) => {
            let against = Against::of((room, time), &run.about.header)?;
            let played = play(source, *run)?;
            Ok((against.fit(&played), played.report))
        }
        Opened::Sizes(_) => Err(holds_one(source)),
    }
}

/// Two recordings beside each other as JSON.
#[derive(Serialize)]
struct Compared<'a> {
    names: &'a [String; 2],
    versions: &'a [(String, [String; 2])],
    difference: &'a Difference,
}

/// Plays two recordings of one size, and writes where their memory differs, tensor by tensor.
///
/// # Errors
/// If one cannot be read or played, or standard output cannot be written.
pub fn compare(
    names: &[String; 2],
    sources: [Source; 2],
    (room, time): (&RoomFlags, &TimeFlags),
    format: Format,
) -> Result<(), Failure> {
    let gpu = room.names_card().then(|| room.gpu()).transpose()?;
    let mut all = Vec::new();
    for source in &sources {
        let Opened::Run(run) = open(source, gpu)? else {
            return Err(holds_one(source));
        };
        let against = Against::of((room, time), &run.about.header)?;
        let played = play(source, *run)?;
        let fit = against.fit(&played).map(|(_, fit)| fit);
        all.push((played, fit));
    }
    let [(a, of_a), (b, of_b)] = &all[..] else {
        unreachable!("two were played");
    };
    let outside = |fit: &Option<Fit>| fit.as_ref().map_or(Vec::new(), |fit| fit.outside.clone());
    let [outside_a, outside_b] = [of_a, of_b].map(outside);
    let difference = Difference::between([(&a.report, &outside_a), (&b.report, &outside_b)]);
    let versions = differing([&a.about.header, &b.about.header]);
    let compared = Compared {
        names,
        versions: &versions,
        difference: &difference,
    };
    match format {
        Format::Text => output::print(&text::recorded_against(
            names,
            &versions,
            &difference,
            terminal::width(),
        )),
        Format::Json => output::print_json(&compared),
        Format::Jsonl => output::print_json_line(&compared),
    }
}

/// Libraries whose versions differ, by name.
fn differing([a, b]: [&Header; 2]) -> Vec<(String, [String; 2])> {
    let names: std::collections::BTreeSet<&String> = a.versions.keys().chain(b.versions.keys()).collect();
    let of = |header: &Header, name: &String| header.versions.get(name).map_or("none", String::as_str).to_owned();
    let both = names.into_iter().map(|name| (name.clone(), [of(a, name), of(b, name)]));
    both.filter(|(_, [a, b])| a != b).collect()
}

/// Plays a recording of one size and writes what came out; returns the verdict on the card that was named or recorded for.
///
/// # Errors
/// If the recording cannot be read or played, or standard output cannot be written.
pub fn show_one(
    source: &Source,
    (room, time): (&RoomFlags, &TimeFlags),
    format: Format,
) -> Result<Option<Verdict>, Failure> {
    let gpu = room.names_card().then(|| room.gpu()).transpose()?;
    match open(source, gpu)? {
        Opened::Run(run) => {
            let against = Against::of((room, time), &run.about.header)?;
            show((source, *run), format, &against)
        }
        Opened::Sizes(_) => Err(holds_one(source)),
    }
}

/// Plays a run, and writes what came out; returns the verdict on it.
fn show(
    (source, mut run): (&Source, RecordedRun),
    format: Format,
    against: &Against<'_>,
) -> Result<Option<Verdict>, Failure> {
    let expense = against.time.expense()?;
    let is_whole = run.about.untimed.is_empty();
    let step = (&run.setup(), run.take_work());
    let clock = against.clock.as_ref();
    let feed = |batch| against.time.data(batch);
    let time = clock.map(|clock| time_recorded(step, is_whole, clock, expense, feed));
    let played = &play(source, run)?;
    let (target, outside) = (against.fit(played), against.outside);
    let verdict = target.as_ref().map(|(_, fit)| fit.verdict);
    match format {
        Format::Text => output::print(&text::recorded(
            played,
            target.as_ref(),
            time.as_ref(),
            terminal::width(),
        )),
        Format::Json => {
            let target = target.as_ref().map(|(target, fit)| (target.name(), fit));
            let (ms, time) = time.unzip();
            let memory = played.answer(target, outside);
            output::print_json(&Answer {
                parallel: None,
                memory,
                around: None,
                ms,
                time,
            })
        }
        Format::Jsonl => {
            let ms = time.map(|(ms, _)| ms);
            output::print_json_line(&Line::new(0, &Ok(&played.report), (outside, ms), &[]))
        }
    }?;
    Ok(verdict)
}

/// Writes a line for each point; one at which no recording tells is a line that says why.
fn sweep(
    asked: &Asked<'_>,
    points: &[Vec<(String, u64)>],
    format: Format,
    against: &Against<'_>,
) -> Result<(), Failure> {
    let mut array = JsonArray::default();
    for (number, point) in points.iter().enumerate() {
        let played = asked.at(point).and_then(|run| play(asked.source, run));
        let played = played.map_err(|failure| failure.to_string());
        let report = played.as_ref().map(|played| &played.report).map_err(String::clone);
        let line = Line::new(number, &report, (against.outside, None), &[]);
        match format {
            Format::Text => output::print(&text::recorded_line(number, point, report.as_ref()))?,
            Format::Json => array.push(&line)?,
            Format::Jsonl => output::print_json_line(&line)?,
        }
    }
    if format == Format::Json { array.close() } else { Ok(()) }
}
