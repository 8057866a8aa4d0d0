//! Computes the time of a run's step in slices, once its memory is on screen.

use std::rc::Rc;

use vramscope_engine::device::Device;
use vramscope_engine::recording::Played;
use vramscope_engine::report::{HostRoom, outside};
use vramscope_engine::setup::Parallel;
use vramscope_engine::simulate::Recording;
use vramscope_engine::tape::Gpu;
use vramscope_engine::units::Bytes;
use vramscope_engine::verdict::Room;
use vramscope_engine::{Model, Setup};
use vramscope_launch::Graded;
use vramscope_time::{Asked, Estimate, Expense, Feed, Phase, RunTime, StepTime, TimedRun, time_recorded};

use super::clocks::{Chosen, basis, clock, other_card, recorded_clock};
use super::coded::Coded;
use super::export::pretty;
use super::protocol::{Answer, Ask, TimeEntries};
use super::run::Subject;
use super::slices::{Kept, Parts, Recorded};
use super::timing::{Communication, KernelTime, Line, NoTime, RunBill, Timing};
use crate::state::{Draft, Key};

/// Starts answering a question that needs a run's time; yields no answer if the run is no longer kept.
pub fn begin(kept: Option<&Kept>, ask: &Ask) -> Box<dyn Parts> {
    match (kept, ask) {
        (Some(kept), Ask::Time { entries, .. }) if kept.ran.pass.is_none() => match (&kept.subject, &kept.recorded) {
            (Some(subject), _) => Box::new(TimeWork::of(kept.id, subject, entries)),
            (None, Some(recorded)) => Box::new(TimeWork::of_recorded(kept, recorded, entries)),
            (None, None) => Box::new(Once(None)),
        },
        (Some(kept), Ask::Export { entries, .. }) => Box::new(Once(match (&kept.subject, &kept.recorded) {
            (Some(subject), _) => Some(document(kept, subject, entries)),
            (None, Some(recorded)) => Some(recorded_document(kept, recorded, entries)),
            (None, None) => None,
        })),
        _ => Box::new(Once(None)),
    }
}

/// A single answer, if there is one.
struct Once(Option<String>);

impl Parts for Once {
    fn left(&self) -> u32 {
        self.0.is_some().into()
    }

    fn next(&mut self) -> Option<Answer> {
        self.0.take().map(Answer::File)
    }
}

/// Entries of a time question in the engine's types.
struct Question {
    feed: Option<Feed>,
    /// Error in the entered data pipeline.
    wrong: Option<String>,
    expense: Expense,
    /// Bytes per second of the network between several GPUs, if entered.
    network: Option<f64>,
}

impl Question {
    fn of(entered: &Draft) -> Self {
        let feed = match entered.get(Key::Data).trim() {
            "" => Ok(None),
            text => Feed::read(text).map(Some),
        };
        let number = |key: Key| key.form().read(entered.get(key)).ok();
        Self {
            wrong: feed.as_ref().err().cloned(),
            feed: feed.unwrap_or_default(),
            expense: Expense {
                samples: number(Key::Samples).and_then(|n| n.as_u64()).filter(|n| *n > 0),
                price_per_hour: number(Key::PricePerHour).and_then(|n| n.as_f64()),
                watts: number(Key::Watts).and_then(|n| n.as_f64()),
            },
            network: number(Key::Link).and_then(|n| n.as_f64()).map(|gb| gb * 1e9),
        }
    }
}

/// Computes a run's time in three slices: recording, time, bottlenecks.
struct TimeWork {
    run: u32,
    setup: Setup,
    /// Several GPUs that share the run.
    parallel: Option<Parallel>,
    /// Model and card that are simulated; `None` for a recording.
    simulated: Option<(Model, Gpu)>,
    question: Question,
    clock: Result<Rc<Chosen>, NoTime>,
    recording: Option<Recording>,
    /// Kernels of a recording that are timed only by the memory that they read and write.
    untimed: Vec<(String, u64)>,
    timing: Option<Timing>,
    left: u32,
}

impl TimeWork {
    fn of(run: u32, subject: &Subject, entries: &TimeEntries) -> Self {
        let question = Question::of(&entries.entered);
        let clock = clock(subject, entries, question.network);
        Self {
            run,
            setup: subject.reading.setup.clone(),
            parallel: subject.reading.parallel,
            simulated: Some((subject.model.clone(), subject.gpu())),
            question,
            left: if clock.is_ok() { 3 } else { 1 },
            clock,
            recording: None,
            untimed: Vec::new(),
            timing: None,
        }
    }

    fn of_recorded(kept: &Kept, recorded: &Recorded, entries: &TimeEntries) -> Self {
        let clock = recorded_clock(kept, entries);
        let untimed = recorded.about.untimed.iter();
        Self {
            run: kept.id,
            setup: recorded.setup.clone(),
            parallel: None,
            simulated: None,
            question: Question::of(&entries.entered),
            left: if clock.is_some() { 2 } else { 1 },
            clock: clock.ok_or_else(|| NoTime::Card(recorded.about.header.gpu.name.clone())),
            recording: Some(recorded.work.clone()),
            untimed: untimed.map(|(name, count)| ((*name).to_owned(), *count)).collect(),
            timing: None,
        }
    }

    fn record(&self, chosen: &Chosen) -> Option<Recording> {
        let (model, gpu) = self.simulated.as_ref()?;
        // The setup was simulated before, so nothing is refused now.
        let network = chosen.clock.network();
        let run = TimedRun::record(model, &self.setup, self.parallel.as_ref(), *gpu, network).ok()?;
        Some(run.into_recording())
    }

    /// Runs a query on the recording.
    fn ask<T>(&mut self, chosen: &Chosen, ask: impl FnOnce(&TimedRun<'_>) -> T) -> Option<T> {
        let (setup, parallel) = (&self.setup, self.parallel.as_ref());
        let mut run = TimedRun::of(self.recording.take()?, (setup, parallel), chosen.clock.network());
        run.feed(self.question.feed.as_ref().map(|feed| feed.of_batch(setup.batch)));
        let told = ask(&run);
        self.recording = Some(run.into_recording());
        Some(told)
    }

    fn timing(&mut self, chosen: &Chosen) -> Option<Timing> {
        let costs = chosen.clock.costs();
        let (id, expense, wrong) = (self.run, self.question.expense, self.question.wrong.clone());
        let untimed = self.untimed.clone();
        self.ask(chosen, |run| {
            let time = run.time(&costs);
            let throughput = run.throughput(&time, &costs);
            let data = run.data(&time);
            // Kernels without a rule count as copies at least: nobody knows how much longer they take.
            let range = run.interval(&time, &costs).filter(|_| untimed.is_empty());
            Timing {
                run: id,
                ms: time.parallel_time.milliseconds(),
                micro_batches: run.setup().accum.max(1),
                samples: run.samples(),
                positions: run.setup().seq,
                step_ms: time.step * 1e3,
                range_ms: range.map(|ends| ends.map(|seconds| seconds * 1e3)),
                interval_ms: time.interval() * 1e3,
                phases: whole(run, &time, |step, phase| step.phase(phase).total * 1e3),
                lines: lines(run, &time),
                communication: (run.gpus() > 1).then(|| communication(run.gpus(), &time)),
                idle_share: time.parallel_time.idle_share(),
                samples_per_s: throughput.samples_per_s,
                tokens_per_s: throughput.tokens_per_s,
                flops: throughput.flops,
                peak: throughput.peak,
                flops_utilisation: throughput.flops_utilisation,
                by_kernel: by_kernel(run, &time),
                untimed,
                workers: data.map(|data| [data.workers, data.best_workers]),
                wrong_data: wrong,
                bill: expense.bill(throughput.samples_per_s, run.gpus()).map(RunBill::from),
                price_per_hour: expense.price_per_hour,
                watts: expense.watts,
                basis: basis(chosen),
                host: chosen.clock.measured().host.clone(),
                other_card: other_card(chosen),
                bottlenecks: None,
            }
        })
    }
}

/// A value of each phase over the whole step: of the last micro-batch and the update, and of the micro-batches before.
fn whole(run: &TimedRun<'_>, time: &RunTime, of: impl Fn(&StepTime, Phase) -> f64) -> [f64; 3] {
    let before = run.setup().accum.max(1) - 1;
    Phase::ALL.map(|phase| {
        let quiet = match &time.parallel_time.before {
            Some(step) if phase != Phase::Optimizer => before as f64 * of(step, phase),
            _ => 0.0,
        };
        quiet + of(&time.parallel_time.last, phase)
    })
}

/// GPU and host time of each phase.
fn lines(run: &TimedRun<'_>, time: &RunTime) -> [Line; 3] {
    let busy = whole(run, time, |step, phase| step.phase(phase).busy * 1e3);
    let host = whole(run, time, |step, phase| step.phase(phase).host * 1e3);
    [0, 1, 2].map(|at| Line {
        busy_ms: busy[at],
        host_ms: host[at],
    })
}

fn communication(gpus: u64, time: &RunTime) -> Communication {
    let of = time.communication();
    Communication {
        gpus,
        exposed_ms: of.exposed_ms,
        total_ms: of.total_ms,
        bytes_sent: of.bytes_sent,
        filling_ms: of.filling_ms,
    }
}

/// GPU time by kind of kernel, longest first.
fn by_kernel(run: &TimedRun<'_>, time: &RunTime) -> Vec<KernelTime> {
    run.counted(time)
        .parts()
        .into_iter()
        .map(|part| KernelTime {
            name: part.name.to_owned(),
            ms: part.ms,
            launches: part.launches,
        })
        .collect()
}

impl Parts for TimeWork {
    fn left(&self) -> u32 {
        self.left
    }

    fn next(&mut self) -> Option<Answer> {
        let slice = self.left;
        self.left = slice.checked_sub(1)?;
        let chosen = match &self.clock {
            Ok(chosen) => chosen.clone(),
            Err(why) => return Some(Answer::Time(Coded::of(&Err(why.clone())))),
        };
        match slice {
            3 => {
                self.recording = self.record(&chosen);
                return None;
            }
            2 => self.timing = self.timing(&chosen),
            _ => {
                let costs = chosen.clock.costs();
                let bottlenecks = self.ask(&chosen, |run| run.bottlenecks(&costs));
                if let Some(timing) = &mut self.timing {
                    timing.bottlenecks = bottlenecks;
                }
            }
        }
        self.timing.clone().map(|timing| Answer::Time(Coded::of(&Ok(timing))))
    }
}

/// The full answer to a recording as JSON, same as the command line's `--format json`.
fn recorded_document(kept: &Kept, recorded: &Recorded, entries: &TimeEntries) -> String {
    let question = Question::of(&entries.entered);
    let chosen = recorded_clock(kept, entries);
    let time = chosen.as_ref().map(|chosen| {
        let step = (&recorded.setup, recorded.work.clone());
        let feed = |batch| Some(question.feed.as_ref()?.of_batch(batch));
        let is_whole = recorded.about.untimed.is_empty();
        time_recorded(step, is_whole, &chosen.clock, question.expense, feed)
    });
    let played = Played {
        about: recorded.about.clone(),
        report: kept.ran.report.clone(),
        asked: recorded.asked.clone(),
    };
    let card = kept.card.as_ref();
    let device = card.and_then(|card| Device::by_name(&card.name).ok());
    let target = device.zip(card).map(|(device, card)| {
        let room = Room::limited(device, card.limit);
        (room.name(), &card.fit)
    });
    let (ms, time) = time.unzip();
    pretty(&Estimate {
        parallel: None,
        memory: played.answer(target, device.map_or(Bytes::ZERO, outside::total)),
        around: None,
        ms,
        time,
    })
}

/// The full answer as JSON, same as the command line's `--format json`.
fn document(kept: &Kept, subject: &Subject, entries: &TimeEntries) -> String {
    let (model, setup) = (&subject.model, &subject.reading.setup);
    if let Some(figures) = &kept.ran.pass {
        return pretty(&figures.answer((model, setup), subject.new_tokens()));
    }
    let question = Question::of(&entries.entered);
    let workers = question.feed.as_ref().map_or(0, Feed::workers);
    let parallel = subject.reading.parallel;
    let chosen = clock(subject, entries, question.network).ok();
    let time = chosen.as_ref().and_then(|chosen| {
        let network = chosen.clock.network();
        let mut run = TimedRun::record(model, setup, parallel.as_ref(), subject.gpu(), network).ok()?;
        run.feed(question.feed.map(|feed| feed.of_batch(setup.batch)));
        let asked = Asked {
            sources: chosen.clock.sources(),
            expense: question.expense,
        };
        Some(run.answer(&chosen.clock.costs(), asked))
    });
    let room = subject.room();
    let target = room
        .as_ref()
        .zip(kept.card.as_ref())
        .map(|(room, card)| (room.name(), &card.fit));
    let (ms, time) = time.unzip();
    let around = super::around::of(kept, subject, workers).ok();
    let host = HostRoom {
        processes: subject.gpus(),
        memory: None,
    };
    let left_out = subject.reading.good.left_out();
    let estimate = Estimate {
        parallel,
        memory: kept.ran.report.answer((model, setup), target, subject.outside()),
        around: around
            .as_ref()
            .map(|around| around.judged(kept.ran.report.peak_reserved, room, host)),
        ms,
        time,
    };
    pretty(&Graded::of(estimate, &left_out))
}
