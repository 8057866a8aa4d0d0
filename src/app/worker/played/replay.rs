//! A recording that the host keeps, replayed for a card and an allocator.

use std::cell::RefCell;
use std::rc::Rc;

use vramscope_engine::device::Device;
use vramscope_engine::recording::{
    self, Header, Opened, OptimizerForm, Overrides, Played, RecordedRun, RecordingError, Sizes,
};
use vramscope_engine::tape::Gpu;
use vramscope_plan::Now;

use super::batches::BatchesWork;
use super::changes::ChangesWork;
use crate::state::{Draft, Key, Reading, named_counts};
use crate::worker::coded::Coded;
use crate::worker::protocol::Answer;
use crate::worker::recorded::{Facts, Fault, RecordedAnswer, Replay, Size, Unpacked};
use crate::worker::run::Ran;
use crate::worker::slices::{self, Kept, Parts};
use crate::worker::view::{self, Card, Inputs};

/// An unpacked file of the recorder.
pub struct Recorded {
    lines: Unpacked,
    /// The file as it was read before.
    read: RefCell<Option<Read>>,
    /// Facts of the last replay.
    facts: RefCell<Option<Facts>>,
}

/// What is kept of a file, so that the next answer need not read it again.
enum Read {
    /// The steps of one run, for a card.
    Run(Option<Gpu>, Box<RecordedRun>),
    /// Steps at all sizes.
    Sizes(Rc<Sizes>),
}

/// A recorded step that was replayed for a card.
pub(super) struct Replayed {
    facts: Facts,
    step: slices::Recorded,
    ran: Ran,
    pub card: Result<Card, String>,
}

impl Replayed {
    pub const fn report(&self) -> &vramscope_engine::Report {
        &self.ran.report
    }
}

/// Returns the card of some entries, and its shape; a card that too little is known about runs like the measured one.
pub(super) fn card(reading: &Reading) -> (Result<&'static Device, String>, Option<Gpu>) {
    let named = Device::by_name(&reading.gpu);
    let gpu = named.as_ref().ok().map(|device| device.gpu().unwrap_or_default());
    (named.map_err(|error| error.to_string()), gpu)
}

/// Returns the settings among some entries that replace recorded ones.
pub(super) fn overrides(reading: &Reading) -> Overrides {
    Overrides {
        expandable_segments: reading.good.get(Key::ExpandableSegments).parse().ok(),
        optimizer: OptimizerForm::named(reading.good.get(Key::OptimizerForm)),
    }
}

impl Recorded {
    /// Keeps the lines of a file.
    pub const fn open(lines: Unpacked) -> Self {
        Self {
            lines,
            read: RefCell::new(None),
            facts: RefCell::new(None),
        }
    }

    /// Steps at all sizes, if the file was found to hold them.
    pub(super) fn sizes(&self) -> Option<Rc<Sizes>> {
        match &*self.read.borrow() {
            Some(Read::Sizes(all)) => Some(all.clone()),
            _ => None,
        }
    }

    /// Reads the run of some entries for a card.
    fn run(&self, reading: &Reading, gpu: Option<Gpu>) -> Result<RecordedRun, Fault> {
        match &*self.read.borrow() {
            Some(Read::Run(of, run)) if *of == gpu => return Ok((**run).clone()),
            Some(Read::Sizes(all)) => return Ok(at(all, reading, gpu)?),
            _ => {}
        }
        let lines = self.lines.as_ref().map_err(Clone::clone)?;
        match recording::open(&lines[..], gpu)? {
            Opened::Run(run) => {
                // The copy takes time that the first answer does without.
                if self.facts.borrow().is_some() {
                    self.read.replace(Some(Read::Run(gpu, run.clone())));
                }
                Ok(*run)
            }
            Opened::Sizes(all) => {
                let all: Rc<Sizes> = Rc::from(all);
                self.read.replace(Some(Read::Sizes(all.clone())));
                Ok(at(&all, reading, gpu)?)
            }
        }
    }

    /// Replays the recording for some entries. `first` is true if the card that it was made for may replace another
    /// one.
    pub(super) fn replay(&self, entries: &Draft, first: bool) -> Result<Replayed, Fault> {
        let reading = Reading::of(entries, &Draft::default());
        let (named, gpu) = card(&reading);
        let (mut run, is_own) = match self.run(&reading, gpu) {
            Err(Fault::OtherCard(..)) if first => (self.run(&reading, None)?, true),
            run => (run?, false),
        };
        let (segments, forms) = (run.expandable_segments(), forms(&run));
        run = run.with(overrides(&reading))?;
        let (setup, work) = (run.setup(), run.take_work());
        let Played { about, report, asked } = recording::report(run)?;
        let own = Device::by_name(&about.header.gpu.name).ok();
        let device = own.filter(|_| is_own).map_or(named, Ok);
        let facts = Facts {
            expandable_segments: segments,
            optimizer_forms: forms,
            ran: Some((about.steps, about.operations)),
            ..self.of_header(&about.header, about.model.clone())
        };
        self.facts.replace(Some(facts.clone()));
        Ok(Replayed {
            facts,
            card: device.map(|device| Card::of((device, reading.room(device)), &report, about.header.world)),
            ran: Ran { report, pass: None },
            step: slices::Recorded {
                about,
                asked,
                setup,
                work,
            },
        })
    }

    /// Facts of the last replay.
    pub(super) fn facts(&self) -> Option<Facts> {
        self.facts.borrow().clone()
    }

    /// Facts that the file's header states.
    fn of_header(&self, header: &Header, model: String) -> Facts {
        let version = |(name, version): (&String, &String)| (name.clone(), version.clone());
        Facts {
            model,
            card: header.gpu.name.clone(),
            capability: header.gpu.capability,
            ran: None,
            versions: header.versions.iter().map(version).collect(),
            command: header.command.as_ref().map(|words| words.join(" ")).unwrap_or_default(),
            rank: [header.rank, header.world],
            expandable_segments: header.expandable_segments(),
            optimizer_forms: Vec::new(),
            sizes: self.sizes().map(|all| choices(&all)).unwrap_or_default(),
        }
    }
}

/// Builds the run of some entries from a recording of all sizes.
fn at(all: &Sizes, reading: &Reading, gpu: Option<Gpu>) -> Result<RecordedRun, RecordingError> {
    all.at(&point(all, reading)?, gpu)
}

/// Returns the sizes of some entries.
pub(super) fn point(all: &Sizes, reading: &Reading) -> Result<Vec<u64>, RecordingError> {
    // The reading holds only what it could read.
    all.point(&named_counts(reading.good.get(Key::Sizes)).unwrap_or_default())
}

/// Names of the optimizer's forms that can be derived, the recorded one first.
fn forms(run: &RecordedRun) -> Vec<String> {
    let recorded = run.optimizer_form();
    let mut forms = run.optimizer_forms();
    vramscope_engine::order::sort_by_key(&mut forms, |form| Some(*form) != recorded);
    forms.into_iter().map(|form| form.name().to_owned()).collect()
}

/// Sizes that can be chosen.
fn choices(all: &Sizes) -> Vec<Size> {
    let axes = all.axes().into_iter().zip(all.first());
    let size = |(axis, first): (recording::Axis, &u64)| Size {
        name: axis.name,
        first: *first,
        recorded: axis.recorded,
        between: axis.between,
    };
    axes.map(size).collect()
}

impl Replay for Recorded {
    fn play(&self, id: u32, entries: &Draft, first: bool) -> (Answer, Option<Kept>) {
        let Replayed { facts, step, ran, card } = match self.replay(entries, first) {
            Ok(replayed) => replayed,
            Err(fault) => {
                let of_sizes =
                    |all: Rc<Sizes>| self.of_header(all.header(), all.model().unwrap_or_default().to_owned());
                let answer = RecordedAnswer {
                    facts: self.sizes().map(of_sizes),
                    run: Err(fault),
                };
                return (Answer::Recorded(Coded::of(&answer)), None);
            }
        };
        let answer = RecordedAnswer {
            facts: Some(facts),
            run: Ok(view::RunView::of(id, &ran, Inputs::default(), card.clone())),
        };
        let kept = Kept {
            id,
            subject: None,
            recorded: Some(Box::new(step)),
            ran,
            card: card.ok(),
        };
        (Answer::Recorded(Coded::of(&answer)), Some(kept))
    }

    fn changes(self: Rc<Self>, entries: &Draft, now: Now) -> Box<dyn Parts> {
        Box::new(ChangesWork::of(self, entries, now))
    }

    fn batches(self: Rc<Self>, entries: &Draft) -> Box<dyn Parts> {
        Box::new(BatchesWork::of(&self, entries))
    }
}
