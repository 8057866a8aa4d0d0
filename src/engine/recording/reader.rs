//! Reads a recording line by line.

use std::io::BufRead;

use super::components;
use super::error::RecordingError;
use super::fault::Fault;
use super::header::{Format, Header};
use super::input::Lines;
use super::limits::MOST_BYTES;
use super::lines::{self, Line};
use super::run::{About, Assumed, Batches, Cue, RecordedBatch, RecordedRun, StandIn};
use super::settings;
use super::tape_builder::TapeBuilder;
use crate::allocator::Options;
use crate::simulate::Work;
use crate::tape::{Gpu, Tape};
use crate::units::Bytes;

/// Maximum number of assumptions kept; a recording groups them.
const MOST_ASSUMED: usize = 256;

/// Initial capacity for items of work.
const USUAL_WORK: usize = 1 << 16;

/// Reads an unpacked recording for `gpu`, or for the card that it was made for if there is none.
///
/// # Errors
/// If the input is no recording, is cut, has an unknown version, is too large, or has a line that does not follow the
/// format; if the card runs other kernels than the recorded one; if no step ran to its end.
pub fn read(input: impl BufRead, gpu: Option<Gpu>) -> Result<RecordedRun, RecordingError> {
    read_at_most(input, gpu, MOST_BYTES)
}

/// Reads a recording of at most `most` bytes.
pub(super) fn read_at_most(input: impl BufRead, gpu: Option<Gpu>, most: u64) -> Result<RecordedRun, RecordingError> {
    let mut lines = Lines::new(input, most);
    let header = lines.header()?;
    match header.format()? {
        Format::Recording => read_rest(lines, header, gpu),
        Format::Sizes => Err(RecordingError::AllSizes),
    }
}

/// Reads the lines after the header.
pub(super) fn read_rest<R: BufRead>(
    mut lines: Lines<R>,
    header: Header,
    gpu: Option<Gpu>,
) -> Result<RecordedRun, RecordingError> {
    let mut reader = Reader::new(header, gpu)?;
    while !reader.ended {
        let number = lines.number() + 1;
        let Some(line) = lines.next()? else {
            return Err(RecordingError::Cut { lines: number - 1 });
        };
        let played = Line::read(line).and_then(|line| reader.line(&line));
        played.map_err(|fault| RecordingError::at(number, fault))?;
    }
    lines.end()?;
    reader.finish()
}

/// State of reading a recording.
pub(super) struct Reader {
    header: Header,
    options: Options,
    pub builder: TapeBuilder,
    assumed: Vec<Assumed>,
    stand_ins: Vec<StandIn>,
    missing: Vec<String>,
    batches: Option<Batches>,
    ended: bool,
}

impl Reader {
    pub fn new(header: Header, gpu: Option<Gpu>) -> Result<Self, RecordingError> {
        let own = header.gpu();
        let gpu = gpu.unwrap_or(own);
        if gpu.capability != own.capability {
            return Err(RecordingError::OtherCard {
                recorded: header.gpu.name.chars().take(60).collect(),
                has: own.capability.into(),
                asked: gpu.capability.into(),
            });
        }
        let tape = Tape::roomy(gpu);
        tape.expect_work(USUAL_WORK);
        tape.set_workspace_sizes(settings::workspaces(&header.settings));
        Ok(Self {
            options: settings::options(&header.settings.alloc_conf)?,
            header,
            builder: TapeBuilder::new(tape),
            assumed: Vec::new(),
            stand_ins: Vec::new(),
            missing: Vec::new(),
            batches: None,
            ended: false,
        })
    }

    /// Replays a line.
    pub fn line(&mut self, line: &Line<'_>) -> Result<(), Fault> {
        let builder = &mut self.builder;
        match line {
            Line::Op(op) => builder.operation(op)?,
            Line::Triton(triton) => builder.triton(triton)?,
            Line::Free(free) => builder.free(free)?,
            Line::Why(why) => builder.why(why)?,
            Line::Meta(meta) => builder.tables.meta(meta)?,
            Line::Function(named) => builder.tables.operation(named)?,
            Line::Node(named) => builder.tables.node(named)?,
            Line::SourceLine(line) => builder.tables.source_line(line)?,
            Line::Module(module) => builder.tables.module(&builder.tape, module)?,
            Line::Param(param) => builder.param(param)?,
            Line::Mark(mark) => builder.mark(mark)?,
            Line::Ask(ask) => builder.ask(ask),
            Line::ResetPeak => builder.cue(Cue::ResetPeak),
            Line::EmptyCache => builder.cue(Cue::EmptyCache),
            Line::ClearWorkspaces => builder.tape.clear_workspaces(),
            Line::Setting(setting) => self.setting(setting)?,
            Line::Assumed(assumed) => self.assume(assumed),
            Line::StandIn(line) => self.stand_in(line),
            Line::Missing(line) => self
                .missing
                .extend(line.packages.iter().take(MOST_ASSUMED).map(|name| short(name))),
            Line::Batches(line) => self.batches = Some(batches(line)),
            Line::End => self.ended = true,
            Line::Header | Line::Structure => return Err(Fault::SourceLine),
            Line::Other => {}
        }
        Ok(())
    }

    /// Replaces the allocator's options; if they change during a run, the last ones count.
    fn setting(&mut self, line: &lines::Setting) -> Result<(), Fault> {
        if let Some(conf) = &line.alloc_conf {
            self.options = settings::options(conf).map_err(|error| Fault::Json(error.to_string()))?;
        }
        Ok(())
    }

    fn assume(&mut self, line: &lines::Assumed) {
        if self.assumed.len() < MOST_ASSUMED {
            self.assumed.push(Assumed {
                what: short(&line.what),
                how: short(&line.how),
                count: line.count,
            });
        }
    }

    fn stand_in(&mut self, line: &lines::StandIn) {
        if self.stand_ins.len() < MOST_ASSUMED {
            self.stand_ins.push(StandIn {
                what: short(&line.what),
                how: short(&line.how),
            });
        }
    }

    /// Returns the run after all lines are read.
    pub fn finish(self) -> Result<RecordedRun, RecordingError> {
        let Self {
            header,
            options,
            builder,
            assumed,
            stand_ins,
            missing,
            batches,
            ..
        } = self;
        let ids = |param: &super::tables::Param| Some((builder.id_of(param.storage)?, param.trainable));
        let params = || builder.tables.params.iter().filter(|param| !param.buffer);
        let parameters = params().filter_map(ids).collect();
        let count = |of: &dyn Fn(&super::tables::Param) -> bool| params().filter(|p| of(p)).map(|p| p.elements).sum();
        let (all, trainable) = (count(&|_| true), count(&|param| param.trainable));
        let model = builder.tables.modules.first().map(|root| String::from(&*root.class));
        let steps = builder.marks.finish();
        if steps.is_empty() {
            return Err(RecordingError::NoStep);
        }
        let end = builder.tape.mark();
        let items = builder.tape.take_work();
        let last = steps.last().cloned().unwrap_or_default();
        let components = components::of(&builder.tables.modules);
        let root = builder.tables.modules.first().map(|root| root.scope);
        // Storages that live to the end are freed with the builder, which is not part of the run.
        let mut log = builder.tape.clone().finish();
        let mut events = std::mem::take(&mut log.events);
        events.truncate(end);
        for (scope, component) in components {
            log.scopes[scope as usize].component = component;
        }
        components::name_losses(&mut log, &events, &steps, root);
        let about = About {
            model: model.unwrap_or_default(),
            header,
            steps: steps.len(),
            operations: builder.operations,
            at: None,
            assumed,
            stand_ins,
            missing,
            // A line about other steps than those that were recorded says nothing of them.
            batches: batches.filter(|batches| batches.steps.len() >= steps.len()),
            unknown: builder.unknown.into_iter().collect(),
            untimed: builder.host.unknown.into_iter().collect(),
        };
        Ok(RecordedRun {
            about,
            cues: builder.cues,
            streams: builder.streams,
            options,
            log,
            events,
            steps,
            work: Work::of(items, last.work),
            micro_batches: last.micro_batches,
            params: all,
            trainable,
            parameters,
        })
    }
}

/// Shortens text that will be shown.
fn short(text: &str) -> String {
    text.chars().take(200).collect()
}

/// Batches of recorded steps; which of them decides is known once the run is replayed.
fn batches(line: &lines::Batches) -> Batches {
    let steps = line.steps.iter().take(MOST_ASSUMED).map(|step| RecordedBatch {
        step: step.step,
        why: step.why.iter().take(8).map(|word| short(word)).collect(),
        positions: step.positions,
        pixels: step.pixels,
        labels: step.labels,
        peak_allocated: Bytes::ZERO,
    });
    Batches {
        walked: line.walked,
        total: line.total,
        each: line.each,
        steps: steps.collect(),
        decides: 0,
    }
}
